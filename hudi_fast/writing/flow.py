"""The write path, top to bottom. An engine moves rows; this module does the rest.

::

    open        find the table, or draft a new one from the options; the save mode may end the write here
    guard       the caller may give the write up: the table has its rows already
    draft       options + state + incoming schema ─► WritePlan            refuses invalid options and schemas
    prepare     the engine checks its rows where it can                   refuses invalid rows
    ┌ lock
    │ recover   roll back failed writes
    │ metadata  build, repair or drop the metadata table, by the options; refuse a large lookup without record index
    └ begin     requested ─► inflight, with a heartbeat where others check for one
    execute     the engine: tag ─► assign ─► write file groups            ─► write statistics
    ┌ lock
    │ check     ask the guard again; no other writer changed these file groups, or the schema, since the state was
    │           pinned
    │ validate  the validators of the options, on the table before and after the write
    │ publish   statistics ─► commit metadata ─► metadata table ─► lock still held? ─► completed instant  visible
    └ maintain  compact the metadata table when that is due               a failure is a warning

With a single writer the lock is held from before *draft* to the end
(:meth:`~hudi_fast.writing.session.TableSession.turn`). Up to *begin* the write has changed neither the table's data nor
its history. After it, an error rolls the write back; if the process fails or loses the lock, the next writer does.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    FileGoneError,
    LockError,
    PostCommitError,
    TableExistsError,
)
from hudi_fast.events import Phase, note, warn
from hudi_fast.index.buckets import HashingMetadata
from hudi_fast.index.metadata_lookup import without_records
from hudi_fast.metadata_table.updates.commit import Recorded
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.evolution import SchemaChange
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.transition import announce, apply_announced
from hudi_fast.values import dataclass
from hudi_fast.view.slices import TableView, latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine, PlannedEngine, WritePreview
from hudi_fast.writing.bucket import change_counts, confirm_ranges, renewed_ranges, save_ranges
from hudi_fast.writing.conflicts import (
    Pinned,
    check_mode,
    conflict_of_missing_file,
    pin,
    plan_with_merged_schema,
    require_no_conflicts,
    require_no_other_commit,
)
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.early_conflicts import early_detection
from hudi_fast.writing.located import refuse_large_scan
from hudi_fast.writing.metadata_commit import (
    columns_with_stats,
    ensure_metadata,
    maintain_metadata,
    metadata_to_overwrite,
    record_in_metadata,
)
from hudi_fast.writing.open_table import (
    Target,
    changed_properties,
    create_table,
    discard,
    exchange,
    find_target,
    remove_if_unused,
    require_same_partitions,
    stage,
)
from hudi_fast.writing.pending_clusterings import release_all, release_groups
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.table_schema import overwritten_ids, record_schema, schema_metadata
from hudi_fast.writing.transaction import (
    Transaction,
    begin,
    noted_on,
    publish,
    recover,
    refuse_while_restoring,
    require_not_undone,
    rolled_back_on_failure,
    withdraw,
)
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

__all__ = ["WriteResult", "preview_write", "replaced_groups", "run_write", "write_at"]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds
_RANDOM = random.SystemRandom()  # leaves the caller's seeded `random` untouched


@dataclass(frozen=True, slots=True)
class WriteResult(ShownResult):
    """The result of a write.

    Attributes:
        instant: requested time of the commit; empty when nothing was committed.
        operation: the operation that ran.
        inserts: number of added rows.
        updates: number of changed rows; includes all rows of a log file, even late ones that lose when they are merged.
        deletes: number of removed rows; counted in the same way.
        files_written: number of base files and log files.
        bytes_written: their size.
        seconds: time from the call until the commit was visible.
        plan: physical plan: ``local``, ``spilled``, ``driver``, ``broadcast``, ``fused``, ``routed``, ``bucketed`` or
            ``direct``.
        reason: why that plan was chosen.
        schema_changes: the columns of the table that the write added, dropped or gave another type.
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
    schema_changes: tuple[SchemaChange, ...] = ()


