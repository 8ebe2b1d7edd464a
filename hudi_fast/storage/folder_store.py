"""Writes to file systems that have folders: local disk, HDFS, and file systems of fsspec.

Unlike object stores they create a file under its final name before it has its content. So content is written to a
temporary name beside the file and then put in place whole: exclusively, or over an existing file.

::

    create     temporary file ─► in place, if nothing is there         timeline, markers, properties
    replace    temporary file ─► in place, over an existing file       files that change
    open_output                  the final name at once                data files, which a marker announces
    sync       all of them on the disk                                 before a commit becomes visible

Names are full names, which begin with :attr:`hudi_fast.storage.places.Place.root`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

__all__ = ["FolderStore", "temporary_beside"]


class FolderStore(Protocol):
    """Files and folders by their full names. Thread-safe; not picklable.

    Attributes:
        sets_times: whether :meth:`set_modified` is supported.
    """

    sets_times: bool

    def check_writable(self, root: str) -> None:
        """Check that tables can be written below ``root``.

        Raises:
            ConfigError: the file system cannot create files exclusively, and no option declares a single writer.
            UnsupportedFeatureError: the file system cannot put a file in place whole.
        """
        ...

    def create(self, name: str, data: bytes, durable: bool = False) -> None:
        """Create a file with all its content, and missing folders above it.

        Args:
            name: of the file.
            data: its content.
            durable: whether the file must survive a loss of power of this machine once the call returns. File systems
                on other machines decide this themselves.

        Raises:
            FileExistsError: the file exists; it is unchanged.
            PermissionError: the file was not created.
            OSError: the outcome is unknown.
        """
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Create or replace a file, and create missing folders above it; readers see the old or the new content.

        Raises:
            OSError: the outcome is unknown.
        """
        ...

    def open_output(self, name: str) -> pa.NativeFile:
        """A stream into a new file, or over an existing one; creates missing folders above it."""
        ...

    def sync(self, root: str, others: Sequence[str] = ()) -> None:
        """Write to disk what this process has written below a folder; does nothing for file systems on other machines.

        Args:
            root: the folder.
            others: files below it that other processes may have written, written to disk as well.

        Raises:
            OSError: writing to disk failed.
        """
        ...

    def make_folder(self, name: str) -> None:
        """Create a folder and its parents; idempotent."""
        ...

    def delete_file(self, name: str, durable: bool = False) -> bool:
        """Delete a file; False if it did not exist.

        Args:
            name: of the file.
            durable: whether no loss of power of this machine brings it back once the call returns.
        """
        ...

    def delete_folder(self, name: str) -> bool:
        """Delete a folder and its content; False if it did not exist."""
        ...

    def move(self, source: str, target: str) -> None:
        """Rename a file or folder; replaces a file at the target. The folder of the target exists."""
        ...

    def set_modified(self, name: str, modified_ms: int) -> None:
        """Set the modification time of a file, in milliseconds since the epoch.

        Raises:
            UnsupportedFeatureError: the file system sets its own times.
        """
        ...


def temporary_beside(name: str) -> str:
    """A new name beside a file, for content that will be put in its place."""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}.{last}.{uuid.uuid4().hex}.tmp"
