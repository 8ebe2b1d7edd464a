"""Lock between the writers of one machine: an advisory lock on a file inside the table.

The operating system releases the lock when the process of its holder ends, so a crash leaves no lock behind. The lock
excludes threads as well as processes, because each acquisition opens the file again. It does not exclude writers on
other machines or Apache Hudi's writers; they need a lock provider (:mod:`hudi_fast.locking.table_lock`). Tables in
object stores have no machine lock.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_fast.errors import LockError, LockTimeoutError, TableNotFoundError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.file_locks import LockableFile, check_locks, has_locks

__all__ = ["LOCK_PATH", "is_held", "machine_lock", "service_lock_path"]

LOCK_PATH = ".hoodie/.locks/hudi_fast.lock"
"""Path of the lock file of writers on one machine, relative to the table."""

_POLL_SECONDS = 0.01
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def machine_lock(storage: Storage, wait_seconds: float, path: str = LOCK_PATH) -> Iterator[None]:
    """Hold a machine lock of the table for the duration of the block.

    Args:
        storage: storage of an existing table; in an object store no lock is held.
        wait_seconds: maximum wait.
        path: lock file, relative to the table.

    Raises:
        LockError: the lock file cannot be written.
        LockTimeoutError: other holders kept the lock for the whole wait.
        TableNotFoundError: the table does not exist or was deleted during the wait.
        UnsupportedFeatureError: this system cannot lock files.
    """
    if not storage.is_local:
        yield
        return
    check_locks()
    file = _acquire(storage, wait_seconds, path)
    try:
        yield
    finally:
        file.close()


def _acquire(storage: Storage, wait_seconds: float, lock: str) -> LockableFile:
    deadline = time.monotonic() + wait_seconds
    path = storage.fs_path(lock)
    while True:
        if not storage.exists(".hoodie"):
            raise TableNotFoundError(f"The table {storage.uri} was deleted while this writer waited for its lock.")
        file = _open(storage, lock)
        try:
            file.lock()
            if _is_same_file(file.descriptor, path):
                _write_holder(file.descriptor)
                return file
        except BlockingIOError:
            pass
        except BaseException:
            file.close()
            raise
        holder = os.pread(file.descriptor, 200, 0).decode(errors="replace").strip()
        file.close()
        if time.monotonic() >= deadline:
            raise LockTimeoutError(
                f"The table {storage.uri} is being written by another writer ({holder or 'unknown'}); gave up after "
                f"{wait_seconds:g} s. Wait for it, or raise hoodie.write.lock.wait_time_ms."
            )
        time.sleep(_POLL_SECONDS)


def _open(storage: Storage, lock: str) -> LockableFile:
    try:
        storage.make_dir(lock.rpartition("/")[0])
        return LockableFile(storage.fs_path(lock), os.O_RDWR | os.O_CREAT)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        raise LockError(
            f"The lock of the table {storage.uri} cannot be acquired: the file {lock} cannot be written "
            f"({error.strerror}). Writes and table services need write access to the .hoodie folder; reads and dry "
            "runs need no lock."
        ) from error


def _write_holder(descriptor: int) -> None:
    """Write the process id into the lock file unless it is there already."""
    name = f"process {os.getpid()}\n".encode()
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
    if not storage.is_local or not has_locks():
        return False
    try:
        file = LockableFile(storage.fs_path(path), os.O_RDONLY)
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