def run_write(session: TableSession, engine: Engine, mode: str) -> WriteResult:
    """Write the engine's rows to the session's table.

    Args:
        session: the call; its table need not exist.
        engine: holds the rows.
        mode: ``append``, ``overwrite``, ``errorifexists`` or ``ignore``.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`. Unless it is ``CommitStateUnknownError`` or ``PostCommitError``, the
            table is as before.
    """
    options = session.settings.write
    if not options.lock.is_shared:
        return _write_once(session, engine, mode)
    for attempt in range(options.lock.conflict_retries):
        try:
            return _write_beside_others(session, engine, mode)
        except CommitConflictError as error:  # the other writer may still be active
            _log_retry(session, error, attempt, options.lock.conflict_retries)
            time.sleep(_RANDOM.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))
            session.changed()
    return _write_beside_others(session, engine, mode)


def _log_retry(session: TableSession, error: CommitConflictError, attempt: int, limit: int) -> None:
    note(
        "writing",
        logging.INFO,
        "Retry %d of %d of a write to %s after a conflict: %s",
        attempt + 1,
        limit,
        session.storage.uri,
        error,
        table=session.storage.uri,
        instant=error.instant or "",
        other=error.other or "",
    )


def _write_beside_others(session: TableSession, engine: Engine, mode: str) -> WriteResult:
    try:
        return _write_once(session, engine, mode)
    except FileGoneError as error:
        raise conflict_of_missing_file(session.storage, error) from error


def _write_once(session: TableSession, engine: Engine, mode: str) -> WriteResult:
    started, storage, options = time.monotonic(), session.storage, session.settings.write
    target = find_target(storage, options, mode)
    if target is None:
        return _result("", options.operation, [], started, WriteOutcome([], "none", "the table exists already"))
    if target.exists:
        with session.turn():
            return (
                _write(session, engine, started) if target.new is None else _replace(session, engine, target, started)
            )
    session.set_state(target.new_state())
    with session.phase("prepare", "writing"):
        engine.prepare(_drafted(session.state, options, engine))
    session.changed()
    try:
        create_table(target, options)
    except TableExistsError:  # another writer created it in the meantime
        return _write_once(session, engine, mode)
    with session.turn():
        try:
            return _write(session, engine, started)
        except (CommitStateUnknownError, LockError, PostCommitError):
            raise
        except BaseException as error:
            with noted_on(error, f"Removing the new table {storage.uri}"), session.section():
                remove_if_unused(storage, options.lock.is_shared)
            raise


def preview_write(session: TableSession, engine: PlannedEngine, mode: str) -> WritePreview:
    """How :func:`run_write` would execute a write; nothing is written, and no lock is taken.

    Args:
        session: the call; its table need not exist.
        engine: holds the rows.
        mode: as for :func:`run_write`.

    Raises:
        HudiError: invalid options, rows or columns.
    """
    options = session.settings.write
    target = find_target(session.storage, options, mode)
    if target is None:
        return WritePreview(options.operation, "none", "the table exists already")
    return engine.preview(_draft(session, engine, None if target.new is None else target))


def _draft(session: TableSession, engine: Engine, new: Target | None) -> WritePlan:
    """Draft a write to the session's table, or to the new one that ``new`` describes, and check its rows."""
    options = session.settings.write
    if new is not None:
        session.set_state(new.new_state())
    plan = _drafted(session.state, options, engine)
    check_mode(plan, options)
    engine.prepare(plan)
    _warn_of_changes(plan)
    return plan


def _warn_of_changes(plan: WritePlan) -> None:
    changes = [
        f"column {one.column!r}, {'new' if one.before is None else one.before} -> {one.after}: {one.warning}."
        for one in plan.schema_changes
        if one.warning
    ]
    if changes:
        listed = "\n".join(f"  - {each}" for each in changes)
        warn(f"This write changes columns of table {plan.config.name} ({plan.storage.uri}) for good:\n{listed}")


def _drafted(state: TableState, options: WriteOptions, engine: Engine) -> WritePlan:
    return draft_plan(state, options, engine.input_schema(state))


