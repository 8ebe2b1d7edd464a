"""A table's state with files listed by its metadata table.

The file changes of one action, as a value: the only input of a metadata table update.

::

    write stats of a commit ─► delta_of_commit ──┐
    files that a clean deleted ─► change_of_clean ┴─► TableDelta ─► producers, one per kind of metadata partition

List files by the metadata table's ``files`` partition, without listing folders.

::

    small partition ─► read once as a whole ─► all answers from memory
    large partition ─► looked up by data partition: those that the caller announces, in one lookup
                       └► read as a whole where many are announced, or after a few single lookups

Entries stay in Arrow columns until their partition is requested. :meth:`MetadataLister.after` applies a commit of this
process to the entries in memory, so a stream of small writes reads the partition once. Implements
:class:`~hudi_fast.view.listing.Lister`. If the partition is damaged or cannot be read, folders are listed instead, with
a warning.

Load a table's state with files listed by its metadata table, if the metadata table can be trusted.

::

    configuration, timeline ─► checked ─► open_metadata ─► the lister: MetadataLister, or folders ─► state

A process that reads or writes a table repeatedly passes its last state as the known one. That state is returned if the
configurations, both timelines, the index definitions and the files of the metadata table are unchanged, because all
else follows from them and from files that never change under their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError, StorageAccessError, StorageUnreachableError
from hudi_fast.events import warn
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.metadata_table.layout import PartitionKind, load_definitions
from hudi_fast.metadata_table.read import lookup, scan
from hudi_fast.metadata_table.records import ALL_PARTITIONS
from hudi_fast.metadata_table.table import MetadataTable, open_metadata
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.storage.forks import new_lock
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instants import load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.lost_files import require_bodies, require_whole
from hudi_fast.view.slices import TableView
from hudi_fast.view.table_state import DecodedCommits, TableState, load_timeline_of, looked_again, state_of

__all__ = [
    "AddedFile",
    "MetadataLister",
    "TableDelta",
    "added_logs",
    "can_be_kept",
    "change_of_clean",
    "delta_of_commit",
    "metadata_of",
    "open_state",
]


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that an action wrote.

    Attributes:
        partition: partition path; ``""`` for a table without partitions.
        name: without folder.
        size: bytes.
        is_log: whether the file is a log file; else it is a base file.
        instant: requested time of the action.
        stat: write statistics of the file; None when unknown.
        is_cdc: whether the file is a change log, which has no rows.
        slice_logs: for a log file found in the table: paths of all log files of its slice, in order.
    """

    partition: str
    name: str
    size: int
    file_id: str
    is_log: bool
    instant: str
    stat: WriteStat | None = None
    is_cdc: bool = False
    slice_logs: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True)
