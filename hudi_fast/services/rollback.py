"""Rolling back: failed writes, pending services by name, the newest completed write.

::

    plan     which instants ─► what depends on them ─► the files to delete                 (nothing is written)
    run      the locks: plan again ─► rollback requested ─► inflight ─► files, metadata table, instant ─► completed
             ─► partitions of the metadata table that could not be rolled back are built again

The next write or rollback finishes an abandoned rollback from its plan.

Source: ``BaseHoodieTableServiceClient#rollback`` and ``#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitError, ConfigError
from hudi_fast.metadata_table.updates.rollback import lost_partitions
from hudi_fast.services.undoing import (
    PlannedRollback,
    RollbackResult,
    TouchedFile,
    finish_pending_rollbacks,
    held_locks,
    rebuild_partitions,
    require_named_by_slice,
    service_of,
    withdraw_plan,
)
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import Instant, Timeline, comparable_action, read_instant_body, read_requested_body
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPlan, decode_clean_metadata, decode_clean_plan
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.pending import pending_clusterings, read_compaction_plan
from hudi_fast.view.planned_files import relative_path
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.markers import delete_leftover_markers
from hudi_fast.writing.rollback import RolledBack, finish_rollbacks, roll_back
from hudi_fast.writing.rollback_plan import expired_writes, pending_rollbacks, plan_rollback
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import refuse_while_restoring

__all__ = ["plan_of_rollback", "run_rollback", "storage_errors", "touched_files"]

_FEW_FILES = 4
"""Up to this number, files of one folder are looked up one by one; beyond it, the folder is listed."""


def plan_of_rollback(session: TableSession, instant: str | None, with_files: bool = True) -> PlannedRollback:
    """Plan :func:`run_rollback`; nothing is written.

    Args:
        session: the call.
        instant: requested time; None for all failed writes and pending rollbacks.
        with_files: whether the plan names the files, for which their sizes are looked up.

    Raises:
        ConfigError: the instant cannot be rolled back; the message says why, and what to do instead.
        CommitConflictError: a restore is pending.
    """
    state, settings = session.state, session.settings
    storage, config = state.storage, state.config
    refuse_while_restoring(storage, state.timeline, "nothing may be rolled back")
    pending = _pending_rollbacks(state)
    if instant is None:
        failed = [one for one in _failed_writes(state, settings) if one.requested not in pending]
        plans = [*pending.values(), *(plan_rollback(storage, config, one) for one in failed)]
        completed = [plan.instant for plan in pending.values() if _is_completed(state, plan.instant)]
    elif instant in pending:
        plans, completed = [pending[instant]], [instant] if _is_completed(state, instant) else []
    else:
        target = find_target(state, instant)
        if target.is_completed:
            require_free(state, target)
        plain = service_of(state, target) in ("clean", "indexing")
        plans = [RollbackPlan(instant, target.action) if plain else plan_rollback(storage, config, target)]
        completed = [instant] if target.is_completed else []
    return PlannedRollback(
        tuple(plan.instant for plan in plans),
        tuple(one for plan in plans for one in touched_files(storage, plan)) if with_files else (),
        lost_partitions(storage, config, completed),
        instant,
    )


def run_rollback(session: TableSession, instant: str | None, plan: PlannedRollback | None = None) -> RollbackResult:
    """Roll an instant back, or all failed writes.

    Args:
        session: the call.
        instant: requested time; None for all failed writes and pending rollbacks.
        plan: execute exactly this; None to plan now.

    Raises:
        CommitConflictError: ``plan`` no longer fits the table, or a restore is pending.
        CommitError: storage failed, or a file could not be deleted: the next write finishes the rollback.
        ConfigError: the instant cannot be rolled back; nothing has changed.
    """
    started, storage = time.monotonic(), session.storage
    if plan is not None and instant is None:
        instant = plan.asked
    again = "The next write, or services.rollback(), finishes it."
    locks = held_locks(session, _services_held(session.state, instant))
    with storage_errors(f"The rollback of {instant or 'failed writes'} of {storage.uri}", again), locks:
        found = plan_of_rollback(session, instant, with_files=plan is not None)
        _require_same(storage, plan, found)
        if instant is None:
            done = _roll_back_failed(session)
            withdrawn: tuple[str, ...] = ()
        else:
            done, withdrawn = _roll_back_one(session, instant)
        delete_leftover_markers(storage, {one.requested for one in session.reload().timeline.pending()})
        finish_pending_rollbacks(session)
        rebuild_partitions(session, found.rebuilt)
    return _result(done, withdrawn, time.monotonic() - started)


@contextlib.contextmanager
def storage_errors(what: str, again: str) -> Iterator[None]:
    """Turn a storage error into an error that names the failed action and says what to do.

    Raises:
        CommitError: storage failed.
    """
    try:
        yield
    except OSError as error:
        raise CommitError(f"{what} failed because of storage: {error}. {again}") from error


def touched_files(storage: Storage, plan: RollbackPlan) -> Iterable[TouchedFile]:
    """The files that a rollback touches, with their sizes."""
    named = (path for one in plan.requests for path in (*one.files_to_be_deleted, *one.log_blocks_to_be_deleted))
    sizes = _sizes(storage, {relative_path(storage, path) for path in named})
    for request in plan.requests:
        for what, paths in (("delete", request.files_to_be_deleted), ("answer", request.log_blocks_to_be_deleted)):
            for path in paths:
                size = sizes.get(relative_path(storage, path), 0)
                name = path.rpartition("/")[2]
                yield TouchedFile(plan.instant, plan.action, request.partition_path, name, size, what)


# ---- planning


def _sizes(storage: Storage, paths: Collection[str]) -> dict[str, int]:
    """Bytes of the files that exist; one listing for many files of one folder."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(path.rpartition("/")[0], []).append(path)
    found: list[FileStat | None] = []
    for folder, some in by_folder.items():
        found += map(storage.stat, some) if len(some) <= _FEW_FILES else storage.list_dir(folder)
    return {one.path: one.size for one in found if one is not None and one.path in paths}


