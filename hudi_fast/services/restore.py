"""Restore a table to a savepoint.

Restoring a table to a savepoint: every later instant is rolled back, newest first.

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

Selects the instants that a restore rolls back, in order, and checks that it is possible.

::

    the savepoint ─► its commit ─► pending clusterings since, newest first
                                 ─► all other writes and compactions since: pending ones, then the last completed first

"Since" is by completion; for compactions of a MERGE_ON_READ table it is by requested time, because log files written
after a compaction was planned are on top of its base files, whenever these were finished. Before table version 8 slices
are named by requested times, so only these decide.

Source: ``RestorePlanActionExecutor``, ``RestoreInstantComparatorFactory``, ``SavepointHelpers`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hudi_fast.errors import CommitConflictError, ConfigError, CorruptTableError
from hudi_fast.metadata_table.layout import load_definitions
from hudi_fast.metadata_table.updates.rollback import drop_lost_partitions, list_restored_logs, lost_partitions
from hudi_fast.services.index_build import finish_pending_indexings
from hudi_fast.services.rollback import storage_errors, touched_files
from hudi_fast.services.running import require_abandoned
from hudi_fast.services.savepoints import read_savepoint
from hudi_fast.services.undoing import (
    ALL_SERVICES,
    PlannedRestore,
    RestoreResult,
    finish_pending_rollbacks,
    held_locks,
    rebuild_partitions,
    require_named_by_slice,
)
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instants import Instant, State, Timeline, comparable_action, load_timeline, read_requested_body
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPartition, RollbackPlan
from hudi_fast.timeline.service_plans import (
    RestoreMetadata,
    RestorePlan,
    decode_restore_plan,
    encode_restore_metadata,
    encode_restore_plan,
)
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.planned_files import relative_path
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.markers import delete_leftover_markers, marked_files
from hudi_fast.writing.rollback import finish_rollbacks, request_rollback, undo
from hudi_fast.writing.rollback_plan import log_of, pending_rollbacks, plan_rollback
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.unseen_writes import confirm_plan

__all__ = [
    "find_on",
    "instants_to_undo",
    "pending_restore",
    "plan_of_pending",
    "plan_of_restore",
    "require_restorable",
    "run_restore",
    "savepointed_commit",
]

_WRITES = ("commit", "deltacommit", "replacecommit")


def savepointed_commit(state: TableState, savepoint: str, settings: Settings) -> Instant:
    """The commit that the table is to be restored to.

    Args:
        state: the table.
        savepoint: requested time of the commit.
        settings: for archiving.

    Raises:
        ConfigError: there is no such savepoint, a later one is in the way, or instants since may have been archived.
    """
    timeline, what = state.timeline, f"{state.storage.uri} cannot be restored to {savepoint}"
    saved = [one for one in timeline.of_action("savepoint") if one.is_completed]
    commit = timeline.find(savepoint)
    if not any(one.requested == savepoint for one in saved) or commit is None or not commit.is_completed:
        known = ", ".join(one.requested for one in saved)
        raise ConfigError(f"{what}: it has no such savepoint; {f'those it has: {known}' if known else 'it has none'}.")
    later = [one.requested for one in saved if one.requested > savepoint]
    if later:
        raise ConfigError(f"{what}: the later savepoints {', '.join(later)} keep commits that would go. Delete them.")
    if settings.archive.beyond_savepoint:
        raise ConfigError(
            f"{what} with hoodie.archive.beyond.savepoint: commits after it may have been archived, and are not undone."
        )
    return commit


def instants_to_undo(state: TableState, commit: Instant) -> list[Instant]:
    """The instants that a restore to a commit rolls back, in that order."""
    timeline = state.timeline
    clusterings = [one for one in state.pending_services if one.requested > commit.requested]
    others = [
        one
        for one in timeline.instants
        if comparable_action(one.action) in _WRITES and one not in clusterings and _is_since(state, one, commit)
    ]
    pending = [one for one in others if not one.is_completed]
    completed = [one for one in others if one.is_completed]
    if state.config.layout_version > 1:
        completed.sort(key=lambda one: (one.completion or "", one.requested), reverse=True)
    else:
        completed.sort(key=lambda one: one.requested, reverse=True)
    return [*_newest_first(clusterings), *_newest_first(pending), *completed]


def require_restorable(state: TableState, commit: Instant, going: list[Instant]) -> None:
    """Check that the files of the savepoint exist, before newer instants are rolled back.

    Raises:
        CommitConflictError: before table version 8: a write that stays is on top of a compaction that is rolled back.
        ConfigError: writes since have been archived.
        CorruptTableError: files of the savepoint are missing.
    """
    storage, timeline = state.storage, state.timeline
    archive = ArchivedTimeline(storage, state.config).instants(begin=commit.requested, actions=_WRITES)
    archived = [one for one in archive if one.requested > commit.requested and timeline.find(one.requested) is None]
    if archived:
        raise ConfigError(
            f"{storage.uri} cannot be restored to {commit.requested}: {len(archived)} writes since have been archived "
            f"({archived[0].requested}), and are not undone."
        )
    gone = {one.requested for one in going}
    if state.config.layout_version < 2:
        compactions = [one.requested for one in going if one.action in ("compaction", "commit") and state.config.is_mor]
        for one in timeline.writes():
            if one.requested not in gone and one.requested > min(compactions, default=one.requested):
                raise CommitConflictError(
                    f"{storage.uri} cannot be restored to {commit.requested}: the {one.action} {one.requested} stays "
                    "and may have logged to a compaction that the restore removes. Use another savepoint."
                )
    (savepoint,) = [one for one in timeline.of_action("savepoint") if one.requested == commit.requested]
    for partition, names in read_savepoint(state, savepoint).files.items():
        present = {entry.name for entry in storage.list_dir(partition)}
        lost = [name for name in names if name not in present and _instant_of(name) not in gone]
        if lost:
            raise CorruptTableError(
                f"{storage.uri} cannot be restored to {commit.requested}: {len(lost)} files that its savepoint keeps "
                "are missing. Nothing has changed; restore the files, or use another savepoint.",
                f"{partition}/{lost[0]}" if partition else lost[0],
            )


def pending_restore(state: TableState, savepoint: str) -> tuple[Instant, RestorePlan | None] | None:
    """The abandoned restore, and its plan (None if its planning was abandoned); None without one.

    Raises:
        CommitConflictError: the pending restore is to another savepoint.
    """
    for one in state.timeline.pending():
        if one.action != "restore":
            continue
        plan = plan_of_pending(state, one)
        if plan is not None and plan.savepoint not in ("", savepoint):
            raise CommitConflictError(
                f"{state.storage.uri} has a pending restore {one.requested} to the savepoint {plan.savepoint}. Finish "
                "that first: restore to that savepoint."
            )
        return one, plan
    return None


def plan_of_pending(state: TableState, restore: Instant) -> RestorePlan | None:
    """The plan of a pending restore; None if its planning was abandoned."""
    path = f"{state.config.timeline_folder}/{restore.requested}.restore.requested"
    try:
        return decode_restore_plan(read_requested_body(state.storage, state.config, restore), path)
    except CorruptTableError:
        return None


def find_on(timeline: Timeline, requested: str, action: str) -> Instant | None:
    """The instant of a plan in its present state; None if it was removed."""
    wanted = comparable_action(action)
    matches = (one for one in timeline.instants if one.requested == requested)
    return next((one for one in matches if comparable_action(one.action) == wanted), None)


def _is_since(state: TableState, one: Instant, commit: Instant) -> bool:
    if one.requested == commit.requested:
        return False
    by_request = not one.is_completed or state.config.layout_version < 2
    if by_request or (state.config.is_mor and comparable_action(one.action) == "commit"):
        return one.requested > commit.requested
    return (one.completion or one.requested) > (commit.completion or commit.requested)


def _newest_first(instants: list[Instant]) -> list[Instant]:
    return sorted(instants, key=lambda one: one.requested, reverse=True)


def _instant_of(name: str) -> str:
    entry = FileStat(name, 0, 0, False)
    named = parse_base_file(entry) or parse_log_file(entry)
    return "" if named is None else named.instant


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
