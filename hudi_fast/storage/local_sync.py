"""Local files that survive a loss of power: what was written is put on the disk before a commit becomes visible.

::

    write files ─► closed: noted, and the disk begins to write the large ones ─► sync: contents, in parallel
        ─► names of their folders ─► the completed file: its content, its name ─► the commit is acknowledged

An operating system keeps written content in memory for half a minute, and the name of a file may be on the disk long
before its content. One call to :func:`sync` for all files of a commit costs a few writes of the disk's journal; one for
each file would cost that many times as much. The content of a large file is on its way by then: Linux is asked to begin
when the file is closed (``sync_file_range``), and goes on while others are made.

Processes that do not commit, such as Spark's tasks, call :func:`sync` when they have written their files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable
from typing import cast

import pyarrow as pa

from hudi_fast.storage.forks import new_lock
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["NotedFile", "begin", "note", "sync", "to_disk"]

_THREADS = 16
"""A file system writes the journal once for files that wait together."""

_LARGE = 1 << 20
"""Bytes of a file from which on its content is on its way when it is closed; smaller ones would cost a request each."""

_BEGIN_WRITING = 2
"""``SYNC_FILE_RANGE_WRITE``"""

_noted: set[str] = set()
_lock = new_lock()


def note(name: str) -> None:
    """Remember that a file was written; :func:`sync` puts it on the disk."""
    with _lock:
        _noted.add(name)


def begin(descriptor: int) -> None:
    """Let the disk begin to write a file's content, without waiting; nothing where the system cannot.

    It promises nothing: :func:`sync` waits for the content, and tells of its errors.
    """
    if _sync_file_range is not None:
        _sync_file_range(descriptor, 0, 0, _BEGIN_WRITING)


def _of_system() -> Callable[[int, int, int, int], int] | None:
    """``sync_file_range`` of the C library; None if it has none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found = ctypes.CDLL(None).sync_file_range
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast("Callable[[int, int, int, int], int]", found)


_sync_file_range = _of_system()


def sync(root: str) -> None:
    """Put the noted files below ``root`` on the disk, and the names of the folders down to them.

    Raises:
        OSError: the disk did not take a file; all are noted again.
    """
    below = root.rstrip("/") + "/"
    with _lock:
        names = [name for name in _noted if name.startswith(below)]
        _noted.difference_update(names)
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
    """Wait until a file's content, or the names in a folder, are on the disk; nothing for one that was deleted."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _folder_to_disk(name: str) -> None:
    with contextlib.suppress(PermissionError):  # above the table: it may not be listed, and is not new
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
