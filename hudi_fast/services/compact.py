"""Compaction and log compaction.

Executes a planned compaction: merges slices of base and log files into new base files at the plan's instant.

::

    begin     the table's lock: recover, roll back an abandoned attempt, requested ─► inflight
    execute   no lock: each slice is merged into a base file of the same group     (writers continue)
    commit    the table's lock: markers, the metadata table, inflight ─► completed (visible, atomically)

The process holds the lock of compactions from begin to commit. The lock ends with its process, so a process that holds
it and finds an inflight compaction knows that it was abandoned. A failure before the commit rolls the compaction back
to requested and keeps the plan, because writers may have logged to the slices that begin at its instant.

Sources: ``RunCompactionActionExecutor``, ``HoodieCompactor``, ``CompactHelpers`` (1.2.0).

Log compaction: merges the log files of a slice into one; its base file stays.

::

    plan   the table's lock: due? ─► slices with enough log files or blocks ─► <instant>.logcompaction.requested
    begin  the table's lock: recover, is the plan up to date? requested ─► inflight
    merge  no lock: blocks that replace those of the listed instants                       (writers continue)
    commit the table's lock: is the plan up to date? markers, the metadata table, inflight ─► completed

Blocks that writers log in the meantime come after the merged blocks, which take the position of the blocks that they
replace. An abandoned log compaction is rolled back with its plan. The process holds the lock of log compactions from
begin to commit.

Sources: ``HoodieLogCompactionPlanGenerator``, ``HoodieLogCompactHelper``, ``LogCompactionExecutionHelper`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import replace
from functools import partial

from hudi_fast.errors import ServiceTakenError, UnsupportedFeatureError
from hudi_fast.formats.log.blocks import scan_log_blocks
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.services.compact_plan import (
    ScheduledCompaction,
    compactable_slices,
    log_compaction_is_due,
    pending_compactions,
    put_compaction,
    recovered_state,
    require_merge_on_read,
    schedule_compaction,
)
from hudi_fast.services.merge_slices import (
    CompactionResult,
    CompactionWork,
    combined_result,
    compact_log,
    compact_slice,
)
from hudi_fast.services.running import (
    begin_service,
    bytes_read,
    commit_service,
    figures_of,
    file_plan,
    recover_with_metadata,
    require_abandoned,
    stats_by_partition,
)
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import CompactionOperation, CompactionPlan
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.view.pending import operation_of, read_compaction_plan
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import ensure_metadata
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.table_schema import schema_metadata
from hudi_fast.writing.transaction import Transaction, recover, rolled_back_on_failure
from hudi_fast.writing.write_plan import TaskToken

__all__ = [
    "compact",
    "merge_slices",
    "run_compaction",
    "run_log_compaction",
    "run_pending_compactions",
    "run_pending_log_compactions",
    "schedule_log_compaction",
    "service_metadata",
    "service_work",
]

_ACTION = "compaction"


def compact(
    session: TableSession, plan: ScheduledCompaction | None = None, pending_only: bool = False
) -> CompactionResult:
    """Execute pending compactions, then plan another one, if that is due, and execute it.

    Args:
        session: the call.
        plan: execute only this plan.
        pending_only: plan nothing new.

    Raises:
        HudiError: as :func:`run_compaction`.
    """
    started = time.monotonic()
    done = run_pending_compactions(session) if plan is None else [(plan.instant, run_compaction(session, plan))]
    if plan is None and not pending_only:
        planned = schedule_compaction(session, session.settings.compaction.has_trigger)
        if planned is not None:
            with contextlib.suppress(ServiceTakenError):  # another process completed it first
                done.append((planned.instant, run_compaction(session, planned)))
    return combined_result("compact", done, time.monotonic() - started)


def run_compaction(session: TableSession, scheduled: ScheduledCompaction) -> list[WriteStat]:
    """Execute a compaction that is pending on the timeline.

    Args:
        session: the call.
        scheduled: the compaction.

    Returns:
        One statistic for each slice.

    Raises:
        ServiceTakenError: it is no longer pending, or another process runs it.
        CommitError: it failed, and is pending again.
        CorruptTableError: a file of the plan is missing or damaged.
        UnsupportedFeatureError: the table merges its rows in a way that is not supported.
    """
    with (
        session.phase("compaction", "services", scheduled.instant, logging.INFO) as step,
        session.service_lock(service_lock_path(_ACTION)),
    ):
        with session.locked():
            transaction, work, operations = _begin(session, scheduled)
        with rolled_back_on_failure(transaction):
            stats = merge_slices(session, work, operations)
            with session.locked():  # writers continued
                commit_service(transaction, work.plan, service_metadata(work, stats, "COMPACT"))
        step.add(**figures_of(stats))
    return stats


def run_pending_compactions(session: TableSession) -> list[tuple[str, list[WriteStat]]]:
    """Execute all pending compactions, oldest first; returns instants and statistics.

    Raises:
        HudiError: as :func:`run_compaction`. A compaction that another process has completed is skipped instead.
    """
    done = []
    for one in pending_compactions(session.reload()):
        try:
            done.append((one.instant, run_compaction(session, one)))
        except ServiceTakenError:
            if any(one.instant == instant.requested for instant in session.reload().timeline.pending_compactions):
                raise
    return done


# ---- shared with log compaction


Operations = tuple[CompactionOperation, ...]


def service_work(session: TableSession, instant: Instant) -> tuple[CompactionWork, Operations]:
    """The work of a pending compaction or log compaction, and the operations of its stored plan."""
    operations = read_compaction_plan(session.storage, session.state.config, instant).operations
    plan = file_plan(session, instant.requested)
    return CompactionWork(plan=plan, merge=plan.merge_of(session.state), action=instant.action), operations


def merge_slices(session: TableSession, work: CompactionWork, operations: Operations) -> list[WriteStat]:
    """Merge the file slices of a compaction or log compaction on the session's backend."""
    weights = [bytes_read(operation.metrics) for operation in operations]
    return session.backend.map_units(work.plan, operations, weights, partial(_merge_slice, work))


