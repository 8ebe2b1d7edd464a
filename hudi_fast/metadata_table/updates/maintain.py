"""Services of the metadata table, and compaction of one of its file groups.

Services of the metadata table: finish pending instants, compact log files, delete old slices.

::

    finish      pending rollbacks, delta commits, compactions and cleans whose writers have failed
    compact     enough delta commits since the last one ─► plan ─► begin ─► per group: fold ─► base file ─► commit
    clean       slices that no retained commit needs ─► plan ─► delete ─► clean

The caller provides the tasks or threads that compact groups. Services change no query result. All run under the data
table's lock, after its commit; only the middle of a compaction may run without it, from table version 8 on:

- The plan names the files to merge, so every execution writes the same content. Apache Hudi, too, executes a pending
  compaction that it finds.
- Delta commits in the meantime complete after the compaction was requested, so their log files belong to the next
  slice.
- :meth:`Compaction.is_intact` checks, under the lock, whether others have changed the compaction or its files in the
  meantime.

A compaction folds all visible entries into base files, which store no instants. It therefore waits while the data table
has a pending action whose delta commit is already complete.

Source: metadata reference 2.5, 2.8, 2.9; HoodieBackedTableMetadataWriter#performTableServices, Hudi 0.15.0 and 1.2.0.

Compacts a file group: its entries in key order, in pieces of bounded size.

::

    base file, log blocks ─► a block of each ─► entries up to the least last key:
        keys that a log has ─► fold ─► encoded ─┐
        other keys of the base file, as stored ─┴─► merged, sorted ─► piece

Only the changed entries are decoded, the rest is copied. Memory holds one block of each file, and log blocks of up to
8 MiB as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError
from hudi_fast.metadata_table.fold import Layer, fold
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import layer_streams, record_kind
from hudi_fast.metadata_table.records import RECORD_SCHEMA, decode_records, encode_records
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.bookkeeping import commit_schema
from hudi_fast.metadata_table.updates.groups import GroupWriter, MapGroups, target_of
from hudi_fast.metadata_table.updates.record_bins import Entries, count_up_to, key_bytes
from hudi_fast.metadata_table.updates.rollback import roll_back_delta_commit
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, encode_commit_metadata
from hudi_fast.timeline.instants import SOLO_TIME, Instant, State, Timeline, read_requested_body
from hudi_fast.timeline.plans import (
    CleanMetadata,
    CleanPartition,
    CleanPlan,
    decode_clean_plan,
    decode_rollback_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from hudi_fast.timeline.service_plans import CompactionPlan, decode_compaction_plan, encode_compaction_plan
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.pending import operation_of
from hudi_fast.view.planned_files import checked_clean, checked_compaction, checked_rollback
from hudi_fast.view.slices import FileSlice

__all__ = [
    "CompactGroup",
    "Compaction",
    "GroupSlice",
    "OutOfOrderError",
    "all_entries",
    "begin_compaction",
    "clean_metadata",
    "compact_metadata",
    "compacted_entries",
    "compaction_due",
    "finish_pending_metadata",
    "schedule_compaction",
]


class OutOfOrderError(Exception):
    """The keys of a file do not ascend by their bytes."""


@dataclass(frozen=True, slots=True)
class GroupSlice:
    """A slice to compact.

    Attributes:
        partition: partition of the metadata table.
        number: number of the file group within the partition.
        slice: the slice, with only the log files of the plan.
    """

    partition: str
    number: int
    slice: FileSlice


_SMALL = 1 << 20
"""Entries of slices up to this size in bytes are sorted in memory."""


@dataclass(frozen=True, slots=True)
class CompactGroup:
    """Compacts slices, one at a time. Picklable, for tasks on any machine.

    A repeated call writes the same file again.
    """

    table: MetadataTable
    writer: GroupWriter

    def __call__(self, one: GroupSlice) -> WriteStat:
        """Write the new base file of a slice.

        Raises:
            CorruptTableError: a file is missing or corrupt.
        """
        where = self.table, one.partition, one.slice, self.writer.schema
        write = partial(self.writer.compacted, one.partition, one.number, logs=one.slice.log_files)
        if one.slice.weight <= _SMALL:  # many short pieces take longer than one sort
            return write(entries=[all_entries(*where)])
        try:
            return write(entries=compacted_entries(*where))
        except OutOfOrderError:
            return write(entries=[all_entries(*where)])


def compacted_entries(table: MetadataTable, partition: str, slice_: FileSlice, schema: str) -> Iterator[Entries]:
    """The entries of a compacted slice's new base file, in consecutive pieces.

    Values are encoded with ``schema`` (Avro JSON).

    Raises:
        CorruptTableError: a file is missing or corrupt.
        OutOfOrderError: keys of a file do not ascend by their bytes; see :func:`all_entries`.
        UnsupportedFeatureError: the kind of the partition is unknown, or values have an unsupported type.
    """
    kind = record_kind(table, partition)
    cursors = [_Cursor(stream) for stream in layer_streams(table, slice_)]
    based = slice_.base_file is not None
    while (bound := min((last for one in cursors if (last := one.last()) is not None), default=None)) is not None:
        layers = [one.up_to(bound) for one in cursors]
        base, logs = (layers[0], layers[1:]) if based else (None, layers)
        changes = [one for one in logs if one is not None]
        if base is not None:
            untouched, touched = _parted(base, changes)
            yield _merged(_as_stored(kind, untouched, schema), _encoded(kind, [touched, *changes], schema))
        else:
            yield _encoded(kind, changes, schema)


def all_entries(table: MetadataTable, partition: str, slice_: FileSlice, schema: str) -> Entries:
    """The entries of a compacted slice's new base file, sorted in memory, for files with keys in another order.

    Arguments and errors are the same as for :func:`compacted_entries`.
    """
    layers = [layer for stream in layer_streams(table, slice_) for layer in stream]
    return _encoded(record_kind(table, partition), layers, schema)


class _Cursor:
    """Reads the ascending entries of one file up to a key at a time."""

    def __init__(self, stream: Iterator[Layer]) -> None:
        self._stream = stream
        self._rest: Layer | None = None
        self._before: bytes | None = None
        self._last = b""

    def last(self) -> bytes | None:
        """The last key of the entries that were read; None after the end of the file."""
        while self._rest is None:
            layer = next(self._stream, None)
            if layer is None:
                return None
            if len(layer.keys):
                self._take(layer)
        return self._last

    def up_to(self, bound: bytes) -> Layer | None:
        """The next entries whose keys are not above ``bound``. ``bound`` must not be above :meth:`last`."""
        if self._rest is None:
            return None
        count = len(self._rest.keys) if self._last <= bound else count_up_to(self._rest.keys, bound)
        found = _rows(self._rest, slice(0, count))
        self._rest = _rows(self._rest, slice(count, None)) if count < len(self._rest.keys) else None
        return found if count else None

    def _take(self, layer: Layer) -> None:
        if layer.values is None:  # keys of a delete block are in any order
            layer = replace(layer, keys=layer.keys.take(pc.array_sort_indices(layer.keys)))
        first, last = key_bytes(layer.keys[0]), key_bytes(layer.keys[-1])
        if self._before is not None and first <= self._before:
            raise OutOfOrderError(layer.where)
        self._rest, self._before, self._last = layer, last, last


def _rows(layer: Layer, rows: slice) -> Layer:
    return replace(layer, keys=layer.keys[rows], values=None if layer.values is None else layer.values[rows])


def _parted(base: Layer, changes: Sequence[Layer]) -> tuple[Layer, Layer]:
    """The entries of a base file whose keys are in no change, and the other entries."""
    if not changes:
        return base, _rows(base, slice(0, 0))
    assert base.values is not None
    known = pc.is_in(base.keys, pa.concat_arrays([one.keys for one in changes]))
    parts = [
        replace(base, keys=base.keys.filter(one), values=base.values.filter(one)) for one in (pc.invert(known), known)
    ]
    return parts[0], parts[1]


def _as_stored(kind: PartitionKind, layer: Layer, schema: str) -> Entries:
    """The stored entries, re-encoded if they have another schema."""
    assert layer.values is not None
    if layer.schema == schema:
        return layer.keys, layer.values
    return encode_records(kind, decode_records(kind, layer.keys, layer.values, layer.schema, layer.where), schema)


def _encoded(kind: PartitionKind, layers: Sequence[Layer], schema: str) -> Entries:
    """The live records of the layers, encoded and sorted by key."""
    return _sorted(*encode_records(kind, fold(kind, layers), schema))


def _merged(one: Entries, other: Entries) -> Entries:
    if not len(other[0]):
        return one
    return _sorted(pa.concat_arrays([one[0], other[0]]), pa.concat_arrays([one[1], other[1]]))


def _sorted(keys: pa.Array, values: pa.Array) -> Entries:
    order = pc.array_sort_indices(keys)
    return keys.take(order), values.take(order)


_EMPTY_WRITE_BYTES = 120 << 20
_POLICY = "KEEP_LATEST_COMMITS"
_KEPT_COMMITS = 20


def finish_pending_metadata(
    table: MetadataTable, clock: InstantClock, map_groups: MapGroups, compactions: bool = True
) -> bool:
    """Finish or roll back pending instants of failed writers.

    Call it after the data table's failed writes are rolled back.

    Args:
        table: the metadata table.
        clock: gives the times of the call.
        map_groups: executes compactions.
        compactions: whether to execute pending compactions, too.

    Returns:
        Whether anything changed; if so, open the metadata table again.

    Raises:
        CorruptTableError: a pending instant cannot be finished; the metadata table must be rebuilt.
    """
    changed = False
    for instant in table.timeline.pending():
        if instant.action == "compaction" and not compactions:
            continue
        changed = _finish_pending(table, instant, clock, map_groups) or changed
    return changed


def compaction_due(table: MetadataTable, after: int) -> bool:
    """Whether to compact: there are at least ``after`` delta commits since the last compaction, and no conflicting
    pending instant.
    """
    timeline = table.timeline
    if timeline.pending_compactions:
        return False
    last = _last_compaction(timeline)
    since = [one for one in timeline.writes() if one.action == "deltacommit" and (last is None or one.requested > last)]
    if len(since) < after:
        return False
    pending = {one.requested for one in table.data_timeline.pending()}
    if table.config.layout_version < 2:
        return not since or not any(one <= since[-1].requested for one in pending)
    return not any(one.requested in pending for one in timeline.writes())


def compact_metadata(table: MetadataTable, clock: InstantClock, map_groups: MapGroups) -> str | None:
    """Compact all groups that have log files; returns the instant, None when no group has any.

    Args:
        table: the metadata table.
        clock: gives the times of the call.
        map_groups: executes the compaction.

    Raises:
        CorruptTableError: a file of the metadata table is corrupt; nothing was completed.
    """
    instant = schedule_compaction(table, clock)
    if instant is None:
        return None
    _compact(table, instant, clock, map_groups)
    return instant.requested


def schedule_compaction(table: MetadataTable, clock: InstantClock) -> Instant | None:
    """Request a compaction of all groups that have log files; None when no group has any."""
    plan = CompactionPlan(tuple(operation_of(one, _EMPTY_WRITE_BYTES) for one in _slices(table) if one.log_files))
    if not plan.operations:
        return None
    instant = Instant(_own_time(table, clock, "001"), "compaction", State.REQUESTED)
    create_requested(table.storage, table.config, instant, encode_compaction_plan(plan))
    return instant


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction that has begun.

    Attributes:
        table: the metadata table at that moment.
        instant: the inflight instant.
        writer: writes the new base files.
        work: the slices to compact.
    """

    table: MetadataTable
    instant: Instant
    writer: GroupWriter
    work: tuple[GroupSlice, ...]

    def execute(self, map_groups: MapGroups) -> list[WriteStat]:
        """Write the new base files; files of an earlier attempt are overwritten.

        Raises:
            CorruptTableError: a file of the metadata table is missing or corrupt.
        """
        weights = [one.slice.weight for one in self.work]
        return map_groups(self.work, weights, CompactGroup(self.table, self.writer))

    def is_intact(self, now: MetadataTable, stats: Sequence[WriteStat]) -> bool:
        """Whether a compaction that was executed without the lock can be completed.

        No other process may have completed, removed or undone it, and the files that it read and wrote must exist.

        Args:
            now: the metadata table, opened under the lock.
            stats: write statistics of the new base files.
        """
        states = [one.state for one in now.timeline.pending_compactions if one.requested == self.instant.requested]
        if states != [State.INFLIGHT]:
            return False
        needed: dict[str, set[str]] = {}
        for one in self.work:
            needed.setdefault(one.partition, set()).update(file.name for file in one.slice.files)
        for stat in stats:
            needed[stat.partition_path].add(stat.path.rpartition("/")[2])
        return all(names <= {entry.name for entry in now.storage.list_dir(name)} for name, names in needed.items())

    def complete(self, stats: Sequence[WriteStat], clock: InstantClock) -> None:
        """Make the new base files visible; the caller holds the lock."""
        storage, config = self.table.storage, self.table.config
        by_partition: dict[str, list[WriteStat]] = {}
        for stat in sorted(stats, key=lambda one: one.path):
            by_partition.setdefault(stat.partition_path, []).append(stat)
        extra = {"schema": commit_schema(self.writer.schema)}
        metadata = CommitMetadata(by_partition, extra, "COMPACT", compacted=True)
        complete(
            storage, config, self.instant, encode_commit_metadata(metadata, config.layout_version), clock.next_time
        )


