"""THE WRITE PATH, top to bottom. An engine moves rows; everything else happens here.

::

    open        the table as it is, or a new one as the options want it; the save mode may end the matter
    turn        one writer at a time, or several; a table that is replaced is so when its successor is complete
    draft       options + state + incoming schema ─► WritePlan            refuses what it can before rows are looked at
    prepare     the engine looks at its rows as far as it can             refuses bad rows
    ┌ lock
    │ clean up  what died writers left
    │ metadata  the metadata table as the options want it: built, settled, or dropped
    └ begin     requested ─► inflight                             with signs of life where others may look for them
    execute     the engine: tag ─► deal out ─► write file groups          ─► write stats
    ┌ lock
    │ conflicts nobody else changed these file groups, or the schema, since the table was pinned
    │ commit    write stats ─► commit metadata ─► metadata table ─► still ours? ─► completed instant  visible
    └ maintain  the metadata table is compacted when that is due          a failure is a warning

Where one writer is all there may be, the lock is held from before *draft* to the end
(:func:`~hudi_fast.locking.table_lock.writer_turn`). Up to *begin* the table's data and its history are untouched by
this write. After it, an error rolls the write back; if the process dies, or has lost the lock, somebody else does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    FileGoneError,
    LockError,
    TableExistsError,
)
from hudi_fast.locking.table_lock import Lock, no_lock, writer_turn
from hudi_fast.metadata_table.state import open_state
from hudi_fast.metadata_table.updates.runner import Runner
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import Instant
from hudi_fast.writing.conflicts.checks import (
    Pinned,
    check_mode,
    pin,
    plan_with_merged_schema,
    require_no_conflicts,
    require_nobody_else,
)
from hudi_fast.writing.conflicts.early import early_detection
from hudi_fast.writing.conflicts.missing_files import conflict_of_missing_file
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.failed_writes import failed_writes, sending_writer_heartbeats
from hudi_fast.writing.metadata_commit import columns_with_stats, ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.open_table import Target, create_table, find_target, remove_if_unused
from hudi_fast.writing.overwrite import discard, exchange, stage
from hudi_fast.writing.pending_clusterings import release_groups
from hudi_fast.writing.plan import WriteOutcome, WritePlan
from hudi_fast.writing.replace import REPLACING, replaced_groups
from hudi_fast.writing.schema_commit import record_schema, schema_metadata
from hudi_fast.writing.transaction import (
    Transaction,
    abandon,
    begin,
    clean_up,
    commit,
    left_pending,
    noted_on,
    refuse_while_restoring,
    require_not_undone,
    withdraw,
)

__all__ = ["Engine", "WriteResult", "run_write", "write_at"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds
_CHANCE = random.SystemRandom()  # who seeds `random` for numbers of their own goes on getting the same


class Engine(Protocol):
    """Moves rows to the core's functions. One engine object serves one write, and its further tries after conflicts."""

    def input_schema(self) -> pa.Schema:
        """Columns of the incoming rows."""
        ...

    def prepare(self, plan: WritePlan) -> None:
        """Check rows as far as that is possible before the write begins."""
        ...

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write all rows into file groups; the plan has its instant now."""
        ...

    def index_runner(self) -> Runner:
        """What makes the records of the metadata table."""
        ...


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did.

    Attributes:
        instant: requested time of the commit; empty when nothing was committed.
        operation: the operation that ran.
        inserts: rows added.
        updates: rows changed; of a log file all its rows, although late ones lose when they are merged.
        deletes: rows removed; likewise.
        files_written: base files and log files.
        bytes_written: their size.
        seconds: from call to visible.
        plan: physical plan: ``local``, ``driver``, ``broadcast``, ``fused``, ``routed``, ``bucketed`` or ``direct``.
        reason: why that plan.
    """

    instant: str
    operation: str
    inserts: int
    updates: int
    deletes: int
    files_written: int
    bytes_written: int
    seconds: float
    plan: str
    reason: str


def run_write(engine: Engine, storage: Storage, options: WriteOptions, mode: str) -> WriteResult:
    """Write the engine's rows to the table below ``storage``.

    Args:
        engine: holds the rows.
        storage: the table's base path.
        options: what to do.
        mode: ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`; unless it is ``CommitStateUnknownError`` the table is as before.
    """
    if not options.lock.is_shared:
        return _run_once(engine, storage, options, mode)
    for attempt in range(options.lock.conflict_retries):
        try:
            return _run_beside_others(engine, storage, options, mode)
        except CommitConflictError:  # whoever was in the way may be at work still, and others wait for the same
            time.sleep(_CHANCE.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))
    return _run_beside_others(engine, storage, options, mode)


