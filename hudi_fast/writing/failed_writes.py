"""Decides which pending writes have failed, and when they are rolled back.

=======  ==================================================  ===========================================
policy   at the start of a write or service                  at the start of a clean
=======  ==================================================  ===========================================
EAGER    all pending writes: only one writer is allowed      the same
LAZY     none: another writer may own each of them           those with an expired heartbeat
NEVER    none                                                none
=======  ==================================================  ===========================================

Compactions, log compactions and clusterings are not writes: their plans stay pending until a process executes them. A
write with a pending rollback is left to that rollback. Newer writes are rolled back first, because they may depend on
older ones.

Sources: ``BaseHoodieTableServiceClient#rollbackFailedWrites``, ``#getInstantsToRollback``,
``CleanerUtils#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive
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
    rule = HeartbeatRule(options.heartbeat_interval_ms, options.heartbeat_misses, options.lock.is_shared)
    minutes = options.clustering_expires_after_minutes if options.clustering_expires else None
    return FailedWrites(options.failed_writes_policy, rule, minutes)


def abandoned_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a writer or service rolls back before it begins, newest first; under the table's lock."""
    return _pending(state) if failed.policy == "EAGER" else []


def expired_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a clean rolls back before it begins, newest first; under the table's lock."""
    if failed.policy == "LAZY":
        return [one for one in _pending(state) if not is_alive(state.storage, one.requested, failed.heartbeat)]
    return abandoned_writes(state, failed)


def _pending(state: TableState) -> list[Instant]:
    planned = {one.requested for one in state.pending_services}
    left = planned | {plan.instant for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}
    found = [one for one in state.timeline.pending_writes if one.requested not in left]
    return sorted(found, key=lambda one: one.requested, reverse=True)
