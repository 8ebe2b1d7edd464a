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
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from hudi_fast.errors import CommitConflictError, CommitError
from hudi_fast.metadata_table.updates.restore import lost_partitions
from hudi_fast.services.recovery.rebuild import finish_pending_rollbacks, rebuild_partitions
from hudi_fast.services.recovery.target import find_target, require_free
from hudi_fast.services.recovery.values import PlannedRollback, RollbackResult, TouchedFile
from hudi_fast.services.recovery.withdraw import held_locks, service_of, withdraw_plan
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPlan
from hudi_fast.view.named_files import relative_path
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.failed_writes import expired_writes
from hudi_fast.writing.markers import delete_leftover_markers
from hudi_fast.writing.rollback import RolledBack, finish_rollbacks, roll_back
from hudi_fast.writing.rollback_plan import pending_rollbacks, plan_rollback
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