def _run_beside_others(engine: Engine, storage: Storage, options: WriteOptions, mode: str) -> WriteResult:
    try:
        return _run_once(engine, storage, options, mode)
    except FileGoneError as error:
        raise conflict_of_missing_file(storage, error) from error


def _run_once(engine: Engine, storage: Storage, options: WriteOptions, mode: str) -> WriteResult:
    started = time.monotonic()
    target = find_target(storage, options, mode)
    if target is None:
        return _result("", options.operation, [], started, WriteOutcome([], "none", "the table exists already"))
    if target.exists:
        with writer_turn(storage, options.lock) as lock:
            return (_write if target.new is None else _replace)(engine, target, options, started, lock)
    draft = draft_plan(target.state(), options, engine.input_schema())
    engine.prepare(draft)
    try:
        create_table(target)
    except TableExistsError:  # another writer made it in the meantime
        return _run_once(engine, storage, options, mode)
    with writer_turn(storage, options.lock) as lock:
        try:
            return _write(engine, replace(target, new=None, exists=True), options, started, lock)
        except (CommitStateUnknownError, LockError):
            raise
        except BaseException as error:
            with noted_on(error, f"Taking the new table {storage.uri} away"), lock():
                remove_if_unused(storage, options.lock.is_shared)
            raise


def write_at(engine: Engine, storage: Storage, options: WriteOptions, requested: str) -> WriteResult:
    """Write the engine's rows at a time that is given, to a table that nobody else knows of yet.

    Args:
        engine: holds the rows.
        storage: the table's base path.
        options: what to do.
        requested: requested time of the commit.

    Raises:
        HudiError: as for :func:`run_write`.
    """
    return _write(engine, Target(storage, None, True), options, time.monotonic(), no_lock, requested)


def _write(
    engine: Engine, target: Target, options: WriteOptions, started: float, lock: Lock, requested: str | None = None
) -> WriteResult:
    state = target.state()
    clock = InstantClock(state.config.timezone, options.clock_skew_ms)
    plan = draft_plan(state, options, engine.input_schema())
    check_mode(plan, options)
    engine.prepare(plan)
    failed, drafted = failed_writes(options), state.timeline
    if target.new is not None:
        state = create_table(target)
    with ExitStack() as alive:
        with lock() as held:
            clock.under(held)
            state = clean_up(open_state(state.storage) if options.lock.is_shared else state, clock, failed)
            state = ensure_metadata(state, plan, options.metadata, clock, engine.index_runner())
            requested = requested or clock.next_time(state.timeline.newest_time)
            heart = alive.enter_context(sending_writer_heartbeats(state.storage, requested, failed))
            pinned = pin(state, options)
            transaction = begin(state, clock, plan.operation.upper(), plan.operation in REPLACING, requested)
        ready = replace(plan, config=state.config, view=state.view) if state.timeline == drafted else None
        instant, plan, outcome = _execute(engine, replace(transaction, heart=heart), pinned, ready, options, lock)
    return _result(instant, plan.operation, outcome.stats if instant else [], started, outcome)


def _execute(
    engine: Engine,
    transaction: Transaction,
    pinned: Pinned,
    plan: WritePlan | None,
    options: WriteOptions,
    lock: Lock,
) -> tuple[str, WritePlan, WriteOutcome]:
    """From begun to visible; no instant when there was nothing to commit. Without a plan the table has changed since
    the first draft."""
    state, instant = pinned.state, transaction.instant.requested
    try:
        if plan is None:
            plan = draft_plan(state, options, engine.input_schema())
            engine.prepare(plan)
        plan = replace(plan, instant=instant, stats_columns=columns_with_stats(state, plan, options.metadata))
        plan = replace(plan, early=early_detection(options, state.timeline, plan.index.bucket is not None))
        outcome = engine.execute(plan)
        replaced = replaced_groups(plan, options, outcome.partitions)
        if not outcome.stats and not replaced and not options.allow_empty_commit:
            with lock() as held:
                transaction.clock.under(held)
                withdraw(transaction)
            return "", plan, outcome
        with lock() as held:
            transaction.clock.under(held)
            metadata = _metadata(plan, options, outcome.stats, replaced)
            _land(transaction, _Landing(pinned, plan, metadata), options, engine.index_runner())
    except CommitStateUnknownError:
        raise
    except LockError as error:
        raise left_pending(transaction, error) from error
    except OSError as error:
        _abandon(transaction, error, lock)
        raise CommitError(
            f"The {transaction.operation.lower()} {transaction.instant.requested} on {state.storage.uri} failed "
            f"because of storage: {error}. The table is as before; run the operation again."
        ) from error
    except BaseException as error:
        _abandon(transaction, error, lock)
        raise
    return instant, plan, outcome


