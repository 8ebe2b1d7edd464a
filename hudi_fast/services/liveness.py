"""Whether a pending service is being carried out by another program: signs of life (Hudi's heartbeats)."""

from __future__ import annotations

from hudi_fast.errors import ServiceTakenError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule, heartbeat_path, is_alive
from hudi_fast.timeline.instant import Instant

__all__ = ["require_abandoned"]

_BY_DEFAULT = HeartbeatRule()


def require_abandoned(storage: Storage, instant: Instant, rule: HeartbeatRule = _BY_DEFAULT) -> None:
    """Leave a service alone that another program is carrying out.

    Args:
        storage: the table's storage.
        instant: the pending service; the caller holds the lock that carrying it out takes.
        rule: for how long a sign of life counts.

    Raises:
        ServiceTakenError: it has shown signs of life.
    """
    if not is_alive(storage, instant.requested, rule):
        return
    raise ServiceTakenError(
        f"The {instant.action} {instant.requested} of {storage.uri} is being carried out by another writer, which gave "
        f"a sign of life in the last {rule.lasts_ms / 1000:g} s ({heartbeat_path(instant.requested)}). Wait for it to "
        "end."
    )
