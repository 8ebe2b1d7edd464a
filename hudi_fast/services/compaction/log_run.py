"""Log compaction: the log files of a slice become one; its base file stays.

::

    plan   the table's lock: due? ─► slices with enough log files or blocks ─► <instant>.logcompaction.requested
    begin  the table's lock: clean up, is the plan still true? requested ─► inflight
    merge  no lock: blocks that replace those of the listed instants                       (writers go on)
    commit the table's lock: is the plan still true? markers, the metadata table, inflight ─► completed

What writers log meanwhile stands after the merged blocks, whose place is that of the blocks that they hold. One that
died is rolled back and forgotten: plans are disposable. A lock of log compactions' own is held all the while.

Sources: ``HoodieLogCompactionPlanGenerator``, ``HoodieLogCompactHelper``, ``LogCompactionExecutionHelper`` (1.2.0).
"""

from __future__ import annotations

import contextlib
from functools import partial

from hudi_fast.errors import ServiceTakenError
from hudi_fast.formats.log.blocks import scan_log_blocks
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.locking.table_lock import HeldLock, Lock, table_lock
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.compaction.plan import (
    ScheduledCompaction,
    compactable_slices,
    recovered_state,
    require_merge_on_read,
)
from hudi_fast.services.compaction.run import service_metadata, service_work
from hudi_fast.services.compaction.triggers import log_compaction_is_due
from hudi_fast.services.compaction.work import CompactionWork, Executor
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import begin_service, commit_service, guarded, service_lock, with_metadata
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import CompactionPlan, encode_compaction_plan
from hudi_fast.timeline.transition import create_requested, delete_instant_files
from hudi_fast.view.pending import operation_of, read_compaction_plan
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.transaction import Transaction, clean_up

__all__ = ["run_log_compaction", "run_pending_log_compactions", "schedule_log_compaction"]

_ACTION = "logcompaction"
_HELPER = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_MAKES_SLICES = frozenset({"compaction", "commit", "replacecommit"})


def schedule_log_compaction(storage: Storage, settings: ServiceSettings, if_due: bool) -> ScheduledCompaction | None:
    """Put a log compaction on the timeline.

    Args:
        storage: the table's storage.
        settings: the threshold.
        if_due: ask first whether enough delta commits were made.

    Returns:
        What was planned; None when it is not due, or no slice has enough log files or blocks. Nothing is written then.

    Raises:
        ConfigError: the table is not MERGE_ON_READ.
    """
    with table_lock(storage, settings.write.lock) as held:
        state = open_state(storage)
        require_merge_on_read(state)
        clock = settings.clock(state.config, held)
        state = _without_died(recovered_state(state, clock, settings.failed_writes), clock, settings)
        threshold = settings.compaction.log_blocks_threshold
        if if_due and not log_compaction_is_due(storage, state.config, state.timeline, threshold):
            return None
        now = clock.next_time(state.timeline.newest_time)
        plan = plan_log_compaction(state, now, settings)
        if not plan.operations:
            return None
        service_plan(state, settings)  # refuses what could not be carried out
        clock.require_lock()  # planning took its time
        create_requested(storage, state.config, Instant(now, _ACTION, State.REQUESTED), encode_compaction_plan(plan))
        return ScheduledCompaction(now, plan, _ACTION)


def plan_log_compaction(state: TableState, now: str, settings: ServiceSettings) -> CompactionPlan:
    """The plan of a log compaction that begins at ``now``: all log files of the slices that have enough."""
    threshold = settings.compaction.log_blocks_threshold
    pending = {**state.view.pending_compactions, **state.view.pending_log_compactions}
    found = compactable_slices(state, state.view.lister.partitions(), now, pending, set())
    operations = tuple(
        operation_of(one, settings.write.max_file_size) for one in found if _has_enough(state.storage, one, threshold)
    )
    return CompactionPlan(operations, compactor_class=_HELPER, preserve_meta_fields=True)


