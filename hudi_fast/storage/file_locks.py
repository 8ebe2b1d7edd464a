"""Advisory locks on open files of this machine, which the operating system releases when their holder ends.

Only POSIX systems have them (``flock``). On other systems, such as Windows, local tables can be read but not written:
without these locks two writers of one machine would overwrite each other.

Such a lock belongs to the open file, and a child of ``fork`` has the open files of its parent: it would keep the lock
for as long as it lives. So a child closes these files at once, and a holder unlocks its file before closing it.
"""

from __future__ import annotations

import os
import threading

from hudi_fast.errors import UnsupportedFeatureError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["LockableFile", "check_locks", "has_locks"]

_open: set[LockableFile] = set()
_guard = threading.RLock()
"""Held during ``fork``, so that the child knows all open files. Reentrant for signal handlers."""


def has_locks() -> bool:
    """Whether this system can lock files."""
    return fcntl is not None


def check_locks() -> None:
    """Raise UnsupportedFeatureError on a system that cannot lock files."""
    if fcntl is None:
        raise UnsupportedFeatureError(
            "Writing local tables needs file locks of POSIX (Python's module fcntl), which this system does not have. "
            "Reading works. Write on Linux or macOS, in WSL for example, or to an object store."
        )


class LockableFile:
    """An open file, or folder, that can be locked until it is closed. It is closed in a child of ``fork``.

    Args:
        path: of the file.
        flags: of :func:`os.open`.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str, flags: int) -> None:
        with _guard:
            self.descriptor = os.open(path, flags, 0o666)
            _open.add(self)

    def lock(self, *, wait: bool = False, shared: bool = False) -> None:
        """Lock the file.

        Args:
            wait: wait for other holders.
            shared: other holders may hold the lock, too, if they also share it.

        Raises:
            BlockingIOError: another holder has the lock.
            UnsupportedFeatureError: this system cannot lock files.
        """
        check_locks()
        fcntl.flock(self.descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))

    def close(self) -> None:
        """Unlock and close the file. Does nothing in a child of ``fork`` for a file of its parent."""
        with _guard:
            if self in _open:
                _open.remove(self)
                try:
                    if fcntl is not None:
                        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                finally:
                    os.close(self.descriptor)


def _close_in_child() -> None:
    for file in _open:
        os.close(file.descriptor)  # without unlocking it: the lock is the parent's
        file.descriptor = -1
    _open.clear()
    _guard.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_close_in_child)