def _is_completed(state: TableState, instant: str) -> bool:
    return any(one.requested == instant for one in state.timeline.writes())


def _pending_rollbacks(state: TableState) -> dict[str, RollbackPlan]:
    """Pending rollbacks, by the instant that they undo."""
    return {plan.instant: plan for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}


def _failed_writes(state: TableState, settings: Settings) -> list[Instant]:
    """Pending writes with an expired heartbeat; an explicit rollback includes them under the policy NEVER, too."""
    failed = settings.failed_writes
    return expired_writes(state, replace(failed, policy="LAZY") if failed.policy == "NEVER" else failed)


def _require_same(storage: Storage, plan: PlannedRollback | None, found: PlannedRollback) -> None:
    if plan is None or plan == found:
        return
    changed = sorted({*plan.instants} ^ {*found.instants}) or sorted(
        {one.file for one in plan.files} ^ {one.file for one in found.files}
    )
    raise CommitConflictError(
        f"The plan of the rollback no longer fits {storage.uri}: "
        f"{', '.join(changed[:3]) or 'the metadata table'} changed since. Plan it again."
    )


# ---- execution


def _services_held(state: TableState, instant: str | None) -> tuple[str, ...]:
    """The services whose locks the rollback takes."""
    found = next((one for one in state.timeline.pending() if one.requested == instant), None)
    service = None if found is None else service_of(state, found)
    return () if service is None else (service,)


def _roll_back_failed(session: TableSession) -> list[RolledBack]:
    done = [one for one in finish_rollbacks(session) if one is not None]
    return [*done, *(roll_back(session, one) for one in _failed_writes(session.state, session.settings))]


def _roll_back_one(session: TableSession, instant: str) -> tuple[list[RolledBack], tuple[str, ...]]:
    """Roll one instant back; returns rolled-back instants, and instants that were only removed from the timeline."""
    state = session.state
    if instant in _pending_rollbacks(state):
        return [one for one in finish_rollbacks(session) if one is not None], ()
    target = find_target(state, instant)
    service = service_of(state, target)
    if service is not None and withdraw_plan(session, target, service):
        return [], (target.requested,)
    return [roll_back(session, target)], ()


def _result(done: Sequence[RolledBack], withdrawn: tuple[str, ...], seconds: float) -> RollbackResult:
    made: list[RollbackMetadata] = [one.metadata for one in done]
    parts = [part for one in made for part in one.partitions]
    return RollbackResult(
        done[-1].requested if done else "",
        (*(one.instant for one in made), *withdrawn),
        sum(len(part.deleted) for part in parts),
        sum(len(part.failed) for part in parts),
        sum(len(part.log_files_from_failed_commit) for part in parts),
        seconds,
    )


