"""Build an index while writers continue, and drop one.

Builds an index while writers continue: an ``indexing`` action.

::

    begin    the table's lock: clean up, undo abandoned indexings, requested ─► inflight
             metadata table: folders and empty file groups of the new partitions, a delta commit of their own
             index definitions ─► the properties list the partitions as inflight: every write logs to them from now on
    build    no lock: the records of the pinned table ─► base files                  (writers continue)
    finish   the table's lock: delta commit of the base files ─► the properties list the partitions ─► completed

Log files of writes in the meantime are on top of the base files, so no further records are needed. Before table version
8 log files are named after their base file, which does not exist yet, so indexes of such tables are built under the
lock.

The process holds the lock of indexings from begin to finish. The lock ends with its process, so a process that holds it
and finds an inflight indexing knows that it was abandoned. It undoes the indexing, or completes it if its partitions
are fully built.

Sources: metadata reference 2.5, 2.10, 2.13; ScheduleIndexActionExecutor, RunIndexActionExecutor, Hudi 1.2.0.

Dropping indexes, and undoing abandoned indexings.

::

    drop    indexes that require it, then its names in the properties ─► folders ─► index definitions
    undo    abandoned indexings, by the next indexing or write:
            the same for partitions that are being built ─► their delta commit ─► the indexing itself
            before it began: the plan, unless other calls may execute it

All of it under the table's lock. Source: metadata reference 2.10, 2.12; RunIndexActionExecutor#abort, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    ConfigError,
    HudiError,
    LockError,
    ServiceTakenError,
)
from hudi_fast.locking.machine import machine_lock
from hudi_fast.metadata_table.layout import PartitionKind, load_definitions
from hudi_fast.metadata_table.records import RECORD_SCHEMA
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable, metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import (
    drop_partitions,
    has_metadata_folder,
    record_building,
    record_built,
    write_definitions,
)
from hudi_fast.metadata_table.updates.build import build_order, build_partitions, initial_instant, open_groups
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, start_delta_commit
from hudi_fast.metadata_table.updates.groups import GroupSink, GroupWriter
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource, sources_of_table
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.services.index_plan import (
    INDEX_LOCK_PATH,
    IndexRequest,
    IndexWork,
    ScheduledIndex,
    last_write,
    named_partition,
    read_index_plan,
    resting_on,
    schedule_in,
    scheduled_indexes,
    waiting_for,
    wanted_indexes,
    work_of,
)
from hudi_fast.services.running import file_plan, is_abandoned_indexing, require_abandoned
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import heartbeat_path, is_alive, sending_heartbeats
from hudi_fast.timeline.instants import Instant, State, load_timeline
from hudi_fast.timeline.service_plans import encode_index_metadata
from hudi_fast.timeline.transition import complete, delete_instant_files, revert_to_requested, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import ensure_metadata, metadata_without_pending, producer_context
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import noted_on, recover

__all__ = [
    "IndexResult",
    "build_index",
    "drop_index",
    "finish_abandoned_indexings",
    "finish_pending_indexings",
    "run_scheduled_index",
    "undo_indexing",
]

_ACTION = "indexing"


def drop_index(session: TableSession, name: str) -> tuple[str, ...]:
    """Drop an index.

    Args:
        session: the call.
        name: of the metadata partition, or of a secondary or expression index; ``files`` drops all.

    Returns:
        The metadata partitions that were dropped: ``partition_stats`` is dropped with ``column_stats``.

    Raises:
        ConfigError: there is no such index, or secondary indexes require it.
    """
    storage = session.storage
    with machine_lock(storage, session.settings.lock_seconds, INDEX_LOCK_PATH), session.locked() as state:
        config = state.config
        present = config.all_metadata_partitions
        partition = named_partition(name, present)
        others = resting_on(partition, present)
        if partition == PartitionKind.RECORD_INDEX and others:
            raise ConfigError(
                f"The record index of {storage.uri} cannot be dropped: {', '.join(others)} requires it. Drop that "
                "first."
            )
        dropped = (partition, *others)
        session.require_lock()
        _drop(storage, config, dropped)
        session.changed()
        return dropped


def undo_indexing(storage: Storage, planned: ScheduledIndex, keep_plan: bool = False) -> None:
    """Remove files and properties of a failed indexing; the table is as before.

    Args:
        storage: the table's storage.
        planned: the indexing.
        keep_plan: whether it stays requested on the timeline.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    instant = Instant(planned.instant, _ACTION, State.INFLIGHT)
    if any(one.requested == planned.instant and one.is_completed for one in _indexings(storage, config)):
        return  # it failed after it was complete
    built = set(planned.partitions) & set(config.metadata_partitions)
    if not built:
        _drop(storage, config, planned.partitions)
        _delete_delta_commit(storage, planned.instant)
    if keep_plan and not built:
        revert_to_requested(storage, config, instant)
    elif not built:
        delete_instant_files(storage, config, instant)


