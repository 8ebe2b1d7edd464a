"""A lock file on HDFS: its creator holds the lock until the file is deleted or expires.

::

    try_lock ─► <folder>/lock exists? ─ no ──► create it with its content, exclusively ─► held
                     └─ yes ─► expired? ─ yes ─► rename it aside, create ours
                                   └─ no ──► wait, try again
    require_held ─► the file has our content and is not too old
    unlock ─► delete the file if it has our content

File name, folder and expiry are those of Apache Hudi's ``FileSystemBasedLockProvider`` (1.2.0). The age of the file is
its modification time, set by the NameNode and by renewals of the holder, compared with this machine's clock: clocks
must agree to a fraction of the expiry.

The lock is exact between writers of hudi_fast. Apache Hudi's provider is not exact: it counts a file that another
writer creates between two of its checks as its own, it does not renew the file, and closing it deletes the file of any
holder. :meth:`RemoteFileLock.require_held` detects a deleted or replaced file only. Use ZooKeeper if hudi_fast and
Apache Hudi write at the same time.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid

from hudi_fast.errors import LockError
from hudi_fast.locking.lock_record import lock_content
from hudi_fast.storage.base import Storage

__all__ = ["RemoteFileLock"]

_NAME = "lock"
_POLL_SECONDS = 0.1


class RemoteFileLock:
    """One lock file; a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        folder: folder of the lock file, in a storage that creates files exclusively, renames, and sets times.
        expire_seconds: age at which the lock file expires; 0 = never.
    """

    def __init__(self, folder: Storage, expire_seconds: float = 0.0) -> None:
        self._folder = folder
        self._path = folder.absolute(_NAME)
        self._expire = expire_seconds
        self._own = b""
        self._confirmed = 0.0
        self._holder = ""
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
            OSError: a transient failure of the storage.
        """
        if self._own:
            raise LockError(f"This provider already holds the lock {self._path}.")
        deadline = time.monotonic() + seconds
        while not self._attempt():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, left))
        return True

    def require_held(self) -> None:
        """Check that the lock file is still ours and not close to its expiry.

        Raises:
            LockError: the lock was lost or may be lost.
        """
        if not self._own:
            raise LockError(f"The lock {self._path} is not held.")
        if self._is_too_late():
            raise LockError(
                f"The lock {self._path} has not been renewed for more than half of the {self._expire:g} s after which "
                "other writers may take it: this process was suspended, or the NameNode did not answer. Nothing was "
                "published; retry, or raise hoodie.write.lock.filesystem.expire."
            )
        try:
            found = self._content()
        except OSError as error:
            raise LockError(
                f"The lock {self._path} cannot be checked: {error}. Nothing was published; retry."
            ) from error
        if found != self._own:
            raise LockError(
                f"The lock {self._path} was lost: it is no longer the file that this writer created "
                f"({_one_line(found) or 'the file does not exist'}). Apache Hudi's file system provider deletes lock "
                "files of other writers. Nothing was published; retry, or use another lock provider."
            )

    def unlock(self) -> None:
        """Delete the lock file if it is ours.

        Raises:
            OSError: the file could not be deleted.
        """
        own, self._own = self._own, b""
        if not own:
            return
        self._stop.set()
        if self._renewal is not None:
            self._renewal.join()
            self._renewal = None
        if self._content() == own:
            self._folder.delete_file(_NAME)

    def close(self) -> None:
        """Release a held lock; never fails."""
        with contextlib.suppress(OSError):
            self.unlock()

    # ---- acquisition

    def _attempt(self) -> bool:
        seen = self._folder.stat(_NAME)
        if seen is not None:
            content = self._content()
            age = time.time() - seen.modified_ms / 1000
            self._holder = f"{self._path}, {age:.0f} s old: {_one_line(content) or 'no owner'}"
            if not self._expire or age <= self._expire or not self._moved_aside(content):
                return False
        own, started = lock_content(uuid.uuid4().hex), time.monotonic()
        try:
            self._folder.create_exclusive(_NAME, own)
        except FileExistsError:
            return False
        except PermissionError as error:
            raise LockError(f"The lock {self._path} cannot be acquired: {error}.") from error
        except OSError:
            if self._content() != own:
                raise
        self._own, self._confirmed = own, started
        if self._expire:
            self._stop.clear()
            self._renewal = threading.Thread(target=self._renew, name="hudi_fast-lock", daemon=True)
            self._renewal.start()
        return True

    def _moved_aside(self, expired: bytes) -> bool:
        """Remove an expired lock file; False if another writer did, or has created its own meanwhile."""
        aside = f"{_NAME}.{uuid.uuid4().hex}.expired"
        try:
            self._folder.move(_NAME, aside)
        except FileNotFoundError:
            return False
        taken = self._folder.read_bytes(aside)
        if taken != expired:
            with contextlib.suppress(FileExistsError):
                self._folder.create_exclusive(_NAME, taken)
        self._folder.delete_file(aside)
        return taken == expired

    def _content(self) -> bytes:
        try:
            return self._folder.read_bytes(_NAME)
        except FileNotFoundError:
            return b""

    # ---- renewal

    def _is_too_late(self) -> bool:
        return bool(self._expire) and time.monotonic() > self._confirmed + self._expire / 2

    def _renew(self) -> None:
        """Renew the age of our file until the lock is released or may have expired."""
        while not self._stop.wait(self._expire / 8):
            now = time.monotonic()
            if self._is_too_late():
                return
            with contextlib.suppress(OSError):
                self._folder.set_modified(_NAME, round(time.time() * 1000))
                self._confirmed = now


def _one_line(content: bytes) -> str:
    return " ".join(content[:2000].decode(errors="replace").split())
