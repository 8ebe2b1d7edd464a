"""List files by the metadata table's ``files`` partition, without listing folders.

::

    small partition ─► read once as a whole ─► all answers from memory
    large partition ─► looked up by data partition: those that the caller announces, in one lookup
                       └► read as a whole where many are announced, or after a few single lookups

Entries stay in Arrow columns until their partition is requested. :meth:`MetadataLister.after` applies a commit of this
process to the entries in memory, so a stream of small writes reads the partition once. Implements
:class:`~hudi_fast.view.listing.Lister`. If the partition is damaged or cannot be read, folders are listed instead, with
a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError, StorageAccessError, StorageUnreachableError
from hudi_fast.events import warn
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import lookup, scan
from hudi_fast.metadata_table.records import ALL_PARTITIONS
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.table_delta import TableDelta
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.forks import new_lock
from hudi_fast.view.listing import StorageLister

__all__ = ["MetadataLister"]

_ROOT = "."
"""The empty partition path in the metadata table."""

_WHOLE_BYTES = 512 << 10
"""Up to this size, about 20 000 files, reading the whole partition takes no longer than a few lookups."""
_FEW_LOOKUPS = 8
_SHARE = 4
"""The whole partition is read if more than one in this many data partitions is needed."""
_CHANGED_FILES = 20_000
"""Maximum files of changed partitions that are kept as Python objects, about 8 MB."""
_FILES_OF_PARTITION = 2
_ALL_PARTITIONS = 1

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class _Listing:
    """Files of some partitions, ordered by partition and name.

    Attributes:
        names: string[n].
        sizes: int64[n].
        bounds: partition path to its first entry and the entry after its last.
        changed: partition path to the files, by name, of a partition that changed after the read; replaces its entries.
    """

    names: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    sizes: pa.Array = field(default_factory=lambda: pa.array([], pa.int64()))
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    changed: Mapping[str, tuple[FileStat, ...]] = field(default_factory=dict)

    def files(self, partition: str) -> Sequence[FileStat]:
        """The files of a partition; empty for an unknown partition."""
        if partition in self.changed:
            return self.changed[partition]
        start, end = self.bounds.get(partition, (0, 0))
        folder = f"{partition}/" if partition else ""
        names, sizes = (column.slice(start, end - start).to_pylist() for column in (self.names, self.sizes))
        return [FileStat(folder + name, size, 0, False) for name, size in zip(names, sizes, strict=True)]

    def after(self, change: TableDelta) -> _Listing | None:
        """The listing after an action; None if a size is unknown, or if reading the listing again is cheaper."""
        files, changed = change.files(), dict(self.changed) | dict.fromkeys(change.emptied, ())
        if any(one.size <= 0 for one in change.added):
            return None
        for partition, of_action in files.items():
            known = {one.name: one for one in self.files(partition)}
            if len(known) > _CHANGED_FILES:
                return None
            for name, added in of_action.items():
                old = known.pop(name, None)
                if added is not None:
                    size = added.size if old is None else max(added.size, old.size)
                    known[name] = FileStat(added.path, size, 0, False)
            changed[partition] = tuple(known[name] for name in sorted(known))
        return replace(self, changed=changed) if sum(map(len, changed.values())) <= _CHANGED_FILES else None


class MetadataLister:
    """Lists files from the metadata table; falls back to folders, with a warning, if it is damaged.

    Picklable and thread-safe.

    Requires a metadata table with a usable partition ``files``.
    """

    def __init__(self, table: MetadataTable) -> None:
        self.table = table
        self._lock = new_lock()
        self._listings: dict[str, _Listing] = {}
        self._whole: _Listing | None = None
        self._lookups = 0
        self._partitions: list[str] | None = None
        self._folders: StorageLister | None = None

    def __reduce__(self) -> tuple[type[MetadataLister], tuple[MetadataTable]]:
        return MetadataLister, (self.table,)

    def after(self, table: MetadataTable, change: TableDelta) -> MetadataLister:
        """A lister of the table after an action of this process; keeps the entries if all of them were read.

        Args:
            table: the metadata table with the action.
            change: the file changes of the action.
        """
        later = self.on(table)
        if later._whole is not None:
            later._whole = later._whole.after(change)
            written = {one.partition for one in change.added}
            later._partitions = sorted(written.union(later._partitions or ()).difference(change.emptied))
        return later if later._whole is not None else MetadataLister(table)

    def on(self, table: MetadataTable) -> MetadataLister:
        """A lister of the same table, opened through another storage; keeps the entries if all of them were read."""
        twin = MetadataLister(table)
        with self._lock:
            if self._folders is None:
                twin._whole, twin._partitions = self._whole, self._partitions
        return twin

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

    def expect(self, partitions: Sequence[str]) -> None:
        """Read the files of these partitions in one go; :meth:`files` then answers from memory."""
        self._answer(lambda: self._read(partitions), lambda folders: folders.expect(partitions))

    def _answer(self, find: Callable[[], Answer], from_folders: Callable[[StorageLister], Answer]) -> Answer:
        with self._lock:
            if self._folders is None:
                try:
                    return find()
                except (StorageAccessError, StorageUnreachableError):
                    raise
                except (HudiError, FileNotFoundError) as error:
                    self._folders = StorageLister(self.table.data_storage)
                    warn(
                        f"The metadata table of {self.table.data_storage.uri} cannot be read; folders "
                        f"are listed instead: {error}"
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
        if self._whole is None and partition not in self._listings:
            if self._is_small() or self._lookups >= _FEW_LOOKUPS:
                self._load_all()
            else:
                self._look_up([partition])
        return list((self._whole or self._listings[partition]).files(partition))

    def _read(self, partitions: Sequence[str]) -> None:
        missing = [name for name in partitions if name not in self._listings]
        if self._whole is not None or not missing:
            return
        if self._is_small() or len(missing) * _SHARE > len(self._find_partitions()):
            self._load_all()
        else:
            self._look_up(missing)

    def _look_up(self, partitions: Sequence[str]) -> None:
        keys = pa.array([name or _ROOT for name in partitions], pa.string())
        found = _listing(lookup(self.table, PartitionKind.FILES, keys))
        self._listings.update(dict.fromkeys(partitions, found))
        self._lookups += 1

    def _load_all(self) -> None:
        rows = scan(self.table, PartitionKind.FILES)
        self._whole, self._listings = _listing(rows), {}
        self._partitions = _partition_names(rows)

    def _is_small(self) -> bool:
        slices = self.table.groups(PartitionKind.FILES)
        bases = sum(one.base_file.size for one in slices if one.base_file is not None)
        return bases + sum(log.size for one in slices for log in one.log_files) <= _WHOLE_BYTES


def _partition_names(rows: pa.Table) -> list[str]:
    named = rows.filter(pc.equal(rows.column("type"), _ALL_PARTITIONS)).column("name").to_pylist()
    return sorted("" if name == _ROOT else name for name in named)


def _listing(rows: pa.Table) -> _Listing:
    """The files among records."""
    rows = rows.filter(pc.equal(rows.column("type"), _FILES_OF_PARTITION))
    if not rows.num_rows:
        return _Listing()
    rows = rows.sort_by([("key", "ascending"), ("name", "ascending")])
    keys = single_chunk(rows.column("key")).dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False)
    bounds = pairwise([*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(codes)])
    paths = ["" if key == _ROOT else key for key in keys.dictionary.to_pylist()]
    names, sizes = (single_chunk(rows.column(name)) for name in ("name", "size"))
    return _Listing(names, sizes, dict(zip(paths, bounds, strict=True)))
