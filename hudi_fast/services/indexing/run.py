"""Building an index on a table that goes on being written to: an ``indexing`` action.

::

    begin    the table's lock: clean up, what a died indexing left goes, requested ─► inflight
             metadata table: folders and empty file groups of the new partitions, a delta commit of their own
             index definitions ─► the partitions are named as being built: every write logs to them from now on
    build    no lock: the records of the table as it was pinned ─► base files        (writers go on)
    finish   the table's lock: delta commit of the base files ─► the partitions are named as whole ─► completed

The log files of writes that came meanwhile are on top of the base files, so there is nothing to catch up with. Before
table version 8 log files are named after the base file that they are on top of, which is not there yet: such tables are
built under the lock.

A lock of the indexings' own is held all the while: it falls when its holder dies, so an inflight indexing that is found
under it belongs to nobody alive. It is taken away, or completed if nothing but that was left to do.

Sources: metadata reference 2.5, 2.10, 2.13; ScheduleIndexActionExecutor, RunIndexActionExecutor, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hudi_fast.config.metadata_options import MetadataOptions
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, CommitStateUnknownError, LockError, ServiceTakenError
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.metadata_table.updates.bookkeeping import record_building, record_built, record_schema, write_definitions
from hudi_fast.metadata_table.updates.build import build_order, build_partitions, initial_instant, open_groups
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, start_delta_commit, stored_schema
from hudi_fast.metadata_table.updates.groups import GroupWriter
from hudi_fast.metadata_table.updates.produce import ProducerContext, RecordSource, sources_of_table
from hudi_fast.metadata_table.updates.runner import GroupWriter as Writer
from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.services.indexing.drop import finish_pending_indexings, undo_indexing
from hudi_fast.services.indexing.plan import (
    INDEX_LOCK_PATH,
    IndexWork,
    ScheduledIndex,
    last_write,
    schedule_in,
    scheduled_indexes,
    waiting_for,
    work_of,
)
from hudi_fast.services.indexing.request import IndexRequest, wanted_indexes
from hudi_fast.services.running import service_lock
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import sending_heartbeats
from hudi_fast.timeline.index_plans import encode_index_metadata
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import complete, to_inflight
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.metadata_commit import ensure_metadata, metadata_without_pending, producer_context
from hudi_fast.writing.transaction import clean_up, noted_on

__all__ = ["IndexResult", "build_index", "run_scheduled_index"]

_ACTION = "indexing"
_FIRST_WITH_LAYOUT_2 = 8
_BUILD = "BULK_INSERT_PREPPED"

_Find = Callable[[TableState, InstantClock], ScheduledIndex | None]


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What building an index did.

    Attributes:
        partition: the metadata partition that was asked for.
        instant: requested time of the indexing; empty when there was nothing to build.
        partitions: the metadata partitions that were built, in that order: those that it rests on come first.
        records: written to them.
        file_groups: that they have.
        seconds: from call to usable.
    """

    partition: str
    instant: str
    partitions: tuple[str, ...] = ()
    records: int = 0
    file_groups: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Begun:
    """An indexing that has begun: what its build needs.

    Attributes:
        instant: inflight.
        work: what is built.
        context: the table as it was pinned.
        sources: of the records of each metadata partition, in the order in which they are built.
        writer: of base files at the instant.
        clock: gives times.
    """

    instant: Instant
    work: IndexWork
    context: ProducerContext
    sources: tuple[tuple[str, tuple[RecordSource, ...]], ...]
    writer: GroupWriter
    clock: InstantClock


