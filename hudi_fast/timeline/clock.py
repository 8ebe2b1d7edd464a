"""Times for instants: strictly increasing, and later than every time on the timeline.

A time is the wall-clock time in the timeline's zone. Before the lock is released, the clock waits for the expected skew
between hosts, so that the next holder on another host gets a later time: once per locked section, where Apache Hudi
waits for each time. If the wall clock is not later than the newest known time (a clock set back, the repeated hour of
daylight saving time, a table written in another zone), the clock returns the newest known time plus one millisecond.

Each change of the timeline takes a new time right before it, so the clock also fences these changes: it knows the lock
that protects them (:meth:`InstantClock.under`) and returns no time after the lock is lost. The check and the creation
of the file are two steps; :meth:`InstantClock.confirm` checks the lock again after the second.

Sources: SkewAdjustingTimeGenerator, HoodieInstantTimeGenerator, TransactionManager (Hudi 1.2.0; it fences nothing).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from hudi_fast.errors import CommitStateUnknownError, CorruptTableError, LockError
from hudi_fast.storage.forks import new_lock
from hudi_fast.timeline.instants import Instant, instant_from_ms

__all__ = ["InstantClock"]


class Fence(Protocol):
    """The lock that protects the times: :class:`hudi_fast.locking.table_lock.HeldLock`."""

    def require(self) -> None:
        """Raise ``LockError`` if the lock is lost."""
        ...

    def require_to_complete(self) -> None:
        """The same in the strictest way, right before a change becomes visible."""
        ...

    def confirm(self) -> None:
        """Raise ``LockError`` if another writer may have held the lock since it was acquired."""
        ...

    def before_end(self, act: Callable[[], None]) -> None:
        """Register a callback that runs right before the lock is released."""
        ...


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class InstantClock:
    """Generator of requested and completion times of one table; thread-safe.

    Args:
        zone: time zone of the timeline, ``LOCAL`` or ``UTC``.
        skew_ms: expected skew between the clocks of writers, in milliseconds: 1 for writers on one host, 200 (Hudi's
            default) for several hosts. The clock waits this long once per locked section, or per time without a lock.
        now_ms: the wall clock, in milliseconds since the epoch.
        held: the lock that protects the times; None for a table that no other process can see.
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
        self._lock = new_lock()
        self._last = ""
        self._taken = 0.0
        self._held: Fence | None = None
        if held is not None:
            self.under(held)

    def under(self, held: Fence, *floors: str | None) -> None:
        """Switch to another lock, and make later times larger than ``floors``.

        Args:
            held: the new lock.
            floors: times that other writers may have put on the timeline; None is ignored.
        """
        with self._lock:
            self._held = held
            self._last = max([self._last, *(floor or "" for floor in floors)])
        held.before_end(self._outwait)

    def require_lock(self) -> None:
        """Check that the lock is still held, right before an irreversible change.

        Raises:
            LockError: the lock was lost, or may be lost at any moment.
        """
        if self._held is not None:
            self._held.require()

    def next_time(self, *floors: str | None) -> str:
        """A new 17-digit time, larger than all earlier ones and than each of ``floors``.

        The caller must hold the table lock. Pass the newest time of the timeline for a requested time, and also the
        requested time for a completion time.

        Raises:
            CorruptTableError: a floor later than now is not a valid time.
            LockError: the lock was lost, so another writer may take the same time.
        """
        given = self._next(floors)
        self.require_lock()  # the caller is about to create a file with this time
        return given

    def completion_time(self, *floors: str | None) -> str:
        """Like :meth:`next_time`, called right before creating the file that makes a change visible.

        Raises:
            CorruptTableError: as :meth:`next_time`.
            LockError: as :meth:`next_time`; every lock provider is asked, even if its lease has not ended.
        """
        given = self._next(floors)
        if self._held is not None:
            self._held.require_to_complete()
        return given

    def confirm(self, instant: Instant) -> None:
        """Check right after an instant was completed or planned that no other writer can have held the lock before.

        The process may have been suspended between the check of the lock and the creation of the file for longer than
        its lease.

        Args:
            instant: the completed or requested instant.

        Raises:
            CommitStateUnknownError: another writer may have held the lock.
        """
        try:
            if self._held is not None:
                self._held.confirm()
        except LockError as error:
            done = "completed" if instant.is_completed else "planned"
            raise CommitStateUnknownError(
                f"The {instant.action} {instant.requested} was {done}, but the lock was lost before that, so "
                f"another writer may have changed the table without seeing it: {error} Check history() before you run "
                "it again."
            ) from error

    def _next(self, floors: tuple[str | None, ...]) -> str:
        with self._lock:
            now = instant_from_ms(self._now_ms(), self.zone)
            self._taken = time.monotonic()
            if self._held is None:
                self._outwait()
            newest = max([self._last, *(floor or "" for floor in floors)])
            self._last = now if now > newest else _one_later(newest)
            return self._last

    def _outwait(self) -> None:
        """Wait until the clocks of all hosts have passed the last returned time."""
        rest = self._taken + self.skew_ms / 1000 - time.monotonic()
        if rest > 0:
            time.sleep(rest)


def _one_later(instant_time: str) -> str:
    """The time one millisecond later, computed on the digits without a time zone."""
    digits = (instant_time if len(instant_time) > 14 else instant_time + "999")[:17]
    try:
        moment = datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f") + timedelta(milliseconds=1)
    except (ValueError, OverflowError) as error:
        raise CorruptTableError(
            f"The newest time on the timeline, {instant_time!r}, is later than now and not a valid time; expected "
            "yyyyMMddHHmmssSSS. Check the timeline."
        ) from error
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"