def _merge_slice(work: CompactionWork, operation: CompactionOperation, token: TaskToken) -> list[WriteStat]:
    if work.action == _ACTION:
        return [compact_slice(work, operation, token)]
    return compact_log(work, operation, token)


def service_metadata(work: CompactionWork, stats: list[WriteStat], operation: str) -> CommitMetadata:
    """Commit metadata of a compaction or log compaction."""
    return CommitMetadata(stats_by_partition(stats), schema_metadata(work.plan), operation, compacted=True)


# ---- begin


def _begin(session: TableSession, scheduled: ScheduledCompaction) -> tuple[Transaction, CompactionWork, Operations]:
    require_merge_on_read(session.state)
    state = recover_with_metadata(session)
    instant = state.timeline.find(scheduled.instant, _ACTION)
    if instant is None or instant.action != _ACTION:
        raise ServiceTakenError(
            f"The compaction {scheduled.instant} of {session.storage.uri} is not pending: it was "
            f"{'removed from the timeline' if instant is None else 'completed'}. Plan another one."
        )
    if instant.state is State.INFLIGHT:
        require_abandoned(session, instant)
        roll_back(session, instant)
        instant = replace(instant, state=State.REQUESTED, file_name=None)
    work, operations = service_work(session, instant)
    return begin_service(session, instant, "COMPACT"), work, operations


_LOG_ACTION = "logcompaction"
_FIRST_VERSION = 6
"""Release 0.13 writes version 5 and knows log compactions; release 0.12 does not."""
_HELPER = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_MAKES_SLICES = frozenset({"compaction", "commit", "replacecommit"})


def schedule_log_compaction(session: TableSession, if_due: bool, dry_run: bool = False) -> ScheduledCompaction | None:
    """Put a log compaction on the timeline.

    Args:
        session: the call; its settings have the threshold.
        if_due: plan only if enough delta commits were made.
        dry_run: only return the plan, without an instant; nothing is written.

    Returns:
        The plan; None when it is not due, or no slice has enough log files or blocks, and then nothing is written.

    Raises:
        ConfigError: the table is not MERGE_ON_READ.
    """
    if dry_run:
        state = session.latest()
        _require_log_compaction(state)
        looked = _due_plan(session, state, if_due)
        return None if looked is None else replace(looked, instant="")
    with session.locked() as state:
        _require_log_compaction(state)
        recovered_state(session)
        state = _without_abandoned(session)
        planned = _due_plan(session, state, if_due)
        if planned is None:
            return None
        file_plan(session)  # refuses unsupported tables
        put_compaction(session, state, planned)
        return planned


def _require_log_compaction(state: TableState) -> None:
    require_merge_on_read(state)
    if state.config.version < _FIRST_VERSION:
        raise UnsupportedFeatureError(
            f"Log compaction of {state.storage.uri}, a table of version {state.config.version}: release 0.12 "
            "does not know it. Compact the table, or upgrade it with services.upgrade()."
        )


def _due_plan(session: TableSession, state: TableState, if_due: bool) -> ScheduledCompaction | None:
    """The plan of a log compaction that begins now; None when it is not due, or no slice has enough log files."""
    settings = session.settings
    threshold = settings.compaction.log_blocks_threshold
    if if_due and not log_compaction_is_due(session.storage, state.config, state.timeline, threshold):
        return None
    now = session.next_time()
    plan = plan_log_compaction(state, now, settings)
    return ScheduledCompaction(now, plan, _LOG_ACTION) if plan.operations else None


