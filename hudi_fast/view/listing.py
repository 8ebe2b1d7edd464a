"""Which partitions a table has and which files are in them.

A :class:`Lister` answers both; the rest of the package asks nothing else of storage to find data. Here folders are
listed; :class:`hudi_fast.metadata.lister.MetadataLister` asks the table's own metadata table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from hudi_fast.storage.base import FileStat, Storage

__all__ = ["PARTITION_MARKERS", "Lister", "StorageLister"]

PARTITION_MARKERS = (
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata.parquet",
    ".hoodie_partition_metadata.orc",
)
"""A folder that holds one of these is a partition (``HoodiePartitionMetadata``, 1.2.0)."""


class Lister(Protocol):
    """Answers where data files are. Implementations are picklable: tasks list the partitions that they own."""

    def partitions(self) -> list[str]:
        """All partition paths, sorted; ``""`` is the one of a table without partitions."""
        ...

    def files(self, partition: str) -> list[FileStat]:
        """All files of a partition, whatever their instant; empty when the partition is unknown."""
        ...


@dataclass(frozen=True, slots=True)
class StorageLister:
    """Lists folders."""

    storage: Storage

    def partitions(self) -> list[str]:
        """All folders with a partition marker, found level by level."""
        found: list[str] = []
        level = [""]
        with ThreadPoolExecutor(8) as pool:
            while level:
                deeper: list[str] = []
                for folder, entries in zip(level, pool.map(self.storage.list_dir, level), strict=True):
                    if any(entry.name in PARTITION_MARKERS for entry in entries):
                        found.append(folder)
                    deeper += [entry.path for entry in entries if entry.is_dir and not _is_internal(entry)]
                level = deeper
        return sorted(found)

    def files(self, partition: str) -> list[FileStat]:
        """The files of one folder."""
        return [entry for entry in self.storage.list_dir(partition) if not entry.is_dir]


def _is_internal(entry: FileStat) -> bool:
    return entry.path == ".hoodie"
