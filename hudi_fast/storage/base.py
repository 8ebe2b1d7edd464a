"""The storage boundary: all access to a table's files uses :class:`Storage`.

A storage has the table's base path as its root. All paths are relative to it, use ``/``, and never start with one. Code
above this folder does not depend on whether the root is a folder or an object store.

Creating a file that must not exist yet is a separate operation (:meth:`Storage.create_exclusive`). The timeline
requires it, and object stores implement it with a conditional request.

::

                        folders (local, HDFS, fsspec)   object store
    create_exclusive    temporary file, put in place    a conditional request; an unknown outcome is resolved
    write_bytes         temporary file, then rename     one request
    make_dir            a folder                        an empty object ``<folder>/``, as Hadoop creates it; other
                                                        folders exist while they contain objects
    delete_files        one file after the other        as many objects in one request as the store accepts
    delete_dir          a folder                        all objects below it
    move, set_modified  yes                             unsupported
    exchange            local disk only                 unsupported
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.storage.conditional import ConditionalStore, ExpiredCredentialsError, expired_text, has_expired
from hudi_fast.storage.failures import explained_error
from hudi_fast.storage.file_locks import check_locks
from hudi_fast.storage.local_store import (
    LocalConditionalStore,
    LocalStore,
    check_entries,
    exchange_folders,
    link_file,
    local_entries,
)
from hudi_fast.storage.option_names import StorageOptions, connection_options
from hudi_fast.storage.places import normal_uri, open_place, scheme_of
from hudi_fast.storage.servers import RenewedFiles
from hudi_fast.storage.stores import (
    FolderStore,
    ObjectStore,
    RootedStore,
    by_folder,
    create_confirmed,
    temporary_beside,
    with_retries,
)
from hudi_fast.storage.untrusted import fault_of
from hudi_fast.values import dataclass

__all__ = ["DELETED_AT_ONCE", "FileStat", "Storage"]

DELETED_AT_ONCE = 1000
"""Files of one call to an object store's ``delete``; S3 deletes as many in one request."""

_READ_WHOLE = 1 << 20
"""Maximum bytes of a file that is read whole."""

_BAD_REQUEST = "HTTP status 400"
"""Text in messages of pyarrow."""

_HIDDEN_REFUSAL = "Failed to flush response stream"
"""Text in messages of pyarrow 26, for a refusal whose text is longer than the range to read."""

_REREADS = 12

_MAX_NAME = 255
"""Maximum bytes of one path part on local file systems."""

