"""Whether another process runs a pending service, by its heartbeat."""

from __future__ import annotations

from hudi_fast.errors import ServiceTakenError
from hudi_fast.timeline.heartbeat import heartbeat_path, is_alive
from hudi_fast.timeline.instant import Instant
from hudi_fast.writing.session import TableSession

__all__ = ["is_abandoned_indexing", "require_abandoned"]


def require_abandoned(session: TableSession, instant: Instant) -> None:
    """Refuse to take over a service that another process runs.

    Args:
        session: the call, under the lock that running the service takes.
        instant: the pending service.

    Raises:
        ServiceTakenError: its heartbeat is live.
    """
    storage, rule = session.storage, session.heartbeat_rule
    if is_alive(storage, instant.requested, rule):
        raise ServiceTakenError(
            f"The {instant.action} {instant.requested} of {storage.uri} is run by another process, which sent a "
            f"heartbeat in the last {rule.lasts_ms / 1000:g} s ({heartbeat_path(instant.requested)}). Wait for it to "
            "end."
        )


def is_abandoned_indexing(session: TableSession, instant: Instant) -> bool:
    """Whether the build of an inflight index was abandoned.

    Apache Hudi's indexer sends no heartbeat that lasts until its end (``RunIndexActionExecutor``, 1.2.0), and runs only
    where concurrent writers are configured. There an indexing without a heartbeat file may be alive. An indexer that
    died before its end has left its file.

    Args:
        session: the call.
        instant: the inflight indexing.
    """
    storage, rule = session.storage, session.heartbeat_rule
    if is_alive(storage, instant.requested, rule):
        return False
    return not rule.shared or storage.exists(heartbeat_path(instant.requested))
