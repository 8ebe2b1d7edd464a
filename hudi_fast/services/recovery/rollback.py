"""Rolling back: failed writes, pending services by name, the newest completed write.

::

    look     which instants ─► what rests on them ─► the files that go                     (nothing is written)
    run      the locks: look again ─► rollback requested ─► inflight ─► files, metadata table, instant ─► completed
             ─► partitions of the metadata table that could not be taken back are built anew

What died on the way is finished by the next write from the plan of the rollback, or by the next rollback.

Source: ``BaseHoodieTableServiceClient#rollback`` and ``#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hudi_fast.errors import CommitConflictError, CommitError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.metadata_table.updates.restore import lost_partitions
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.recovery.rebuild import finish_pending_rollbacks, rebuild_partitions
from hudi_fast.services.recovery.target import find_target, require_free
from hudi_fast.services.recovery.values import PlannedRollback, RollbackResult, TouchedFile
from hudi_fast.services.recovery.withdraw import held_locks, service_of, withdraw_plan
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.plans import RollbackMetadata, RollbackPlan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.failed_writes import expired_writes
from hudi_fast.writing.markers import delete_leftover_markers
from hudi_fast.writing.rollback import RolledBack, finish_rollbacks, relative_path, roll_back
from hudi_fast.writing.rollback_plan import pending_rollbacks, plan_rollback
from hudi_fast.writing.transaction import refuse_while_restoring

__all__ = ["look_at_rollback", "run_rollback", "storage_errors", "touched_files"]


def look_at_rollback(storage: Storage, instant: str | None, settings: ServiceSettings) -> PlannedRollback:
    """What :func:`run_rollback` would do; nothing is written.

    Raises:
        ConfigError: the instant cannot be rolled back; why, and what to do instead.
        CommitConflictError: the table is being restored.
    """
    return _planned(open_state(storage), instant, settings)


def run_rollback(
    storage: Storage,
    instant: str | None,
    settings: ServiceSettings,
    carriers: Carriers,
    plan: PlannedRollback | None = None,
) -> RollbackResult:
    """Roll an instant back, or all writes that failed.

    Args:
        storage: the table's storage.
        instant: requested time; None for all failed writes, and rollbacks that died.
        settings: locks, and which pending writes have failed.
        carriers: delete files, and build partitions of the metadata table.
        plan: what it must amount to; None for whatever it does.

    Raises:
        CommitConflictError: ``plan`` does not fit the table any more, or the table is being restored.
        CommitError: storage failed, or a file could not be deleted: the next write finishes the rollback.
        ConfigError: the instant cannot be rolled back; nothing has changed.
    """
    started = time.monotonic()
    if plan is not None and instant is None:
        instant = plan.asked
    again = "What was begun is finished by the next write, or by services.rollback()."
    locks = held_locks(storage, _services_held(open_state(storage), instant), settings)
    with storage_errors(f"The rollback of {instant or 'failed writes'} of {storage.uri}", again), locks as held:
        state = open_state(storage)
        found = _planned(state, instant, settings)
        _require_same(storage, plan, found)
        clock = settings.clock(state.config, held)
        if instant is None:
            done = _roll_back_failed(state, settings, carriers, clock)
            withdrawn: tuple[str, ...] = ()
        else:
            done, withdrawn = _roll_back_one(state, instant, settings, carriers, clock)
        delete_leftover_markers(storage, {one.requested for one in load_timeline(storage, state.config).pending()})
        finish_pending_rollbacks(storage, state.config, clock)
        rebuild_partitions(storage, found.rebuilt, settings, clock, carriers.index)
    return _result(done, withdrawn, time.monotonic() - started)


@contextlib.contextmanager
def storage_errors(what: str, again: str) -> Iterator[None]:
    """Say what failed because of storage, and what to do about it.

    Raises:
        CommitError: storage failed.
    """
    try:
        yield
    except OSError as error:
        raise CommitError(f"{what} failed because of storage: {error}. {again}") from error


def touched_files(storage: Storage, plan: RollbackPlan) -> Iterable[TouchedFile]:
    """The files that a rollback touches, with their sizes."""
    for request in plan.requests:
        for what, paths in (("delete", request.files_to_be_deleted), ("answer", request.log_blocks_to_be_deleted)):
            for path in paths:
                found = storage.stat(relative_path(storage, path))
                size = 0 if found is None else found.size
                name = path.rpartition("/")[2]
                yield TouchedFile(plan.instant, plan.action, request.partition_path, name, size, what)


# ---- looking


def _planned(state: TableState, instant: str | None, settings: ServiceSettings) -> PlannedRollback:
    storage, config = state.storage, state.config
    refuse_while_restoring(storage, state.timeline, "nothing may be rolled back")
    waiting = _waiting_rollbacks(state)
    if instant is None:
        failed = [one for one in _failed_writes(state, settings) if one.requested not in waiting]
        plans = [*waiting.values(), *(plan_rollback(storage, config, one) for one in failed)]
        completed = [plan.instant for plan in waiting.values() if _is_completed(state, plan.instant)]
    elif instant in waiting:
        plans, completed = [waiting[instant]], [instant] if _is_completed(state, instant) else []
    else:
        target = find_target(state, instant)
        if target.is_completed:
            require_free(state, target)
        plain = service_of(state, target) in ("clean", "indexing")
        plans = [RollbackPlan(instant, target.action) if plain else plan_rollback(storage, config, target)]
        completed = [instant] if target.is_completed else []
    return PlannedRollback(
        tuple(plan.instant for plan in plans),
        tuple(one for plan in plans for one in touched_files(storage, plan)),
        lost_partitions(storage, config, completed),
        instant,
    )


def _is_completed(state: TableState, instant: str) -> bool:
    return any(one.requested == instant for one in state.timeline.writes())


def _waiting_rollbacks(state: TableState) -> dict[str, RollbackPlan]:
    """Rollbacks that died, by the instant that they undo."""
    return {plan.instant: plan for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}


def _failed_writes(state: TableState, settings: ServiceSettings) -> list[Instant]:
    """Asked for in so many words, it is done under the policy NEVER too, as far as signs of life have ceased."""
    failed = settings.failed_writes
    return expired_writes(state, replace(failed, policy="LAZY") if failed.policy == "NEVER" else failed)


def _require_same(storage: Storage, plan: PlannedRollback | None, found: PlannedRollback) -> None:
    if plan is None or plan == found:
        return
    changed = sorted({*plan.instants} ^ {*found.instants}) or sorted(
        {one.file for one in plan.files} ^ {one.file for one in found.files}
    )
    raise CommitConflictError(
        f"The plan of the rollback does not fit {storage.uri} any more: "
        f"{', '.join(changed[:3]) or 'the metadata table'} changed since. Plan it again."
    )


# ---- doing


def _services_held(state: TableState, instant: str | None) -> tuple[str, ...]:
    """The services whose locks it takes to roll the instant back."""
    found = next((one for one in state.timeline.pending() if one.requested == instant), None)
    service = None if found is None else service_of(state, found)
    return () if service is None else (service,)


def _roll_back_failed(
    state: TableState, settings: ServiceSettings, carriers: Carriers, clock: InstantClock
) -> list[RolledBack]:
    storage, config = state.storage, state.config
    rule = settings.failed_writes.heartbeat
    finished = finish_rollbacks(storage, config, state.timeline, clock, carriers.delete, rule)
    done = [one for one in finished if one is not None]
    state = open_state(storage) if finished else state
    for one in _failed_writes(state, settings):
        newest = state.timeline.newest_time
        done.append(roll_back(storage, config, one, clock, newest, carriers.delete, rule=rule))
    return done


def _roll_back_one(
    state: TableState, instant: str, settings: ServiceSettings, carriers: Carriers, clock: InstantClock
) -> tuple[list[RolledBack], tuple[str, ...]]:
    """What was rolled back, and what was only taken off the timeline."""
    storage, config = state.storage, state.config
    rule = settings.failed_writes.heartbeat
    if instant in _waiting_rollbacks(state):
        finished = finish_rollbacks(storage, config, state.timeline, clock, carriers.delete, rule)
        return [one for one in finished if one is not None], ()
    target = find_target(state, instant)
    service = service_of(state, target)
    if service is not None and withdraw_plan(state, target, service, rule):
        return [], (target.requested,)
    return [roll_back(storage, config, target, clock, state.timeline.newest_time, carriers.delete)], ()


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