# ---- the instant to roll back, and the actions that depend on it
#
# ::
#
#     a pending write                          nothing depends on it: it can always be rolled back
#     a pending compaction, clustering ...     see ``withdraw``
#     the newest completed write               unless a savepoint, a planned service or a clean depends on it
#     anything else                            refused, with a reason
#
# Only the newest completed write can be rolled back alone: later writes build on its files. Use a restore to a
# savepoint to return further. A service that was planned before a write does not include it, even if it completes
# later.
#
# Source: ``BaseRollbackActionExecutor#validateRollbackCommitSequence``, ``#validateSavepointRollbacks`` (Hudi 1.2.0),
# which do not check cleans and plans.

_REFUSED = {
    "rollback": "it is a rollback. The next write, or rollback() without an instant, finishes an abandoned one",
    "restore": "it is a restore. Finish it with restore() of the same savepoint",
    "savepoint": "it is a savepoint. Remove it with delete_savepoint()",
}
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})


def find_target(state: TableState, instant: str) -> Instant:
    """The instant with that requested time, if it can be rolled back.

    Args:
        state: the table.
        instant: requested time.

    Raises:
        ConfigError: it is not on the timeline, or its action cannot be rolled back.
    """
    timeline = state.timeline
    found = [one for one in timeline.instants if one.requested == instant and one.action != "savepoint"]
    if not found:
        first = timeline.first_requested
        archived = first is not None and instant < first
        raise ConfigError(
            f"The instant {instant} of {state.storage.uri} cannot be rolled back: it is not on the active timeline"
            f"{f', which begins at {first}; archived instants stay' if archived else ''}."
        )
    target = timeline.find(instant) or found[0]
    target = found[0] if target.action == "savepoint" else target
    reason = _REFUSED.get(target.action)
    if reason is None and target.is_completed and comparable_action(target.action) in ("clean", "indexing"):
        reason = f"a {target.action} that is complete is not undone"
    if reason is not None:
        raise ConfigError(f"The instant {instant} of {state.storage.uri} cannot be rolled back: {reason}.")
    return target


def require_free(state: TableState, target: Instant) -> None:
    """Refuse to roll back a completed write that something depends on.

    Args:
        state: the table.
        target: a completed commit, delta commit or replace commit.

    Raises:
        ConfigError: something depends on it; the message names it, and says what to do.
        CorruptTableError: a plan or metadata is damaged.
    """
    storage, config, timeline = state.storage, state.config, state.timeline
    what = f"The {target.action} {target.requested} of {storage.uri} cannot be rolled back"
    if any(one.requested == target.requested for one in timeline.of_action("savepoint")):
        raise ConfigError(f"{what}: it is savepointed. Remove the savepoint first, with delete_savepoint().")
    later = sorted(_later_writes(state, target), key=lambda one: one.requested)
    if later:
        named = ", ".join(f"{one.action} {one.requested}" for one in later[-3:])
        raise ConfigError(
            f"{what}: {len(later)} complete after it ({named}). Roll back the newest first, or restore the table to a "
            "savepoint."
        )
    _require_one_left(state, target, what)
    require_named_by_slice(state, [target], what)
    metadata = read_commit(storage, config, target)
    names = {stat.path.rpartition("/")[2] for stat in metadata.write_stats() if stat.path}
    for pending, files in _planned_files(storage, config, timeline):
        if names & files:
            raise ConfigError(
                f"{what}: the pending {pending.action} {pending.requested} was planned with its files. Roll that back "
                "first."
            )
    for clean, gone in _cleaned_since(state, target):
        lost = _needs(state, target, metadata, gone)
        if lost is not None:
            raise ConfigError(
                f"{what}: the clean {clean.requested} {'deleted' if clean.is_completed else 'is going to delete'} what "
                f"there was before it ({lost}). Restore the table to a savepoint, if there is one."
            )


def _require_one_left(state: TableState, target: Instant, what: str) -> None:
    """Refuse to remove the last write from the active timeline while older ones are archived.

    A write counts as archived, and so as complete, if it is older than the first write of the timeline. Without any
    write on the timeline, files of archived writes would look like files of failed writes, also to Apache Hudi 1.2.0.
    """
    timeline, folder = state.timeline, state.config.history_folder
    saved = {one.requested for one in timeline.of_action("savepoint")} | {target.requested}
    if any(one.requested not in saved for one in timeline.writes()):
        return
    if any(not entry.is_dir for entry in state.storage.list_dir(folder, recursive=True)):
        raise ConfigError(
            f"{what}: it is the last one on the active timeline, and older ones are archived. Without it their files "
            "would look like those of failed writes. Write the table again, or restore it to a savepoint."
        )


