"""One archived instant as a value, for both layouts of the archive.

Bodies have the form of the active timeline: commit metadata is JSON in layout 1 and Avro in layout 2. The archive of
layout 1 also stores all states of an instant and the times of their transitions.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.timeline.instant import Instant, State

__all__ = ["ArchivedInstant"]


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """One archived instant.

    Attributes:
        requested: requested time.
        completion: completion time; layout 1: modification time of the completed file.
        action: action of the completed instant (``commit`` for a compaction).
        metadata: body of the completed file; None if empty.
        plan: body of the requested file for actions with a plan, else None. Layout 2: for a replace commit, the body of
            the inflight file if it is not empty.
        inflight: layout 1: body of the inflight file; None if empty.
        requested_at: layout 1: modification time of the requested file; None without the file.
        inflight_at: layout 1: modification time of the inflight file; None without the file.
    """

    requested: str
    completion: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None
    inflight: bytes | None = None
    requested_at: str | None = None
    inflight_at: str | None = None

    def instant(self) -> Instant:
        """The instant without its bodies."""
        return Instant(self.requested, self.action, State.COMPLETED, self.completion)
