"""Open and pin the metadata table of a data table, and decide whether it can be trusted.

::

    data table: properties, timeline ─┐
    .hoodie/metadata: properties ─────┼─► can it be trusted? ─► MetadataTable ─► groups of a partition ─► read
    .hoodie/metadata: timeline ───────┘         no: a warning, and folders are listed

Both timelines decide which log blocks are visible. A delta commit of the metadata table completes before its instant
completes on the data table, so instants that are pending on or missing from the pinned data timeline are ignored.
Apache Hudi checks nothing else. Here, a completed write of the data table without a delta commit (its writer did not
update the metadata table) makes the whole metadata table untrusted.

Sources: metadata reference 2.1 to 2.10; NativeTableMetadataFactory, HoodieTableMetadataUtil.getValidInstantTimestamps,
releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, HudiError, StorageAccessError, StorageUnreachableError
from hudi_fast.events import warn
from hudi_fast.formats.hfile.reader import BlockCache, HFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content, scan_log_blocks
from hudi_fast.metadata_table.layout import (
    METADATA_FOLDER,
    IndexDefinition,
    PartitionKind,
    group_file_id_prefix,
    index_version,
    kind_of,
    load_definitions,
    plain_group_id,
)
from hudi_fast.metadata_table.records import ALL_PARTITIONS
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.storage.forks import new_lock
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.commit_metadata import WriteStat, decode_commit_metadata
from hudi_fast.timeline.instants import SOLO_TIME, Instant, Timeline, instant_file_name, load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, log_order, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.pending import compacted_groups
from hudi_fast.view.slices import FileSlice, TableView, latest_slices

__all__ = [
    "MetadataTable",
    "distrust_of",
    "examine_metadata",
    "metadata_storage",
    "missing_writes",
    "open_metadata",
    "unknown_commit",
]

_CACHED_BYTES = 128 << 20
_ANSWERS, _ANSWER_BYTES = 16, 1 << 20
"""Number of kept answers, and the size of the largest one."""
_ROLLBACKS = ("rollback", "restore")

_INSTANT_DIGITS = 17


@dataclass(frozen=True, slots=True)
class _Rule:
    """Inputs for deciding which instants are visible.

    Attributes:
        data: instants of the data timeline, and whether they are complete.
        newest: the newest time of the data timeline.
        rollbacks: completed rollbacks and restores of the metadata table.
    """

    data: Mapping[str, bool]
    newest: str
    rollbacks: frozenset[str]


class _Caches:
    """Cached lookups; an unpickled table starts with empty caches."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.rule: _Rule | None = None
        self.groups: dict[str, tuple[FileSlice, ...]] = {}
        self.answers: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self.blocks = BlockCache(_CACHED_BYTES)

    def __reduce__(self) -> tuple[type[_Caches], tuple[()]]:
        return _Caches, ()