def finish_pending_indexings(session: TableSession, wanted: str = "") -> None:
    """Undo abandoned indexings; under the lock of indexings and the table's.

    One whose partitions are fully built is completed instead. A plan that other calls may execute stays.

    Args:
        session: the call.
        wanted: the indexing that is executed next: its plan stays.

    Raises:
        ServiceTakenError: another process runs one.
    """
    state = session.state
    storage, config = state.storage, state.config
    named: set[str] = set()
    for instant in _never_begun(session):
        if instant.requested != wanted:
            delete_instant_files(storage, config, instant)
            storage.delete_file(heartbeat_path(instant.requested))
            session.changed()
    for instant in state.timeline.of_action(_ACTION):
        if instant.state is not State.INFLIGHT:
            continue
        require_abandoned(session, instant)
        parts = read_index_plan(state, instant)
        names = {one.partition for one in parts}
        if names and names <= set(config.metadata_partitions):
            done = [replace(one, upto=last_write(state), extra_metadata={}) for one in parts]
            body, newest = encode_index_metadata(done), state.timeline.newest_time
            clock = session.clock
            complete(storage, config, instant, body, partial(clock.completion_time, newest), confirm=clock.confirm)
        else:
            undo_indexing(storage, ScheduledIndex(instant.requested, parts), keep_plan=instant.requested == wanted)
        named |= names
        session.changed()
    left = set(config.metadata_partitions_inflight) - named
    if left:
        _drop(storage, session.state.config, left)
        session.changed()


def finish_abandoned_indexings(session: TableSession) -> None:
    """Undo or complete abandoned indexings: the metadata table is not compacted while one is pending.

    Plans that wait for another call stay.

    Args:
        session: the call, with or without the table's lock.

    Raises:
        ServiceTakenError: another process runs one.
    """
    timeline = session.state.timeline
    begun = [one for one in timeline.of_action(_ACTION) if one.state is State.INFLIGHT]
    is_left = all(is_abandoned_indexing(session, one) for one in begun)
    if is_left and (begun or _never_begun(session)):
        with session.service_lock(INDEX_LOCK_PATH), session.locked():
            finish_pending_indexings(session)


def _never_begun(session: TableSession) -> list[Instant]:
    """Indexings that their own call should have executed, but it died before.

    The table's lock makes this certain: that call holds it until the indexing is inflight.
    """
    state, rule = session.state, session.heartbeat_rule
    left = {one.instant for one in scheduled_indexes(state) if one.is_at_once}
    return [
        one
        for one in state.timeline.of_action(_ACTION)
        if one.requested in left and not is_alive(state.storage, one.requested, rule)
    ]


def _drop(storage: Storage, config: TableConfig, partitions: Iterable[str]) -> None:
    going = set(partitions)
    config = drop_partitions(storage, config, going)
    with contextlib.suppress(HudiError):  # definitions without a partition are harmless
        old = dict(load_definitions(storage, config))
        write_definitions(storage, config, {name: one for name, one in old.items() if name not in going}, old)


