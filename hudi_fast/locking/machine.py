"""Lock between the writers of one machine: an advisory lock on a file of this machine.

The operating system releases the lock when the process of its holder ends, so a crash leaves no lock behind. The lock
excludes threads as well as processes, because each acquisition opens the file again. It does not exclude writers on
other machines or Apache Hudi's writers; they need a lock provider (:mod:`hudi_fast.locking.table_lock`).

The file is inside a local table. For other tables it is in a folder of the user below ``tempfile.gettempdir()``. It
then also names the owner that held the provider's lock under the lock of the machine. The next holder knows that this
owner has ended, and need not wait for the end of its lease. The locks of table services exist for local tables only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_fast.errors import LockError, LockTimeoutError, TableNotFoundError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.file_locks import LockableFile, check_locks, has_locks
from hudi_fast.values import dataclass

__all__ = ["LOCK_PATH", "MachineTurn", "is_held", "machine_lock", "service_lock_path"]

LOCK_PATH = ".hoodie/.locks/hudi_fast.lock"
"""Path of the lock file of writers on one machine, relative to the table."""

_POLL_SECONDS = 0.01
_MAX_BYTES = 4096
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP)


_SPELLINGS = re.compile("^(s3)[an]://|^(g)c(s)://", re.IGNORECASE)
"""Schemes with several names for the same storage."""


@dataclass(frozen=True, slots=True)
class MachineTurn:
    """A held machine lock.

    Attributes:
        file: the lock file; None where the machine has no lock for this table, or owners are not recorded.
        ended: owners that held, or tried to acquire, a provider's lock in earlier turns.
    """

    file: LockableFile | None = None
    ended: frozenset[str] = frozenset()

    def note(self, *owners: str) -> None:
        """Replace the owners that the next holder of the machine lock reads as its ``ended``."""
        if self.file is not None:
            content = "".join(f"{line}\n" for line in (_process(), *owners)).encode()
            os.pwrite(self.file.descriptor, content, 0)
            os.ftruncate(self.file.descriptor, len(content))


@contextmanager
def machine_lock(
    storage: Storage, wait_seconds: float, path: str = LOCK_PATH, required: bool = True
) -> Iterator[MachineTurn]:
    """Hold a machine lock of the table for the duration of the block.

    Args:
        storage: storage of an existing table.
        wait_seconds: maximum wait.
        path: lock file, relative to the table; the locks of table services are not held outside of local tables.
        required: whether to fail if no lock file can be written outside of the table; False: no lock is held then.

    Raises:
        LockError: the lock file cannot be written.
        LockTimeoutError: other holders kept the lock for the whole wait.
        TableNotFoundError: the table does not exist or was deleted during the wait.
        UnsupportedFeatureError: this system cannot lock files.
    """
    if not storage.is_local and (path != LOCK_PATH or not (required or has_locks())):
        yield MachineTurn()
        return
    check_locks()
    try:
        file = _acquire(storage, wait_seconds, path)
    except LockTimeoutError:
        raise
    except LockError:
        if required or storage.is_local:
            raise
        yield MachineTurn()
        return
    try:
        if storage.is_local:
            yield MachineTurn()
        else:
            _, *left = os.pread(file.descriptor, _MAX_BYTES, 0).decode(errors="replace").splitlines() or [""]
            turn = MachineTurn(file, frozenset(left))
            turn.note(*left)
            yield turn
    finally:
        file.close()


def _acquire(storage: Storage, wait_seconds: float, lock: str) -> LockableFile:
    deadline = time.monotonic() + wait_seconds
    path = _file_of(storage, lock)
    while True:
        if storage.is_local and not storage.exists(".hoodie"):
            raise TableNotFoundError(f"The table {storage.uri} was deleted while this writer waited for its lock.")
        file = _open(storage, lock, path)
        try:
            file.lock()
            if _is_same_file(file.descriptor, path):
                if storage.is_local:
                    _write_holder(file.descriptor)
                return file
        except BlockingIOError:
            pass
        except BaseException:
            file.close()
            raise
        holder = os.pread(file.descriptor, 200, 0).decode(errors="replace").partition("\n")[0]
        file.close()
        if time.monotonic() >= deadline:
            raise LockTimeoutError(
                f"The table {storage.uri} is being written by another writer ({holder or 'unknown'}); gave up after "
                f"{wait_seconds:g} s. Wait for it, or raise hoodie.write.lock.wait_time_ms."
            )
        time.sleep(_POLL_SECONDS)


def _file_of(storage: Storage, lock: str) -> str:
    """The lock file, as the operating system names it."""
    if storage.is_local:
        return storage.fs_path(lock)
    name = hashlib.sha256(_SPELLINGS.sub(r"\1\2\3://", storage.uri).encode()).hexdigest()
    return f"{tempfile.gettempdir()}/hudi_fast-locks-{os.getuid()}/{name}.lock"


def _open(storage: Storage, lock: str, path: str) -> LockableFile:
    try:
        if storage.is_local:
            storage.make_dir(lock.rpartition("/")[0])
        else:
            _make_private_folder(os.path.dirname(path))
        return LockableFile(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        place = f"the file {lock}" if storage.is_local else f"{path}, a file of this machine,"
        needed = (
            "Writes and table services need write access to the .hoodie folder"
            if storage.is_local
            else "Set TMPDIR to a folder that this user can write to and that all its processes share"
        )
        raise LockError(
            f"The lock of the table {storage.uri} cannot be acquired: {place} cannot be written "
            f"({error.strerror}). {needed}; reads and dry runs need no lock."
        ) from error


def _make_private_folder(folder: str) -> None:
    """Make a folder that no other user can change."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(errno.EPERM, f"{folder} is no folder that belongs to this user alone")


def _process() -> str:
    return f"process {os.getpid()}"


def _write_holder(descriptor: int) -> None:
    """Write the process id into the lock file unless it is there already."""
    name = f"{_process()}\n".encode()
    if os.pread(descriptor, len(name) + 1, 0) != name:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, name, 0)


def _is_same_file(descriptor: int, path: str) -> bool:
    """Whether ``path`` is still the opened file; an overwrite replaces the whole table with its lock file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def is_held(storage: Storage, path: str = LOCK_PATH) -> bool:
    """Whether a process on this machine holds the lock at this moment; for reports only."""
    if not has_locks() or (not storage.is_local and path != LOCK_PATH):
        return False
    try:
        file = LockableFile(_file_of(storage, path), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        file.lock(shared=True)
    except BlockingIOError:
        return True
    finally:
        file.close()
    return False


def service_lock_path(service: str) -> str:
    """Path of the lock that a table service holds while it runs; writers and other services do not take it.

    Args:
        service: ``compaction``, ``clustering``, ``clean`` ...
    """
    return f".hoodie/.locks/hudi_fast_{service}.lock"
