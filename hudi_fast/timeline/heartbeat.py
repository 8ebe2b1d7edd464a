"""Signs of life of an instant that is being worked on: a file that is written anew as long as somebody is at it.

::

    beating   .hoodie/.heartbeat/<instant> ─► again after every interval, in a thread ─► taken away at the end
    is_alive  written within interval x tolerable misses?

Apache Hudi looks at the modification time alone and leaves the file empty; those of this library say which machine
they come from. There the locks tell who is at work, and at once: whoever holds the lock that the work needs knows that
nobody else does it, however fresh the file of one that was killed may be. For work of other programs, and of other
machines, the file is all there is.

Sources: ``HoodieHeartbeatClient``, ``HoodieHeartbeatUtils``, ``HeartbeatUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import platform
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from hudi_fast.errors import CommitConflictError, HudiWarning
from hudi_fast.storage.base import Storage

__all__ = ["Heartbeat", "HeartbeatRule", "beating", "heartbeat_path", "is_alive"]

_FOLDER = ".hoodie/.heartbeat"


@dataclass(frozen=True, slots=True)
class HeartbeatRule:
    """How often a sign of life is given, and how many may be missed.

    Attributes:
        interval_ms: milliseconds between two of them.
        misses: after how many intervals without one the work is taken for dead.
    """

    interval_ms: int = 60_000
    misses: int = 2

    @property
    def lasts_ms(self) -> int:
        """Milliseconds for which a sign of life counts."""
        return self.interval_ms * self.misses


class Heartbeat:
    """The signs of life that :func:`beating` gives; thread-safe.

    Args:
        storage: the table's storage.
        instant: requested time of what is being worked on.
        rule: how often.
    """

    def __init__(self, storage: Storage, instant: str, rule: HeartbeatRule) -> None:
        self._storage, self._instant, self._rule = storage, instant, rule
        self._ended = threading.Event()
        self._last = 0.0

    def beat(self) -> None:
        """Give a sign of life.

        Raises:
            OSError: storage failed.
        """
        self._storage.write_bytes(heartbeat_path(self._instant), _signature())
        self._last = time.monotonic()

    def require_alive(self) -> None:
        """Make sure before a commit that nobody can have taken this for dead.

        Raises:
            CommitConflictError: the last sign of life is too old.
        """
        silent = time.monotonic() - self._last
        if silent * 1000 <= self._rule.lasts_ms:
            return
        raise CommitConflictError(
            f"Heartbeat for instant {self._instant} of {self._storage.uri} has expired: the last one is {silent:.0f} s "
            f"old, and after {self._rule.lasts_ms / 1000:g} s others may have rolled the write back. Nothing was "
            "committed; run it again, with a longer hoodie.client.heartbeat.interval_in_ms if storage is slow."
        )

    def keep_beating(self) -> None:
        """Give a sign of life after every interval until :meth:`end`; one that fails is a warning."""
        while not self._ended.wait(self._rule.interval_ms / 1000):
            try:
                self.beat()
            except OSError as error:
                warnings.warn(
                    f"The heartbeat of instant {self._instant} of {self._storage.uri} could not be written: {error}. "
                    f"Others take it for dead {self._rule.lasts_ms / 1000:g} s after the last one.",
                    HudiWarning,
                    stacklevel=2,
                )

    def end(self) -> None:
        """Let :meth:`keep_beating` return."""
        self._ended.set()


def heartbeat_path(instant: str) -> str:
    """Where the signs of life of an instant are, relative to the table."""
    return f"{_FOLDER}/{instant}"


@contextlib.contextmanager
def beating(storage: Storage, instant: str, interval_ms: int = 60_000, misses: int = 2) -> Iterator[Heartbeat]:
    """Give signs of life for an instant as long as the block runs.

    Args:
        storage: the table's storage.
        instant: its requested time.
        interval_ms: milliseconds between two signs.
        misses: intervals without one after which it is taken for dead.

    Raises:
        OSError: storage failed; the block was not entered.
    """
    heart = Heartbeat(storage, instant, HeartbeatRule(interval_ms, misses))
    heart.beat()
    thread = threading.Thread(target=heart.keep_beating, name=f"hudi_fast heartbeat {instant}", daemon=True)
    thread.start()
    try:
        yield heart
    finally:
        heart.end()
        thread.join()
        with contextlib.suppress(OSError):  # one that stays is out of date soon
            storage.delete_file(heartbeat_path(instant))


def is_alive(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether an instant shows signs of life of another program or machine.

    Args:
        storage: the table's storage.
        instant: its requested time. The caller holds the lock that working on it needs.
        rule: for how long a sign counts.
    """
    path = heartbeat_path(instant)
    beat = storage.stat(path)
    if beat is None or time.time() * 1000 - beat.modified_ms > rule.lasts_ms:
        return False
    try:
        return storage.read_bytes(path) != _signature()
    except FileNotFoundError:  # it has just ended
        return False


def _signature() -> bytes:
    return f"hudi_fast on {platform.node()}\n".encode()
