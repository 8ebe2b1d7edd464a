"""Which partitions a table has and which files are in them.

A :class:`Lister` answers both; the rest of the package asks nothing else of storage to find data. Here folders are
listed; :class:`hudi_fast.metadata_table.lister.MetadataLister` asks the table's own metadata table.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from hudi_fast.storage.base import FileStat, Storage

__all__ = ["PARTITION_MARKERS", "Lister", "StorageLister", "WithFiles"]

PARTITION_MARKERS = (
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata.parquet",
    ".hoodie_partition_metadata.orc",
)
"""A folder that holds one of these is a partition (``HoodiePartitionMetadata``, 1.2.0)."""


class Lister(Protocol):
    """Answers where data files are. Implementations are picklable: tasks list the partitions that they own."""

    @property
    def lists_folders(self) -> bool:
        """Whether answers are of the moment when they are asked for, and may be newer than the pinned timeline."""
        ...

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
    lists_folders = True

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


@dataclass(frozen=True, slots=True)
class WithFiles:
    """What another lister finds, and some files more.

    Attributes:
        lister: the other one.
        added: files by partition path; where the other one has some of the same name, these stand for them.
    """

    lister: Lister
    added: Mapping[str, tuple[FileStat, ...]]

    @property
    def lists_folders(self) -> bool:
        """As the other one does."""
        return self.lister.lists_folders

    def partitions(self) -> list[str]:
        """Those of the other one, and of the files."""
        return sorted({*self.lister.partitions(), *self.added})

    def files(self, partition: str) -> list[FileStat]:
        """Those of the other one, and the added ones."""
        added = self.added.get(partition, ())
        names = {entry.name for entry in added}
        return [*(one for one in self.lister.files(partition) if one.name not in names), *added]


def _is_internal(entry: FileStat) -> bool:
    return entry.path == ".hoodie"
