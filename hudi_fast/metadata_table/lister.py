"""List files by the metadata table's ``files`` partition, without listing folders.

::

    small partition ─► read once as a whole ─► all answers from memory
    large partition ─► looked up by data partition; read as a whole after a few lookups

Implements :class:`~hudi_fast.view.listing.Lister`. If the partition is damaged or cannot be read, folders are listed
instead, with a warning.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError, HudiWarning
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup, scan
from hudi_fast.metadata_table.records import ALL_PARTITIONS
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.storage.base import FileStat
from hudi_fast.view.listing import StorageLister

__all__ = ["MetadataLister"]

_ROOT = "."
"""The empty partition path in the metadata table."""

_WHOLE_BYTES = 16 << 20
_FEW_LOOKUPS = 8
_FILES_OF_PARTITION = 2
_ALL_PARTITIONS = 1

Answer = TypeVar("Answer")


class MetadataLister:
    """Lists files from the metadata table; falls back to folders, with a warning, if it is damaged.

    Picklable and thread-safe.

    Requires a metadata table with a usable partition ``files``.
    """

    def __init__(self, table: MetadataTable) -> None:
        self.table = table
        self._lock = threading.Lock()
        self._files: dict[str, list[FileStat]] = {}
        self._partitions: list[str] | None = None
        self._is_whole = False
        self._folders: StorageLister | None = None

    def __reduce__(self) -> tuple[type[MetadataLister], tuple[MetadataTable]]:
        return MetadataLister, (self.table,)

    @property
    def lists_folders(self) -> bool:
        """Whether a failed read made this lister fall back to folders."""
        return self._folders is not None

    def partitions(self) -> list[str]:
        """All partition paths, sorted; ``[""]`` for a table without partitions."""
        return self._answer(self._find_partitions, lambda folders: folders.partitions())

    def files(self, partition: str) -> list[FileStat]:
        """All files of a partition, by name; empty if the partition is unknown."""
        return list(self._answer(lambda: self._find_files(partition), lambda folders: folders.files(partition)))

    def _answer(self, find: Callable[[], Answer], from_folders: Callable[[StorageLister], Answer]) -> Answer:
        with self._lock:
            if self._folders is None:
                try:
                    return find()
                except (HudiError, FileNotFoundError) as error:
                    self._folders = StorageLister(self.table.data_storage)
                    warnings.warn(
                        f"The metadata table of {self.table.data_storage.uri} cannot be read; folders "
                        f"are listed instead: {error}",
                        HudiWarning,
                        stacklevel=4,
                    )
            folders = self._folders
        return from_folders(folders)

    def _find_partitions(self) -> list[str]:
        if self._partitions is None:
            if self._is_small():
                self._load_all()
            else:
                found = lookup(self.table, PartitionKind.FILES, pa.array([ALL_PARTITIONS]))
                self._partitions = _partition_names(found)
        return list(self._partitions or ())

    def _find_files(self, partition: str) -> list[FileStat]:
        if not self._is_whole and partition not in self._files:
            if self._is_small() or len(self._files) >= _FEW_LOOKUPS:
                self._load_all()
            else:
                rows = lookup(self.table, PartitionKind.FILES, pa.array([partition or _ROOT]))
                self._files[partition] = _files_by_partition(rows).get(partition, [])
        return self._files.get(partition, [])

    def _load_all(self) -> None:
        rows = scan(self.table, PartitionKind.FILES)
        self._files = _files_by_partition(rows)
        self._partitions = _partition_names(rows)
        self._is_whole = True

    def _is_small(self) -> bool:
        slices = self.table.groups(PartitionKind.FILES)
        bases = sum(one.base_file.size for one in slices if one.base_file is not None)
        return bases + sum(log.size for one in slices for log in one.log_files) <= _WHOLE_BYTES


def _partition_names(rows: pa.Table) -> list[str]:
    named = rows.filter(pc.equal(rows.column("type"), _ALL_PARTITIONS)).column("name").to_pylist()
    return sorted("" if name == _ROOT else name for name in named)


def _files_by_partition(rows: pa.Table) -> dict[str, list[FileStat]]:
    """Files of each partition, by name."""
    rows = rows.filter(pc.equal(rows.column("type"), _FILES_OF_PARTITION))
    if not rows.num_rows:
        return {}
    rows = rows.sort_by([("key", "ascending"), ("name", "ascending")])
    keys = rows.column("key").combine_chunks()
    names, sizes = rows.column("name").to_pylist(), rows.column("size").to_pylist()
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    bounds = [*np.flatnonzero(np.diff(codes, prepend=-1)), len(names)]
    found: dict[str, list[FileStat]] = {}
    for start, end in pairwise(bounds):
        key = keys[int(start)].as_py()
        folder = "" if key == _ROOT else f"{key}/"
        found["" if key == _ROOT else key] = [
            FileStat(f"{folder}{names[at]}", sizes[at], 0, False) for at in range(start, end)
        ]
    return found
