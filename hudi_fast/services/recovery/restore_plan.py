"""Selects the instants that a restore rolls back, in order, and checks that it is possible.

::

    the savepoint ─► its commit ─► pending clusterings since, newest first
                                 ─► all other writes and compactions since: pending ones, then the last completed first

"Since" is by completion; for compactions of a MERGE_ON_READ table it is by requested time, because log files written
after a compaction was planned are on top of its base files, whenever these were finished. Before table version 8 slices
are named by requested times, so only these decide.

Source: ``RestorePlanActionExecutor``, ``RestoreInstantComparatorFactory``, ``SavepointHelpers`` (Hudi 1.2.0).
"""

from __future__ import annotations

from hudi_fast.errors import CommitConflictError, ConfigError, CorruptTableError
from hudi_fast.services.recovery.savepoints import read_savepoint
from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instant import Instant, comparable_action
from hudi_fast.timeline.restore_plans import RestorePlan, decode_restore_plan
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.settings import Settings

__all__ = [
    "find_on",
    "instants_to_undo",
    "pending_restore",
    "plan_of_pending",
    "require_restorable",
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