def _delete_delta_commit(storage: Storage, instant: str) -> None:
    if not has_metadata_folder(storage):
        return
    inner = metadata_storage(storage)
    config = TableConfig.from_properties(load_properties(inner), inner.uri)
    delete_instant_files(inner, config, Instant(instant, "deltacommit", State.INFLIGHT))


def _indexings(storage: Storage, config: TableConfig) -> tuple[Instant, ...]:
    return load_timeline(storage, config).of_action(_ACTION)


_FIRST_WITH_LAYOUT_2 = 8
_BUILD = "BULK_INSERT_PREPPED"

_Find = Callable[[], ScheduledIndex | None]


@dataclass(frozen=True, slots=True)
class IndexResult(ShownResult):
    """The result of building an index.

    Attributes:
        partition: the requested metadata partition.
        instant: requested time of the indexing; empty when there was nothing to build.
        partitions: the built metadata partitions, in that order: required indexes first.
        records: number of written records.
        file_groups: number of their file groups.
        seconds: time from the call until the index is usable.
    """

    partition: str
    instant: str
    partitions: tuple[str, ...] = ()
    records: int = 0
    file_groups: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Begun:
    """The state of an indexing that has begun.

    Attributes:
        instant: the inflight indexing.
        work: its work.
        context: the pinned table.
        sources: the records of each metadata partition, in build order.
        writer: writes base files at the instant.
    """

    instant: Instant
    work: IndexWork
    context: ProducerContext
    sources: tuple[tuple[str, tuple[RecordSource, ...]], ...]
    writer: GroupWriter


def build_index(session: TableSession, request: IndexRequest) -> IndexResult:
    """Build an index and the indexes that it requires, if they are missing. Executes pending plans for them.

    Args:
        session: the call.
        request: the index; a pending plan overrides its settings.

    Raises:
        CommitError: it failed; the table is as before.
        ConfigError: the table cannot have the index.
        InvalidDataError: the table's rows cannot be indexed, such as two rows with one key.
        UnsupportedFeatureError: the form of the index is not supported.
    """
    settings = session.settings
    asked = wanted_indexes(request, session.state.config, settings.write.metadata).partition

    def find() -> ScheduledIndex | None:
        return waiting_for(session.state, request, settings) or schedule_in(session, request, at_once=True)

    done = [_run(session, find, asked)]
    while done[-1].instant and asked not in done[-1].partitions:  # the plan was for a required index
        done.append(_run(session, find, asked))
    return IndexResult(
        partition=asked,
        instant=done[-1].instant,
        partitions=tuple(name for one in done for name in one.partitions),
        records=sum(one.records for one in done),
        file_groups=sum(one.file_groups for one in done),
        seconds=sum(one.seconds for one in done),
    )


def run_scheduled_index(session: TableSession, scheduled: ScheduledIndex) -> IndexResult:
    """Execute a pending indexing; if it fails it is pending again.

    Raises:
        ServiceTakenError: it is no longer pending.
        HudiError: as :func:`build_index`.
    """

    def find() -> ScheduledIndex:
        waiting = {one.instant: one for one in scheduled_indexes(session.state)}
        if scheduled.instant not in waiting:
            raise ServiceTakenError(
                f"The indexing {scheduled.instant} of {session.storage.uri} is not pending: it was completed, or "
                "removed from the timeline. Plan another one."
            )
        return waiting[scheduled.instant]

    return _run(session, find, scheduled.partition, scheduled.instant)