@dataclass(frozen=True)
class MetadataTable:
    """A data table's metadata table at one moment. Picklable without its caches; thread-safe.

    ``storage``, ``config`` and ``timeline`` belong to the metadata table, ``data_...`` and ``definitions`` to the data
    table.

    Attributes:
        partitions: fully built partitions, sorted.
        building: partitions under construction: they are written, but not read.
        definitions: index definitions of the data table by partition.
        pending_compactions: (partition, file id) to the instant of the metadata table's pending compaction of it.
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
    pending_compactions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _caches: _Caches = field(default_factory=_Caches, repr=False, compare=False)

    def groups(self, partition: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of a partition, ordered by file id; the index is the group number.

        Raises:
            CorruptTableError: the partition has no groups, or some are missing.
            UnsupportedFeatureError: the kind of the partition is unknown.
        """
        with self._caches.lock:
            known = self._caches.groups.get(partition)
        if known is None:
            known = tuple(self._without_pending(one) for one in latest_slices(self._view(), partition))
            _check_numbers(self, partition, known)
            with self._caches.lock:
                known = self._caches.groups.setdefault(partition, known)
        return known

    @property
    def blocks(self) -> BlockCache:
        """Cache of HFile blocks."""
        return self._caches.blocks

    def answer(self, query: Hashable, find: Callable[[], pa.Table]) -> pa.Table:
        """The records that a query finds; small answers are kept for later reads of the same state.

        Args:
            query: identifies the query.
            find: executes it.
        """
        answers = self._caches.answers
        with self._caches.lock:
            found = answers.get(query)
            if found is not None:
                answers.move_to_end(query)
                return found
        found = find()
        if found.nbytes <= _ANSWER_BYTES:
            with self._caches.lock:
                answers[query] = found
                if len(answers) > _ANSWERS:
                    answers.popitem(last=False)
        return found

    def unusable(self, partition: str) -> str | None:
        """Why a partition cannot be read; None when it can."""
        if partition not in self.partitions:
            return "it is being built" if partition in self.building else "the table does not have it"
        try:
            self.groups(partition)
        except (StorageAccessError, StorageUnreachableError):
            raise
        except HudiError as error:
            return str(error)
        return None

    def usable(self, partition: str) -> bool:
        """Whether a partition exists, is fully built, and has a known kind."""
        return self.unusable(partition) is None

    def is_by_partition(self, partition: str) -> bool:
        """Whether ``partition`` is a partitioned record index.

        Each data partition then has its own file groups, and keys are unique only within a data partition.
        """
        definition = self.definitions.get(partition)
        if partition != PartitionKind.RECORD_INDEX or definition is None:
            return False
        return definition.options.get("isPartitioned", "").lower() == "true"

    def hashes_secondary_values(self, partition: str) -> bool:
        """Whether only the secondary value decides a key's group: a secondary index of version 2."""
        if kind_of(partition) is not PartitionKind.SECONDARY_INDEX:
            return False
        return index_version(partition, self.data_version, self.definitions) == "V2"

    def is_visible(self, instant: str) -> bool:
        """Whether log blocks of that instant are visible."""
        rule = self._caches.rule
        if rule is None:
            rule = self._caches.rule = _rule(self.data_timeline, self.timeline)
        known = rule.data.get(instant)
        if known is not None:
            return known
        if instant[:_INSTANT_DIGITS] > rule.newest and not instant.startswith(SOLO_TIME):
            return False  # newer than the pinned data timeline
        return instant in rule.rollbacks or self.timeline.is_completed_or_archived(instant)

    def with_commit(self, instant: Instant, stats: Iterable[WriteStat]) -> MetadataTable:
        """The table after a delta commit of this process, without listing it again.

        Args:
            instant: the completed delta commit.
            stats: write statistics of the log files that it wrote.
        """
        written: dict[str, dict[str, list[LogFile]]] = {}
        for stat in stats:
            log = parse_log_file(FileStat(stat.path, stat.file_size, 0, False))
            if log is not None:
                written.setdefault(stat.partition_path, {}).setdefault(stat.file_id, []).append(log)
        caches = _Caches()
        caches.blocks = self._caches.blocks
        with self._caches.lock:
            known = dict(self._caches.groups)
        for partition, slices in known.items():
            logs = written.get(partition, {})
            if logs.keys() <= {one.file_id for one in slices}:  # else the commit added file groups
                caches.groups[partition] = tuple(_with_logs(one, logs.get(one.file_id, ())) for one in slices)
        return replace(self, timeline=self.timeline.with_instant(instant), _caches=caches)

    def has_all_files(self) -> bool:
        """Whether the files of all groups that were used so far still exist, with their sizes."""
        with self._caches.lock:
            known = dict(self._caches.groups)

        def has_all(partition: str) -> bool:
            found = {entry.path: entry.size for entry in self.storage.list_dir(partition)}
            files = (file for one in known[partition] for file in (one.base_file, *one.log_files) if file is not None)
            return all(found.get(file.path) == file.size for file in files)

        return all(in_threads(has_all, list(known), 1 if self.storage.is_local else len(known)))

    def opened_by(self, storage: Storage) -> MetadataTable:
        """The same table, read through another storage of the data table."""
        return replace(self, storage=metadata_storage(storage), data_storage=storage)

    def _view(self) -> TableView:
        archive = ArchivedTimes(self.storage, self.config.history_folder) if self.config.layout_version > 1 else None
        return TableView(
            self.timeline,
            StorageLister(self.storage),
            pending_compactions=self.pending_compactions,
            table_version=self.config.version,
            archive=archive,
        )

    def _without_pending(self, slice_: FileSlice) -> FileSlice:
        """The slice without log files of invisible instants; before version 8 file names do not identify them."""
        if self.config.layout_version < 2:
            return slice_
        return replace(slice_, log_files=tuple(log for log in slice_.log_files if self.is_visible(log.instant)))


def _with_logs(slice_: FileSlice, added: Sequence[LogFile]) -> FileSlice:
    if not added:
        return slice_
    return replace(slice_, log_files=tuple(sorted((*slice_.log_files, *added), key=log_order)))


def metadata_storage(storage: Storage) -> Storage:
    """The storage of the metadata table of the data table at ``storage``."""
    twin = storage.rooted_at(storage.fs_path(METADATA_FOLDER))
    twin.uri = storage.absolute(METADATA_FOLDER)
    return twin