def build_index(storage: Storage, request: IndexRequest, settings: ServiceSettings, runner: Runner) -> IndexResult:
    """Build an index, and those that it rests on, unless they are there; plans for them that wait are carried out.

    Args:
        storage: the table's storage.
        request: which index; a plan that waits says itself how it is made.
        settings: of the metadata table, locks and clocks.
        runner: reads the sources and has their records written.

    Raises:
        CommitError: it failed; the table is as before.
        ConfigError: the table cannot have the index.
        InvalidDataError: the table's rows cannot be indexed, such as two rows with one key.
        UnsupportedFeatureError: the index is of a form that is not supported.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    asked = wanted_indexes(request, config, settings.write.metadata).partition

    def find(state: TableState, clock: InstantClock) -> ScheduledIndex | None:
        return waiting_for(state, request, settings) or schedule_in(state, request, settings, clock)

    done = [_run(storage, settings, runner, find, asked)]
    while done[-1].instant and asked not in done[-1].partitions:  # that was a plan for what it rests on
        done.append(_run(storage, settings, runner, find, asked))
    return IndexResult(
        asked,
        done[-1].instant,
        tuple(name for one in done for name in one.partitions),
        sum(one.records for one in done),
        sum(one.file_groups for one in done),
        sum(one.seconds for one in done),
    )


def run_scheduled_index(
    storage: Storage, scheduled: ScheduledIndex, settings: ServiceSettings, runner: Runner
) -> IndexResult:
    """Carry out an indexing that waits on the timeline; if it fails it waits again.

    Raises:
        ServiceTakenError: it is no longer pending.
        HudiError: as :func:`build_index`.
    """

    def find(state: TableState, _clock: InstantClock) -> ScheduledIndex:
        waiting = {one.instant: one for one in scheduled_indexes(state)}
        if scheduled.instant not in waiting:
            raise ServiceTakenError(
                f"The indexing {scheduled.instant} of {storage.uri} is not pending: it was completed, or taken off the "
                "timeline. Plan another one."
            )
        return waiting[scheduled.instant]

    return _run(storage, settings, runner, find, scheduled.partition, scheduled.instant)


def _run(
    storage: Storage,
    settings: ServiceSettings,
    runner: Runner,
    find: _Find,
    asked: str,
    planned_at: str = "",
) -> IndexResult:
    """Build what ``find`` finds; if it died before at ``planned_at`` its plan stays for that."""
    started = time.monotonic()
    planned: list[ScheduledIndex] = []

    def plan(state: TableState, clock: InstantClock) -> ScheduledIndex | None:
        found = find(state, clock)
        planned.extend([] if found is None else [found])
        return found

    with service_lock(storage, settings, INDEX_LOCK_PATH):
        try:
            result = _build(storage, settings, runner, plan, asked, planned_at)
        except (CommitStateUnknownError, LockError):  # the next indexing takes away what is left of this one
            raise
        except BaseException as error:
            for one in planned:
                _undo(storage, one, settings, error)
            if isinstance(error, OSError):
                raise CommitError(
                    f"Building the index {asked} of {storage.uri} failed because of storage: {error}. The table is as "
                    "before; run it again."
                ) from error
            raise
    return replace(result, seconds=time.monotonic() - started)


def _undo(storage: Storage, planned: ScheduledIndex, settings: ServiceSettings, cause: BaseException) -> None:
    """Take everything away; if even that fails the next indexing will, and the first error is the one to report."""
    with noted_on(cause, f"Taking the indexing {planned.instant} away"), table_lock(storage, settings.write.lock):
        undo_indexing(storage, planned, keep_plan=planned.waited)


def _build(
    storage: Storage,
    settings: ServiceSettings,
    runner: Runner,
    plan: _Find,
    asked: str,
    planned_at: str,
) -> IndexResult:
    rule = settings.failed_writes.heartbeat
    with contextlib.ExitStack() as life:
        with table_lock(storage, settings.write.lock) as held:
            clock, state, is_new = _ready(storage, settings, runner, planned_at, held)
            planned = plan(state, clock)
            if planned is None:
                return IndexResult(asked, "", (PartitionKind.FILES.value,) if is_new else ())
            work = work_of(state, planned, settings)
            heart = life.enter_context(sending_heartbeats(storage, work.instant, rule))
            if not work.partitions:  # others have built them since it was planned
                to_inflight(storage, state.config, Instant(work.instant, _ACTION, State.REQUESTED))
                _complete(state, work, clock)
                return IndexResult(asked, work.instant)
            if state.config.version < _FIRST_WITH_LAYOUT_2:
                return _build_locked(state, work, settings, clock, runner)
            begun = _begin(state, work, settings, clock)
        stats = [stat for _, sources in begun.sources for stat in runner(sources, begun.writer)]
        with table_lock(storage, settings.write.lock) as held:
            begun.clock.under(held)
            heart.require_alive()
            _finish(storage, begun, stats)
    groups = sum(len(found) for found in begun.writer.targets.values())
    return _result(work, stats, groups)


def _result(work: IndexWork, stats: Sequence[WriteStat], groups: int) -> IndexResult:
    records = sum(stat.num_writes for stat in stats)
    return IndexResult(work.asked, work.instant, work.partitions, records, groups)


# ---- the table's lock


def _ready(
    storage: Storage, settings: ServiceSettings, runner: Runner, planned_at: str, held: HeldLock
) -> tuple[InstantClock, TableState, bool]:
    """The table without traces of what died, its metadata table in order; whether that is new."""
    state = open_state(storage)
    clock = settings.clock(state.config, held)
    state = clean_up(state, clock, settings.failed_writes)
    if finish_pending_indexings(state, clock, settings.failed_writes.heartbeat, planned_at):
        state = open_state(storage)
    plan, options = service_plan(state, settings), settings.write.metadata
    config = state.config
    if not config.metadata_partitions:
        context = producer_context(state, plan, options, None, [PartitionKind.FILES])
        build_partitions(context, [PartitionKind.FILES.value], options, _last_completed(state), clock, runner)
    elif metadata_without_pending(state, clock) is None:
        ensure_metadata(state, plan, replace(options, enabled=True), clock, runner)
    return clock, open_state(storage), not config.metadata_partitions


def _last_completed(state: TableState) -> str | None:
    return max((one.requested for one in state.timeline.completed()), default=None)


def _metadata(state: TableState) -> MetadataTable:
    table = metadata_of(state)
    if table is None:
        raise CommitError(
            f"The metadata table of {state.storage.uri} is not to be trusted any more. Nothing was indexed; run it "
            "again."
        )
    return table


def _build_context(
    state: TableState, work: IndexWork, options: MetadataOptions, settings: ServiceSettings
) -> ProducerContext:
    table = _metadata(state)
    context = producer_context(state, service_plan(state, settings), options, table, work.partitions)
    present = {*table.partitions, *table.building}
    kept = {name: one for name, one in table.definitions.items() if name in present}
    stats = kept.get(PartitionKind.COLUMN_STATS)
    columns = context.indexed_columns if stats is None else stats.source_fields
    return replace(context, indexed_columns=columns, definitions={**context.definitions, **kept, **work.definitions})


def _begin(state: TableState, work: IndexWork, settings: ServiceSettings, clock: InstantClock) -> _Begun:
    """From requested to inflight, with everything there that writers need to log to the new partitions."""
    storage, table = state.storage, _metadata(state)
    context = _build_context(state, work, work.options, settings)
    sources = tuple(
        (name, tuple(sources_of_table(context, name, work.instant))) for name in build_order(work.partitions)
    )
    instant = Instant(work.instant, _ACTION, State.REQUESTED)
    to_inflight(storage, state.config, instant)
    inner, schema = table.storage, _schema_of(table)
    used = {one.requested for one in table.timeline.instants}
    opening = initial_instant(table.config.layout_version, _last_completed(state), used)
    start_delta_commit(inner, table.config, opening)
    groups, places = {}, {}
    for name, _ in sources:
        inner.delete_dir(name)  # what nobody names
        groups[name], places[name] = open_groups(inner, context, name, opening, work.options)
    finish_delta_commit(inner, table.config, opening, [], schema, _BUILD, clock)
    config = write_definitions(storage, state.config, dict(context.definitions), dict(table.definitions))
    record_building(storage, config, work.partitions)
    start_delta_commit(inner, table.config, work.instant)
    writer = GroupWriter(
        inner, table.config, work.instant, schema, groups, {one: found for one, found in places.items() if found}, True
    )
    return _Begun(replace(instant, state=State.INFLIGHT), work, context, sources, writer, clock)


def _finish(storage: Storage, begun: _Begun, stats: Sequence[WriteStat]) -> None:
    """Make the partitions whole, under the table's lock.

    Raises:
        CommitConflictError: a writer dropped one of them, or built the metadata table anew, in the meantime.
    """
    work, writer = begun.work, begun.writer
    state = open_state(storage)
    table = _metadata(state)
    gone = set(work.partitions) - set(table.building)
    if gone:
        raise CommitConflictError(
            f"The index {', '.join(sorted(gone))} of {storage.uri} was dropped while it was built, by a write whose "
            "options do not want it. Run it again."
        )
    begun.clock.next_time(state.timeline.newest_time, table.timeline.newest_time)
    finish_delta_commit(table.storage, table.config, work.instant, stats, writer.schema, _BUILD, begun.clock)
    _complete(state, work, begun.clock)


def _complete(state: TableState, work: IndexWork, clock: InstantClock) -> None:
    storage = state.storage
    config = record_built(storage, state.config, work.partitions)
    parts = [replace(one, upto=last_write(state), extra_metadata={}) for one in work.parts]
    inflight = Instant(work.instant, _ACTION, State.INFLIGHT)
    complete(storage, config, inflight, encode_index_metadata(parts), lambda: clock.next_time(work.instant))


def _schema_of(table: MetadataTable) -> str:
    return record_schema(table.config.version, stored_schema(table.storage, table.config, table.timeline))


# ---- before table version 8


def _build_locked(
    state: TableState, work: IndexWork, settings: ServiceSettings, clock: InstantClock, runner: Runner
) -> IndexResult:
    """All of it under the table's lock."""
    waiting = [one for one in state.timeline.pending() if one.requested != work.instant]
    if waiting:  # readers of 0.15 take the newest action for where a new partition begins
        raise CommitConflictError(
            f"{state.storage.uri} has a pending {waiting[0].action} ({waiting[0].requested}); before table version 8 "
            "no index is built meanwhile. Carry it out first."
        )
    to_inflight(state.storage, state.config, Instant(work.instant, _ACTION, State.REQUESTED))
    context = _build_context(state, work, work.options, settings)
    written: list[WriteStat] = []
    groups: list[int] = []

    def run(sources: Sequence[RecordSource], writer: Writer) -> list[WriteStat]:
        stats = runner(sources, writer)
        assert isinstance(writer, GroupWriter)
        groups.extend(len(found) for found in writer.targets.values())
        written.extend(stats)
        return stats

    build_partitions(context, work.partitions, work.options, _last_completed(state), clock, run)
    _complete(load_state(state.storage), work, clock)
    return _result(work, written, sum(groups))
