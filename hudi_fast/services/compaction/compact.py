"""Executes a planned compaction: merges slices of base and log files into new base files at the plan's instant.

::

    begin     the table's lock: recover, roll back an abandoned attempt, requested ─► inflight
    execute   no lock: each slice is merged into a base file of the same group     (writers continue)
    commit    the table's lock: markers, the metadata table, inflight ─► completed (visible, atomically)

The process holds the lock of compactions from begin to commit. The lock ends with its process, so a process that holds
it and finds an inflight compaction knows that it was abandoned. A failure before the commit rolls the compaction back
to requested and keeps the plan, because writers may have logged to the slices that begin at its instant.

Sources: ``RunCompactionActionExecutor``, ``HoodieCompactor``, ``CompactHelpers`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import replace
from functools import partial

from hudi_fast.errors import ServiceTakenError
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.services.compaction.compact_plan import (
    ScheduledCompaction,
    pending_compactions,
    require_merge_on_read,
    schedule_compaction,
)
from hudi_fast.services.compaction.compact_work import CompactionResult, CompactionWork, combined_result
from hudi_fast.services.compaction.slices import compact_log, compact_slice
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import (
    begin_service,
    bytes_read,
    commit_service,
    figures_of,
    file_plan,
    recover_with_metadata,
    stats_by_partition,
)
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import Transaction, rolled_back_on_failure
from hudi_fast.writing.write_plan import TaskToken

__all__ = ["compact", "merge_slices", "run_compaction", "run_pending_compactions", "service_metadata", "service_work"]

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