def write_at(session: TableSession, engine: Engine, requested: str) -> WriteResult:
    """Write the engine's rows at a given time, to a table that no other process knows.

    Args:
        session: the call; private.
        engine: holds the rows.
        requested: requested time of the commit.

    Raises:
        HudiError: as for :func:`run_write`.
    """
    return _write(session, engine, time.monotonic(), requested=requested)


def _write(
    session: TableSession,
    engine: Engine,
    started: float,
    new: Target | None = None,
    requested: str | None = None,
) -> WriteResult:
    """Write to the session's table, or to the new one that ``new`` describes."""
    options = session.settings.write
    with session.phase("write", "writing", level=logging.INFO) as step:
        with session.phase("prepare"):
            if new is None:
                session.ask_guard()
            plan = _draft(session, engine, new)
        drafted = session.state
        if new is not None:
            session.set_state(create_table(new, options))
        with session.phase("begin"), session.locked():
            recover(session)
            state = ensure_metadata(session, plan)
            refuse_large_scan(plan, state, options.index.fallback_max_bytes)
            pinned = pin(state, options)
            transaction = begin(session, plan.committed_as.upper(), plan.committed_as in _REPLACING, requested)
        step.instant = transaction.instant.requested
        with rolled_back_on_failure(transaction):
            if state.timeline == drafted.timeline:
                plan = replace(plan, table=replace(plan.table, config=state.config, view=state.view))
            else:
                plan = _drafted(state, options, engine)
                engine.prepare(plan)
            plan, outcome, instant = _execute(transaction, pinned, plan, engine)
        result = _result(instant, plan.operation, outcome.stats if instant else [], started, outcome)
        _note(step, result)
    return replace(result, schema_changes=plan.schema_changes if instant else ())


def _note(step: Phase, result: WriteResult) -> None:
    step.add(
        operation=result.operation,
        rows=result.inserts + result.updates + result.deletes,
        files=result.files_written,
        bytes=result.bytes_written,
        plan=result.plan,
    )


def _execute(
    transaction: Transaction, pinned: Pinned, plan: WritePlan, engine: Engine
) -> tuple[WritePlan, WriteOutcome, str]:
    """Execute and publish a write that has begun; the returned instant is empty when there was nothing to commit."""
    session, state = transaction.session, pinned.state
    options = session.settings.write
    plan = replace(
        plan,
        files=replace(plan.files, stats_columns=columns_with_stats(state, plan, options.metadata)),
        instant=transaction.instant.requested,
        early=early_detection(options, state.timeline, plan.index.bucket is not None),
    )
    with session.phase("execute"):
        outcome = engine.execute(plan)
    replaced = replaced_groups(plan, state.view if plan.overwrites else plan.view, options, outcome.partitions)
    with session.phase("publish"), session.locked():
        if not (outcome.stats or replaced or options.allow_empty_commit or plan.overwrites):
            withdraw(transaction)
            return plan, outcome, ""
        _publish(transaction, pinned, plan, _metadata(plan, options, outcome.stats, replaced))
    return plan, outcome, plan.instant


