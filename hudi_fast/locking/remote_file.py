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
import time
import uuid

from hudi_fast.errors import LockError
from hudi_fast.locking.lock_file import LockFile
from hudi_fast.locking.lock_record import lock_content
from hudi_fast.storage.base import Storage

__all__ = ["RemoteFileLock"]

_NAME = "lock"
_POLL_SECONDS = 0.1


class RemoteFileLock(LockFile):
    """A lock file in a storage that creates files exclusively, renames, and sets times.

    Args:
        folder: folder of the lock file.
        expire_seconds: age at which the lock file expires; 0 = never.
    """

    def __init__(self, folder: Storage, expire_seconds: float = 0.0) -> None:
        super().__init__(folder.absolute(_NAME), expire_seconds, _POLL_SECONDS)
        self._folder = folder
        self._own = b""

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
        """See :class:`LockFile`."""
        own, self._own = self._own, b""
        if not own:
            return
        self._end_renewal()
        if self._content() == own:
            self._folder.delete_file(_NAME)

    # ---- acquisition

    def _is_held(self) -> bool:
        return bool(self._own)

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
        self._own = own
        self._begin_renewal(lambda: self._folder.set_modified(_NAME, round(time.time() * 1000)), started)
        return True

    def _moved_aside(self, expired: bytes) -> bool:
        """Remove an expired lock file; False if another writer has removed or replaced it."""
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


def _one_line(content: bytes) -> str:
    return " ".join(content[:2000].decode(errors="replace").split())