def _run(session: TableSession, find: _Find, asked: str, planned_at: str = "") -> IndexResult:
    """Execute the plan that ``find`` returns. The plan of an abandoned attempt at ``planned_at`` stays for it."""
    started = time.monotonic()
    planned: list[ScheduledIndex] = []

    def plan() -> ScheduledIndex | None:
        found = find()
        planned.extend([] if found is None else [found])
        return found

    with session.service_lock(INDEX_LOCK_PATH):
        try:
            result = _build(session, plan, asked, planned_at)
        except (CommitStateUnknownError, LockError):  # the next indexing removes its remaining files
            raise
        except BaseException as error:
            for one in planned:
                _undo(session, one, error)
            if isinstance(error, OSError):
                raise CommitError(
                    f"Building the index {asked} of {session.storage.uri} failed because of storage: {error}. The "
                    "table is as before; run it again."
                ) from error
            raise
    return replace(result, seconds=time.monotonic() - started)


def _undo(session: TableSession, planned: ScheduledIndex, cause: BaseException) -> None:
    """Undo the indexing. If that fails, too, the next indexing does it, and ``cause`` is the error to report."""
    with noted_on(cause, f"Undoing the indexing {planned.instant}"), session.locked():
        undo_indexing(session.storage, planned, keep_plan=planned.waited)
        session.changed()


def _build(session: TableSession, plan: _Find, asked: str, planned_at: str) -> IndexResult:
    storage = session.storage
    with contextlib.ExitStack() as life:
        with session.locked():
            is_new = _ready(session, planned_at)
            planned = plan()
            if planned is None:
                return IndexResult(asked, "", (PartitionKind.FILES.value,) if is_new else ())
            state = session.state
            work = work_of(state, planned, session.settings)
            heartbeat = life.enter_context(sending_heartbeats(storage, work.instant, session.heartbeat_rule))
            if not work.partitions:  # another process has built them since it was planned
                to_inflight(storage, state.config, Instant(work.instant, _ACTION, State.REQUESTED))
                _complete(session, work)
                return IndexResult(asked, work.instant)
            if state.config.version < _FIRST_WITH_LAYOUT_2:
                return _build_locked(session, work)
            begun = _begin(session, work)
        stats = [stat for _, sources in begun.sources for stat in session.backend.write_records(sources, begun.writer)]
        with session.locked():
            heartbeat.require_alive()
            _finish(session, begun, stats)
    groups = sum(len(found) for found in begun.writer.targets.values())
    return _result(work, stats, groups)


def _result(work: IndexWork, stats: Sequence[WriteStat], groups: int) -> IndexResult:
    records = sum(stat.num_writes for stat in stats)
    return IndexResult(work.asked, work.instant, work.partitions, records, groups)


# ---- the table's lock


def _ready(session: TableSession, planned_at: str) -> bool:
    """Recover the table and its metadata table; returns whether the metadata table is new."""
    recover(session)
    finish_pending_indexings(session, planned_at)
    state, options = session.state, session.settings.write.metadata
    plan, is_new = file_plan(session), not state.config.metadata_partitions
    if is_new:
        files = [PartitionKind.FILES.value]
        context = producer_context(state, plan, options, None, files)
        write_records = session.backend.write_records
        build_partitions(context, files, options, _last_completed(state), session.clock, write_records)
    elif metadata_without_pending(session) is None:
        ensure_metadata(session, plan, replace(options, enabled=True))
    session.reload()
    return is_new


def _last_completed(state: TableState) -> str | None:
    return max((one.requested for one in state.timeline.completed()), default=None)


def _metadata(state: TableState) -> MetadataTable:
    table = metadata_of(state)
    if table is None:
        raise CommitError(
            f"The metadata table of {state.storage.uri} is no longer trusted. Nothing was indexed; run it again."
        )
    return table


def _build_context(session: TableSession, work: IndexWork) -> ProducerContext:
    state = session.state
    table = _metadata(state)
    context = producer_context(state, file_plan(session), work.options, table, work.partitions)
    present = {*table.partitions, *table.building}
    kept = {name: one for name, one in table.definitions.items() if name in present}
    stats = kept.get(PartitionKind.COLUMN_STATS)
    columns = context.indexed_columns if stats is None else stats.source_fields
    return replace(context, indexed_columns=columns, definitions={**context.definitions, **kept, **work.definitions})