def run_pending_log_compactions(
    storage: Storage, settings: ServiceSettings, execute: Executor
) -> list[tuple[str, list[WriteStat]]]:
    """Carry out what waits on the timeline, oldest first; instants and what was written.

    Those that died, or that are out of date, go.
    """
    state = load_state(storage)
    done = []
    for instant in state.timeline.pending_log_compactions:
        plan = read_compaction_plan(storage, state.config, instant)
        with contextlib.suppress(ServiceTakenError):
            one = ScheduledCompaction(instant.requested, plan, _ACTION)
            done.append((one.instant, run_log_compaction(storage, one, settings, execute)))
    return done


def run_log_compaction(
    storage: Storage, scheduled: ScheduledCompaction, settings: ServiceSettings, execute: Executor
) -> list[WriteStat]:
    """Carry out a log compaction that stands on the timeline.

    Args:
        storage: the table's storage.
        scheduled: which one.
        settings: how files are written.
        execute: merges the logs.

    Returns:
        What was written; one stat for each log file.

    Raises:
        ServiceTakenError: it is not pending, or the slices that it names were compacted since; it is withdrawn.
        CommitError: it failed, and is gone; the table is as before.
    """
    lock = partial(table_lock, storage, settings.write.lock)
    with service_lock(storage, settings, service_lock_path(_ACTION)):
        with lock() as held:
            transaction, work = _begin(storage, scheduled, settings, held)
        return guarded(transaction, lambda: _execute(transaction, work, execute, lock, settings), lock)


def _has_enough(storage: Storage, slice_: FileSlice, threshold: int) -> bool:
    """By log files, or where there are too few of them by their blocks."""
    if len(slice_.log_files) >= threshold:
        return True
    return sum(1 for log in slice_.log_files for _ in scan_log_blocks(storage, log.path)) >= threshold


def _without_died(state: TableState, clock: InstantClock, settings: ServiceSettings) -> TableState:
    """The state once log compactions that died are rolled back."""
    rule = settings.failed_writes.heartbeat
    inflight = [one for one in state.timeline.pending_log_compactions if one.state is State.INFLIGHT]
    died = [one for one in inflight if not is_alive(state.storage, one.requested, rule)]
    for instant in died:
        roll_back(state.storage, state.config, instant, clock, state.timeline.newest_time)
    return open_state(state.storage) if died else state


def _begin(
    storage: Storage, scheduled: ScheduledCompaction, settings: ServiceSettings, held: HeldLock
) -> tuple[Transaction, CompactionWork]:
    state = open_state(storage)
    require_merge_on_read(state)
    config, clock = state.config, settings.clock(state.config, held)
    failed = settings.failed_writes
    state = with_metadata(_without_died(clean_up(state, clock, failed), clock, settings), clock, settings)
    instant = state.timeline.find(scheduled.instant, _ACTION)
    if instant is None or instant.action != _ACTION:
        raise ServiceTakenError(
            f"The log compaction {scheduled.instant} of {storage.uri} is not pending: it died, or it was completed. "
            "Plan another one."
        )
    if instant.state is State.INFLIGHT:
        require_abandoned(storage, instant, failed.heartbeat)
    try:
        _require_newest(state, instant)
    except ServiceTakenError:
        delete_instant_files(storage, config, instant)
        raise
    work = service_work(state, instant, settings)
    return begin_service(state, instant, clock, "LOG_COMPACT", failed.heartbeat), work


def _require_newest(state: TableState, instant: Instant) -> None:
    """Refuse a log compaction that something came after which makes slices, or ends them."""
    later = [one for one in state.timeline.instants if one.requested > instant.requested]
    newer = [one for one in later if one.action in _MAKES_SLICES]
    if newer:
        raise ServiceTakenError(
            f"The log compaction {instant.requested} of {state.storage.uri} is out of date: the {newer[0].action} "
            f"{newer[0].requested} came after it. It was withdrawn; plan another one."
        )


def _execute(
    transaction: Transaction, work: CompactionWork, execute: Executor, lock: Lock, settings: ServiceSettings
) -> list[WriteStat]:
    stats = execute(work)
    with lock() as held:
        state = open_state(transaction.storage)  # writers went on
        transaction.clock.under(held, state.timeline.newest_time)
        _require_newest(state, transaction.instant)
        commit_service(transaction, state, work.plan, service_metadata(work, stats, "LOG_COMPACT"), settings)
    return stats
