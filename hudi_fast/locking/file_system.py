"""A lock that is a file: who made it has the table, until the file is gone or too old.

::

    try_lock ─► <folder>/lock is there? ─ no ──► make it, content and all at once ─► ours
                     └─ yes ─► too old? ─ yes ─► move it aside, make it
                                   └─ no ──► wait, look again
    require_held ─► still our file, with our token, and young enough
    unlock ─► delete it, if it is ours

File name, folder, and the age at which a lock is nobody's any more are those of Apache Hudi's
``FileSystemBasedLockProvider`` (1.2.0). What is in the file is of no matter to it.

Between writers of this library the lock is exact: a lock file appears by a hard link, which only one can make, and
leaves its place only under an advisory lock on the file itself, so that nobody removes what took the place of the file
that was looked at. Its age is renewed while it is held.

Apache Hudi's own provider is not exact on a local disk: it looks whether the file is there and then opens it, which
empties one that was made in between; closing a provider deletes the file, whoever made it; and nothing renews it. None
of that can be prevented from here. It is noticed: :meth:`FileSystemLock.require_held` looks once the moment in which
two can have made the file at once has passed, and whoever has seen a lock of another program looks before it goes on.
Where writers of both kinds are at work, another provider is the right one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlparse

from hudi_fast.config.lock_options import LockOptions
from hudi_fast.errors import LockError, UnsupportedFeatureError
from hudi_fast.storage.base import Storage

__all__ = ["FileSystemLock", "open_file_system_lock"]

_NAME = "lock"
_POLL_SECONDS = 0.01
_RACE_SECONDS = 0.05
"""How long a JVM may take from finding no file to opening it."""
_SIGNATURE = '"writer": "hudi_fast"'
_HADOOP = ("hdfs", "viewfs", "dfs", "hopsfs")
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EOPNOTSUPP)


@dataclass(slots=True)
class _Own:
    """A lock file that this provider made.

    Attributes:
        descriptor: open on the file, wherever it is by now.
        content: with a token that no other lock file has.
        made: when, by the monotonic clock.
        confirmed: last moment, by the same clock, since when the file is known not to have been too old.
    """

    descriptor: int
    content: bytes
    made: float
    confirmed: float


def open_file_system_lock(storage: Storage, options: LockOptions) -> FileSystemLock:
    """The lock file below ``hoodie.write.lock.filesystem.path``, or in the table's ``.hoodie``.

    Args:
        storage: the table's storage.
        options: ``filesystem_path``, ``filesystem_expire_minutes``.

    Raises:
        UnsupportedFeatureError: the folder is not on a file system of this machine.
    """
    own = storage.fs_path(".hoodie") if storage.is_local else storage.absolute(".hoodie")
    folder = options.filesystem_path or own
    scheme = urlparse(folder).scheme if "://" in folder else "file"
    if scheme != "file":
        why = (
            "PyArrow, through which HDFS is reached, cannot create a file only if it is absent"
            if scheme in _HADOOP
            else f"{scheme} has no atomic creation of files"
        )
        raise UnsupportedFeatureError(
            f"{options.provider_class} on {scheme}:// is not supported: {why}. For the table {storage.uri} set "
            "hoodie.write.lock.filesystem.path to a folder that all writers share, or take another provider: "
            "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider for object stores, ZooKeeper for HDFS."
        )
    return FileSystemLock(f"{Storage(folder).fs_path('')}/{_NAME}", options.filesystem_expire_minutes * 60.0)


class FileSystemLock:
    """One lock file; a :class:`~hudi_fast.locking.provider.LockProvider`.

    Args:
        path: of the file, on a file system of this machine.
        expire_seconds: age at which it is nobody's any more; 0 for never.
    """

    def __init__(self, path: str, expire_seconds: float = 0.0) -> None:
        self._path = path
        self._expire = expire_seconds
        self._own: _Own | None = None
        self._holder = ""
        self._others_are_foreign = False
        self._stop = threading.Event()
        self._renewal: threading.Thread | None = None

    @property
    def holder(self) -> str:
        """Age and content of the lock file as last seen; empty when none was met."""
        return self._holder

    def try_lock(self, seconds: float) -> bool:
        """Wait at most so long for the lock; False when others held it all that time.

        Raises:
            LockError: the folder cannot be written, or has no hard links.
            OSError: the file system failed this time.
        """
        if self._own is not None:
            raise LockError(f"The lock {self._path} is held already, by this provider.")
        deadline = time.monotonic() + seconds
        while not self._attempt():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_POLL_SECONDS, left))
        return True

    def require_held(self) -> None:
        """Make sure that the lock file is ours still, and not so old that others may take it.

        Raises:
            LockError: it is not.
        """
        own = self._own
        if own is None:
            raise LockError(f"The lock {self._path} is not held.")
        time.sleep(max(own.made + _RACE_SECONDS - time.monotonic(), 0.0))
        if self._is_too_late(own):
            raise LockError(
                f"The lock {self._path} has not been renewed for more than half of the "
                f"{self._expire:g} s after which others may take it: this process was held up. Nothing was published; "
                "run it again, or raise hoodie.write.lock.filesystem.expire."
            )
        if not _is_in_place(own, self._path):
            self._holder = _describe(self._path)
            raise LockError(
                f"The lock {self._path} was lost: it is no longer the file that this writer made "
                f"({self._holder or 'there is none'}). Apache Hudi's file system provider takes and deletes lock files "
                "of others on local disks; nothing was published. Run it again, or choose another lock provider."
            )

    def unlock(self) -> None:
        """Delete the lock file if it is ours.

        Raises:
            OSError: it could not be deleted.
        """
        own, self._own = self._own, None
        if own is None:
            return
        self._end_renewal()
        try:
            _remove(own, self._path)
        finally:
            os.close(own.descriptor)

    def close(self) -> None:
        """Give up what is held; never fails."""
        with contextlib.suppress(OSError):
            self.unlock()

    # ---- taking it

    def _attempt(self) -> bool:
        seen = _stat(self._path)
        if seen is not None:
            self._look()
            if not self._expire or time.time() - seen.st_mtime <= self._expire or not _move_aside(self._path, seen):
                return False
        try:
            own = _make(self._path)
        except OSError as error:
            if error.errno not in _NOT_ALLOWED:
                raise
            raise LockError(
                f"The lock {self._path} cannot be taken: its folder cannot be written, or has no hard links "
                f"({error.strerror})."
            ) from error
        if own is None:
            return False
        if self._others_are_foreign:
            time.sleep(_RACE_SECONDS)
            if not _is_in_place(own, self._path):
                os.close(own.descriptor)
                return False
        self._own = own
        self._begin_renewal(own)
        return True

    def _look(self) -> None:
        text = _describe(self._path)
        if text:
            self._holder = text
            self._others_are_foreign |= _SIGNATURE not in text

    # ---- keeping it

    def _is_too_late(self, own: _Own) -> bool:
        return bool(self._expire) and time.monotonic() > own.confirmed + self._expire / 2

    def _begin_renewal(self, own: _Own) -> None:
        if self._expire:
            self._stop.clear()
            self._renewal = threading.Thread(target=self._renew, args=(own,), name="hudi_fast-lock", daemon=True)
            self._renewal.start()

    def _end_renewal(self) -> None:
        self._stop.set()
        if self._renewal is not None:
            self._renewal.join()
            self._renewal = None

    def _renew(self, own: _Own) -> None:
        """Touch our file, and no other: one that was held up for too long stays lost."""
        while not self._stop.wait(self._expire / 8):
            now = time.monotonic()
            if self._is_too_late(own):
                return
            with contextlib.suppress(OSError):
                os.utime(own.descriptor)
                own.confirmed = now


def _make(path: str) -> _Own | None:
    """A lock file of ours in a place where there is none; None when somebody else was first."""
    folder, token = os.path.dirname(path), uuid.uuid4().hex
    temporary = f"{folder}/.{_NAME}.{token}.tmp"
    content = _content(token)
    started = time.monotonic()
    os.makedirs(folder, exist_ok=True)
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            os.write(descriptor, content)
            os.link(temporary, path)
        finally:
            os.unlink(temporary)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, FileExistsError):
            return None
        raise
    # The checksum of a lock file that a JVM made here before: it would refuse to read ours.
    with contextlib.suppress(OSError):
        os.unlink(f"{folder}/.{_NAME}.crc")
    return _Own(descriptor, content, time.monotonic(), started)


def _content(token: str) -> bytes:
    """Fields of Apache Hudi's ``LockInfo``, as far as they mean something here, and who we are."""
    fields = {
        "lockCreateTime": datetime.now().isoformat(" ", "milliseconds"),
        "lockThreadName": threading.current_thread().name,
        "writer": "hudi_fast",
        "host": socket.gethostname(),
        "process": os.getpid(),
        "token": token,
    }
    return json.dumps(fields, indent=2).encode()