def _begin(session: TableSession, work: IndexWork) -> _Begun:
    """Move the indexing to inflight, and create the files that writers need to log to the new partitions."""
    state, storage, clock = session.state, session.storage, session.clock
    table = _metadata(state)
    context = _build_context(session, work)
    sources = tuple(
        (name, tuple(sources_of_table(context, name, work.instant))) for name in build_order(work.partitions)
    )
    instant = Instant(work.instant, _ACTION, State.REQUESTED)
    to_inflight(storage, state.config, instant, durable=True)
    inner = table.storage
    used = {one.requested for one in table.timeline.instants}
    opening = initial_instant(table.config.layout_version, _last_completed(state), used)
    start_delta_commit(inner, table.config, opening)
    groups, places = {}, {}
    for name, _ in sources:
        inner.delete_dir(name)  # leftovers that are not in use
        groups[name], places[name] = open_groups(inner, context, name, opening, work.options)
    finish_delta_commit(inner, table.config, opening, [], RECORD_SCHEMA, _BUILD, clock, durable=True)
    config = write_definitions(storage, state.config, dict(context.definitions), dict(table.definitions))
    record_building(storage, config, work.partitions)
    start_delta_commit(inner, table.config, work.instant)
    writer = GroupWriter(
        inner, table.config, work.instant, RECORD_SCHEMA, groups, {one: at for one, at in places.items() if at}, True
    )
    return _Begun(replace(instant, state=State.INFLIGHT), work, context, sources, writer)


def _finish(session: TableSession, begun: _Begun, stats: Sequence[WriteStat]) -> None:
    """Complete the partitions, under the table's lock.

    Raises:
        CommitConflictError: a writer dropped one of them, or built the metadata table again, in the meantime.
    """
    work, writer, state, clock = begun.work, begun.writer, session.state, session.clock
    table = _metadata(state)
    dropped = set(work.partitions) - set(table.building)
    if dropped:
        raise CommitConflictError(
            f"The index {', '.join(sorted(dropped))} of {session.storage.uri} was dropped while it was built, by a "
            "write whose options do not ask for it. Run it again."
        )
    clock.next_time(state.timeline.newest_time, table.timeline.newest_time)
    finish_delta_commit(table.storage, table.config, work.instant, stats, writer.schema, _BUILD, clock, durable=True)
    _complete(session, work)


def _complete(session: TableSession, work: IndexWork) -> None:
    state, storage, clock = session.state, session.storage, session.clock
    config = record_built(storage, state.config, work.partitions)
    parts = [replace(one, upto=last_write(state), extra_metadata={}) for one in work.parts]
    inflight = Instant(work.instant, _ACTION, State.INFLIGHT)
    times = partial(clock.completion_time, work.instant)
    complete(storage, config, inflight, encode_index_metadata(parts), times, confirm=clock.confirm)
    session.changed()


# ---- before table version 8


def _build_locked(session: TableSession, work: IndexWork) -> IndexResult:
    """Build an index under the table's lock."""
    state = session.state
    waiting = [one for one in state.timeline.pending() if one.requested != work.instant]
    if waiting:  # for readers of 0.15 a new partition begins at the newest action
        raise CommitConflictError(
            f"{state.storage.uri} has a pending {waiting[0].action} ({waiting[0].requested}); before table version 8 "
            "no index is built meanwhile. Execute it first."
        )
    to_inflight(state.storage, state.config, Instant(work.instant, _ACTION, State.REQUESTED), durable=True)
    context = _build_context(session, work)
    written: list[WriteStat] = []
    groups: list[int] = []

    def run(sources: Sequence[RecordSource], writer: GroupSink) -> list[WriteStat]:
        stats = session.backend.write_records(sources, writer)
        assert isinstance(writer, GroupWriter)
        groups.extend(len(found) for found in writer.targets.values())
        written.extend(stats)
        return stats

    build_partitions(context, work.partitions, work.options, _last_completed(state), session.clock, run)
    session.changed()
    _complete(session, work)
    return _result(work, written, sum(groups))
