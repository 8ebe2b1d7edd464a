"""What a table service was told: how files are written, and which slices it is to work on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_fast.config.archive_options import ArchiveOptions
from hudi_fast.config.clean_options import CleanOptions
from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.config.compaction_options import CompactionOptions
from hudi_fast.config.option_values import written_options
from hudi_fast.config.service_options import ServiceOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.locking.table_lock import HeldLock
from hudi_fast.merging.rules import Merger
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.writing.failed_writes import FailedWrites, failed_writes

__all__ = ["ServiceSettings"]


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The options of a service call.

    Attributes:
        write: sizes and encoding of files, locks and clocks; as for a write.
        compaction: when slices are compacted, and which.
        merger: merges rows of a table whose merge mode is CUSTOM; None for none.
        clustering: when file groups are clustered, which, and how.
        clean: which file slices stay, and when the others are deleted.
        archive: when instants are archived, and how the archive is kept.
        services: whether services run beside a write, and what becomes of it when one fails.
        waits: whether to wait for a service of the same kind that somebody else is carrying out.
    """

    write: WriteOptions
    compaction: CompactionOptions
    merger: Merger | None = None
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    clean: CleanOptions = field(default_factory=CleanOptions)
    archive: ArchiveOptions = field(default_factory=ArchiveOptions)
    services: ServiceOptions = field(default_factory=ServiceOptions)
    waits: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, merger: Merger | None = None) -> ServiceSettings:
        """Resolve a dictionary of ``hoodie.*`` keys.

        Args:
            options: the dictionary.
            merger: see the class.

        Raises:
            ConfigError: a key or value is wrong.
            UnsupportedFeatureError: an option asks for something that hudi_fast does not do.
        """
        given = dict(options or {})
        write, values = WriteOptions.from_options(given), written_options(given)
        return cls(
            write,
            CompactionOptions.of(values),
            merger,
            clustering=ClusteringOptions.of(values),
            clean=CleanOptions.of(values),
            archive=ArchiveOptions.of(values),
            services=ServiceOptions.of(values),
        )

    def check_storage(self, storage: Storage) -> None:
        """Refuse storage that services cannot write to.

        Raises:
            UnsupportedFeatureError: a storage without conditional writes.
        """
        storage.check_writable()

    def clock(self, config: TableConfig, held: HeldLock) -> InstantClock:
        """Gives times under the table's lock, and none once that is lost.

        Args:
            config: the table's configuration.
            held: the table's lock.
        """
        return InstantClock(config.timezone, self.write.clock_skew_ms, held=held)

    @property
    def lock_seconds(self) -> float:
        """How long to wait for the table's lock."""
        return self.write.lock.wait_ms / 1000

    @property
    def service_lock_seconds(self) -> float:
        """How long to wait for the lock of a service that somebody else is carrying out."""
        return self.lock_seconds if self.waits else 0.0

    @property
    def failed_writes(self) -> FailedWrites:
        """Which pending writes are those of writers that died, and how signs of life are given."""
        return failed_writes(self.write)