def _publish(transaction: Transaction, pinned: Pinned, plan: WritePlan, metadata: CommitMetadata) -> None:
    """Check a write for conflicts and make it visible; under the table's lock."""
    session, instant = transaction.session, transaction.instant
    options = session.settings.write
    if options.clusterings.rolls_back and plan.allows_clustering_updates:
        release_groups(session, metadata.write_stats())
    state = session.state
    if options.lock.is_shared:
        session.next_time()  # later times are after all times of other writers
        refuse_while_restoring(state.storage, state.timeline, "no write may be published")
        require_not_undone(state, instant)
        session.ask_guard()
        with session.phase("check_conflicts"):
            require_no_conflicts(instant, metadata, pinned.state, state, plan, options)
        if not plan.overwrites:
            plan = plan_with_merged_schema(instant, plan, pinned, state, options)
        metadata = replace(metadata, extra_metadata={**metadata.extra_metadata, **schema_metadata(plan)})
    elif plan.is_dml:
        require_no_other_commit(instant, pinned.state)
    recorded: list[Recorded | None] = []
    ranges = _new_ranges(session, plan, metadata)

    def record() -> None:
        if transaction.heartbeat is not None:
            transaction.heartbeat.require_alive()
        if session.settings.hooks.validates:
            from hudi_fast.writing.validators import validate

            validate(session, instant, metadata)
        record_schema(session.state, plan, session.clock)
        save_ranges(session.storage, plan.instant, ranges)
        if plan.committed_as == "insert_overwrite_table" and options.bucket.expressions:
            change_counts(session.storage, plan.instant, options.bucket.expressions, options.bucket.count)
        with session.phase("record_in_metadata"):
            recorded.append(record_in_metadata(session, plan, metadata))

    completed = publish(transaction, metadata, record)
    confirm_ranges(session.storage, plan.instant, [one.partition for one in ranges])
    session.committed(completed, recorded[0])
    maintain_metadata(session, state)


def _new_ranges(session: TableSession, plan: WritePlan, metadata: CommitMetadata) -> list[HashingMetadata]:
    """Consistent hashing: the ranges of partitions whose rows the write replaces."""
    if plan.committed_as not in _REPLACING:
        return []
    bucket, written = plan.index.bucket, {}
    if bucket is not None and bucket.engine != "SIMPLE":
        written = {name: [one.file_id for one in stats] for name, stats in metadata.partition_to_write_stats.items()}
    return renewed_ranges(
        session.storage,
        session.state.timeline,
        plan.instant,
        metadata.partition_to_replace_file_ids or {},
        written,
        0 if bucket is None else bucket.count,
    )


def _replace(session: TableSession, engine: Engine, target: Target, started: float) -> WriteResult:
    """Write a new table next to the existing one, then exchange the two; where that is impossible, in its place."""
    storage = session.storage
    staged = stage(storage, session.settings.write.deletes_other_files)
    if staged is None:
        if target.is_damaged:
            return _write(session, engine, started, new=target)
        return _overwrite_in_place(session, engine, target, started)
    try:
        try:
            private = TableSession(replace(session.call, storage=staged, is_private=True, guard=None))
            result = _write(private, engine, started, new=replace(target, storage=staged, exists=False))
        except (OSError, CommitStateUnknownError, PostCommitError) as error:  # the staged table is deleted in any case
            raise CommitError(
                f"The new table that was to replace {storage.uri} could not be written: {error} The old table is as "
                "before; run the operation again."
            ) from error
        with session.section():  # the old table may be damaged
            session.require_lock()
            exchange(storage, staged)
            session.changed()
    finally:
        discard(staged)
    return replace(result, seconds=time.monotonic() - started)


def _overwrite_in_place(session: TableSession, engine: Engine, target: Target, started: float) -> WriteResult:
    """Replace rows, columns and configuration of a table by one commit: see :mod:`.open_table`."""
    storage, options = session.storage, session.settings.write
    before = session.latest().config
    changes = changed_properties(session.state, options)
    with session.phase("write", "writing", level=logging.INFO) as step:
        with session.phase("prepare"):
            plan = replace(_draft(session, engine, target.with_properties(before.raw, changes)), overwrites=True)
        session.changed()
        with session.phase("begin"), session.locked():
            state = recover(session)
            require_same_partitions(state, plan.schema)
            if changed_properties(state, options) != changes:
                raise CommitConflictError(
                    f"Another writer changed the configuration of {storage.uri}; run the write again."
                )
            release_all(session)
            state = metadata_to_overwrite(session, plan, keeps_config=not changes)
            table = replace(plan.table, internal=overwritten_ids(plan, state))
            plan = replace(plan, table=table, index=without_records(plan.index))  # no key is looked up
            pinned = pin(state, options)
            transaction = begin(session, plan.committed_as.upper(), replaces=True)
        step.instant = transaction.instant.requested
        with rolled_back_on_failure(transaction):
            with session.locked():
                announce(storage, transaction.instant.requested, changes)
                session.changed()
            plan, outcome, instant = _execute(transaction, pinned, plan, engine)
        _finish_overwrite(session, plan, instant)
        result = _result(instant, plan.operation, outcome.stats, started, outcome)
        _note(step, result)
    return result


