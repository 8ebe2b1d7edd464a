"""List the partitions of a table and their files.

All code finds data files through a :class:`Lister`. The listers in this module list folders;
:class:`hudi_fast.metadata_table.state.MetadataLister` reads the table's metadata table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass

__all__ = ["PARTITION_MARKERS", "Lister", "StorageLister", "WithFiles"]

PARTITION_MARKERS = (
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata.parquet",
    ".hoodie_partition_metadata.orc",
)
"""A folder with one of these files is a partition (``HoodiePartitionMetadata``, 1.2.0)."""


class Lister(Protocol):
    """Lists data files. Implementations are picklable: tasks list their own partitions."""

    @property
    def lists_folders(self) -> bool:
        """Whether files are listed at the time of the call, which may be later than the pinned timeline."""
        ...

    def partitions(self) -> list[str]:
        """All partition paths, sorted; ``[""]`` for a table without partitions."""
        ...

    def files(self, partition: str) -> list[FileStat]:
        """All files of a partition, of any instant; empty if the partition is unknown."""
        ...

    def expect(self, partitions: Sequence[str]) -> None:
        """Announce that the files of these partitions will be requested, so that they can be read together."""
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
        with ThreadPool(8) as pool:
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

    def expect(self, partitions: Sequence[str]) -> None:
        """Does nothing: each folder is listed on its own."""


@dataclass(frozen=True, slots=True)
class WithFiles:
    """Adds files to the files of another lister.

    Attributes:
        added: files by partition path; they replace files of the same name.
    """

    lister: Lister
    added: Mapping[str, tuple[FileStat, ...]]

    @property
    def lists_folders(self) -> bool:
        """As for the other lister."""
        return self.lister.lists_folders

    def partitions(self) -> list[str]:
        """Partitions of the other lister and of the added files."""
        return sorted({*self.lister.partitions(), *self.added})

    def files(self, partition: str) -> list[FileStat]:
        """Files of the other lister and the added ones."""
        added = self.added.get(partition, ())
        names = {entry.name for entry in added}
        return [*(one for one in self.lister.files(partition) if one.name not in names), *added]

    def expect(self, partitions: Sequence[str]) -> None:
        """Announce them to the other lister."""
        self.lister.expect(partitions)


def _is_internal(entry: FileStat) -> bool:
    return entry.path == ".hoodie"
