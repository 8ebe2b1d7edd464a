"""Writes that failed: who rolls them back, and which of them are failed at all.

=======  ==================================================  ===========================================
policy   at the start of a write or service                  at the start of a clean
=======  ==================================================  ===========================================
EAGER    all pending writes: there is one writer             the same
LAZY     none: each may be another writer's at work          those whose signs of life have ceased
NEVER    none                                                none
=======  ==================================================  ===========================================

Compactions, log compactions and clusterings are not writes: their plans wait for somebody. A write whose rollback
somebody carries out is left to them. Newer writes go first, as
theirs may rest on older ones.

Sources: ``BaseHoodieTableServiceClient#rollbackFailedWrites``, ``#getInstantsToRollback``,
``CleanerUtils#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import Heartbeat, HeartbeatRule, is_alive, sending_heartbeats
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.rollback_plan import pending_rollbacks

__all__ = ["FailedWrites", "abandoned_writes", "expired_writes", "failed_writes", "sending_writer_heartbeats"]


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """What becomes of pending writes.

    Attributes:
        policy: ``EAGER``, ``LAZY`` or ``NEVER``.
        heartbeat: when work is taken for dead.
        clustering_minutes: clusterings that were planned so many minutes ago, and that nobody carries out, go as well;
            None: they wait for ever.
    """

    policy: str = "EAGER"
    heartbeat: HeartbeatRule = field(default_factory=HeartbeatRule)
    clustering_minutes: int | None = None


def failed_writes(options: WriteOptions) -> FailedWrites:
    """As the options of a write or service have it."""
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


def sending_writer_heartbeats(
    storage: Storage, instant: str, failed: FailedWrites
) -> AbstractContextManager[Heartbeat | None]:
    """Signs of life of a write as long as the block runs, if others may look for them; None when nobody does."""
    if failed.policy != "LAZY":
        return contextlib.nullcontext()
    return sending_heartbeats(storage, instant, failed.heartbeat)


def _pending(state: TableState) -> list[Instant]:
    planned = {one.requested for one in state.pending_services}
    left = planned | {plan.instant for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}
    found = [one for one in state.timeline.pending_writes if one.requested not in left]
    return sorted(found, key=lambda one: one.requested, reverse=True)
