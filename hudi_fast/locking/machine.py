"""One writer at a time on this machine: an advisory lock on a file inside the table.

The operating system drops the lock when its holder dies, so there is nothing to clean up after a crash, and no holder
can be taken for dead. It excludes threads as well as processes, since every acquisition opens the file anew. Writers
on other machines, and Apache Hudi's own, are not excluded: that takes a lock provider
(:mod:`hudi_fast.locking.table_lock`). Tables in object stores have no such lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hudi_fast.errors import LockError, LockTimeoutError, TableNotFoundError
from hudi_fast.storage.base import Storage

__all__ = ["LOCK_PATH", "is_held", "machine_lock", "service_lock_path"]

LOCK_PATH = ".hoodie/.locks/hudi_fast.lock"

_POLL_SECONDS = 0.01
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def machine_lock(storage: Storage, wait_seconds: float, path: str = LOCK_PATH) -> Iterator[None]:
    """Hold one of the table's locks of this machine for the duration of the block.

    Args:
        storage: a table that exists; in an object store nothing is held.
        wait_seconds: how long to queue behind other writers.
        path: which of the table's locks.

    Raises:
        LockError: its file must not be written.
        LockTimeoutError: the lock was held by others all that time.
        TableNotFoundError: there is no table (any more).
    """
    if not storage.is_local:
        yield
        return
    descriptor = _acquire(storage, wait_seconds, path)
    try:
        yield
    finally:
        os.close(descriptor)


def _acquire(storage: Storage, wait_seconds: float, lock: str) -> int:
    deadline = time.monotonic() + wait_seconds
    path = storage.fs_path(lock)
    while True:
        if not storage.exists(".hoodie"):
            raise TableNotFoundError(f"The table {storage.uri} went away while this writer waited for its lock.")
        descriptor = _open(storage, lock)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_same_file(descriptor, path):
                _sign(descriptor)
                return descriptor
        except BlockingIOError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise LockTimeoutError(
                f"The table {storage.uri} is being written by another writer ({holder or 'unknown'}); gave up after "
                f"{wait_seconds:g} s. Wait for it, or raise hoodie.write.lock.wait_time_ms."
            )
        time.sleep(_POLL_SECONDS)


def _open(storage: Storage, lock: str) -> int:
    try:
        storage.make_dir(lock.rpartition("/")[0])
        return os.open(storage.fs_path(lock), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in _NOT_ALLOWED:
            raise
        raise LockError(
            f"The lock of the table {storage.uri} cannot be taken: the file {lock} cannot be written "
            f"({error.strerror}). Who writes to a table or serves it must be allowed to write to its .hoodie folder; "
            "reading, and looking at what would be done, needs no lock."
        ) from error


def _sign(descriptor: int) -> None:
    """Say who holds the lock; a file that says so already, as after this process's last lock, stays untouched."""
    name = f"process {os.getpid()}\n".encode()
    if os.pread(descriptor, len(name) + 1, 0) != name:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, name, 0)


def _is_same_file(descriptor: int, path: str) -> bool:
    """An overwrite replaces the whole table, lock file included: a lock on the old file locks nothing."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def is_held(storage: Storage, path: str = LOCK_PATH) -> bool:
    """Whether somebody on this machine holds one of the table's locks; for telling, not for relying on it.

    Args:
        storage: the table's storage.
        path: which lock.
    """
    if not storage.is_local:
        return False
    try:
        descriptor = os.open(storage.fs_path(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def service_lock_path(service: str) -> str:
    """The lock that a table service holds for as long as it runs, while writers and services of other kinds go on.

    Args:
        service: ``compaction``, ``clustering``, ``clean`` ...
    """
    return f".hoodie/.locks/hudi_fast_{service}.lock"
