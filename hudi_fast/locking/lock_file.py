"""Common base of lock files on local disks and on HDFS: attempts, and renewal before the file expires.

The age of a lock file is its modification time. A holder renews it eight times before it expires. It relies on the
lock only while the last renewal is less than half of that time ago.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from hudi_fast.errors import LockError
from hudi_fast.events import note

__all__ = ["LockFile"]


class LockFile(ABC):
    """One lock file; a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        path: the file, for messages.
        expire_seconds: age at which the lock file expires; 0 = never.
        poll_seconds: pause between two attempts.
    """

    def __init__(self, path: str, expire_seconds: float, poll_seconds: float) -> None:
        self._path = path
        self._expire = expire_seconds
        self._poll = poll_seconds
        self._holder = ""
        self._confirmed = 0.0
        """Start of the last successful creation or renewal, on the monotonic clock."""
        self._stop = threading.Event()
        self._renewal: threading.Thread | None = None

    @property
    def holder(self) -> str:
        """Age and content of the last lock file seen; "" for none."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Try to acquire the lock for at most ``seconds``; False if other holders kept it.

        Raises:
            LockError: the folder cannot be written.
            OSError: a transient failure of the file system.
        """
        if self._is_held():
            raise LockError(f"This provider already holds the lock {self._path}.")
        deadline = time.monotonic() + seconds
        while not self._attempt():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(self._poll, left))
        return True

    @abstractmethod
    def unlock(self) -> None:
        """Delete the lock file if it is ours.

        Raises:
            OSError: the file could not be deleted.
        """

    def close(self) -> None:
        """Release a held lock; never fails."""
        with contextlib.suppress(OSError):
            self.unlock()

    @abstractmethod
    def _is_held(self) -> bool:
        """Whether this provider has created the lock file."""

    @abstractmethod
    def _attempt(self) -> bool:
        """Try to create the lock file once."""

    # ---- renewal

    def is_certain(self) -> bool:
        """See :class:`~hudi_fast.locking.provider.LockProvider`."""
        return self._is_held() and not self._is_too_late()

    def _is_too_late(self) -> bool:
        return bool(self._expire) and time.monotonic() > self._confirmed + self._expire / 2

    def _begin_renewal(self, touch: Callable[[], None], created: float) -> None:
        """Renew the age of our file until the lock is released or may have expired.

        Args:
            touch: renews it once.
            created: start of its creation, on the monotonic clock.
        """
        self._confirmed = created
        if self._expire:
            self._stop.clear()
            self._renewal = threading.Thread(target=self._renew, args=(touch,), name="hudi_fast-lock", daemon=True)
            self._renewal.start()

    def _end_renewal(self) -> None:
        self._stop.set()
        if self._renewal is not None:
            self._renewal.join()
            self._renewal = None

    def _renew(self, touch: Callable[[], None]) -> None:
        while not self._stop.wait(self._expire / 8):
            now = time.monotonic()
            if self._is_too_late():
                return
            try:
                touch()
                self._confirmed = now
            except OSError as error:
                note("locking", logging.WARNING, "The renewal of the lock file failed: %s", error)
