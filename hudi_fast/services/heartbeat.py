"""Signs of life that a service gives while it works: see :mod:`hudi_fast.timeline.heartbeat`."""

from __future__ import annotations

from hudi_fast.timeline.heartbeat import beating

__all__ = ["beating"]
