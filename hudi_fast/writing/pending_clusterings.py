"""Clusterings that wait, and give way: to writes that change rows of their file groups, and to time.

::

    release_groups        a write that may do so changed rows of a planned group   ─► the clustering is rolled back
    expired_clusterings   planned long ago, no signs of life since                 ─► the same, by whoever comes next

One that is being carried out on this machine is left alone: it finds out by itself before it completes. Rolled back
means gone with its plan: another one is planned from the table as it is then.

Sources: ``BaseSparkCommitActionExecutor.clusteringHandleUpdate``,
``BaseHoodieTableServiceClient.isClusteringInstantEligibleForRollback`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator

from hudi_fast.errors import LockTimeoutError
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive
from hudi_fast.timeline.instant import Instant, ms_from_instant
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.rollback import roll_back

__all__ = ["release_groups", "roll_back_expired", "withdraw_clustering"]

_MINUTE_MS = 60_000


def release_groups(state: TableState, stats: Iterable[WriteStat], clock: InstantClock, rule: HeartbeatRule) -> bool:
    """Roll back the pending clusterings of file groups that a write has changed rows of, before it is committed.

    Args:
        state: the table that the write pinned; the caller holds its lock.
        stats: what the write wrote.
        clock: gives times.
        rule: for how long a sign of life counts.

    Returns:
        Whether there were any.
    """
    touched = {(one.partition_path, one.file_id) for one in stats} & state.view.pending_groups
    if not touched:
        return False
    found = [
        instant
        for instant, plan in pending_clusterings(state.storage, state.config, state.timeline)
        if any((one.partition_path, one.file_id) in touched for group in plan.groups for one in group.slices)
    ]
    return _withdraw_all(state, found, clock, rule)


def roll_back_expired(state: TableState, minutes: int, clock: InstantClock, rule: HeartbeatRule) -> bool:
    """Roll back the clusterings that were planned long ago and that nobody is carrying out; under the table's lock.

    Args:
        state: the table.
        minutes: how long ago.
        clock: gives times.
        rule: for how long a sign of life counts.

    Returns:
        Whether there were any: the state has to be loaded again then.
    """
    latest = time.time_ns() // 1_000_000 - minutes * _MINUTE_MS
    zone = state.config.timezone
    found = [one for one in state.pending_services if ms_from_instant(one.requested, zone) <= latest]
    return _withdraw_all(state, found, clock, rule)


def withdraw_clustering(state: TableState, instant: Instant, clock: InstantClock) -> None:
    """Roll a pending clustering back, plan and all; under the table's lock and that of clusterings.

    Raises:
        CommitError: storage failed; the next writer finishes it.
    """
    roll_back(state.storage, state.config, instant, clock, state.timeline.newest_time, keep_plan=False)


def _withdraw_all(state: TableState, found: list[Instant], clock: InstantClock, rule: HeartbeatRule) -> bool:
    if not found:
        return False
    with _nobody_clusters(state.storage) as nobody:
        if not nobody:
            return False
        idle = [one for one in found if not is_alive(state.storage, one.requested, rule)]
        for instant in idle:
            withdraw_clustering(state, instant, clock)
    return bool(idle)


@contextlib.contextmanager
def _nobody_clusters(storage: Storage) -> Iterator[bool]:
    """Keep others on this machine from clustering; False if somebody is at it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(machine_lock(storage, 0.0, service_lock_path("clustering")))
        except LockTimeoutError:
            yield False
            return
        yield True
