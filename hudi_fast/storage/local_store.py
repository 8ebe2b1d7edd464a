"""Writes to local folders: hard links create exclusively, renames replace."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.storage import local_sync
from hudi_fast.storage.failures import naming_file
from hudi_fast.storage.folder_store import temporary_beside
from hudi_fast.storage.thread_pool import ThreadPool

__all__ = ["LocalStore", "delete_folder", "link_file"]

_TRIES = 20

_DELETES_AT_ONCE = 16


class LocalStore:
    """A :class:`~hudi_fast.storage.folder_store.FolderStore` of the local file system.

    Args:
        files: the file system.
        syncs: whether files survive a loss of power as ``FolderStore`` specifies.
    """

    sets_times = True

    def __init__(self, files: pafs.LocalFileSystem, syncs: bool = True) -> None:
        self._files = files
        self._syncs = syncs

    def without_sync(self) -> LocalStore:
        """The same store; the operating system decides when files are written to disk."""
        return LocalStore(self._files, False)

    def check_writable(self, root: str) -> None:
        """See ``FolderStore``."""

    def create(self, name: str, data: bytes, durable: bool = False) -> None:
        """See ``FolderStore``."""
        waits, temporary = durable and self._syncs, self._write_temporary(name, data)
        try:
            if waits:
                local_sync.to_disk(temporary)
            os.link(temporary, name)
        finally:
            os.unlink(temporary)
        _drop_checksum_sidecar(name)
        if waits:
            local_sync.to_disk(os.path.dirname(name))
        elif self._syncs and data:  # an empty file, such as a marker, is of no use after a loss of power
            local_sync.note(name)

    def replace(self, name: str, data: bytes) -> None:
        """See ``FolderStore``."""
        temporary = self._write_temporary(name, data)
        if self._syncs and os.path.exists(name):  # only the old content is on disk
            local_sync.to_disk(temporary)
        os.replace(temporary, name)
        _drop_checksum_sidecar(name)
        if self._syncs:
            local_sync.note(name)

    def open_output(self, name: str) -> pa.NativeFile:
        """See ``FolderStore``."""
        self._make_parent(name)
        return local_sync.NotedFile.create(name) if self._syncs else self._files.open_output_stream(name)

    def sync(self, root: str, others: Sequence[str] = ()) -> None:
        """See ``FolderStore``."""
        if self._syncs:
            local_sync.sync(root, others)

    def make_folder(self, name: str) -> None:
        """See ``FolderStore``."""
        self._files.create_dir(name, recursive=True)

    def delete_file(self, name: str, durable: bool = False) -> bool:
        """See ``FolderStore``."""
        found = True
        try:
            os.unlink(name)
        except FileNotFoundError:
            found = False
        else:
            _drop_checksum_sidecar(name)
        if durable and self._syncs:
            local_sync.to_disk(os.path.dirname(name))
        return found

    def delete_folder(self, name: str) -> bool:
        """See ``FolderStore``. Folders in it are deleted at once, because ext4 waits milliseconds for each."""
        inner = _folders_in(name)
        while len(inner) == 1:
            inner = _folders_in(inner[0])
        if inner:
            with ThreadPool(min(len(inner), _DELETES_AT_ONCE), thread_name_prefix="hudi_fast") as pool:
                list(pool.map(lambda one: delete_folder(self._files, one), inner))
        return delete_folder(self._files, name)

    def move(self, source: str, target: str) -> None:
        """See ``FolderStore``."""
        if self._syncs and os.path.isfile(source):
            local_sync.to_disk(source)
        self._files.move(source, target)
        _drop_checksum_sidecar(target)

    def set_modified(self, name: str, modified_ms: int) -> None:
        """See ``FolderStore``."""
        os.utime(name, ns=(modified_ms * 1_000_000,) * 2)

    def _make_parent(self, name: str) -> None:
        self._files.create_dir(name.rpartition("/")[0], recursive=True)

    def _write_temporary(self, name: str, data: bytes) -> str:
        temporary = temporary_beside(name)
        try:
            try:
                sink = open(temporary, "xb")
            except FileNotFoundError:
                self._make_parent(name)
                sink = open(temporary, "xb")
            with naming_file(name), sink:
                sink.write(data)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary


def link_file(name: str, target: str) -> bool:
    """Give a file a second name, replacing a file there; False if the file system has no hard links.

    Raises:
        FileNotFoundError: the file or the folder of the target does not exist.
        OSError: the target cannot be replaced.
    """
    try:
        os.link(name, target)
    except FileExistsError:
        os.unlink(target)
        os.link(name, target)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV):
            return False
        raise
    _drop_checksum_sidecar(target)
    return True


def delete_folder(fs: pafs.FileSystem, path: str) -> bool:
    """Delete a folder and its content; False if it did not exist. ``path`` is its name in ``fs``.

    If another process adds a file between emptying and removing the folder, the next attempt deletes it too: index
    builds run without the table lock and notice only at their end that the index was dropped.

    Raises:
        OSError: the folder cannot be deleted, or other processes keep adding files.
    """
    tries = itertools.count(1)
    while True:
        try:
            fs.delete_dir(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or next(tries) == _TRIES:
                raise
        else:
            return True


def _folders_in(name: str) -> list[str]:
    """The folders in a folder, without links to folders; none if it is not a folder."""
    try:
        with os.scandir(name) as entries:
            return [f"{name}/{one.name}" for one in entries if one.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _drop_checksum_sidecar(name: str) -> None:
    """Delete Hadoop's checksum ``.<name>.crc`` of a file; Hadoop rejects files that do not match it."""
    folder, _, last = name.rpartition("/")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder}/.{last}.crc")
