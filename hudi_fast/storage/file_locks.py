"""Advisory locks on open files of this machine, which the operating system releases when their holder ends.

Only POSIX systems have them (``flock``). Elsewhere, so on Windows, local tables can be read but not written: without
these locks two writers of one machine would overwrite each other.
"""

from __future__ import annotations

from hudi_fast.errors import UnsupportedFeatureError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_locks", "has_locks", "lock_file"]


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


def lock_file(descriptor: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file until it is closed.

    Args:
        descriptor: of the file, or of a folder.
        wait: wait for other holders.
        shared: let others hold the lock, too, if theirs are shared.

    Raises:
        BlockingIOError: another holder has the lock.
        UnsupportedFeatureError: this system cannot lock files.
    """
    check_locks()
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
