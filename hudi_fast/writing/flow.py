"""THE WRITE PATH, top to bottom. An engine moves rows; everything else happens here.

::

    open      the table as it is, or a new one as the options want it; the save mode may end the matter
    lock      one writer at a time; a table that is to be replaced is replaced when its successor is complete
    draft     options + pinned state + incoming schema ─► WritePlan       refuses what it can before rows are looked at
    prepare   the engine looks at its rows as far as it can               refuses bad rows
    clean up  what died writers left
    metadata  the metadata table as the options want it: built, settled, or dropped
    begin     requested ─► inflight                               with signs of life where others may look for them
    execute   the engine: tag ─► deal out ─► write file groups            ─► write stats
    commit    write stats ─► commit metadata ─► metadata table ─► completed instant  visible
    maintain  the metadata table is compacted when that is due            a failure is a warning

Up to *begin* the table's data and its history are untouched by this write. After it, an error rolls the write back;
if the process dies, the next writer does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitError, CommitStateUnknownError, TableExistsError
from hudi_fast.metadata.state import open_state
from hudi_fast.metadata_writer.runner import Runner
from hudi_fast.storage.base import Storage
from hudi_fast.storage.local_lock import table_lock
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.heartbeat import Heartbeat
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.failed_writes import beating_as_writer, failed_writes
from hudi_fast.writing.metadata_table import columns_with_stats, ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.open_table import Target, create_table, find_target, remove_if_unused
from hudi_fast.writing.overwrite import discard, exchange, stage
from hudi_fast.writing.pending_clusterings import release_groups
from hudi_fast.writing.plan import WriteOutcome, WritePlan
from hudi_fast.writing.replace import REPLACING, replaced_groups
from hudi_fast.writing.schema_commit import record_schema, schema_metadata
from hudi_fast.writing.transaction import Transaction, abandon, begin, clean_up, commit, noted_on, withdraw

__all__ = ["Engine", "WriteResult", "run_write", "write_at"]


class Engine(Protocol):
    """Moves rows to the core's functions. One engine object serves one write."""

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
    started = time.monotonic()
    target = find_target(storage, options, mode)
    if target is None:
        return _result("", options.operation, [], started, WriteOutcome([], "none", "the table exists already"))
    if target.exists:
        with table_lock(storage, options.lock_wait_ms / 1000):
            return (_write_locked if target.new is None else _replace_locked)(engine, target, options, started)
    draft = draft_plan(target.state(), options, engine.input_schema())
    engine.prepare(draft)
    try:
        create_table(target)
    except TableExistsError:  # another writer made it in the meantime
        return run_write(engine, storage, options, mode)
    with table_lock(storage, options.lock_wait_ms / 1000):
        try:
            return _write_locked(engine, replace(target, new=None, exists=True), options, started)
        except CommitStateUnknownError:
            raise
        except BaseException:
            remove_if_unused(storage)
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
    return _write_locked(engine, Target(storage, None, True), options, time.monotonic(), requested)


def _write_locked(
    engine: Engine, target: Target, options: WriteOptions, started: float, requested: str | None = None
) -> WriteResult:
    state = target.state()
    clock = InstantClock(state.config.timezone, options.clock_skew_ms)
    plan = draft_plan(state, options, engine.input_schema())
    engine.prepare(plan)
    failed = failed_writes(options)
    state = clean_up(create_table(target) if target.new is not None else state, clock, failed)
    state = ensure_metadata(state, plan, options.metadata, clock, engine.index_runner())
    requested = requested or clock.next_time(state.timeline.newest_time)
    with beating_as_writer(state.storage, requested, failed) as heart:
        transaction = begin(state, clock, plan.operation.upper(), plan.operation in REPLACING, requested)
        instant, outcome = _execute(engine, transaction, state, plan, options, heart)
    if instant:
        maintain_metadata(state, options.metadata, clock)
    return _result(instant, plan.operation, outcome.stats if instant else [], started, outcome)


def _execute(
    engine: Engine,
    transaction: Transaction,
    state: TableState,
    plan: WritePlan,
    options: WriteOptions,
    heart: Heartbeat | None,
) -> tuple[str, WriteOutcome]:
    """From begun to visible; no instant when there was nothing to commit."""
    runner = engine.index_runner()
    try:
        instant = transaction.instant.requested
        measured = columns_with_stats(state, plan, options.metadata)
        plan = replace(plan, config=state.config, view=state.view, instant=instant, stats_columns=measured)
        outcome = engine.execute(plan)
        replaced = replaced_groups(plan, options, outcome.partitions)
        if not outcome.stats and not replaced and not options.allow_empty_commit:
            withdraw(transaction)
            return "", outcome
        metadata = _metadata(plan, options, outcome.stats, replaced)
        if options.clustering_gives_way and plan.updates_clustered:
            if release_groups(state, outcome.stats, transaction.clock, failed_writes(options).heartbeat):
                state = open_state(state.storage)

        def record(_storage: Storage, _instant: Instant, made: CommitMetadata) -> None:
            if heart is not None:
                heart.require_alive()
            record_schema(state, plan, transaction.clock)
            record_in_metadata(state, plan, options.metadata, instant, made, transaction.clock, runner)

        commit(transaction, metadata, [record])
    except CommitStateUnknownError:
        raise
    except OSError as error:
        _abandon(transaction, error)
        raise CommitError(
            f"The {plan.operation} {transaction.instant.requested} on {state.storage.uri} failed because of storage: "
            f"{error}. The table is as before; run the operation again."
        ) from error
    except BaseException as error:
        _abandon(transaction, error)
        raise
    return instant, outcome


def _replace_locked(engine: Engine, target: Target, options: WriteOptions, started: float) -> WriteResult:
    """Write a new table beside the one that is there, and let it take its place."""
    staged = stage(target.storage)
    if staged is None:
        return _write_locked(engine, target, options, started)
    try:
        try:
            result = _write_locked(engine, replace(target, storage=staged, exists=False), options, started)
        except (OSError, CommitStateUnknownError) as error:  # whatever became of it: it goes
            raise CommitError(
                f"The new table in the place of {target.storage.uri} could not be written: {error} The old table is as "
                "before; run the operation again."
            ) from error
        exchange(target.storage, staged)
    finally:
        discard(staged)
    return replace(result, seconds=time.monotonic() - started)


def _abandon(transaction: Transaction, cause: BaseException) -> None:
    """Roll back; if even that fails the next writer will, and the first error is the one to report."""
    with noted_on(cause, f"Rolling the write {transaction.instant.requested} back"):
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