def _finish_overwrite(session: TableSession, plan: WritePlan, instant: str) -> None:
    """Apply the configuration that a completed overwrite announced, and build the metadata table that it wants."""
    storage = session.storage
    try:
        with session.locked():
            state = session.state
            if apply_announced(storage, state.config, state.timeline):
                session.changed()
            ensure_metadata(session, plan)
    except Exception as error:
        warn(
            f"The overwrite {instant} of {storage.uri} is complete. Finishing its configuration or its metadata table "
            f"failed ({error}); the next write does it."
        )


def _metadata(
    plan: WritePlan, options: WriteOptions, stats: list[WriteStat], replaced: Mapping[str, list[str]]
) -> CommitMetadata:
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    return CommitMetadata(
        by_partition,
        {**options.extra_metadata, **schema_metadata(plan)},
        plan.committed_as.upper(),
        partition_to_replace_file_ids=dict(replaced) if plan.committed_as in _REPLACING else None,
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


# ---- the file groups that a replace commit replaces (insert_overwrite, insert_overwrite_table, delete_partition)


_STAR, _ANY = re.compile(r"\*|%2A"), "(?s:.*)"

_REPLACING = frozenset({"insert_overwrite", "insert_overwrite_table", "delete_partition"})
"""Operations that replace file groups."""


def replaced_groups(
    plan: WritePlan, view: TableView, options: WriteOptions, written: Iterable[str]
) -> dict[str, list[str]]:
    """Replaced file ids by partition path; empty for operations that do not replace file groups.

    Args:
        plan: the write.
        view: the pinned view of the table, which lacks file groups of the write itself.
        options: names partitions to delete.
        written: partition paths that received rows (or, for ``delete_partition``, that rows named).

    Raises:
        CommitConflictError: a pending service is about to rewrite a file group: a clustering, or for
            ``delete_partition`` a compaction too.
    """
    if plan.committed_as not in _REPLACING:
        return {}
    existing = view.lister.partitions()
    if plan.committed_as == "insert_overwrite_table":
        wanted = list(existing)
    elif plan.operation == "delete_partition" and options.partitions_to_delete:
        wanted = [name for name in existing if _matches(name, options.partitions_to_delete)]
    else:
        static = options.static_overwrite_partitions if plan.operation == "insert_overwrite" else ()
        named = set(static or written)
        wanted = [name for name in existing if name in named]
    replaced = {name: [one.file_id for one in latest_slices(view, name)] for name in wanted}
    _refuse_planned(plan, view, replaced)
    return {name: ids for name, ids in replaced.items() if ids}


def _refuse_planned(plan: WritePlan, view: TableView, replaced: Mapping[str, Iterable[str]]) -> None:
    planned = dict.fromkeys(view.pending_groups, "clustering")
    if plan.operation == "delete_partition":
        planned |= {group: f"compaction {instant}" for group, instant in view.pending_compactions.items()}
        planned |= {group: f"log compaction {instant}" for group, instant in view.pending_log_compactions.items()}
    blocked = [
        (name, one, planned[name, one]) for name, ids in replaced.items() for one in ids if (name, one) in planned
    ]
    if blocked:
        raise CommitConflictError(
            f"{plan.committed_as} on {plan.storage.uri} would replace file groups that a pending clustering or "
            f"compaction is going to rewrite: {blocked}. Run or roll back the service first."
        )


def _matches(partition: str, patterns: Iterable[str]) -> bool:
    """Whether a pattern matches: a star, plain or url-encoded, matches any text; other characters are literal."""
    return any(re.fullmatch(_ANY.join(map(re.escape, _STAR.split(each))), partition) for each in patterns)
