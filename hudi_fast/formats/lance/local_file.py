"""Provide files of a table on the local disk, where pylance reads and writes them.

Files of a local table need no copy, unless their path has control characters, which pylance refuses. Other files are
copied: before they are read, and after they are written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile

from hudi_fast.storage.base import Storage

__all__ = ["LocalInput", "LocalOutput"]

_COPY_BYTES = 4 << 20
"""Bytes copied at a time."""

_SUFFIX = ".lance"


class LocalInput:
    """A file to read.

    Args:
        storage: storage of the file.
        path: path of the file in the storage.
        size: size of the file in bytes, if known; saves a request to an object store.

    Attributes:
        path: the local file.
    """

    def __init__(self, storage: Storage, path: str, size: int | None = None) -> None:
        self._copy: str | None = None
        place = _place(storage, path)
        if place is not None:
            self.path = place
            return
        self._copy = self.path = _temporary()
        try:
            with storage.open_input(path, size) as source, open(self.path, "wb") as target:
                while content := storage.reread(path, lambda: source.read(_COPY_BYTES)):
                    target.write(content)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Delete the copy, if there is one."""
        copy, self._copy = self._copy, None
        _delete(copy)

    def __del__(self) -> None:
        self.close()


class LocalOutput:
    """A file to write; its folder is created if needed.

    Args:
        storage: the table's storage.
        path: the file's path there.

    Attributes:
        path: the local file.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._target = path
        self._copy: str | None = None
        place = _place(storage, path)
        if place is None:
            self._copy = self.path = _temporary()
        else:
            self.path = place
            os.makedirs(os.path.dirname(place), exist_ok=True)

    def finish(self) -> int:
        """Put the written file into the table; return its length in bytes."""
        size = os.path.getsize(self.path)
        if self._copy is not None:
            with open(self.path, "rb") as source, self._storage.open_output(self._target) as target:
                while content := source.read(_COPY_BYTES):
                    target.write(content)
            _delete(self._copy)
        return size

    def discard(self) -> None:
        """Delete the written file."""
        _delete(self._copy)
        self._storage.delete_file(self._target)


def _place(storage: Storage, path: str) -> str | None:
    """The local path of the file itself; None if pylance cannot open it there."""
    if not storage.is_local:
        return None
    place = storage.fs_path(path)
    return place if place.isprintable() else None


def _temporary() -> str:
    handle, name = tempfile.mkstemp(prefix="hudi_fast-", suffix=_SUFFIX)
    os.close(handle)
    return name


def _delete(path: str | None) -> None:
    if path is not None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
