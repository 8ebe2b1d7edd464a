"""The typed options of one call, and the one policy for inline services.

Write calls use ``for_write``, streaming sinks ``for_stream``, and table services, which run no inline services,
``from_options``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from hudi_fast.config.defaults_file import name_source, with_defaults
from hudi_fast.config.monitoring_options import HookOptions, MetricsOptions
from hudi_fast.config.options import written_options
from hudi_fast.config.rewrite_options import ClusteringOptions, CompactionOptions
from hudi_fast.config.service_options import ArchiveOptions, CleanOptions, ServiceOptions, TtlOptions
from hudi_fast.config.stream_options import SinkOptions
from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import HudiError
from hudi_fast.merging.rules import Merger
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass
from hudi_fast.writing.rollback_plan import FailedWrites, failed_writes

__all__ = ["Settings"]

_PLACES_OF_COMPACTION = (
    "hoodie.compact.inline",
    "hoodie.compact.schedule.inline",
    "hoodie.datasource.compaction.async.enable",
)
"""Options that choose where compaction runs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a write or a table service.

    Attributes:
        write: operation, file sizes and encodings, lock, clock, metadata table.
        compaction: trigger and selection of compaction.
        merger: merges rows of a table with the merge mode CUSTOM; else None.
        clustering: trigger, selection and layout of clustering.
        clean: retention and trigger of cleaning.
        archive: trigger and file settings of archiving.
        services: whether services run before and after a write, and whether a failed service fails the write.
        sync: catalogs to sync after a write.
        ttl: which partitions expire, and whether they are deleted after a write.
        metrics: whether metrics are reported, and where.
        hooks: callbacks after a commit, and validators before it.
        is_stream: whether a thread of the stream executes the plans that its batches make.
    """

    write: WriteOptions
    compaction: CompactionOptions
    merger: Merger | None = None
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    clean: CleanOptions = field(default_factory=CleanOptions)
    archive: ArchiveOptions = field(default_factory=ArchiveOptions)
    services: ServiceOptions = field(default_factory=ServiceOptions)
    sync: SyncOptions = field(default_factory=SyncOptions)
    ttl: TtlOptions = field(default_factory=TtlOptions)
    metrics: MetricsOptions = field(default_factory=MetricsOptions)
    hooks: HookOptions = field(default_factory=HookOptions)
    is_stream: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, Any] | None, merger: Merger | None = None) -> Settings:
        """Resolve a dictionary of ``hoodie.*`` keys; ``hudi-defaults.conf`` supplies missing keys.

        Args:
            options: the dictionary.
            merger: see the class.

        Raises:
            ConfigError: a key or value is wrong.
            UnsupportedFeatureError: an option requests an unsupported feature.
        """
        given = with_defaults(options)
        try:
            values = written_options(given)
            return cls(
                WriteOptions.of(values, given),
                CompactionOptions.of(values),
                merger,
                clustering=ClusteringOptions.of(values),
                clean=CleanOptions.of(values),
                archive=ArchiveOptions.of(values),
                services=ServiceOptions.of(values),
                sync=SyncOptions.of(values),
                ttl=TtlOptions.of(values),
                metrics=MetricsOptions.of(values),
                hooks=HookOptions.of(values),
            )
        except HudiError as error:
            name_source(error, options)
            raise

    def check_storage(self, storage: Storage) -> None:
        """Refuse storage that services cannot write to.

        Raises:
            UnsupportedFeatureError: the storage has no conditional writes.
        """
        storage.check_writable()

    @classmethod
    def for_write(cls, options: Mapping[str, Any] | None, merger: Merger | None = None) -> Settings:
        """The options of a write. A merge-on-read table is compacted after it, unless an option says otherwise.

        Apache Hudi has the same default (``HoodieSparkSqlWriter``, 1.2.0).

        Args:
            options: ``hoodie.*`` keys.
            merger: see the class.

        Raises:
            HudiError: as :meth:`from_options`.
        """
        settings = cls.from_options(options, merger)
        if not settings.compaction.explicit.isdisjoint(_PLACES_OF_COMPACTION):
            return settings
        return replace(settings, compaction=replace(settings.compaction, inline=True))

    @classmethod
    def for_stream(cls, options: Mapping[str, Any], stream: SinkOptions) -> Settings:
        """The options of the writes of a stream; a thread runs compaction and clustering after they were planned.

        Args:
            options: ``hoodie.*`` keys.
            stream: options of the stream.

        Raises:
            HudiError: as :meth:`from_options`.
        """
        settings = cls.from_options(options)
        compaction, clustering = settings.compaction, settings.clustering
        if compaction.asynchronous and not compaction.inline and not stream.disables_compaction:
            compaction = replace(compaction, schedule_inline=True)
        elif stream.disables_compaction:
            compaction = replace(compaction, schedule_inline=False)
        if clustering.asynchronous and not clustering.inline:
            clustering = replace(clustering, schedule_inline=True)
        return replace(settings, compaction=compaction, clustering=clustering, is_stream=True).for_committed_batches()

    @property
    def executes_clusterings(self) -> bool:
        """Whether this writer, or the thread of its stream, executes the clusterings that it plans."""
        return self.clustering.inline or (self.is_stream and self.clustering.schedule_inline)

    def for_committed_batches(self) -> Settings:
        """The settings of a stream: a failure after the commit of a batch is a warning, and the stream continues.

        As an error it would make the stream write the batch again, or end the query without need.
        """
        services, sync = replace(self.services, ignore_failures=True), replace(self.sync, ignores_failures=True)
        return replace(self, services=services, sync=sync)

    @property
    def lock_seconds(self) -> float:
        """Seconds to wait for the table's lock."""
        return self.write.lock.wait_ms / 1000

    @property
    def failed_writes(self) -> FailedWrites:
        """Rules for failed writes and heartbeats."""
        return failed_writes(self.write)
