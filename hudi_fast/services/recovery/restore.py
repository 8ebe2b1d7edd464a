"""Restoring a table to a savepoint: every later instant is rolled back, newest first.

::

    the locks of all services, and the table's
        ─► restore requested (which instants) ─► inflight            from here on no write may begin
        ─► each instant: rollback requested ─► inflight ─► it becomes invisible ─► files, metadata table, instant
        ─► restore completed ─► the rollbacks are removed from the timeline
        ─► partitions of the metadata table that could not be rolled back are built again

The next restore to the same savepoint continues an abandoned one: it skips removed instants, and executes rollbacks on
the timeline from their plans. If the abandoned one was complete but for partitions of the metadata table, it builds
these. Cleans and the savepoint stay.

Source: ``BaseHoodieWriteClient#restoreToSavepoint``, ``BaseRestoreActionExecutor`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from hudi_fast.errors import CommitConflictError
from hudi_fast.metadata_table.definitions import load_definitions
from hudi_fast.metadata_table.updates.restore import drop_lost_partitions, list_restored_logs, lost_partitions
from hudi_fast.services.indexing.drop import finish_pending_indexings
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.recovery.older_names import require_named_by_slice
from hudi_fast.services.recovery.rebuild import finish_pending_rollbacks, rebuild_partitions
from hudi_fast.services.recovery.restore_plan import (
    find_on,
    instants_to_undo,
    pending_restore,
    require_restorable,
    savepointed_commit,
)
from hudi_fast.services.recovery.rollback import storage_errors, touched_files
from hudi_fast.services.recovery.values import PlannedRestore, RestoreResult
from hudi_fast.services.recovery.withdraw import ALL_SERVICES, held_locks
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPartition, RollbackPlan
from hudi_fast.timeline.restore_plans import (
    RestoreMetadata,
    RestorePlan,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.view.named_files import relative_path
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.markers import delete_leftover_markers, marked_files
from hudi_fast.writing.rollback import (
    finish_rollbacks,
    request_rollback,
    undo,
)
from hudi_fast.writing.rollback_plan import log_of, pending_rollbacks, plan_rollback
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.unseen_writes import confirm_plan

__all__ = ["plan_of_restore", "run_restore"]

_ACTION = "restore"


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """A restore that is inflight.

    Attributes:
        state: the table when this attempt began.
        instant: the restore.
        plan: the instants to roll back.
    """

    state: TableState
    instant: Instant
    plan: RestorePlan


def run_restore(session: TableSession, savepoint: str, plan: PlannedRestore | None = None) -> RestoreResult:
    """Return a table to a savepoint.

    Args:
        session: the call.
        savepoint: requested time of the savepointed commit.
        plan: execute exactly this; None to plan now.

    Raises:
        CommitConflictError: another restore is pending, another process is active, or ``plan`` no longer fits.
        CommitError: storage failed, or a file could not be deleted: restore again.
        ConfigError: there is no such savepoint, or it cannot be restored; nothing has changed.
        CorruptTableError: files of the savepoint are missing; nothing has changed.
    """
    started, storage = time.monotonic(), session.storage
    again = "Restore it again: the next attempt continues."
    with storage_errors(f"The restore of {storage.uri} to {savepoint}", again), held_locks(session, ALL_SERVICES):
        _recover(session, savepoint)
        planned = plan_of_restore(session, savepoint)
        _require_same(storage, plan, planned)
        begun = _begin(session, planned)
        drop_lost_partitions(storage, begun.state.config, _completed_of(begun.state, planned))
        rollbacks = _undo_all(session, begun)
        _finish(session, begun, rollbacks, time.monotonic() - started)
        session.changed()
        finish_pending_rollbacks(session)
        rebuild_partitions(session, planned.rebuilt)
    deleted = sum(len(part.deleted) for one in rollbacks.values() for part in one.partitions)
    undone = tuple(requested for requested, _ in begun.plan.instants)
    return RestoreResult(begun.instant.requested, savepoint, undone, deleted, time.monotonic() - started)


# ---- planning


def plan_of_restore(session: TableSession, savepoint: str) -> PlannedRestore:
    """Plan :func:`run_restore`; nothing is written.

    Args:
        session: the call.
        savepoint: requested time of the savepointed commit.

    Raises:
        HudiError: as :func:`run_restore`.
    """
    state, settings = session.state, session.settings
    storage, config = state.storage, state.config
    abandoned = pending_restore(state, savepoint)
    commit = savepointed_commit(state, savepoint, settings)
    if abandoned is not None and abandoned[1] is not None:
        going = [found for one in abandoned[1].instants if (found := find_on(state.timeline, *one)) is not None]
        instants = abandoned[1].instants
    else:
        going = instants_to_undo(state, commit)
        instants = tuple((one.requested, one.action) for one in going)
        require_restorable(state, commit, going)
        require_named_by_slice(state, going, f"{storage.uri} cannot be restored to {savepoint}")
    for one in going:
        if not one.is_completed:
            require_abandoned(session, one)
    waiting = {plan.instant: plan for _, plan in _rollbacks_since(state, savepoint)}
    plans = [waiting.get(one.requested) or plan_rollback(storage, config, one, restoring=True) for one in going]
    completed = [one.requested for one in going if one.is_completed]
    lost = set(lost_partitions(storage, config, completed))
    if abandoned is not None or _follows_restore(state):
        lost |= _dropped_before(state)
    return PlannedRestore(
        savepoint,
        instants,
        tuple(file for plan in plans for file in touched_files(storage, plan)),
        tuple(sorted(lost)),
        abandoned[0].requested if abandoned is not None and abandoned[1] is not None else "",
    )


def _completed_of(state: TableState, planned: PlannedRestore) -> list[str]:
    found = (find_on(state.timeline, *one) for one in planned.instants)
    return [one.requested for one in found if one is not None and one.is_completed]


def _follows_restore(state: TableState) -> bool:
    """Whether the last action was a restore, which may have died while it built partitions again."""
    last = max(state.timeline.instants, key=lambda one: one.requested)
    return last.action == _ACTION and last.is_completed


def _dropped_before(state: TableState) -> set[str]:
    """Partitions that an abandoned attempt may have dropped: they still have definitions."""
    present = state.config.all_metadata_partitions
    defined = set(load_definitions(state.storage, state.config))
    if "column_stats" in defined and state.config.version >= 8 and state.config.partition_fields:
        defined.add("partition_stats")
    return ({*defined, "files"} if defined else set()) - present


def _rollbacks_since(state: TableState, savepoint: str) -> Iterator[tuple[Instant, RollbackPlan]]:
    """Pending rollbacks of the restore, from this attempt or earlier ones."""
    for one, plan in pending_rollbacks(state.storage, state.config, state.timeline):
        if one.requested > savepoint:
            yield one, plan


def _require_same(storage: Storage, plan: PlannedRestore | None, found: PlannedRestore) -> None:
    if plan is None or plan == found:
        return
    changed = sorted({*plan.instants} ^ {*found.instants})
    names = [f"{action} {requested}" for requested, action in changed] or sorted(
        {one.file for one in plan.files} ^ {one.file for one in found.files}
    )
    raise CommitConflictError(
        f"The plan of the restore no longer fits {storage.uri}: "
        f"{', '.join(names[:3]) or 'the savepoint, or the metadata table,'} changed since. Plan it again."
    )


# ---- execution


def _recover(session: TableSession, savepoint: str) -> None:
    """Finish pending rollbacks and undo abandoned indexings, unless an abandoned restore is continued."""
    state = session.state
    abandoned = pending_restore(state, savepoint)
    if abandoned is not None and abandoned[1] is not None:
        return
    savepointed_commit(state, savepoint, session.settings)
    finish_rollbacks(session)
    if abandoned is not None:
        delete_instant_files(session.storage, state.config, abandoned[0])
        session.changed()
    finish_pending_indexings(session)


def _begin(session: TableSession, planned: PlannedRestore) -> _Begun:
    state = session.state
    storage, config, timeline = state.storage, state.config, state.timeline
    plan = RestorePlan(planned.savepoint, planned.instants)
    if planned.resumes:
        instant = find_on(timeline, planned.resumes, _ACTION)
        assert instant is not None
    else:
        instant = Instant(session.next_time(), _ACTION, State.REQUESTED)
        create_requested(storage, config, instant, encode_restore_plan(plan))
        confirm_plan(session, instant, None, state)
    if instant.state is State.REQUESTED:
        to_inflight(storage, config, instant)
    return _Begun(state=state, instant=replace(instant, state=State.INFLIGHT, file_name=None), plan=plan)


def _undo_all(session: TableSession, begun: _Begun) -> dict[str, RollbackMetadata]:
    """Roll back all instants; returns the rollback metadata by instant, including metadata of earlier attempts."""
    state, storage = begun.state, session.storage
    waiting = {plan.instant: (one, plan) for one, plan in _rollbacks_since(state, begun.plan.savepoint)}
    done: dict[str, RollbackMetadata] = {}
    for requested, action in begun.plan.instants:
        found = find_on(state.timeline, requested, action)
        if found is None:
            if requested in waiting:
                done[requested] = _done_before(storage, *waiting[requested])
            continue
        if requested in waiting:
            rollback, plan = waiting[requested]
        else:
            plan = plan_rollback(storage, state.config, found, restoring=True)
            rollback = request_rollback(session, plan)
        done[requested] = undo(session, rollback, plan, keep_plan=False, list_logs=False)
    return done


def _done_before(storage: Storage, rollback: Instant, plan: RollbackPlan) -> RollbackMetadata:
    """The rollback metadata of an abandoned attempt, from its plan and markers."""
    parts: dict[str, RollbackPartition] = {}
    for request in plan.requests:
        part = parts.get(request.partition_path) or RollbackPartition(request.partition_path)
        parts[request.partition_path] = replace(
            part,
            deleted=(*part.deleted, *request.files_to_be_deleted),
            log_files_from_failed_commit={**part.log_files_from_failed_commit, **request.log_blocks_to_be_deleted},
        )
    for path in marked_files(storage, rollback.requested):
        found, partition = storage.stat(path), path.rpartition("/")[0]
        if found is not None and partition in parts:
            made = {**parts[partition].rollback_log_files, storage.absolute(path): found.size}
            parts[partition] = replace(parts[partition], rollback_log_files=made)
    return RollbackMetadata(rollback.requested, plan.instant, plan.action, 0, tuple(parts.values()))


def _finish(session: TableSession, begun: _Begun, rollbacks: dict[str, RollbackMetadata], seconds: float) -> None:
    state, clock, savepoint = begun.state, session.clock, begun.plan.savepoint
    storage, config = state.storage, state.config
    newest = load_timeline(storage, config).newest_time
    if config.layout_version < 2:
        _list_logs(session, begun, rollbacks, clock.next_time(newest))
    metadata = RestoreMetadata(begun.instant.requested, int(seconds * 1000), begun.plan.instants, rollbacks)
    times = partial(clock.completion_time, newest)
    complete(storage, config, begun.instant, encode_restore_metadata(metadata), times, confirm=clock.confirm)
    for one in load_timeline(storage, config).of_action("rollback"):
        if one.requested > savepoint:
            delete_instant_files(storage, config, one)
    delete_leftover_markers(storage, {one.requested for one in load_timeline(storage, config).pending()})


def _list_logs(session: TableSession, begun: _Begun, rollbacks: dict[str, RollbackMetadata], requested: str) -> None:
    """Before table version 8: record in the metadata table which log files exist after all rollbacks."""
    storage = begun.state.storage
    added: dict[str, dict[str, int]] = {}
    removed: dict[str, list[str]] = {}
    for one in rollbacks.values():
        for part in one.partitions:
            named = (*part.deleted, *part.failed, *part.rollback_log_files, *part.log_files_from_failed_commit)
            for path in named:
                where, name = relative_path(storage, path), path.rpartition("/")[2]
                if log_of(where) is None:
                    continue
                found = storage.stat(where)
                if found is None:
                    removed.setdefault(part.partition_path, []).append(name)
                else:
                    added.setdefault(part.partition_path, {})[name] = found.size
    list_restored_logs(storage, begun.state.config, requested, added, removed, session.clock)
