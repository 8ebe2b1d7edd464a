"""Lock files, on local disks and on HDFS.

A lock file: its creator holds the lock until the file is deleted or expires.

::

    try_lock ─► <folder>/lock exists? ─ no ──► create it with its content, atomically ─► held
                     └─ yes ─► expired? ─ yes ─► move it aside, create ours
                                   └─ no ──► wait, try again
    require_held ─► the file is ours, has our token and is not too old
    unlock ─► delete the file if it is ours

File name, folder and expiry are those of Apache Hudi's ``FileSystemBasedLockProvider`` (1.2.0), which ignores the
content of the file.

The lock is exact between writers of hudi_fast. A lock file is created by a hard link, which succeeds for one process
only. It is removed only under an advisory lock on the file itself, so that no process removes a newer file in its
place. The holder renews the age of the file.

Apache Hudi's provider is not exact on a local disk. It checks whether the file exists and then opens it, which empties
a file created in between; closing a provider deletes the file of any holder; and it does not renew the file. hudi_fast
cannot prevent this, but detects it: :meth:`FileSystemLock.require_held` checks the file after the time in which two
writers can create it, and :meth:`FileSystemLock.try_lock` does so, too, after it has seen a lock file of another
program. Use another provider if hudi_fast and Apache Hudi write at the same time.

Common base of lock files on local disks and on HDFS: attempts, and renewal before the file expires.

The age of a lock file is its modification time. A holder renews it eight times before it expires. It relies on the
lock only while the last renewal is less than half of that time ago.

A lock file on HDFS: its creator holds the lock until the file is deleted or expires.

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
import errno
import logging
import os
import socket
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable

from hudi_fast.config.concurrency_options import LockOptions
from hudi_fast.errors import LockError, UnsupportedFeatureError
from hudi_fast.events import note
from hudi_fast.locking.lock_record import lock_content
from hudi_fast.locking.provider import LockProvider
from hudi_fast.storage.base import Storage
from hudi_fast.storage.file_locks import LockableFile, check_locks
from hudi_fast.storage.places import scheme_of
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = ["FileSystemLock", "LockFile", "RemoteFileLock", "open_file_system_lock"]


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


_NAME = "lock"
_REMOTE_POLL_SECONDS = 0.1


class RemoteFileLock(LockFile):
    """A lock file in a storage that creates files exclusively, renames, and sets times.

    Args:
        folder: folder of the lock file.
        expire_seconds: age at which the lock file expires; 0 = never.
    """

    def __init__(self, folder: Storage, expire_seconds: float = 0.0) -> None:
        super().__init__(folder.absolute(_NAME), expire_seconds, _REMOTE_POLL_SECONDS)
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


_POLL_SECONDS = 0.01
_RACE_SECONDS = 0.05
"""Time that a JVM may take between its check for the file and opening it."""
_HDFS = ("hdfs", "viewfs")
_SIGNATURE = '"writer": "hudi_fast"'
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EOPNOTSUPP)


@dataclass(slots=True)
class _Own:
    """A lock file that this provider created.

    Attributes:
        file: the open file, valid even if it is moved or deleted.
        content: content of the file, with a unique token.
        made: creation time, by the monotonic clock.
        started: start of its creation, by the monotonic clock.
    """

    file: LockableFile
    content: bytes
    made: float
    started: float


def open_file_system_lock(storage: Storage, options: LockOptions) -> LockProvider:
    """The lock file below ``hoodie.write.lock.filesystem.path``, or in the table's ``.hoodie``.

    Raises:
        UnsupportedFeatureError: the folder is neither on a file system of this machine nor on HDFS.
    """
    own = storage.fs_path(".hoodie") if storage.is_local else storage.absolute(".hoodie")
    folder = options.filesystem_path or own
    scheme, expire = scheme_of(folder), options.filesystem_expire_minutes * 60.0
    if scheme == "file":
        return FileSystemLock(f"{Storage(folder).fs_path('')}/{_NAME}", expire)
    if scheme in _HDFS:
        return RemoteFileLock(Storage(folder, storage.options if scheme_of(storage.uri) in _HDFS else None), expire)
    raise UnsupportedFeatureError(
        f"{options.provider_class} on {scheme}:// is not supported: {scheme} has no atomic creation of files, or no "
        f"times that a writer can renew. For the table {storage.uri} set hoodie.write.lock.filesystem.path to a folder "
        "on HDFS or a disk that all writers share, or use another provider: "
        "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider for object stores, ZooKeeper for any storage."
    )


class FileSystemLock(LockFile):
    """A lock file on a file system of this machine, which has hard links.

    Args:
        path: path of the lock file.
        expire_seconds: age at which the lock file expires; 0 = never.
    """

    def __init__(self, path: str, expire_seconds: float = 0.0) -> None:
        super().__init__(path, expire_seconds, _POLL_SECONDS)
        self._own: _Own | None = None
        self._saw_foreign_lock = False

    def require_held(self) -> None:
        """Check that the lock file is still ours and not close to its expiry.

        Raises:
            LockError: the lock was lost or may be lost.
        """
        own = self._own
        if own is None:
            raise LockError(f"The lock {self._path} is not held.")
        time.sleep(max(own.made + _RACE_SECONDS - time.monotonic(), 0.0))
        if self._is_too_late():
            raise LockError(
                f"The lock {self._path} has not been renewed for more than half of the "
                f"{self._expire:g} s after which other writers may take it: this process was suspended or too slow. "
                "Nothing was published; retry, or raise hoodie.write.lock.filesystem.expire."
            )
        if not _is_in_place(own, self._path):
            self._holder = _describe(self._path)
            raise LockError(
                f"The lock {self._path} was lost: it is no longer the file that this writer created "
                f"({self._holder or 'the file does not exist'}). Apache Hudi's file system provider takes and deletes "
                "lock files of other writers on local disks. Nothing was published; retry, or use another lock "
                "provider."
            )

    def unlock(self) -> None:
        """See :class:`LockFile`."""
        own, self._own = self._own, None
        if own is None:
            return
        self._end_renewal()
        try:
            _remove(own, self._path)
        finally:
            own.file.close()

    # ---- acquisition

    def _is_held(self) -> bool:
        return self._own is not None

    def _attempt(self) -> bool:
        seen = _stat(self._path)
        if seen is not None:
            self._note_holder()
            if not self._expire or time.time() - seen.st_mtime <= self._expire or not _move_aside(self._path, seen):
                return False
        try:
            own = _make(self._path)
        except OSError as error:
            if error.errno not in _NOT_ALLOWED:
                raise
            raise LockError(
                f"The lock {self._path} cannot be acquired: its folder cannot be written, or has no hard links "
                f"({error.strerror})."
            ) from error
        if own is None:
            return False
        if self._saw_foreign_lock:
            time.sleep(_RACE_SECONDS)
            if not _is_in_place(own, self._path):
                own.file.close()
                return False
        self._own = own
        self._begin_renewal(lambda: os.utime(own.file.descriptor), own.started)
        return True

    def _note_holder(self) -> None:
        text = _describe(self._path)
        if text:
            self._holder = text
            self._saw_foreign_lock |= _SIGNATURE not in text


def _make(path: str) -> _Own | None:
    """Create the lock file; None if another process created one first."""
    check_locks()
    folder, token = os.path.dirname(path), uuid.uuid4().hex
    temporary = f"{folder}/.{_NAME}.{token}.tmp"
    content = lock_content(token)
    started = time.monotonic()
    os.makedirs(folder, exist_ok=True)
    file = LockableFile(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        try:
            os.write(file.descriptor, content)
            os.link(temporary, path)
        finally:
            os.unlink(temporary)
    except BaseException as error:
        file.close()
        if isinstance(error, FileExistsError):
            return None
        raise
    # Delete the checksum of a lock file that a JVM created earlier; with it, JVMs would fail to read our file.
    with contextlib.suppress(OSError):
        os.unlink(f"{folder}/.{_NAME}.crc")
    return _Own(file, content, time.monotonic(), started)


def _is_in_place(own: _Own, path: str) -> bool:
    """Whether the file at ``path`` is ours with its content; a JVM that opens the file empties it."""
    there = _stat(path)
    return (
        there is not None
        and os.path.samestat(there, os.fstat(own.file.descriptor))
        and os.pread(own.file.descriptor, len(own.content) + 1, 0) == own.content
    )


def _remove(own: _Own, path: str) -> None:
    own.file.lock(wait=True)
    if _is_in_place(own, path):
        os.unlink(path)


def _move_aside(path: str, seen: os.stat_result) -> bool:
    """Remove an expired lock file; False if it has changed or disappeared since it was seen."""
    aside = f"{path}.{uuid.uuid4().hex}.expired"
    try:
        file = LockableFile(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        file.lock()
        now, there = os.fstat(file.descriptor), _stat(path)
        if there is None or not os.path.samestat(now, there) or _identity(now) != _identity(seen):
            return False
        os.rename(path, aside)
        if os.path.samestat(os.stat(aside), now):
            os.unlink(aside)
            return True
        # A JVM has just replaced the old file by its own: put that file back.
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        os.unlink(aside)
        return False
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        file.close()


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _describe(path: str) -> str:
    """Age and content of a lock file on one line; "" without a file."""
    try:
        with open(path, "rb") as file:
            text = " ".join(file.read(2000).decode(errors="replace").split())
            age = time.time() - os.fstat(file.fileno()).st_mtime
    except OSError:
        return ""
    return f"{path}, {age:.0f} s old: {text or 'no owner, as written by Apache Hudi'}{_ended_holder_note(text)}"


def _ended_holder_note(text: str) -> str:
    """A note if the holder's process on this machine has ended; its lock stays until it expires."""
    try:
        fields = stored_json(text)
        if fields["host"] != socket.gethostname():
            return ""
        os.kill(int(fields["process"]), 0)
    except ProcessLookupError:
        return f". This machine has no process {fields['process']}: if no writer is running, delete the file"
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        pass
    return ""