def _later_writes(state: TableState, target: Instant) -> Iterator[Instant]:
    for one in state.timeline.writes():
        if one.requested == target.requested:
            continue
        if one.requested > target.requested:
            yield one
        elif state.config.layout_version > 1 and (one.completion or "") > (target.completion or ""):
            if read_commit(state.storage, state.config, one).operation_type not in _SERVICES:
                yield one


def _planned_files(storage: Storage, config: TableConfig, timeline: Timeline) -> Iterator[tuple[Instant, set[str]]]:
    """Pending services with the names of their planned files."""
    for instant in (*timeline.pending_compactions, *timeline.pending_log_compactions):
        operations = read_compaction_plan(storage, config, instant).operations
        yield instant, {name for one in operations for name in (one.base_file, *one.log_files) if name}
    for instant, plan in pending_clusterings(storage, config, timeline):
        slices = [one for group in plan.groups for one in group.slices]
        paths = (path for one in slices for path in (one.base_path, *one.log_paths))
        yield instant, {path.rpartition("/")[2] for path in paths}


def _cleaned_since(state: TableState, target: Instant) -> Iterator[tuple[Instant, dict[str, set[str]]]]:
    """Cleans since the write, complete or planned, with the names of their deleted files by partition path."""
    storage, config = state.storage, state.config
    for clean in state.timeline.of_action("clean"):
        if clean.is_completed and clean.requested > target.requested:
            done = decode_clean_metadata(read_instant_body(storage, config, clean))
            yield clean, {one.partition_path: {*one.deleted, *one.failed} for one in done.partitions}
        elif not clean.is_completed:
            plan = decode_clean_plan(read_requested_body(storage, config, clean))
            yield clean, {name: {path.rpartition("/")[2] for path in paths} for name, paths in plan.files.items()}


def _needs(state: TableState, target: Instant, metadata: CommitMetadata, gone: Mapping[str, set[str]]) -> str | None:
    """A deleted file of a slice that the write read, or of a file group that it ended; None without one."""
    for stat in metadata.write_stats():
        names = gone.get(stat.partition_path, set())
        if stat.prev_base_file and stat.prev_base_file in names:
            return stat.prev_base_file
        if stat.prev_commit != "null":
            found = [name for name in _of_group(names, stat.file_id) if stat.prev_commit in name]
            if found:
                return found[0]
    if metadata.operation_type == "COMPACT":
        plan = read_compaction_plan(state.storage, state.config, replace(target, action="compaction"))
        for one in plan.operations:
            merged = {name for name in (one.base_file, *one.log_files) if name}
            if lost := sorted(merged & gone.get(one.partition_path, set())):
                return lost[0]
    return _ended_and_gone(state, metadata, gone)


def _ended_and_gone(state: TableState, metadata: CommitMetadata, gone: Mapping[str, set[str]]) -> str | None:
    """A deleted file of a file group that the write ended and that has no slice left; None without one.

    Files that a pending write added to the group are ignored: it may have read the slice before that was deleted.
    """
    pending = {one.requested for one in state.timeline.pending()}
    for partition, file_ids in (metadata.partition_to_replace_file_ids or {}).items():
        names = gone.get(partition, set())
        ended = {file_id: found for file_id in file_ids if (found := _of_group(names, file_id))}
        if not ended:
            continue
        left = {entry.name for entry in state.storage.list_dir(partition)} - names
        for file_id, found in ended.items():
            lost = {_begun_at(name) for name in found} | pending
            if all(_begun_at(name) in lost for name in _of_group(left, file_id)):
                return found[0]
    return None


def _begun_at(name: str) -> str:
    """The instant that a data file is named after; before table version 8 a log file is named after its slice."""
    entry = FileStat(name, 0, 0, False)
    file = parse_base_file(entry) or parse_log_file(entry)
    return "" if file is None else file.instant


def _of_group(names: Iterable[str], file_id: str) -> list[str]:
    return sorted(name for name in names if name.lstrip(".").startswith(f"{file_id}_"))
