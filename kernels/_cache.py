"""Folders for machine code that is compiled on this machine, and locks on their files.

Roots, in order: ``NUMBA_CACHE_DIR``; ``XDG_CACHE_HOME`` or ``~/.cache``; a folder in the temporary folder that only
this user can write. Each has a folder ``hudi_fast-kernels``. The first root that already holds a folder for a key, or
in which one can be created, is used: a prepared read-only cache works. The folders hold code, so a folder is not used
if its group or everybody may write to it. With ``NUMBA_CACHE_DIR``, which a team may share, the group may write. The
owner must be this user, root, or the owner of the folder that ``NUMBA_CACHE_DIR`` names.

Importing this module imports neither numpy nor numba.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["alone", "folder_for", "places"]

_log = logging.getLogger(__name__)

_POLL = 0.02
"""Seconds between two attempts to get a lock."""


def folder_for(key: str) -> Path | None:
    """The existing folder of a key; None if no root is usable."""
    for folder in places(key):
        with contextlib.suppress(OSError):
            if not folder.is_dir():
                folder.parent.parent.mkdir(parents=True, exist_ok=True)
                for each in (folder.parent, folder):
                    each.mkdir(mode=0o700, exist_ok=True)
            return folder
    return None


def places(key: str) -> list[Path]:
    """Possible folders of a key, in the order of the roots."""
    found = []
    if configured := os.environ.get("NUMBA_CACHE_DIR"):
        found.append(_place(Path(configured), key, stat.S_IWOTH, _owners(Path(configured))))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not home.startswith("~"):
        found.append(_place(Path(home), key, stat.S_IWOTH | stat.S_IWGRP, _owners(None)))
    private = Path(tempfile.gettempdir()) / f"hudi_fast-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    if _is_private(private):
        found.append(_place(private, key, stat.S_IWOTH | stat.S_IWGRP, _owners(None)))
    return [folder for folder in found if folder is not None]


def _place(root: Path, key: str, writers: int, owners: frozenset[int]) -> Path | None:
    """The folder of a key below a root; None if it exists and other users could have put code there."""
    folder = root / "hudi_fast-kernels"
    for each in (folder, folder / key):
        try:
            status = each.lstat()
        except OSError:  # the folder does not exist
            break
        if not stat.S_ISDIR(status.st_mode) or (owners and (status.st_mode & writers or status.st_uid not in owners)):
            _log.warning("the cache of kernels in %s is not used: others may write there, or own it", each)
            return None
    return folder / key


def _owners(shared: Path | None) -> frozenset[int]:
    """Ids of the users that may own the folders of a cache; empty if the system has no user ids."""
    if not hasattr(os, "getuid"):
        return frozenset()
    found = {0, os.getuid()}
    if shared is not None:
        with contextlib.suppress(OSError):
            found.add(shared.stat().st_uid)
    return frozenset(found)


@contextlib.contextmanager
def alone(path: Path, longest: float) -> Iterator[None]:
    """Hold a lock file; goes on without it if the folder is read-only, files cannot be locked, or a holder is stuck.

    Args:
        path: the lock file; created if it does not exist.
        longest: seconds to wait for another process.
    """
    try:
        import fcntl

        file = open(path, "ab")  # closed below
    except (ImportError, OSError):
        yield
        return
    with file:
        until = time.monotonic() + longest
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_POLL)
            except OSError:
                break
            else:
                break
        yield


def _is_private(folder: Path) -> bool:
    """Create ``folder``, which holds code, for this user alone; False if another user owns it or can write to it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