def begin_compaction(table: MetadataTable, instant: Instant) -> Compaction:
    """Begin a requested compaction, or restart an abandoned one; the caller holds the lock.

    Log files written after the plan are not merged and stay on top of the new base files.

    Raises:
        CorruptTableError: the plan cannot be read.
    """
    storage, config = table.storage, table.config
    path = f"{config.timeline_folder}/{instant.requested}.compaction.requested"
    plan = decode_compaction_plan(read_requested_body(storage, config, instant), path)
    checked_compaction(storage, plan, path)
    if instant.state is State.REQUESTED:
        to_inflight(storage, config, instant)
    names = {operation.partition_path for operation in plan.operations} & {*table.partitions, *table.building}
    groups = {name: table.groups(name) for name in sorted(names)}
    targets = {name: tuple(map(target_of, slices)) for name, slices in groups.items()}
    planned = {(one.partition_path, one.file_id): frozenset(one.log_files) for one in plan.operations}
    work = []
    for name, slices in groups.items():
        for number, slice_ in enumerate(slices):
            wanted = planned.get((name, slice_.file_id))
            if wanted is not None:
                logs = tuple(log for log in slice_.log_files if log.name in wanted)
                work.append(GroupSlice(name, number, replace(slice_, log_files=logs)))
    return Compaction(
        table,
        replace(instant, state=State.INFLIGHT),
        GroupWriter(storage, config, instant.requested, RECORD_SCHEMA, targets, building=True),
        tuple(work),
    )


