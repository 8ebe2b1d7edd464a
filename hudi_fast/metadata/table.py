"""The metadata table of a data table, opened and pinned: what may be read of it, and whether it can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata.definitions import IndexDefinition
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.slices import FileSlice

__all__ = ["MetadataTable", "metadata_storage", "open_metadata"]


@dataclass(frozen=True)
class MetadataTable:
    """A data table's metadata table at one moment. Picklable, without its caches.

    Attributes:
        storage: of the metadata table.
        data_storage: of the data table.
        config: of the metadata table.
        timeline: of the metadata table.
        data_timeline: of the data table.
        partitions: those that are fully built, sorted.
        building: those that are being built: written, not read.
        definitions: index definitions of the data table by partition.
        data_version: table version of the data table.
    """

    storage: Storage
    data_storage: Storage
    config: TableConfig
    timeline: Timeline
    data_timeline: Timeline
    partitions: tuple[str, ...]
    building: tuple[str, ...]
    definitions: Mapping[str, IndexDefinition]
    data_version: int

    def groups(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of a partition, ordered by file id: the number of a group is its place.

        Raises:
            CorruptTableError: the partition has no groups, or some are missing.
        """
        raise NotImplementedError

    def unusable(self, partition: str) -> str | None:
        """Why a partition cannot be read; None when it can."""
        raise NotImplementedError

    def usable(self, partition: str) -> bool:
        """Whether a partition is there, fully built, and of a kind that is known."""
        return self.unusable(partition) is None

    def counts(self, instant: str) -> bool:
        """Whether log blocks of that instant count."""
        raise NotImplementedError


def metadata_storage(storage: Storage) -> Storage:
    """The storage of the metadata table of the data table at ``storage``."""
    raise NotImplementedError


def open_metadata(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """Open the metadata table that the data table's properties name; None when there is none that can be trusted.

    Args:
        storage: of the data table.
        config: of the data table.
        timeline: active timeline of the data table.

    Warns:
        HudiWarning: there is one, and why it is not used.
    """
    raise NotImplementedError
