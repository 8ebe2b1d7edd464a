"""Changing the table version: first what any version can read, then the switch.

::

    prepare   in turns with writers      failed writes rolled back, compactions completed, log files compacted
    locks     all services', the table's nothing pending, no log files? else prepare again
    move      the metadata table, then the data table: copy ─► hoodie.properties ─► sweep
    check     the metadata table

Until ``hoodie.properties`` is switched the table is one of the old version, from then on one of the new: a crash leaves
files that nobody reads, and perhaps a metadata table that is passed over until it is built anew. The same call made
again goes on from there. Writers on this machine wait; those on others, and real Hudi's, must be stopped for the while,
as Apache Hudi asks for too. Readers that began before the switch may miss the timeline when they look for it after.

Source: UpgradeDowngrade#run, release 1.2.0, which moves timelines before it changes the properties.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from functools import partial

from hudi_fast.errors import CommitConflictError
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.compaction.log_run import run_pending_log_compactions
from hudi_fast.services.compaction.plan import schedule_compaction
from hudi_fast.services.compaction.run import run_compaction, run_pending_compactions
from hudi_fast.services.indexing.plan import INDEX_LOCK_PATH
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import service_lock
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.upgrading.metadata import (
    as_it_is,
    check_metadata,
    drop_leaving,
    move_metadata,
    opened,
    version_definitions,
)
from hudi_fast.services.upgrading.move import both_tables, move_table, sweep, target_config
from hudi_fast.services.upgrading.plan import UpgradePlan, UpgradeResult, decide, hints_of, logged_slices, refuse
from hudi_fast.services.upgrading.properties import path_between
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.transaction import clean_up

__all__ = ["plan_upgrade", "run_upgrade"]

_TURNS = 3
_UNBOUNDED = "UnBoundedCompactionStrategy"
_LOCKS = (*map(service_lock_path, ("clean", "clustering", "compaction", "logcompaction")), INDEX_LOCK_PATH)


def plan_upgrade(storage: Storage, version: int, settings: ServiceSettings) -> UpgradePlan:
    """What :func:`run_upgrade` would do; nothing is written.

    Args:
        storage: the table's storage.
        version: 6, 8 or 9.
        settings: of the call.

    Raises:
        ConfigError: something must be settled first.
        CorruptTableError: the table is between two versions already.
        UnsupportedFeatureError: a version or feature that cannot be carried over.
    """
    return decide(opened(storage), version, settings)


def run_upgrade(
    storage: Storage, version: int, settings: ServiceSettings, carriers: Carriers, plan: UpgradePlan | None = None
) -> UpgradeResult:
    """Change the table version; nothing happens when the table has it.

    Args:
        storage: the table's storage.
        version: 6, 8 or 9.
        settings: of the call.
        carriers: who compacts.
        plan: what was planned; None for whatever is to be done now.

    Returns:
        What was done.

    Raises:
        CommitConflictError: the table is no longer as it was planned for, or writers log faster than is compacted.
        ConfigError: something must be settled first; nothing has changed.
        UnsupportedFeatureError: a version or feature that cannot be carried over; nothing has changed.
        LockTimeoutError: others held the table's lock, or that of a service.
        ServiceTakenError: another program is at a pending write or service; nothing has changed.
    """
    started = time.monotonic()
    planned = plan_upgrade(storage, version, settings)
    if plan is not None and plan != planned:
        raise CommitConflictError(
            f"The upgrade of {storage.uri} was planned from version {plan.before} to {plan.after} in {len(plan.steps)} "
            f"steps; now it is from {planned.before} to {planned.after} in {len(planned.steps)}: "
            f"{_difference(plan, planned)}. Plan it again."
        )
    if planned.steps:
        _require_abandoned(opened(storage), settings)
        _carry_out(storage, version, settings, carriers)
    return UpgradeResult(planned.before, planned.after, planned.steps, time.monotonic() - started)


# ---- inside


def _difference(old: UpgradePlan, new: UpgradePlan) -> str:
    ahead = [f"no longer: {step}" for step in old.steps if step not in new.steps]
    return (ahead + [f"new: {step}" for step in new.steps if step not in old.steps] + ["other versions"])[0]


def _require_abandoned(state: TableState, settings: ServiceSettings) -> None:
    """Whatever is pending is completed or rolled back: nobody may be at it."""
    for instant in _pending(state):
        require_abandoned(state.storage, instant, settings.failed_writes.heartbeat)


def _pending(state: TableState) -> list[Instant]:
    return [one for one in state.timeline.pending() if one.action != "savepoint"]


def _carry_out(storage: Storage, version: int, settings: ServiceSettings, carriers: Carriers) -> None:
    for _ in range(_TURNS):
        _prepare(storage, version, settings, carriers)
        with contextlib.ExitStack() as stack:
            for path in _LOCKS:
                stack.enter_context(service_lock(storage, settings, path))
            held = stack.enter_context(table_lock(storage, settings.write.lock))
            if _switch(storage, version, settings, held):
                return
    raise CommitConflictError(
        f"The version of {storage.uri} was not changed: other writers went on logging or planning compactions after "
        f"each of {_TURNS} rounds of compaction. Stop them and run it again."
    )


def _prepare(storage: Storage, version: int, settings: ServiceSettings, carriers: Carriers) -> None:
    """Bring the table to where nothing is pending and the newest slices are base files alone."""
    state = opened(storage)
    if state.config.version == version:
        return
    neutral = _neutral(state, settings)
    if state.timeline.pending_compactions:
        run_pending_compactions(storage, neutral, carriers.compact)
    if state.timeline.pending_log_compactions:
        run_pending_log_compactions(storage, neutral, carriers.compact)
    if logged_slices(opened(storage)):
        scheduled = schedule_compaction(storage, neutral, if_due=False)
        if scheduled is not None:
            run_compaction(storage, scheduled, neutral, carriers.compact)


def _neutral(state: TableState, settings: ServiceSettings) -> ServiceSettings:
    """Settings that compact everything and leave the set of indexes alone."""
    write = replace(settings.write, metadata=as_it_is(state.config, settings.write.metadata))
    return replace(
        settings, write=write, compaction=replace(settings.compaction, strategies=(_UNBOUNDED,), incremental=False)
    )


def _switch(storage: Storage, version: int, settings: ServiceSettings, held: HeldLock) -> bool:
    """Move the table, under all locks; False when there is something to prepare again."""
    state = opened(storage)
    config = state.config
    refuse(state, version, settings)
    if config.version == version:
        for table in both_tables(storage, config):
            sweep(*table)
        return True
    clock = settings.clock(config, held)
    if _pending(state):
        _require_abandoned(state, settings)
        clean_up(state, clock)
        state = opened(storage)
    if _pending(state) or logged_slices(state):
        return False
    neutral = partial(_neutral, settings=settings)
    hints = hints_of(settings)
    target = target_config(config.raw, version, hints, storage.uri)
    held.require()  # from here on every step changes the table
    state = drop_leaving(state, version)
    move_metadata(state, version, target.layout_version != config.layout_version, clock, settings.archive)
    if (8, 9) in path_between(config.version, version):
        version_definitions(storage, state.config)
    held.require()
    move_table(storage, version, hints, settings.archive)
    check_metadata(storage, clock, neutral(opened(storage)))
    return True