def clean_metadata(table: MetadataTable, clock: InstantClock, kept_commits: int = _KEPT_COMMITS) -> str | None:
    """Delete slices that none of the newest ``kept_commits`` commits needs; None without such slices, else the instant.

    If archiving has left fewer commits on the timeline, the slices of all these commits are retained.
    """
    commits = table.timeline.writes()
    if not commits or (len(commits) <= kept_commits and not table.storage.exists(table.config.history_folder)):
        return None
    earliest = commits[-kept_commits:][0]
    files = {name: found for name in table.partitions if (found := _outdated(table, name, earliest.requested))}
    if not files:
        return None
    plan = CleanPlan(
        _POLICY,
        earliest.requested,
        earliest.action,
        commits[-1].requested,
        {name: tuple(table.storage.absolute(path) for path in paths) for name, paths in files.items()},
    )
    instant = Instant(_own_time(table, clock, "002"), "clean", State.REQUESTED)
    create_requested(table.storage, table.config, instant, encode_clean_plan(plan))
    _clean(table, instant, plan, clock)
    return instant.requested


# ---- pending instants


def _finish_pending(table: MetadataTable, instant: Instant, clock: InstantClock, map_groups: MapGroups) -> bool:
    storage, config = table.storage, table.config
    if instant.action == "deltacommit":
        if any(one.requested == instant.requested for one in table.data_timeline.pending()):
            return False  # the action is still running
        if _is_initial(config.layout_version, instant.requested):
            delete_instant_files(storage, config, instant)
        else:
            roll_back_delta_commit(
                storage, config, table.timeline, instant.requested, _own_time(table, clock, "006"), clock
            )
        return True
    if instant.action not in ("rollback", "compaction", "clean"):
        raise CorruptTableError(
            f"The metadata table of {storage.uri} has a pending {instant.action} ({instant.requested}) that hudi_fast "
            "cannot finish."
        )
    if instant.action == "compaction":
        _compact(table, instant, clock, map_groups)
        return True
    try:
        path = f"{config.timeline_folder}/{instant.requested}.{instant.action}.requested"
        body = read_requested_body(storage, config, instant)
        if instant.action == "rollback":
            failed = checked_rollback(storage, decode_rollback_plan(body, path), path).instant
            roll_back_delta_commit(storage, config, table.timeline, failed, instant.requested, clock)
        else:
            _clean(table, instant, checked_clean(storage, decode_clean_plan(body, path), path), clock)
    except CorruptTableError:
        if body:
            raise
        delete_instant_files(storage, config, instant)  # interrupted while writing the requested file
    return True