def open_metadata(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """Open the metadata table named by the data table's properties; None when none can be trusted.

    Warns:
        HudiWarning: the metadata table exists and cannot be trusted; gives the reason.
    """
    if not config.metadata_partitions:
        return None
    table, problem = examine_metadata(storage, config, timeline)
    if problem is None:
        return table
    warn(
        f"The metadata table of {storage.uri} ({', '.join(config.metadata_partitions)}) is not used, folders are "
        f"listed: {problem.rstrip('.')}. The next write with a metadata table rebuilds it."
    )
    return None


def examine_metadata(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> tuple[MetadataTable | None, str | None]:
    """Open the metadata table named by the data table's properties and check whether it can be trusted.

    Returns:
        The table, None when it cannot be opened; the reason for distrust, None when it can be trusted.
    """
    table = None
    try:
        table = _open(storage, config, timeline)
        inside, own = table.storage, table.config
        problem = distrust_of(
            storage, config, timeline, table.timeline, lambda commit: names_no_file(inside, own, commit)
        )
        if problem is None and (unusable := table.unusable(PartitionKind.FILES)) is not None:
            problem = f"its partition files cannot be read: {unusable}"
    except (StorageAccessError, StorageUnreachableError):
        raise
    except (HudiError, FileNotFoundError, NotADirectoryError) as error:
        problem = str(error)
    return table, problem


def _open(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable:
    inside = metadata_storage(storage)
    own = TableConfig.from_properties(load_properties(inside), inside.uri)
    if own.layout_version != config.layout_version:
        raise CorruptTableError(
            f"it has table version {own.version}, whose timeline layout differs from that of the table's version "
            f"{config.version}.",
            f"{METADATA_FOLDER}/.hoodie/hoodie.properties",
        )
    if own.base_file_format != "HFILE":
        raise CorruptTableError(
            f"expected hoodie.table.base.file.format=HFILE, found {own.base_file_format}.",
            f"{METADATA_FOLDER}/.hoodie/hoodie.properties",
        )
    own_timeline = load_timeline(inside, own)
    return MetadataTable(
        storage=inside,
        data_storage=storage,
        config=own,
        timeline=own_timeline,
        data_timeline=timeline,
        partitions=tuple(sorted(config.metadata_partitions)),
        building=tuple(sorted(config.metadata_partitions_inflight)),
        definitions=load_definitions(storage, config),
        data_version=config.version,
        pending_compactions=compacted_groups(inside, own, own_timeline.pending_compactions),
    )


def _rule(data: Timeline, own: Timeline) -> _Rule:
    known = {one.requested: one.is_completed for one in data.instants}
    known |= {one.requested: one.is_completed for one in (*data.writes(), *data.pending_writes)}  # before savepoints
    rollbacks = frozenset(one.requested for one in own.of_action(*_ROLLBACKS) if one.is_completed)
    return _Rule(known, data.newest_time or "", rollbacks)


def _check_numbers(table: MetadataTable, partition: str, slices: tuple[FileSlice, ...]) -> None:
    """Check that no group is missing: their number is fixed at creation, and the hash of a key selects a group."""
    found: dict[str, list[str]] = {}
    by_partition = table.is_by_partition(partition)
    own = group_file_id_prefix(partition)
    for one in slices:
        prefix = one.file_id.rsplit("-", 2)[0] + "-" if by_partition else own
        found.setdefault(prefix, []).append(plain_group_id(one.file_id))
    if not slices and not by_partition:
        raise CorruptTableError(
            f"The metadata table of {table.data_storage.uri} has no file groups in its partition {partition}.",
            f"{METADATA_FOLDER}/{partition}",
        )
    for prefix, names in found.items():
        expected = [f"{prefix}{number:04d}" for number in range(len(names))]
        if names != expected:
            missing = sorted(set(expected) - set(names)) or names
            raise CorruptTableError(
                f"The metadata table of {table.data_storage.uri} lacks file groups of its partition {partition}: "
                f"expected {', '.join(missing[:3])} among {len(names)}.",
                f"{METADATA_FOLDER}/{partition}",
            )


# ---- whether the metadata table can be trusted, by the two timelines
#
# ::
#
#     completed writes of the data table ─┐
#                                         ├─► each has its delta commit, from the start of the metadata table
#     delta commits of the metadata table ┘   the newest is known to the data table, unless it is pending there
#
# If the metadata table seems ahead, the data timeline is listed once more, since a write may have completed between
# the two listings. A delta commit that names no file does not count: Apache Hudi adds one that belongs to no action of
# the table when it downgrades to version 6 (``EightToSevenDowngradeHandler``, 1.2.0).


def distrust_of(
    storage: Storage, config: TableConfig, data: Timeline, own: Timeline, is_empty: Callable[[Instant], bool]
) -> str | None:
    """Why a metadata table cannot be trusted; None when it can.

    Args:
        storage: storage of the data table.
        config: configuration of the data table.
        data: timeline of the data table.
        own: timeline of the metadata table.
        is_empty: whether a delta commit names no file; called for delta commits that the data table does not know.
    """
    if not own.writes():
        return "it has no completed commit."
    missing = missing_writes(data, own, config.layout_version)
    if missing:
        return (
            f"the {missing[0].action} {missing[0].requested} of the table ({len(missing)} such) has no delta commit in "
            "it; a writer did not update it."
        )
    while (unknown := unknown_commit(data, own)) is not None and is_empty(unknown):
        own = Timeline(tuple(one for one in own.instants if one != unknown))
    if unknown is not None and unknown_commit(load_timeline(storage, config), own) is not None:
        return (
            f"its newest delta commit {unknown.requested} is not an action of the table, whose newest time is "
            f"{data.newest_time}; the table's timeline was set back."
        )
    return None


def missing_writes(data: Timeline, own: Timeline, layout: int) -> list[Instant]:
    """Completed writes of the data table that lack their delta commit, oldest first; ``own`` is not empty.

    Writes before the creation of the metadata table need no delta commit: they are in its initial contents. If its
    timeline has initial delta commits, these are the writes that completed before the first initial delta commit.
    Otherwise, or before table version 8 (where the first commit's time is derived from the newest write), these are the
    writes before its first commit.
    """
    known = {one.requested for one in own.writes() if one.action == "deltacommit"}
    built = [one.completion for one in own.writes() if _is_initial(one) and len(one.requested) == _INSTANT_DIGITS]
    made = min((time for time in built if time is not None), default=None)
    if layout > 1 and made is not None:
        return [one for one in data.writes() if one.requested not in known and (one.completion or one.requested) > made]
    first = min(one.requested for one in own.writes())
    return [one for one in data.writes() if one.requested not in known and one.requested > first]


def unknown_commit(data: Timeline, own: Timeline) -> Instant | None:
    """The newest delta commit of the metadata table, if it is newer than the whole data timeline."""
    commits = [one for one in own.writes() if one.action == "deltacommit" and not _is_initial(one)]
    if not commits or data.find(commits[-1].requested) is not None:
        return None
    return commits[-1] if commits[-1].requested[:_INSTANT_DIGITS] > _newest(data) else None


def names_no_file(storage: Storage, config: TableConfig, commit: Instant) -> bool:
    """Whether a delta commit of a metadata table added nothing but a list of partitions.

    Args:
        storage: storage of the metadata table.
        config: configuration of the metadata table.
        commit: the delta commit.

    Raises:
        CorruptTableError: its body or one of its log blocks is damaged.
        FileNotFoundError: one of its files is missing.
    """
    path = f"{config.timeline_folder}/{instant_file_name(commit, config.layout_version)}"
    stats = list(decode_commit_metadata(storage.read_bytes(path), path).write_stats())
    if any(one.partition_path != PartitionKind.FILES.value or one.num_writes > 1 for one in stats):
        return False
    blocks = [block for one in stats for block in scan_log_blocks(storage, one.path)]
    own = (block for block in blocks if block.headers.get(HeaderKey.INSTANT_TIME) == commit.requested)
    return all(_lists_partitions(storage, block) for block in own)


def _lists_partitions(storage: Storage, block: LogBlock) -> bool:
    """Whether the only record of a log block is the list of partitions."""
    if block.kind is not BlockType.HFILE_DATA:
        return False
    with HFileReader.open(read_content(storage, block), block.path) as reader:
        keys = [key for found, _ in reader.scan() for key in found.to_pylist()]
    return keys == [ALL_PARTITIONS.encode()]


def _newest(data: Timeline) -> str:
    """The newest time; if storage truncates times to whole seconds, the latest moment of that second."""
    ends = (one.completion for one in data.instants if one.completion is not None)
    whole = (end[:-3] + "999" for end in ends if len(end) == _INSTANT_DIGITS and end.endswith("000"))
    return max(data.newest_time or "", *whole, "")


def _is_initial(instant: Instant) -> bool:
    return instant.action == "deltacommit" and instant.requested.startswith(SOLO_TIME)
