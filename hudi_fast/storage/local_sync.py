"""Local files that survive a loss of power: what was written is put on the disk before a commit becomes visible.

::

    write files ─► noted when they are closed ─► sync: contents, in parallel ─► names of their folders
        ─► the completed file: its content, its name ─► the commit is acknowledged

An operating system keeps written content in memory for half a minute, and the name of a file may be on the disk long
before its content. One call to :func:`sync` for all files of a commit costs a few writes of the disk's journal; one for
each file would cost that many times as much.

Processes that do not commit, such as Spark's tasks, call :func:`sync` when they have written their files.
"""

from __future__ import annotations

import contextlib
import os

import pyarrow as pa

from hudi_fast.storage.forks import new_lock
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["NotedFile", "note", "sync", "to_disk"]

_THREADS = 16
"""A file system writes the journal once for files that wait together."""

_noted: set[str] = set()
_lock = new_lock()


def note(name: str) -> None:
    """Remember that a file was written; :func:`sync` puts it on the disk."""
    with _lock:
        _noted.add(name)


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
        super().close()
        if is_open:
            note(self._name)
