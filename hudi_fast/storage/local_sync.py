"""Local files that survive a loss of power: they are written to disk before a commit becomes visible.

::

    write files ─► closed: noted, and the disk begins to write the large ones ─► sync: contents, in parallel
        ─► names of their folders ─► the completed file: its content, its name ─► the commit is acknowledged

An operating system keeps written content in memory for half a minute, and the name of a file may be on disk long before
its content. One call to :func:`sync` for all files of a commit costs a few writes of the disk's journal; one call per
file would cost as much for each file. Large files are partly on disk by then: Linux begins to write their content when
they are closed (``sync_file_range``), while other files are being made.

Processes that do not commit, such as Spark's tasks, call :func:`sync` after they have written their files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from typing import cast

import pyarrow as pa

from hudi_fast.storage.forks import new_lock
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["NotedFile", "begin", "note", "sync", "to_disk"]

_THREADS = 16
"""A file system writes the journal once for files that wait together."""

_LARGE = 1 << 20
"""Minimum bytes of a file that starts being written to disk when it is closed; for smaller files a request costs too
much."""

_BEGIN_WRITING = 2
"""``SYNC_FILE_RANGE_WRITE``"""

_noted: set[str] = set()
_lock = new_lock()


def note(name: str) -> None:
    """Remember that a file was written; :func:`sync` writes it to disk."""
    with _lock:
        _noted.add(name)


def begin(descriptor: int) -> None:
    """Start writing a file's content to disk, without waiting; does nothing where the system cannot.

    It guarantees nothing: :func:`sync` waits for the content and reports errors.
    """
    if _sync_file_range is not None:
        _sync_file_range(descriptor, 0, 0, _BEGIN_WRITING)


def _of_system() -> Callable[[int, int, int, int], int] | None:
    """``sync_file_range`` of the C library; None if the library lacks it."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast("Callable[[int, int, int, int], int]", found)


_sync_file_range = _of_system()


def sync(root: str, others: Iterable[str] = ()) -> None:
    """Write to disk the noted files below ``root``, ``others`` there, and the names of the folders that contain them.

    Raises:
        OSError: a file could not be written to disk; all files are noted again.
    """
    below = root.rstrip("/") + "/"
    with _lock:
        names = {name for name in _noted if name.startswith(below)}
        _noted.difference_update(names)
    names.update(others)
    if not names:
        return
    folders = {os.path.dirname(root)}
    for name in names:
        folder = os.path.dirname(name)
        while len(folder) >= len(root) and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    try:
        with ThreadPool(min(_THREADS, len(names))) as pool:
            list(pool.map(to_disk, names))
            list(pool.map(_folder_to_disk, sorted(folders)))
    except OSError:
        with _lock:
            _noted.update(names)
        raise


def to_disk(name: str) -> None:
    """Wait until a file's content, or the names in a folder, are on disk; does nothing if it was deleted."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _folder_to_disk(name: str) -> None:
    with contextlib.suppress(PermissionError):  # a folder above the table, which may be unreadable, and is not new
        to_disk(name)


class NotedFile(pa.OSFile):  # type: ignore[misc]
    """A new local file that is noted when it is closed; see :meth:`create`."""

    _name = ""

    @classmethod
    def create(cls, name: str) -> NotedFile:
        """Open a new file, or an existing one without its content, for writing."""
        made = cls(name, "w")
        made._name = name
        return made

    def close(self) -> None:
        """Close the file."""
        is_open = not self.closed
        if is_open and self.tell() >= _LARGE:
            begin(self.fileno())
        super().close()
        if is_open:
            note(self._name)
