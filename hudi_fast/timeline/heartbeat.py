"""Signs of life of an instant that is being worked on: a file that is written anew as long as somebody is at it.

::

    sending_heartbeats   .hoodie/.heartbeat/<instant> ─► again after every interval, in a thread ─► taken away at the
    end is_alive  written within interval x tolerable misses?

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

from hudi_fast.errors import CommitConflictError, CommitError, HudiWarning
from hudi_fast.storage.base import Storage

__all__ = ["Heartbeat", "HeartbeatRule", "heartbeat_path", "is_alive", "is_fresh", "sending_heartbeats"]

_FOLDER = ".hoodie/.heartbeat"


@dataclass(frozen=True, slots=True)
class HeartbeatRule:
    """How often a sign of life is given, and how many may be missed.

    Attributes:
        interval_ms: milliseconds between two of them.
        misses: after how many intervals without one the work is taken for dead.
        shared: whether others may be at work whose locks nobody here can see: signs of this machine count, too, then.
    """

    interval_ms: int = 60_000
    misses: int = 2
    shared: bool = False

    @property
    def lasts_ms(self) -> int:
        """Milliseconds for which a sign of life counts."""
        return self.interval_ms * self.misses


_BY_DEFAULT = HeartbeatRule()


class Heartbeat:
    """The signs of life of one instant; thread-safe.

    Args:
        storage: the table's storage.
        instant: requested time of what is being worked on.
        rule: how often.
    """

    def __init__(self, storage: Storage, instant: str, rule: HeartbeatRule) -> None:
        self._storage, self._instant, self._rule = storage, instant, rule
        self._ended = threading.Event()
        self._last = self._longest = 0.0
        self._has_begun = False
        self._thread = threading.Thread(target=self._keep_beating, name=f"hudi_fast heartbeat {instant}", daemon=True)

    def start(self) -> None:
        """Give the first sign, and one after every interval until :meth:`stop`.

        Raises:
            CommitError: storage failed.
        """
        try:
            self._beat()
        except OSError as error:
            raise CommitError(
                f"The heartbeat of instant {self._instant} of {self._storage.uri} could not be written: {error}. "
                "Nothing has begun; run it again."
            ) from error
        self._thread.start()

    def stop(self) -> None:
        """No more signs; the file goes, and if it stays it is out of date soon."""
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._storage.delete_file(heartbeat_path(self._instant))

    def require_alive(self) -> None:
        """Make sure before a commit that nobody can have taken this for dead.

        Raises:
            CommitConflictError: there was no sign for too long, now or before.
        """
        silent = max(time.monotonic() - self._last, self._longest)
        if silent * 1000 <= self._rule.lasts_ms:
            return
        raise CommitConflictError(
            f"Heartbeat for instant {self._instant} of {self._storage.uri} has expired: there was none for "
            f"{silent:.0f} s, and after {self._rule.lasts_ms / 1000:g} s others may have rolled it back. Nothing was "
            "committed; run it again, with a longer hoodie.client.heartbeat.interval_in_ms if storage is slow."
        )

    def _beat(self) -> None:
        begun = time.monotonic()  # no clock that somebody may set
        self._storage.write_bytes(heartbeat_path(self._instant), _signature())
        if self._has_begun:
            self._longest = max(self._longest, time.monotonic() - self._last)
        self._last, self._has_begun = begun, True

    def _keep_beating(self) -> None:
        while not self._ended.wait(self._rule.interval_ms / 1000):
            try:
                self._beat()
            except OSError as error:
                warnings.warn(
                    f"The heartbeat of instant {self._instant} of {self._storage.uri} could not be written: {error}. "
                    f"Others take it for dead {self._rule.lasts_ms / 1000:g} s after the last one.",
                    HudiWarning,
                    stacklevel=2,
                )


def heartbeat_path(instant: str) -> str:
    """Where the signs of life of an instant are, relative to the table."""
    return f"{_FOLDER}/{instant}"


@contextlib.contextmanager
def sending_heartbeats(storage: Storage, instant: str, rule: HeartbeatRule = _BY_DEFAULT) -> Iterator[Heartbeat]:
    """Give signs of life for an instant as long as the block runs.

    Args:
        storage: the table's storage.
        instant: its requested time.
        rule: how often.

    Raises:
        CommitError: storage failed; the block was not entered.
    """
    heart = Heartbeat(storage, instant, rule)
    heart.start()
    try:
        yield heart
    finally:
        heart.stop()


def is_fresh(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether an instant has given a sign of life that counts, whoever gave it.

    Args:
        storage: the table's storage.
        instant: its requested time.
        rule: for how long a sign counts.
    """
    beat = storage.stat(heartbeat_path(instant))
    return beat is not None and time.time() * 1000 - beat.modified_ms <= rule.lasts_ms


def is_alive(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether an instant shows signs of life of another program or machine.

    Args:
        storage: the table's storage.
        instant: its requested time. The caller holds the lock that working on it needs.
        rule: for how long a sign counts.
    """
    if not is_fresh(storage, instant, rule):
        return False
    if rule.shared or not storage.is_local:
        return True
    try:
        return storage.read_bytes(heartbeat_path(instant)) != _signature()
    except FileNotFoundError:  # it has just ended
        return False


def _signature() -> bytes:
    return f"hudi_fast on {platform.node()}\n".encode()