def _is_in_place(own: _Own, path: str) -> bool:
    """Whether the file at ``path`` is the one that we made, as we made it: a JVM that opens it empties it."""
    there = _stat(path)
    return (
        there is not None
        and os.path.samestat(there, os.fstat(own.descriptor))
        and os.pread(own.descriptor, len(own.content) + 1, 0) == own.content
    )


def _remove(own: _Own, path: str) -> None:
    fcntl.flock(own.descriptor, fcntl.LOCK_EX)
    if _is_in_place(own, path):
        os.unlink(path)


def _move_aside(path: str, seen: os.stat_result) -> bool:
    """Free the place of a lock file that is too old; False when it has changed or gone since it was seen."""
    aside = f"{path}.{uuid.uuid4().hex}.expired"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now, there = os.fstat(descriptor), _stat(path)
        if there is None or not os.path.samestat(now, there) or _identity(now) != _identity(seen):
            return False
        os.rename(path, aside)
        if os.path.samestat(os.stat(aside), now):
            os.unlink(aside)
            return True
        # A JVM deleted the old file and made its own, right now: that one goes back.
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        os.unlink(aside)
        return False
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(descriptor)


def _identity(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _describe(path: str) -> str:
    """What is known of a lock file, on one line; empty when there is none."""
    try:
        with open(path, "rb") as file:
            text = " ".join(file.read(2000).decode(errors="replace").split())
            age = time.time() - os.fstat(file.fileno()).st_mtime
    except OSError:
        return ""
    return f"{path}, {age:.0f} s old: {text or 'no owner named, as Apache Hudi leaves it'}{_fate(text)}"


def _fate(text: str) -> str:
    """A remark on a holder that is no more: its lock stays until it is too old, or for ever."""
    try:
        told = json.loads(text)
        if told["host"] != socket.gethostname():
            return ""
        os.kill(int(told["process"]), 0)
    except ProcessLookupError:
        return f". This machine has no process {told['process']}: if no writer is at work, delete the file"
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        pass
    return ""