_MAX_SHOWN = 200

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FileStat:
    """One entry of a folder.

    Attributes:
        path: relative to the table's base path.
        size: bytes; 0 for a folder.
        modified_ms: milliseconds since the epoch; 0 if unknown.
        is_dir: whether it is a folder.
    """

    path: str
    size: int
    modified_ms: int
    is_dir: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class Storage:
    """Files below one base path, in a file system or an object store: see :mod:`hudi_fast.storage.places`.

    Picklable: workers reopen the same root. Thread-safe.

    Args:
        uri: a local path or a URI (``file:///...``, ``s3://bucket/folder``).
        options: connection options, including credentials; none for local paths. Settings of Parquet's encryption are
            allowed everywhere (:mod:`hudi_fast.formats.parquet.encryption`). Messages and representations omit values.
        root: actual root of the files, as the file system names it, if it differs from ``uri``: see :meth:`rooted_at`.
    """

    def __init__(
        self, uri: str | os.PathLike[str], options: Mapping[str, Any] | None = None, root: str | None = None
    ) -> None:
        if not isinstance(uri, str | os.PathLike) or not os.fspath(uri):
            raise ConfigError(f"A path must be a non-empty text or a pathlib.Path; got {uri!r}.")
        self.uri = normal_uri(os.fspath(uri))
        self.options = StorageOptions(options)
        place = open_place(self.uri, connection_options(self.options))
        self._files, self._store, self._folders = place.fs, place.store, place.folders
        self._root = place.root if root is None else root
        self._syncs = True

    def __reduce__(self) -> tuple[Any, ...]:
        opened = type(self), (self.uri, self.options, self._root)
        return opened if self._syncs else (_without_sync, (opened,))

    def without_sync(self) -> Self:
        """The same storage; the operating system decides when local files are written to disk.

        A loss of power may lose writes that were acknowledged in the last half minute.
        """
        twin = self.rooted_at(self._root)
        if isinstance(self._folders, LocalStore):
            twin._syncs, twin._folders = False, self._folders.without_sync()
        return twin

    def rooted_at(self, root: str) -> Self:
        """The same storage with its files under another root; messages and metadata keep the table's own path.

        For a table that is written next to the table that it will replace, and for many files of one folder: the path
        of the folder is checked once.
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._root = root
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    @property
    def fs(self) -> pafs.FileSystem:
        """Reads and lists files. Ask for it again after some minutes: its keys may expire."""
        return self._files() if isinstance(self._files, RenewedFiles) else self._files

    @property
    def is_local(self) -> bool:
        """Whether the root is a local folder."""
        return isinstance(self._files, pafs.LocalFileSystem)

    @property
    def has_folders(self) -> bool:
        """Whether folders exist for themselves; in object stores they exist while they contain objects."""
        return self._folders is not None

    @property
    def sets_times(self) -> bool:
        """Whether :meth:`set_modified` is supported."""
        return self._folders is not None and self._folders.sets_times

    def fs_path(self, path: str) -> str:
        """``path`` in the form of :attr:`fs`.

        Every access calls this method. Paths come from tables, and tables are untrusted: this rejects all paths that
        leave the table, even if a caller does not check.

        Raises:
            CorruptTableError: the path leaves the base path, is invalid, or contains a symbolic link.
        """
        if ".." in path or "\0" in path or path[:1] == "/" or len(path) > _MAX_NAME or not path.isascii():
            self._require_inside(path)
        if not path:
            return self._root
        if self.is_local:
            check_entries(self._root, path)
        return f"{self._root}/{path}"

    def absolute(self, path: str) -> str:
        """``path`` below the base path as the user gave it: the form in plans and metadata on the timeline.

        Raises:
            CorruptTableError: as :meth:`fs_path`.
        """
        if ".." in path or "\0" in path or path[:1] == "/":
            self._require_inside(path)
        return f"{self.uri}/{path}" if path else self.uri

    def conditional(self) -> ConditionalStore:
        """Conditional writes below the same base path; local ones exclude only writers that use this class.

        Raises:
            UnsupportedFeatureError: HDFS and file systems of fsspec have none.
            ConfigError: the client library of the store is not installed.
        """
        if self.is_local:
            return LocalConditionalStore(self._root)
        if self._folders is not None:
            raise UnsupportedFeatureError(
                f"{self.uri}: {scheme_of(self.uri)}:// cannot replace a file on the condition that it is unchanged. "
                "Locks in storage need an object store or a local folder; use "
                "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider or ZooKeeper."
            )
        return RootedStore(self._objects(), self._root)

    def check_writable(self) -> None:
        """Check that the storage can create files exclusively, which writes require.

        Raises:
            ConfigError: it cannot, and no option declares a single writer; or its client is not installed.
            UnsupportedFeatureError: it cannot.
        """
        if self.is_local:
            check_locks()
        elif self._folders is not None:
            self._folders.check_writable(self._root)
        else:
            self._objects()

    # ---- reading

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file; ``FileNotFoundError`` if it does not exist."""
        if self._store is not None:
            with contextlib.suppress(ConfigError):  # without the store's own client, pyarrow needs one more request
                return self._read_object(self._store, path)
        if self.is_local:
            with open(self.fs_path(path), "rb", buffering=0) as file:
                return file.readall()
        with self._explained(path), self.fs.open_input_file(self.fs_path(path)) as source:
            return bytes(source.read())

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:
        """Open a file for random access; ``FileNotFoundError`` if it does not exist.

        Small files in an object store are read whole, because every access would be a request.

        Args:
            path: the file.
            size: its bytes, if known: a small file then takes one request instead of two.
        """
        if self._store is not None and size and size <= _READ_WHOLE:
            return pa.BufferReader(self.read_bytes(path))
        with self._explained(path):
            source = self.fs.open_input_file(self.fs_path(path))
            if self.is_local or source.size() > _READ_WHOLE:
                return source
            with source:
                if self._store is None:
                    return pa.BufferReader(source.read())
        return pa.BufferReader(self.read_bytes(path))

    def reread(self, path: str, read: Callable[[], Result]) -> Result:
        """Read from a stream of :meth:`open_input`; repeat the read if :mod:`pyarrow.fs` gives up too early.

        pyarrow retries reads that S3 refuses, unless they have fewer bytes than the text of the refusal.

        Args:
            path: the file.
            read: reads a range.

        Raises:
            ExpiredCredentialsError: the credentials have expired.
            OSError: the read failed.
        """
        if self.is_local:
            return read()
        for _ in range(_REREADS):
            try:
                with self._explained(path):
                    return read()
            except OSError as error:
                if _HIDDEN_REFUSAL not in str(error):
                    raise
                self.has_file(path)  # waits while the store asks to slow down, and reports expired credentials
        return read()

    def stat(self, path: str) -> FileStat | None:
        """The entry at ``path``; None if nothing exists there."""
        with self._explained(path):
            info = self.fs.get_file_info(self.fs_path(path))
        return None if info.type == pafs.FileType.NotFound else self._stat_of(info)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder at ``path``."""
        return self.stat(path) is not None

    def has_file(self, path: str) -> bool:
        """Whether ``path`` is a file and not a folder; takes one request, :meth:`exists` takes two."""
        store, name = self._store, self.fs_path(path)
        if store is None:
            return self.exists(path)
        return with_retries(lambda: store.mark_of(name)) is not None

    def has_dir(self, path: str) -> bool:
        """Whether the folder that :meth:`make_dir` created is there; one request.

        In a store that keeps a folder as an object, files below it do not count: they do not restore a folder that
        :meth:`hide_dir` has deleted.
        """
        store, name = self._store, self.fs_path(path)
        if store is None:
            return self.exists(path)
        return with_retries(lambda: store.has_folder(name))

    def list_dir(self, path: str, recursive: bool = False) -> list[FileStat]:
        """Entries of a folder, sorted by path; empty if the folder does not exist."""
        store, folder = self._store, self.fs_path(path)
        listed = None if store is None else with_retries(lambda: store.listed(folder, recursive))
        if listed is not None:
            named = (FileStat(one.name[len(self._root) + 1 :], one.size, one.modified_ms, one.is_dir) for one in listed)
            return sorted(named, key=lambda entry: entry.path)
        if self.is_local:
            return sorted(
                (FileStat(*one) for one in local_entries(self._root, path, recursive)), key=lambda entry: entry.path
            )
        selector = pafs.FileSelector(folder, allow_not_found=True, recursive=recursive)
        with self._explained(path):
            try:
                found = self.fs.get_file_info(selector)
            except FileNotFoundError:  # Arrow raises it for a folder that is made while it looks
                found = self.fs.get_file_info(selector)
        return sorted((self._stat_of(info) for info in found), key=lambda entry: entry.path)

    # ---- writing

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create or replace a file; readers see the old or the new content, never a part."""
        target = self.fs_path(path)
        if self._folders is not None:
            self._folders.replace(target, data)
            return
        store = self._objects()
        with_retries(lambda: store.put(target, data))

    def create_exclusive(
        self, path: str, data: bytes, still_allowed: Callable[[], object] = lambda: None, durable: bool = False
    ) -> None:
        """Create a file with all its content, or raise ``FileExistsError`` and keep the existing one.

        Args:
            path: the file.
            data: its content.
            still_allowed: called before each retry after an object store has asked to slow down, because retries may
                take longer than the lock is known to be held; raises an error to end the attempts.
            durable: whether the file must survive a loss of power once the call returns. Object stores keep every file
                that they have acknowledged.

        Raises:
            FileExistsError: the file exists.
            PermissionError: the file was not created.
            ThrottledError: the file was not created.
            OSError: the file was not created, or, except on local disk, the outcome is unknown.
        """
        target = self.fs_path(path)
        if self._folders is not None:
            self._folders.create(target, data, durable)
        elif not create_confirmed(self._objects(), target, data, still_allowed):
            raise FileExistsError(f"{self.absolute(path)} already exists.")

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream into a new file, or over an existing one; its folder is created if needed.

        In an object store the file appears on close.
        """
        name = self.fs_path(path)
        if self._folders is not None:
            return self._folders.open_output(name)
        stream = self._objects().stream(name)
        if stream is not None:
            return pa.PythonFile(stream, mode="w")
        with self._explained(path):
            return self.fs.open_output_stream(name)

    @contextlib.contextmanager
    def replacing(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream whose content becomes the file when the block ends; readers see the old or the new content.

        After an error in the block the file is as before, and undefined in an object store.
        """
        if self._folders is None:
            with self.open_output(path) as sink:
                yield sink
            return
        temporary = temporary_beside(path)
        try:
            with self.open_output(temporary) as sink:
                yield sink
            self.move(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self.delete_file(temporary)
            raise

    def sync(self, others: Iterable[str] = ()) -> None:
        """Write all that this process has written here, and ``others``, to disk, so that it survives a loss of power.

        Call it before files that refer to the written files become visible, and before the files that they replace are
        deleted. Costs nothing if nothing was written since the last call.

        Raises:
            OSError: writing to disk failed.
        """
        if self._folders is not None:
            self._folders.sync(self._root, [self.fs_path(path) for path in others])

    def make_dir(self, path: str) -> None:
        """Create a folder and its parents; idempotent."""
        if self._folders is not None:
            self._folders.make_folder(self.fs_path(path))
        else:
            store, name = self._objects(), f"{self.fs_path(path)}/"
            if name.count("/") > 1:  # a bucket is not an object
                with_retries(lambda: store.put(name, b""))

    def delete_file(self, path: str, durable: bool = False) -> bool:
        """Delete a file; False if it did not exist. An object store needs another request to find out.

        ``durable``: once the call returns, no loss of power brings the file back while files deleted later are gone.
        """
        if self._folders is not None:
            return self._folders.delete_file(self.fs_path(path), durable)
        store, name = self._objects(), self.fs_path(path)
        found = with_retries(lambda: store.mark_of(name)) is not None
        if found:
            with_retries(lambda: store.delete([name]))
        return found

    def delete_files(self, paths: Sequence[str], durable: bool = False) -> None:
        """Delete files in as few requests as possible; missing ones are ignored.

        Earlier writes, such as replacements, are on disk first. If ``durable``, no loss of power brings the files back.

        Raises:
            OSError: some of the files may be left.
        """
        if self._folders is not None:
            if paths:
                self.sync()
            for folder, names in by_folder(paths).items():
                inner = self.rooted_at(self.fs_path(folder))  # checks the folder once
                for name in names:
                    inner.delete_file(name, durable and name == names[-1])
            return
        self._delete_objects([self.fs_path(path) for path in paths])

    def hide_dir(self, path: str) -> None:
        """Make :meth:`has_dir` return False before the content is deleted.

        Does nothing in file systems and on Azure, where a folder is not an object.
        """
        if self._folders is None:
            store, name = self._objects(), self.fs_path(path)
            with_retries(lambda: store.drop_folder(name))

    def delete_dir(self, path: str) -> bool:
        """Delete a folder and its content; False if it did not exist."""
        if self._folders is not None:
            return self._folders.delete_folder(self.fs_path(path))
        return self._delete_below(path)

    def move(self, source: str, target: str) -> None:
        """Rename a file or folder; replaces a file at the target.

        Raises:
            UnsupportedFeatureError: an object store, which cannot rename.
        """
        folders = self._required(f"{source} cannot be moved to {target}")
        moved, place = self.fs_path(source), self.fs_path(target)
        folder = target.rpartition("/")[0]
        if folder != source.rpartition("/")[0]:
            folders.make_folder(self.fs_path(folder))
        folders.move(moved, place)

    def copy_file(self, path: str, target: str, other: Storage | None = None) -> None:
        """Create or replace ``target`` with the content of a file; its folder exists.

        Locally both names share the content, so neither may be changed in place: ``write_bytes`` replaces it.

        Args:
            path: the file.
            target: the path of the copy.
            other: storage of the copy, :meth:`rooted_at` another folder of this one; None for this one itself.
        """
        other = other or self
        if not self.is_local or not link_file(self.fs_path(path), other.fs_path(target)):
            other.write_bytes(target, self.read_bytes(path))

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file (milliseconds since the epoch).

        Timelines up to table version 6 store completion times only in this form.

        Raises:
            UnsupportedFeatureError: the storage sets its own times.
        """
        self._required(f"The time of {path} cannot be set").set_modified(self.fs_path(path), modified_ms)

    def exchange(self, other: Storage) -> None:
        """Swap the root folders of two local storages, atomically if the operating system can.

        Raises:
            UnsupportedFeatureError: any other storage.
        """
        self._required("Two folders cannot be swapped")
        if not self.is_local:
            raise UnsupportedFeatureError(f"Two folders cannot be swapped: {self.uri} is not a local folder.")
        other.sync()
        exchange_folders(*(os.path.realpath(one._root) for one in (self, other)))  # not a link to the folder

    # ---- internals

    def _objects(self) -> ObjectStore:
        assert self._store is not None, "every place has one or the other"
        return self._store

    def _require_inside(self, path: str) -> None:
        fault = fault_of(path)
        if fault is None and self.is_local:
            long = any(len(part.encode(errors="replace")) > _MAX_NAME for part in path.split("/"))
            fault = f"has a part of more than {_MAX_NAME} bytes" if long else None
        if fault is not None:
            shown = repr(path if len(path) <= _MAX_SHOWN else path[:_MAX_SHOWN] + "...")
            raise CorruptTableError(
                f"The table {self.uri} names a file {shown}, whose path {fault}. No valid table has such a file, and "
                "nothing was done with it; restore the file that names it, or delete it."
            )

    @contextlib.contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Report expired credentials where :mod:`pyarrow.fs` hides them in a text, or does not recognise them.

        Responses to HEAD requests have no content that explains a refusal, so the store sends another request.
        """
        try:
            yield
        except OSError as error:
            if has_expired(error):
                raise ExpiredCredentialsError(expired_text(f"Access to {self.absolute(path)}")) from error
            if self._store is not None and _BAD_REQUEST in str(error):
                self._store.mark_of(self.fs_path(path))
            explained = None if self._folders is not None else explained_error(error, self.absolute(path))
            if explained is not None:
                raise explained from error
            raise

    def _read_object(self, store: ObjectStore, path: str) -> bytes:
        found = with_retries(lambda: store.read(self.fs_path(path)))
        if found is None:
            raise FileNotFoundError(f"{self.absolute(path)} does not exist.")
        return found.data

    def _required(self, what: str) -> FolderStore:
        if self._folders is None:
            raise UnsupportedFeatureError(f"{what}: {self.uri} is an object store.")
        return self._folders

    def _delete_below(self, path: str) -> bool:
        """Delete objects first, then the objects of folders, the root's last."""
        top = self.fs_path(path)
        entries = self.list_dir(path, recursive=True)
        names = [self.fs_path(one.path) for one in entries if not one.is_dir]
        folders = [f"{self.fs_path(one.path)}/" for one in reversed(entries) if one.is_dir]
        if not entries and not self.exists(path):
            return False
        folders += [f"{top}/"] if "/" in top else []
        self._delete_objects([*names, *folders])
        return True

    def _delete_objects(self, names: Sequence[str]) -> None:
        store = self._objects()
        for start in range(0, len(names), DELETED_AT_ONCE):
            with_retries(partial(store.delete, names[start : start + DELETED_AT_ONCE]))

    def _stat_of(self, info: pafs.FileInfo) -> FileStat:
        is_dir = info.type == pafs.FileType.Directory
        relative = info.path[len(self._root) :].lstrip("/")
        modified = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
        return FileStat(relative, 0 if is_dir else int(info.size or 0), int(modified), is_dir)


def _without_sync(opened: tuple[type[Storage], tuple[Any, ...]]) -> Storage:
    kind, arguments = opened
    return kind(*arguments).without_sync()
