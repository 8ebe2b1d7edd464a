"""Heartbeats of running writes and services: a file that is rewritten periodically.

::

    sending_heartbeats   .hoodie/.heartbeat/<instant> ─► rewritten every interval, in a thread ─► deleted at the end
    is_fresh, is_alive   modified within interval x tolerable misses?

Apache Hudi checks the modification time only and leaves the file empty. hudi_fast writes the name of the machine into
it. Between processes of one machine, locks decide: a process that holds the lock of the work knows that no other
process executes it, even if the heartbeat of a killed process is still fresh. For other programs and machines the
heartbeat decides. A writer that holds only the lock of the machine, for the whole write, records this in its heartbeat.

Sources: ``HoodieHeartbeatClient``, ``HoodieHeartbeatUtils``, ``HeartbeatUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import threading
import time
from collections.abc import Iterator

from hudi_fast.errors import CommitConflictError, CommitError
from hudi_fast.events import note, warn
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass

__all__ = [
    "Heartbeat",
    "HeartbeatRule",
    "heartbeat_path",
    "heartbeats",
    "is_alive",
    "is_elsewhere",
    "is_fresh",
    "sending_heartbeats",
]

_FOLDER = ".hoodie/.heartbeat"


@dataclass(frozen=True, slots=True)
class HeartbeatRule:
    """Interval and expiry of heartbeats.

    Attributes:
        interval_ms: milliseconds between two heartbeats.
        misses: intervals without a heartbeat after which it is expired.
        shared: whether concurrent writers are allowed; heartbeats of this machine then count, too.
    """

    interval_ms: int = 60_000
    misses: int = 2
    shared: bool = False

    @property
    def lasts_ms(self) -> int:
        """Milliseconds after which a heartbeat is expired."""
        return self.interval_ms * self.misses


_BY_DEFAULT = HeartbeatRule()


class Heartbeat:
    """The heartbeat of one instant; thread-safe.

    Args:
        storage: the table's storage.
        instant: requested time.
        rule: when to send it.
        alone: whether the sender holds the lock of the machine until the end.
    """

    def __init__(self, storage: Storage, instant: str, rule: HeartbeatRule, alone: bool = False) -> None:
        self._storage, self._instant, self._rule = storage, instant, rule
        self._content = _signature(alone)
        self._ended = threading.Event()
        self._process = os.getpid()
        self._last = self._longest = 0.0
        self._has_begun = False
        self._fields = {"table": storage.uri, "instant": instant}
        self._thread = threading.Thread(target=self._run, name=f"hudi_fast heartbeat {instant}", daemon=True)

    def start(self) -> None:
        """Write the first heartbeat, and one per interval until :meth:`stop`.

        Raises:
            CommitError: the first heartbeat could not be written.
        """
        try:
            self._write()
        except OSError as error:
            raise CommitError(
                f"The heartbeat of instant {self._instant} of {self._storage.uri} could not be written: {error}. "
                "Nothing was changed; retry."
            ) from error
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat and delete its file; a file that cannot be deleted expires.

        Does nothing in a child of ``fork``: the heartbeat is its parent's.
        """
        if self._process != os.getpid():
            return
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self._storage.delete_file(heartbeat_path(self._instant))

    def require_alive(self) -> None:
        """Check before a commit that the heartbeat has never expired.

        Raises:
            CommitConflictError: the heartbeat is or was expired, so the write may have been rolled back.
        """
        silent = max(time.monotonic() - self._last, self._longest)
        if silent * 1000 <= self._rule.lasts_ms:
            return
        raise CommitConflictError(
            f"Heartbeat for instant {self._instant} of {self._storage.uri} has expired: none was written for "
            f"{silent:.0f} s, and after {self._rule.lasts_ms / 1000:g} s another writer may have rolled it back. "
            "Nothing was committed; retry, with a longer hoodie.client.heartbeat.interval_in_ms if storage is slow."
        )

    def _write(self) -> None:
        begun = time.monotonic()  # the wall clock may be set during a write
        self._storage.write_bytes(heartbeat_path(self._instant), self._content)
        if self._has_begun:
            self._longest = max(self._longest, time.monotonic() - self._last)
        self._last, self._has_begun = begun, True

    def _run(self) -> None:
        while not self._ended.wait(self._rule.interval_ms / 1000):
            try:
                self._write()
                note("timeline", logging.DEBUG, "Heartbeat of %s", self._instant, **self._fields)
            except OSError as error:
                note("timeline", logging.WARNING, "The heartbeat failed: %s", error, **self._fields)
                warn(
                    f"The heartbeat of instant {self._instant} of {self._storage.uri} could not be written: {error}. "
                    f"It expires {self._rule.lasts_ms / 1000:g} s after the last one."
                )


def heartbeat_path(instant: str) -> str:
    """Path of an instant's heartbeat file, relative to the table."""
    return f"{_FOLDER}/{instant}"


def heartbeats(storage: Storage) -> frozenset[str]:
    """Requested times of the instants that have a heartbeat file, fresh or expired."""
    return frozenset(entry.name for entry in storage.list_dir(_FOLDER) if not entry.is_dir)


@contextlib.contextmanager
def sending_heartbeats(storage: Storage, instant: str, rule: HeartbeatRule = _BY_DEFAULT) -> Iterator[Heartbeat]:
    """Send heartbeats for an instant during the block.

    Raises:
        CommitError: the first heartbeat could not be written; the block is not entered.
    """
    heartbeat = Heartbeat(storage, instant, rule)
    heartbeat.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()


def is_fresh(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether an instant has a heartbeat that is not expired."""
    file = storage.stat(heartbeat_path(instant))
    return file is not None and time.time() * 1000 - file.modified_ms <= rule.lasts_ms


def is_alive(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether a live process may still be executing an instant, for callers that hold its lock.

    A fresh heartbeat of this machine counts only with concurrent writers (``rule.shared``) or in an object store:
    otherwise the lock excludes other processes of this machine.
    """
    if not is_fresh(storage, instant, rule):
        return False
    if rule.shared or not storage.is_local:
        return True
    try:
        return storage.read_bytes(heartbeat_path(instant)) != _signature()
    except FileNotFoundError:  # the write has just ended
        return False


def is_elsewhere(storage: Storage, instant: str, rule: HeartbeatRule) -> bool:
    """Whether a live process may be executing a write although this process holds the lock of the machine.

    Like :func:`is_alive`, for a writer that expects to be alone.
    """
    if not is_alive(storage, instant, rule):
        return False
    try:
        return storage.read_bytes(heartbeat_path(instant)) != _signature(alone=True)
    except FileNotFoundError:  # the write has just ended
        return False


def _signature(alone: bool = False) -> bytes:
    return f"hudi_fast on {platform.node()}{', alone' if alone else ''}\n".encode()