@dataclass(frozen=True, slots=True)
class _Landing:
    """What is about to become visible.

    Attributes:
        pinned: the table that the write was pinned to.
        plan: of the write.
        metadata: what it did.
    """

    pinned: Pinned
    plan: WritePlan
    metadata: CommitMetadata


def _land(transaction: Transaction, landing: _Landing, options: WriteOptions, runner: Runner) -> None:
    """Make a write visible that is in nobody's way; under the table's lock."""
    pinned = landing.pinned
    state, plan, metadata, clock = pinned.state, landing.plan, landing.metadata, transaction.clock
    if options.lock.is_shared:
        state = open_state(state.storage)
        clock.next_time(state.timeline.newest_time)  # what it makes is later than all of that, whatever the wall clock
        refuse_while_restoring(state.storage, state.timeline, "no write may land")
        require_not_undone(state, transaction.instant)
        require_no_conflicts(transaction.instant, metadata, pinned.state, state, plan, options)
        plan = plan_with_merged_schema(transaction.instant, plan, pinned, state, options)
        metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, **schema_metadata(plan)})
    elif plan.changes:
        require_nobody_else(transaction.instant, pinned.state)
    if options.rolls_back_clustering and plan.allows_clustering_updates:
        if release_groups(state, metadata.write_stats(), clock, failed_writes(options).heartbeat):
            state = open_state(state.storage)

    def record(_storage: Storage, instant: Instant, made: CommitMetadata) -> None:
        if transaction.heart is not None:
            transaction.heart.require_alive()
        record_schema(state, plan, clock)
        record_in_metadata(state, plan, options.metadata, instant.requested, made, clock, runner)

    commit(transaction, metadata, [record])
    maintain_metadata(state, options.metadata, clock)


def _replace(engine: Engine, target: Target, options: WriteOptions, started: float, lock: Lock) -> WriteResult:
    """Write a new table beside the one that is there, and let it take its place."""
    staged = stage(target.storage)
    if staged is None:
        return _write(engine, target, options, started, lock)
    try:
        try:
            result = _write(engine, replace(target, storage=staged, exists=False), options, started, no_lock)
        except (OSError, CommitStateUnknownError) as error:  # whatever became of it: it goes
            raise CommitError(
                f"The new table in the place of {target.storage.uri} could not be written: {error} The old table is as "
                "before; run the operation again."
            ) from error
        with lock() as held:
            held.require()
            exchange(target.storage, staged)
    finally:
        discard(staged)
    return replace(result, seconds=time.monotonic() - started)


def _abandon(transaction: Transaction, cause: BaseException, lock: Lock) -> None:
    """Roll back; if even that fails the next writer will, and the first error is the one to report."""
    with noted_on(cause, f"Rolling the write {transaction.instant.requested} back"), lock() as held:
        transaction.clock.under(held)
        abandon(transaction)


def _metadata(
    plan: WritePlan, options: WriteOptions, stats: list[WriteStat], replaced: Mapping[str, list[str]]
) -> CommitMetadata:
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    return CommitMetadata(
        by_partition,
        {**options.extra_metadata, **schema_metadata(plan)},
        plan.operation.upper(),
        partition_to_replace_file_ids=dict(replaced) if plan.operation in REPLACING else None,
    )


def _result(instant: str, operation: str, stats: list[WriteStat], started: float, outcome: WriteOutcome) -> WriteResult:
    return WriteResult(
        instant=instant,
        operation=operation,
        inserts=sum(stat.num_inserts for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.file_size for stat in stats),
        seconds=time.monotonic() - started,
        plan=outcome.plan,
        reason=outcome.reason,
    )