class TableDelta:
    """The file changes of the action at ``instant``.

    Attributes:
        operation: such as ``UPSERT``, ``COMPACT``, ``CLEAN``.
        added: files written.
        removed: partition path to names of deleted files.
        removed_partitions: paths of deleted partitions.
        replaced: partition path to the file groups that the action replaces.
    """

    instant: str
    operation: str
    added: tuple[AddedFile, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed_partitions: tuple[str, ...] = ()
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def files(self) -> dict[str, dict[str, AddedFile | None]]:
        """Partition path to the names of its changed files; None for a deleted file.

        A partition with written files is always present, a partition of :attr:`emptied` never.
        """
        found: dict[str, dict[str, AddedFile | None]] = {}
        for one in self.added:
            found.setdefault(one.partition, {})[one.name] = one
        for partition, names in self.removed.items():
            if partition not in self.emptied:
                found.setdefault(partition, {}).update(dict.fromkeys(names))
        return found

    @property
    def emptied(self) -> tuple[str, ...]:
        """Deleted partitions to which the action writes no file."""
        written = {one.partition for one in self.added}
        return tuple(partition for partition in self.removed_partitions if partition not in written)


def added_logs(partition: str, logs: Sequence[LogFile]) -> list[AddedFile]:
    """The log files of a slice, in order, without write statistics."""
    paths = tuple(log.path for log in logs)
    return [AddedFile(partition, log.name, log.size, log.file_id, True, log.instant, slice_logs=paths) for log in logs]


def delta_of_commit(instant: str, metadata: CommitMetadata) -> TableDelta:
    """The file changes of a commit, delta commit, replace commit or compaction; write stats may have column ranges."""
    added = [one for stat in metadata.write_stats() if stat.path for one in _files_of(instant, stat)]
    replaced = metadata.partition_to_replace_file_ids or {}
    return TableDelta(
        instant,
        metadata.operation_type,
        tuple(added),
        replaced={partition: tuple(file_ids) for partition, file_ids in replaced.items()},
    )


def change_of_clean(
    instant: str, removed: Mapping[str, Sequence[str]], removed_partitions: Sequence[str] = ()
) -> TableDelta:
    """The file changes of a clean.

    ``removed`` maps partition paths to names or paths of deleted files.
    """
    names = {partition: tuple(path.rpartition("/")[2] for path in paths) for partition, paths in removed.items()}
    return TableDelta(instant, "CLEAN", removed=names, removed_partitions=tuple(removed_partitions))


def _files_of(instant: str, stat: WriteStat) -> list[AddedFile]:
    """The file of a write stat, and its change logs."""
    name = stat.path.rpartition("/")[2]
    log = parse_log_file(FileStat(stat.path, stat.file_size, 0, False))
    size = stat.file_size or stat.total_write_bytes
    files = [AddedFile(stat.partition_path, name, size, stat.file_id, log is not None, instant, stat)]
    for path, length in (stat.cdc_stats or {}).items():
        change_log = path.rpartition("/")[2]
        files.append(AddedFile(stat.partition_path, change_log, length, stat.file_id, True, instant, None, True))
    return files


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


_LAYOUT_WITH_COMPLETION_TIMES = 2


def open_state(
    storage: Storage,
    as_of: str | None = None,
    use_metadata: bool = True,
    known: TableState | None = None,
    may_lack_bodies: bool = False,
    commits: DecodedCommits | None = None,
) -> TableState:
    """Load the table's current or an earlier state.

    Args:
        storage: the table's storage.
        as_of: the newest visible requested time; None for now.
        use_metadata: whether to list files by the metadata table.
        known: an earlier current state that :func:`can_be_kept`; used if nothing has changed since.
        may_lack_bodies: whether completed writes may have lost their bodies, for example when they are rolled back.
        commits: those of an earlier state of the table; by default those of ``known``.

    Raises:
        TableNotFoundError: the table does not exist.
        CorruptTableError: a file of its configuration or timeline is invalid.

    Warns:
        HudiWarning: the metadata table cannot be trusted; folders are listed.
    """
    if known is not None:
        known, commits = _opened_by(storage, known), commits or known.commits

    def load() -> TableState:
        config, timeline = load_timeline_of(storage)
        if known is not None and (config, timeline) == (known.config, known.timeline) and _has_current_metadata(known):
            return known
        require_whole(storage, config, timeline)
        if not may_lack_bodies:
            require_bodies(storage, timeline, as_of)
        table = open_metadata(storage, config, timeline) if use_metadata else None
        lister = StorageLister(storage) if table is None else MetadataLister(table)
        return state_of(storage, config, timeline, lister, as_of, commits=commits)

    return looked_again(load)


def metadata_of(state: TableState | TableView) -> MetadataTable | None:
    """The metadata table that lists the state's files; None when folders are listed."""
    lister = (state.view if isinstance(state, TableState) else state).lister
    return lister.table if isinstance(lister, MetadataLister) else None


def can_be_kept(state: TableState) -> bool:
    """Whether :func:`open_state` can find out that a known state is current without reading all of it again.

    Before table version 8 instants have no completion times, and listings of folders may change at any time.
    """
    view = state.view
    if metadata_of(state) is None or view.lister.lists_folders:
        return False
    if view.as_of is not None or view.history is not None or view.sources is not None:
        return False
    return state.config.layout_version >= _LAYOUT_WITH_COMPLETION_TIMES


def _opened_by(storage: Storage, known: TableState) -> TableState:
    """The state on another storage object, since credentials of the earlier one may have expired."""
    view, lister = known.view, known.view.lister
    if isinstance(lister, MetadataLister):
        lister = lister.on(lister.table.opened_by(storage))
    logged = None if view.logged is None else replace(view.logged, storage=storage)
    view = replace(view, lister=lister, archive=ArchivedTimes(storage, known.config.history_folder), logged=logged)
    return replace(known, storage=storage, view=view)


def _has_current_metadata(known: TableState) -> bool:
    """Whether the metadata table is unchanged since the known state, whose data timeline is current.

    Its files are listed as well: a commit on top of a damaged metadata table would hide the damage.
    """
    table = metadata_of(known)
    if table is None:
        return False
    checks: list[Callable[[], bool]] = [
        lambda: TableConfig.from_properties(load_properties(table.storage), table.storage.uri) == table.config,
        lambda: load_timeline(table.storage, table.config) == table.timeline,
        lambda: load_definitions(table.data_storage, known.config) == table.definitions,
        table.has_all_files,
    ]
    try:
        if table.storage.is_local:
            return all(check() for check in checks)
        return all(in_threads(lambda check: check(), checks, len(checks)))
    except (HudiError, OSError):
        return False  # opening the metadata table again reports why it cannot be trusted
