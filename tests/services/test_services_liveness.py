"""Pending services of another process are not taken over while it sends heartbeats."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hudi_fast.errors import ServiceTakenError
from hudi_fast.services.running import require_abandoned
from hudi_fast.timeline.heartbeat import heartbeat_path
from hudi_fast.timeline.instants import Instant, State
from tests.support.sessions import session_of

INSTANT = Instant("20240101000000000", "compaction", State.INFLIGHT, None)


def test_a_service_with_a_live_heartbeat_is_refused(tmp_path: Path) -> None:
    session = session_of(tmp_path)
    require_abandoned(session, INSTANT)
    path = heartbeat_path(INSTANT.requested)
    session.storage.write_bytes(path, b"")  # as Apache Hudi writes it
    with pytest.raises(ServiceTakenError, match=INSTANT.requested):
        require_abandoned(session, INSTANT)
    os.utime(tmp_path / path, (0, 0))
    require_abandoned(session, INSTANT)
