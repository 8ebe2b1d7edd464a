"""One archived instant as a value; both layouts of the archive are read into it and written from it.

Bodies are those of the instant's files on the active timeline: layout 1 has JSON commit metadata, layout 2 Avro. The
archive of layout 1 keeps every state of an instant and when it was reached, so those have a place here too.
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.timeline.instant import Instant, State

__all__ = ["ArchivedInstant"]


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """One instant as the archive keeps it.

    Attributes:
        requested: requested time.
        completion: completion time; layout 1: when the completed file was last modified.
        action: of the completed instant (``commit`` for a compaction).
        metadata: body of the completed file; None if it was empty.
        plan: body of the requested file of actions that have a plan, else None. Layout 2: of a replace commit the
            body of the inflight file, where that has one.
        inflight: layout 1: body of the inflight file; None if it was empty.
        requested_at: layout 1: when the requested file was last modified; None where there was none.
        inflight_at: layout 1: when the inflight file was last modified; None where there was none.
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