def compact_logs(session: TableSession, plan: ScheduledCompaction | None = None) -> CompactionResult:
    """Execute pending log compactions, then plan another one, if that is due, and execute it.

    Args:
        session: the call.
        plan: execute only this plan.

    Raises:
        HudiError: as :func:`run_log_compaction`.
    """
    started = time.monotonic()
    if plan is not None:
        done = [(plan.instant, run_log_compaction(session, plan))]
    else:
        done = run_pending_log_compactions(session)
        planned = schedule_log_compaction(session, session.settings.compaction.has_log_trigger)
        if planned is not None:
            with contextlib.suppress(ServiceTakenError):  # another process completed it first
                done.append((planned.instant, run_log_compaction(session, planned)))
    return combined_result("compact_logs", done, time.monotonic() - started)


def plan_log_compaction(state: TableState, now: str, settings: Settings) -> CompactionPlan:
    """The plan of a log compaction that begins at ``now``: all log files of the slices that have enough."""
    threshold = settings.compaction.log_blocks_threshold
    pending = {**state.view.pending_compactions, **state.view.pending_log_compactions}
    found = compactable_slices(state, state.view.lister.partitions(), now, pending, set())
    operations = tuple(
        operation_of(one, settings.write.sizing.max_file_size)
        for one in found
        if _has_enough(state.storage, one, threshold)
    )
    return CompactionPlan(operations, compactor_class=_HELPER, preserve_meta_fields=True)


def run_pending_log_compactions(session: TableSession) -> list[tuple[str, list[WriteStat]]]:
    """Execute all pending log compactions, oldest first; returns instants and statistics.

    Abandoned and outdated ones are removed.
    """
    state = session.reload()
    done = []
    for instant in state.timeline.pending_log_compactions:
        plan = read_compaction_plan(session.storage, state.config, instant)
        with contextlib.suppress(ServiceTakenError):
            one = ScheduledCompaction(instant.requested, plan, _LOG_ACTION)
            done.append((one.instant, run_log_compaction(session, one)))
    return done


def run_log_compaction(session: TableSession, scheduled: ScheduledCompaction) -> list[WriteStat]:
    """Execute a log compaction that is pending on the timeline.

    Args:
        session: the call.
        scheduled: the log compaction.

    Returns:
        One statistic for each new log file.

    Raises:
        ServiceTakenError: it is not pending, or its slices were compacted since; it is withdrawn then.
        CommitError: it failed and was removed; the table is as before.
    """
    with (
        session.phase("log_compaction", "services", scheduled.instant, logging.INFO) as step,
        session.service_lock(service_lock_path(_LOG_ACTION)),
    ):
        with session.locked():
            transaction, work, operations = _begin_logs(session, scheduled)
        with rolled_back_on_failure(transaction):
            stats = merge_slices(session, work, operations)
            with session.locked() as state:  # writers continued
                _require_newest(state, transaction.instant)
                commit_service(transaction, work.plan, service_metadata(work, stats, "LOG_COMPACT"))
        step.add(**figures_of(stats))
    return stats


def _has_enough(storage: Storage, slice_: FileSlice, threshold: int) -> bool:
    """Whether the slice has enough log files, or else enough blocks."""
    if len(slice_.log_files) >= threshold:
        return True
    return sum(1 for log in slice_.log_files for _ in scan_log_blocks(storage, log.path)) >= threshold


def _without_abandoned(session: TableSession) -> TableState:
    """The state after abandoned log compactions were rolled back."""
    for instant in session.timeline.pending_log_compactions:
        inflight = instant.state is State.INFLIGHT
        if inflight and not is_alive(session.storage, instant.requested, session.heartbeat_rule):
            roll_back(session, instant)
    return session.state


def _begin_logs(
    session: TableSession, scheduled: ScheduledCompaction
) -> tuple[Transaction, CompactionWork, Operations]:
    require_merge_on_read(session.state)
    recover(session)
    _without_abandoned(session)
    state = ensure_metadata(session, file_plan(session))
    instant = state.timeline.find(scheduled.instant, _LOG_ACTION)
    if instant is None or instant.action != _LOG_ACTION:
        raise ServiceTakenError(
            f"The log compaction {scheduled.instant} of {session.storage.uri} is not pending: it was abandoned, or "
            "completed. Plan another one."
        )
    if instant.state is State.INFLIGHT:
        require_abandoned(session, instant)
    try:
        _require_newest(state, instant)
    except ServiceTakenError:
        delete_instant_files(session.storage, state.config, instant)
        session.changed()
        raise
    work, operations = service_work(session, instant)
    return begin_service(session, instant, "LOG_COMPACT"), work, operations


def _require_newest(state: TableState, instant: Instant) -> None:
    """Refuse a log compaction if a later action made slices, or ended them."""
    later = [one for one in state.timeline.instants if one.requested > instant.requested]
    newer = [one for one in later if one.action in _MAKES_SLICES]
    if newer:
        raise ServiceTakenError(
            f"The log compaction {instant.requested} of {state.storage.uri} is out of date: the {newer[0].action} "
            f"{newer[0].requested} came after it. It was withdrawn; plan another one."
        )
