"""Whether a pending service is being carried out by another program: signs of life (Hudi's heartbeats)."""

from __future__ import annotations

import time

from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instant import Instant

__all__ = ["require_abandoned"]

_HEARTBEATS = ".hoodie/.heartbeat"
_HEARTBEAT_LASTS_MS = 120_000
"""By default a writer gives a sign of life every minute, and is taken for dead after two."""


def require_abandoned(storage: Storage, instant: Instant) -> None:
    """Leave a service alone that another program is carrying out.

    Raises:
        CommitConflictError: it has shown signs of life.
    """
    beat = storage.stat(f"{_HEARTBEATS}/{instant.requested}")
    if beat is None or time.time() * 1000 - beat.modified_ms > _HEARTBEAT_LASTS_MS:
        return
    raise CommitConflictError(
        f"The {instant.action} {instant.requested} of {storage.uri} is being carried out by another writer, which gave "
        f"a sign of life in the last {_HEARTBEAT_LASTS_MS // 1000} s ({beat.path}). Wait for it to end."
    )