def _is_initial(layout: int, requested: str) -> bool:
    if requested.startswith(SOLO_TIME):
        return True
    return layout < 2 and len(requested) == 20 and int(requested[-3:]) >= 10


# ---- compaction


def _last_compaction(timeline: Timeline) -> str | None:
    return max((one.requested for one in timeline.writes() if one.action == "commit"), default=None)


def _slices(table: MetadataTable) -> Iterable[FileSlice]:
    """Slices of complete partitions; base files of a partition under construction are older than any new compaction."""
    for partition in table.partitions:
        yield from table.groups(partition)


def _own_time(table: MetadataTable, clock: InstantClock, suffix: str) -> str:
    """The requested time of a service of the metadata table."""
    if table.config.layout_version > 1:
        return clock.next_time(table.timeline.newest_time, table.data_timeline.newest_time)
    deltas = [one.requested for one in table.timeline.writes() if one.action == "deltacommit"]
    return (deltas[-1] if deltas else SOLO_TIME)[:17] + suffix


def _compact(table: MetadataTable, instant: Instant, clock: InstantClock, map_groups: MapGroups) -> None:
    """Execute a compaction under the lock."""
    compaction = begin_compaction(table, instant)
    compaction.complete(compaction.execute(map_groups), clock)


# ---- cleaning


