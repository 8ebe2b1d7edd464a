"""Carrying a planned compaction out: slices of base and log files become new base files at the plan's instant.

::

    begin     the table's lock: clean up, roll a died attempt back, requested ─► inflight
    execute   no lock: each slice is merged into a base file of the same group     (writers go on)
    commit    the table's lock: markers, the metadata table, inflight ─► completed (visible, at once)

A lock of the services' own is held all the while: it falls when its holder dies, so an inflight compaction that is
found under it belongs to nobody alive. Whatever fails before the commit is rolled back to requested, plan and all,
since writers may have logged to the slices that begin at it.

Sources: ``RunCompactionActionExecutor``, ``HoodieCompactor``, ``CompactHelpers`` (1.2.0).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hudi_fast.errors import ServiceTakenError
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.locking.table_lock import HeldLock, Lock, table_lock
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.compaction.plan import ScheduledCompaction, pending_compactions, require_merge_on_read
from hudi_fast.services.compaction.work import CompactionWork, Executor
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import begin_service, commit_service, guarded, service_lock, with_metadata
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_merge, service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.table_state import TableState, load_state
from hudi_fast.writing.metadata_commit import (
    columns_with_stats,
)
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.transaction import Transaction, clean_up

__all__ = [
    "run_compaction",
    "run_pending_compactions",
    "service_metadata",
    "service_work",
]

_ACTION = "compaction"


def run_compaction(
    storage: Storage, scheduled: ScheduledCompaction, settings: ServiceSettings, execute: Executor
) -> list[WriteStat]:
    """Carry out a compaction that stands on the timeline.

    Args:
        storage: the table's storage.
        scheduled: which one.
        settings: how files are written.
        execute: merges the slices.

    Returns:
        What was written; one stat for each slice.

    Raises:
        ServiceTakenError: it is no longer pending, or another writer is carrying it out.
        CommitError: it failed, and waits again.
        CorruptTableError: a file of the plan is gone or cannot be understood.
        UnsupportedFeatureError: the table merges its rows in a way that is not supported.
    """
    lock = partial(table_lock, storage, settings.write.lock)
    with service_lock(storage, settings, service_lock_path("compaction")):
        with lock() as held:
            transaction, work = _begin(storage, scheduled, settings, held)
        return guarded(transaction, lambda: _execute(transaction, work, execute, lock, settings), lock)


def run_pending_compactions(
    storage: Storage, settings: ServiceSettings, execute: Executor
) -> list[tuple[str, list[WriteStat]]]:
    """Carry out what waits on the timeline, oldest first; instants and what was written.

    Raises:
        HudiError: as :func:`run_compaction`, but not for one that somebody else has completed in the meantime.
    """
    done = []
    for one in pending_compactions(load_state(storage)):
        try:
            done.append((one.instant, run_compaction(storage, one, settings, execute)))
        except ServiceTakenError:
            if one.instant in {instant.requested for instant in load_state(storage).timeline.pending_compactions}:
                raise
    return done


# ---- what log compaction shares


def service_work(state: TableState, instant: Instant, settings: ServiceSettings) -> CompactionWork:
    """The work of a pending compaction or log compaction."""
    operations = read_compaction_plan(state.storage, state.config, instant).operations
    plan = service_plan(state, settings, instant.requested)
    measured = columns_with_stats(state, plan, settings.write.metadata)
    plan = replace(plan, instant=instant.requested, stats_columns=measured)
    return CompactionWork(plan, service_merge(state, plan), operations, instant.action)


def service_metadata(work: CompactionWork, stats: list[WriteStat], operation: str) -> CommitMetadata:
    """Commit metadata of a compaction or log compaction."""
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    return CommitMetadata(by_partition, schema_metadata(work.plan), operation, compacted=True)


# ---- inside


def _begin(
    storage: Storage, scheduled: ScheduledCompaction, settings: ServiceSettings, held: HeldLock
) -> tuple[Transaction, CompactionWork]:
    state = open_state(storage)
    require_merge_on_read(state)
    clock = settings.clock(state.config, held)
    failed = settings.failed_writes
    state = with_metadata(clean_up(state, clock, failed), clock, settings)
    instant = state.timeline.find(scheduled.instant, _ACTION)
    if instant is None or instant.action != _ACTION:
        raise ServiceTakenError(
            f"The compaction {scheduled.instant} of {storage.uri} is not pending: it was "
            f"{'taken off the timeline' if instant is None else 'completed'}. Plan another one."
        )
    if instant.state is State.INFLIGHT:
        require_abandoned(storage, instant, failed.heartbeat)
        roll_back(storage, state.config, instant, clock, state.timeline.newest_time)
        state = open_state(storage)
        instant = replace(instant, state=State.REQUESTED, file_name=None)
    work = service_work(state, instant, settings)
    return begin_service(state, instant, clock, "COMPACT", failed.heartbeat), work


def _execute(
    transaction: Transaction, work: CompactionWork, execute: Executor, lock: Lock, settings: ServiceSettings
) -> list[WriteStat]:
    stats = execute(work)
    with lock() as held:
        state = open_state(transaction.storage)  # writers went on
        transaction.clock.under(held, state.timeline.newest_time)  # it completes after all of them
        commit_service(transaction, state, work.plan, service_metadata(work, stats, "COMPACT"), settings)
    return stats
