"""Swap two local folders.

Linux and macOS swap atomically (``renameat2`` with ``RENAME_EXCHANGE``, ``renamex_np`` with ``RENAME_SWAP``). Other
systems and file systems need three renames, during which the first folder is missing for a moment.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

__all__ = ["exchange_by_renames", "exchange_folders"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_RENAME_SWAP = 2
_CANNOT = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


def exchange_folders(first: str, second: str) -> None:
    """Swap two folders of one file system.

    Raises:
        OSError: the swap failed; both folders are unchanged.
    """
    if not _exchange_at_once(os.fsencode(first), os.fsencode(second)):
        exchange_by_renames(first, second)


def exchange_by_renames(first: str, second: str) -> None:
    """Swap two folders in three renames, for systems without an atomic call.

    Raises:
        OSError: the swap failed; both folders are unchanged.
    """
    aside = f"{second}.aside"
    os.rename(first, aside)
    try:
        os.rename(second, first)
    except OSError:
        os.rename(aside, first)
        raise
    os.rename(aside, second)


def _exchange_at_once(first: bytes, second: bytes) -> bool:
    """Swap atomically; False if this system or file system has no such call."""
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        code = library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        code = library.renamex_np(first, second, _RENAME_SWAP)
    else:
        return False
    if code == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), os.fsdecode(first), None, os.fsdecode(second))