def _outdated(table: MetadataTable, partition: str, earliest: str) -> list[str]:
    """Files of slices that were already outdated at ``earliest``."""
    entries = [entry for entry in table.storage.list_dir(partition) if not entry.is_dir]
    bases = [base for base in map(parse_base_file, entries) if base is not None]
    keep: dict[str, str] = {}
    for base in bases:
        if base.instant < earliest and table.timeline.is_completed_or_archived(base.instant):
            keep[base.file_id] = max(keep.get(base.file_id, ""), base.instant)
    outdated = [base.path for base in bases if base.instant < keep.get(base.file_id, "")]
    logs = [log for log in map(parse_log_file, entries) if log is not None and log.file_id in keep]
    ended = _completions(table, {log.instant for log in logs})
    outdated += [log.path for log in logs if log.instant in ended and ended[log.instant] < keep[log.file_id]]
    return sorted(outdated)


def _completions(table: MetadataTable, instants: set[str]) -> dict[str, str]:
    """Completion times of writes, including archived writes; before table version 8 the times in log file names."""
    if table.config.layout_version < 2:
        return {time: time for time in instants}
    found = {time: done for time in instants if (done := table.timeline.completion_of(time)) is not None}
    archived = {time for time in instants - found.keys() if table.timeline.is_completed_or_archived(time)}
    return found | ArchivedTimes(table.storage, table.config.history_folder).completions(archived)


def _clean(table: MetadataTable, instant: Instant, plan: CleanPlan, clock: InstantClock) -> None:
    storage, config = table.storage, table.config
    started = time.monotonic()
    if instant.state is State.REQUESTED:
        to_inflight(storage, config, instant, encode_clean_plan(plan))
    done = []
    for partition, paths in plan.files.items():
        names = tuple(path.rpartition("/")[2] for path in paths)
        storage.delete_files([f"{partition}/{name}" for name in names])
        done.append(CleanPartition(partition, plan.policy, names))
    metadata = CleanMetadata(
        instant.requested,
        plan.earliest_instant_to_retain or "",
        plan.last_completed,
        int((time.monotonic() - started) * 1000),
        tuple(done),
    )
    inflight = Instant(instant.requested, "clean", State.INFLIGHT)
    complete(storage, config, inflight, encode_clean_metadata(metadata), clock.next_time)
