"""Times for instants: strictly increasing, never older than what is on the timeline.

A time is the wall clock in the timeline's zone. Before the lock that it was taken under is given up the clock waits for
the skew that hosts may have, so that a later holder on another host gets a later time: once for all times of a section
under lock, where Apache Hudi waits for each. Where the wall clock is not ahead of the newest known time (a clock set
back, a summer time's second hour, a table written in another zone) the newest known time plus one millisecond is given
instead.

Every change of the timeline has a time of its own, taken right before it: so the clock is where all of them are fenced.
It knows the lock that its times are taken under (:meth:`InstantClock.under`), and gives none once that is lost.

Sources: SkewAdjustingTimeGenerator, HoodieInstantTimeGenerator, TransactionManager (Hudi 1.2.0; it fences nothing).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from hudi_fast.errors import CorruptTableError
from hudi_fast.timeline.instant import instant_from_ms

__all__ = ["InstantClock"]


class Fence(Protocol):
    """The lock that times are taken under: :class:`hudi_fast.locking.table_lock.Held`."""

    def require(self) -> None:
        """Raise ``LockError`` when the lock is no longer ours."""
        ...

    def before_end(self, act: Callable[[], None]) -> None:
        """Have something done right before the lock is given up."""
        ...


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class InstantClock:
    """Hands out requested and completion times for one table; thread-safe.

    Args:
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.
        skew_ms: how far the clocks of writers may be apart, in milliseconds: 1 for writers of one process, 200 is
            Hudi's value for writers of several hosts. Each time costs that wait; under a lock all together do, once.
        now_ms: the wall clock, in milliseconds since the epoch.
        held: the lock that times are taken under; None for a table that nobody else knows of.
    """

    def __init__(
        self,
        zone: str = "LOCAL",
        skew_ms: int = 1,
        now_ms: Callable[[], int] = _wall_clock_ms,
        held: Fence | None = None,
    ) -> None:
        self.zone = zone
        self.skew_ms = skew_ms
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._last = ""
        self._taken = 0.0
        self._held: Fence | None = None
        if held is not None:
            self.under(held)

    def under(self, held: Fence, *floors: str | None) -> None:
        """Take times under another lock from now on, larger than ``floors``: what others may have put on the timeline.

        Args:
            held: the lock; see the class.
            floors: times; None for none.
        """
        with self._lock:
            self._held = held
            self._last = max([self._last, *(floor or "" for floor in floors)])
        held.before_end(self._outwait)

    def require_lock(self) -> None:
        """Make sure that the lock is still ours; right before something that cannot be taken back.

        Raises:
            LockError: it was lost, or may be lost at any moment.
        """
        if self._held is not None:
            self._held.require()

    def next_time(self, *floors: str | None) -> str:
        """A 17-digit time, larger than every one handed out before and than each of ``floors``.

        Call it under the table's lock; for a requested time pass the newest time of the timeline, for a completion
        time the requested time as well.

        Raises:
            CorruptTableError: a floor in the future is not a time.
            LockError: the lock is no longer ours, so others may take the same time.
        """
        with self._lock:
            now = instant_from_ms(self._now_ms(), self.zone)
            self._taken = time.monotonic()
            if self._held is None:
                self._outwait()
            newest = max([self._last, *(floor or "" for floor in floors)])
            self._last = now if now > newest else _one_later(newest)
            given = self._last
        self.require_lock()  # what has this time is about to be made
        return given

    def _outwait(self) -> None:
        """Wait until no host's clock is behind the last time that was handed out."""
        rest = self._taken + self.skew_ms / 1000 - time.monotonic()
        if rest > 0:
            time.sleep(rest)


def _one_later(instant_time: str) -> str:
    """The next millisecond, by the digits alone: the zone plays no part."""
    digits = (instant_time if len(instant_time) > 14 else instant_time + "999")[:17]
    try:
        moment = datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f") + timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"The newest time on the timeline, {instant_time!r}, is later than now and not a time to count on from; "
            "look at the timeline."
        ) from error
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
