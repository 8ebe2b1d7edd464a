"""Rolls back pending clusterings: for writes that change rows of their file groups, after a failure, and after a time.

::

    release_groups      a write changed rows of a planned group         ─► the clustering is rolled back with its plan
    release_all         a write is about to replace all rows            ─► the same for every clustering
    withdraw_failed     a writer executed it and it failed              ─► the same
    roll_back_expired   planned long ago, no live heartbeat since       ─► the same, by the next writer or service

A clustering that runs on this machine is skipped; it detects the conflict before it completes.

Sources: ``BaseSparkCommitActionExecutor.clusteringHandleUpdate``,
``BaseHoodieTableServiceClient.isClusteringInstantEligibleForRollback`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from hudi_fast.errors import LockTimeoutError
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instants import Instant, State, ms_from_instant
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.session import TableSession

__all__ = ["release_all", "release_groups", "roll_back_expired", "withdraw_clustering", "withdraw_failed"]

_MINUTE_MS = 60_000


def release_groups(session: TableSession, stats: Iterable[WriteStat]) -> None:
    """Roll back the pending clusterings of file groups that a write changed, before it is committed.

    Args:
        session: the call, under the table's lock.
        stats: write statistics of the write.
    """
    state = session.state
    touched = {(one.partition_path, one.file_id) for one in stats} & state.view.pending_groups
    if touched:
        found = [
            instant
            for instant, plan in pending_clusterings(state.storage, state.config, state.timeline)
            if any((one.partition_path, one.file_id) in touched for group in plan.groups for one in group.slices)
        ]
        _withdraw_all(session, found)


def release_all(session: TableSession) -> None:
    """Roll back the pending clusterings of a table whose file groups are about to be replaced.

    Args:
        session: the call, under the table's lock.
    """
    _withdraw_all(session, list(session.state.pending_services))


def roll_back_expired(session: TableSession, minutes: int) -> None:
    """Roll back clusterings that were planned long ago and that no process runs; under the table's lock.

    Args:
        session: the call.
        minutes: minimum time since planning.
    """
    latest = time.time_ns() // 1_000_000 - minutes * _MINUTE_MS
    state = session.state
    zone = state.config.timezone
    _withdraw_all(session, [one for one in state.pending_services if ms_from_instant(one.requested, zone) <= latest])


def withdraw_clustering(session: TableSession, instant: Instant) -> None:
    """Roll a pending clustering back with its plan; under the lock of the table and the lock of clusterings.

    Raises:
        CommitError: storage failed; the next writer finishes it.
    """
    roll_back(session, instant, keep_plan=False)


def withdraw_failed(session: TableSession, requested: str) -> None:
    """Remove a clustering that has failed; nothing happens if another process runs it or has completed it.

    Args:
        session: the call.
        requested: time of the clustering.

    Raises:
        HudiError: a lock is not available, or storage failed; the next writer tries again.
    """
    with session.service_lock(service_lock_path("clustering")), session.locked():
        found = [one for one in session.reload().pending_services if one.requested == requested]
        for instant in found:
            if is_alive(session.storage, requested, session.heartbeat_rule):
                continue
            if instant.state is State.INFLIGHT:
                withdraw_clustering(session, instant)
            else:  # it has no files: its attempts were rolled back
                delete_instant_files(session.storage, session.state.config, instant)
                session.changed()


def _withdraw_all(session: TableSession, found: list[Instant]) -> None:
    """Roll back clusterings that no other process runs; skip all of them while this machine runs a clustering."""
    if not found:
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(machine_lock(session.storage, 0.0, service_lock_path("clustering")))
        except LockTimeoutError:
            return
        for instant in found:
            if not is_alive(session.storage, instant.requested, session.heartbeat_rule):
                withdraw_clustering(session, instant)
