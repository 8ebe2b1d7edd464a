"""Decides which pending writes have failed, and when they are rolled back.

=======  ==================================================  ===========================================
policy   at the start of a write or service                  at the start of a clean
=======  ==================================================  ===========================================
EAGER    all pending writes: only one writer is allowed.     the same
         One with a live heartbeat elsewhere is refused
LAZY     none: another writer may own a pending write        pending writes with an expired heartbeat
NEVER    none                                                none
=======  ==================================================  ===========================================

With EAGER, a writer that the lock excludes sends no heartbeat. A live heartbeat therefore belongs to a writer that
allows concurrent writers, in hudi_fast or Apache Hudi, or to a writer on another machine that no lock excludes. Its
write is not rolled back, and no other write may begin meanwhile. (Apache Hudi rolls it back: with EAGER it ignores
heartbeats.)

Compactions, log compactions and clusterings are not writes: their plans stay pending until a process executes them. A
write with a pending rollback is left to that rollback. Newer writes are rolled back first, because they may depend on
older ones.

Sources: ``BaseHoodieTableServiceClient#rollbackFailedWrites``, ``#getInstantsToRollback``,
``CleanerUtils#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive, is_elsewhere
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.rollback_plan import pending_rollbacks

__all__ = ["FailedWrites", "abandoned_writes", "expired_writes", "failed_writes"]


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """Rules for deciding which pending writes have failed.

    Attributes:
        policy: ``EAGER``, ``LAZY`` or ``NEVER``.
        heartbeat: when a heartbeat expires.
        clustering_minutes: clusterings that were planned at least this many minutes ago, and that no process runs, are
            rolled back, too; None: they stay pending.
    """

    policy: str = "EAGER"
    heartbeat: HeartbeatRule = field(default_factory=HeartbeatRule)
    clustering_minutes: int | None = None


def failed_writes(options: WriteOptions) -> FailedWrites:
    """The rules in the options of a write or service."""
    rule = HeartbeatRule(
        options.failed_writes.heartbeat_interval_ms, options.failed_writes.heartbeat_misses, options.lock.is_shared
    )
    minutes = options.clusterings.expire_after_minutes if options.clusterings.expire else None
    return FailedWrites(options.failed_writes.policy, rule, minutes)


def abandoned_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a writer or service rolls back before it begins, newest first; under the table's lock.

    Raises:
        CommitConflictError: only one writer is allowed, and another one is at work.
    """
    if failed.policy != "EAGER":
        return []
    found = _pending(state)
    for one in found:
        if is_elsewhere(state.storage, one.requested, failed.heartbeat):
            raise CommitConflictError(
                f"The {one.action} {one.requested} of {state.storage.uri} is being written: its heartbeat is live, and "
                "hoodie.write.concurrency.mode=SINGLE_WRITER allows one writer. Nothing was changed. Run this again "
                f"when it has ended, or, if its process is dead, {failed.heartbeat.lasts_ms / 1000:g} s after its last "
                "heartbeat. To write at the same time, give all writers hoodie.write.concurrency.mode="
                "OPTIMISTIC_CONCURRENCY_CONTROL and the same hoodie.write.lock.provider.",
                None,
                one.requested,
            )
    return found


def expired_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a clean rolls back before it begins, newest first; under the table's lock.

    Raises:
        CommitConflictError: as :func:`abandoned_writes`.
    """
    if failed.policy == "LAZY":
        return [one for one in _pending(state) if not is_alive(state.storage, one.requested, failed.heartbeat)]
    return abandoned_writes(state, failed)


def _pending(state: TableState) -> list[Instant]:
    planned = {one.requested for one in state.pending_services}
    left = planned | {plan.instant for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}
    found = [one for one in state.timeline.pending_writes if one.requested not in left]
    return sorted(found, key=lambda one: one.requested, reverse=True)
