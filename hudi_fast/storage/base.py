"""The storage boundary: everything that touches a table's files goes through :class:`Storage`.

A storage is rooted at one table's base path; every path it takes or gives is relative to that root, uses ``/``,
and never starts with one. Nothing above this folder knows whether the root is a local folder or an object store.

Creating a file that must not exist yet is an operation of its own (:meth:`Storage.create_exclusive`): the timeline
rests on it, and object stores need a conditional request for it.

::

                        this machine                    an object store
    create_exclusive    written beside, then linked     a conditional request; its outcome is found out
    write_bytes         written beside, then renamed    one request
    make_dir            a folder                        an empty object ``<folder>/``, as Hadoop makes it; a folder
                                                        is otherwise there as long as something is in it
    delete_dir          a folder                        all objects below it
    move, exchange,     yes                             refused: no store can
    set_modified
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.storage.conditional import ConditionalStore
from hudi_fast.storage.local_conditional import LocalConditionalStore
from hudi_fast.storage.local_exchange import exchange_folders
from hudi_fast.storage.local_folder import delete_folder
from hudi_fast.storage.object_store import ObjectStore, RootedStore, create_confirmed, patiently
from hudi_fast.storage.option_names import StorageOptions
from hudi_fast.storage.places import normal_uri, open_place, scheme_of

__all__ = ["FileStat", "Storage", "check_relative"]

_AT_ONCE = 1 << 20
"""Bytes."""

_LONGEST_NAME = 255
"""Bytes of one part of a path on local file systems."""

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class FileStat:
    """One entry of a folder.

    Attributes:
        path: relative to the table's base path.
        size: bytes; 0 for a folder.
        modified_ms: milliseconds since the epoch; 0 where the storage does not know.
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
    """Files below one base path, on this machine or in an object store: see :mod:`hudi_fast.storage.places`.

    Picklable: workers open the same root again. Thread-safe.

    Args:
        uri: a local path or a URI (``file:///...``, ``s3://bucket/folder``).
        options: how to reach it, credentials among them; none for local paths. No message or representation has them.
        root: where the files are, as the file system names it, if that is not what ``uri`` says: see :meth:`rooted_at`.
    """

    def __init__(
        self, uri: str | os.PathLike[str], options: Mapping[str, Any] | None = None, root: str | None = None
    ) -> None:
        if not isinstance(uri, str | os.PathLike) or not os.fspath(uri):
            raise ConfigError(f"A path is text or a pathlib.Path, and not empty; got {uri!r}.")
        self.uri = normal_uri(os.fspath(uri))
        self.options = StorageOptions(options)
        place = open_place(self.uri, self.options)
        self.fs, self._store = place.fs, place.store
        self._root = place.root if root is None else root

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.uri, self.options, self._root)

    def rooted_at(self, root: str) -> Self:
        """The same storage with its files elsewhere: messages and metadata name the table by its own path.

        For a table that is written beside the one that it will replace.
        """
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._root = root
        return twin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    @property
    def is_local(self) -> bool:
        """Whether the root is a folder of this machine."""
        return isinstance(self.fs, pafs.LocalFileSystem)

    def fs_path(self, path: str) -> str:
        """``path`` as :attr:`fs` wants it.

        Every access goes through here. Paths come out of tables, and a table is data: what would lead out of it is
        refused, whoever forgot to look.

        Raises:
            CorruptTableError: it leaves the base path, or is no path.
        """
        if ".." in path or "\0" in path or path[:1] == "/" or len(path) > _LONGEST_NAME:
            self._require_inside(path)
        return f"{self._root}/{path}" if path else self._root

    def absolute(self, path: str) -> str:
        """``path`` below the base path as the user gave it: the form that plans and metadata on the timeline carry.

        Raises:
            CorruptTableError: as :meth:`fs_path`.
        """
        if ".." in path or "\0" in path or path[:1] == "/":
            self._require_inside(path)
        return f"{self.uri}/{path}" if path else self.uri

    def conditional(self) -> ConditionalStore:
        """The conditional writes below the same base path; on this machine they exclude who goes through here alone.

        Raises:
            UnsupportedFeatureError: it has none; tables cannot be written there.
            ConfigError: the client of the store is not installed.
        """
        return LocalConditionalStore(self._root) if self.is_local else RootedStore(self._objects(), self._root)

    def check_writable(self) -> None:
        """Refuse to write where no file can be created on the condition that there is none yet.

        Raises:
            UnsupportedFeatureError: such a place.
        """
        if not self.is_local:
            self._objects()

    # ---- reading

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file; ``FileNotFoundError`` when there is none."""
        if self._store is not None:
            with contextlib.suppress(ConfigError):  # without the store's own client it takes a request more
                return self._read_object(self._store, path)
        with self.fs.open_input_file(self.fs_path(path)) as source:
            return bytes(source.read())

    def open_input(self, path: str) -> pa.NativeFile:
        """A file for random access; ``FileNotFoundError`` when there is none.

        A small one in an object store is read at once: there each of its parts would take a request.
        """
        source = self.fs.open_input_file(self.fs_path(path))
        if self.is_local or source.size() > _AT_ONCE:
            return source
        with source:
            return pa.BufferReader(source.read_buffer())

    def stat(self, path: str) -> FileStat | None:
        """What is at ``path``; None when nothing is."""
        info = self.fs.get_file_info(self.fs_path(path))
        return None if info.type == pafs.FileType.NotFound else self._stat_of(info)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder at ``path``."""
        return self.stat(path) is not None

    def list_dir(self, path: str, recursive: bool = False) -> list[FileStat]:
        """Entries of a folder, sorted by path; empty when there is no such folder."""
        store, folder = self._store, self.fs_path(path)
        listed = None if store is None else patiently(lambda: store.listed(folder, recursive))
        if listed is not None:
            named = (FileStat(one.name[len(self._root) + 1 :], one.size, one.modified_ms, one.is_dir) for one in listed)
            return sorted(named, key=lambda entry: entry.path)
        selector = pafs.FileSelector(self.fs_path(path), allow_not_found=True, recursive=recursive)
        return sorted((self._stat_of(info) for info in self.fs.get_file_info(selector)), key=lambda entry: entry.path)

    # ---- writing

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create or replace a file; readers see the old content or the new, never a part."""
        target = self.fs_path(path)
        if not self.is_local:
            store = self._objects()
            patiently(lambda: store.put(target, data))
            return
        self._make_parent(path)
        temporary = self._write_temporary(target, data)
        os.replace(temporary, target)
        self._drop_checksum_sidecar(target)

    def create_exclusive(self, path: str, data: bytes) -> None:
        """Create a file with all its content, or raise ``FileExistsError`` and leave the existing one alone.

        Raises:
            FileExistsError: there is one.
            OSError: it was not created, or, in an object store, nobody knows.
        """
        target = self.fs_path(path)
        if not self.is_local:
            if not create_confirmed(self._objects(), target, data):
                raise FileExistsError(f"{self.absolute(path)} is there already.")
            return
        self._make_parent(path)
        temporary = self._write_temporary(target, data)
        try:
            os.link(temporary, target)
        finally:
            os.unlink(temporary)
        self._drop_checksum_sidecar(target)

    def open_output(self, path: str) -> pa.NativeFile:
        """A stream into a new file (or over an old one); its folder is made if needed.

        In an object store the file appears when the stream is closed.
        """
        self.check_writable()
        name = self.fs_path(path)
        self._make_parent(path)
        return self.fs.open_output_stream(name)

    def make_dir(self, path: str) -> None:
        """Make a folder and its parents; fine if it is there."""
        if self.is_local:
            self.fs.create_dir(self.fs_path(path), recursive=True)
        else:
            store, name = self._objects(), f"{self.fs_path(path)}/"
            if name.count("/") > 1:  # a bucket is no object
                patiently(lambda: store.put(name, b""))

    def delete_file(self, path: str) -> bool:
        """Delete a file; False when there was none."""
        if not self.is_local:
            store, name = self._objects(), self.fs_path(path)
            found = patiently(lambda: store.mark_of(name)) is not None
            if found:
                patiently(lambda: store.delete([name]))
            return found
        try:
            self.fs.delete_file(self.fs_path(path))
        except FileNotFoundError:
            return False
        self._drop_checksum_sidecar(self.fs_path(path))
        return True

    def delete_dir(self, path: str) -> bool:
        """Delete a folder and all below it; False when there was none."""
        if not self.is_local:
            return self._delete_below(path)
        return delete_folder(self.fs, self.fs_path(path))

    def move(self, source: str, target: str) -> None:
        """Rename a file or folder of a local storage; a file at the target is replaced.

        Raises:
            UnsupportedFeatureError: an object store: nothing is renamed there.
        """
        self._require_local(f"{source} cannot be moved to {target}")
        moved, place = self.fs_path(source), self.fs_path(target)
        self._make_parent(target)
        self.fs.move(moved, place)

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Let a file of a local storage have been modified at a time (milliseconds since the epoch).

        Timelines up to table version 6 keep nothing else of when an action was complete.

        Raises:
            UnsupportedFeatureError: an object store: its times are its own.
        """
        self._require_local(f"The time of {path} cannot be set")
        os.utime(self.fs_path(path), ns=(modified_ms * 1_000_000,) * 2)

    def exchange(self, other: Storage) -> None:
        """Let the root folders of two local storages change places, at once where the operating system can.

        Raises:
            UnsupportedFeatureError: an object store.
        """
        self._require_local("Two folders cannot change places")
        exchange_folders(self._root, other._root)

    # ---- inside

    def _objects(self) -> ObjectStore:
        if self._store is None:
            raise UnsupportedFeatureError(
                f"Writing to {self.uri} is not supported: through {scheme_of(self.uri)}:// no file can be created on "
                "the condition that there is none yet, so writers would overwrite each other."
            )
        return self._store

    def _require_inside(self, path: str) -> None:
        fault = _fault(path)
        if fault is None and self.is_local:
            long = any(len(part.encode(errors="replace")) > _LONGEST_NAME for part in path.split("/"))
            fault = f"has a part of more than {_LONGEST_NAME} bytes" if long else None
        if fault is not None:
            shown = repr(path if len(path) <= _SHOWN else path[:_SHOWN] + "...")
            raise CorruptTableError(
                f"The table {self.uri} names a file {shown}, whose path {fault}. No table has such a file, and nothing "
                "was done with it; restore what names it, or delete it."
            )

    def _read_object(self, store: ObjectStore, path: str) -> bytes:
        found = patiently(lambda: store.read(self.fs_path(path)))
        if found is None:
            raise FileNotFoundError(f"There is no {self.absolute(path)}.")
        return found.data

    def _require_local(self, what: str) -> None:
        if not self.is_local:
            raise UnsupportedFeatureError(f"{what}: {self.uri} is an object store.")

    def _delete_below(self, path: str) -> bool:
        """Objects first, the folders' own last, the root's after all others."""
        store, top = self._objects(), self.fs_path(path)
        entries = self.list_dir(path, recursive=True)
        names = [self.fs_path(one.path) for one in entries if not one.is_dir]
        folders = [f"{self.fs_path(one.path)}/" for one in reversed(entries) if one.is_dir]
        if not entries and not self.exists(path):
            return False
        folders += [f"{top}/"] if "/" in top else []
        patiently(lambda: store.delete([*names, *folders]))
        return True

    def _stat_of(self, info: pafs.FileInfo) -> FileStat:
        is_dir = info.type == pafs.FileType.Directory
        relative = info.path[len(self._root) :].lstrip("/")
        modified = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
        return FileStat(relative, 0 if is_dir else int(info.size or 0), int(modified), is_dir)

    def _make_parent(self, path: str) -> None:
        if not self.is_local:
            return  # object stores have no folders
        folder = path.rpartition("/")[0]
        self.fs.create_dir(self.fs_path(folder), recursive=True)

    @staticmethod
    def _write_temporary(target: str, data: bytes) -> str:
        folder, _, name = target.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "xb") as sink:
                sink.write(data)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary

    @staticmethod
    def _drop_checksum_sidecar(target: str) -> None:
        """Hadoop's local file system keeps ``.<name>.crc`` beside a file and refuses the file if they disagree."""
        folder, _, name = target.rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/.{name}.crc")


def check_relative(path: str) -> str:
    """``path`` if it stays below the base path; file names found in a table are data and may try to leave it.

    Raises:
        ConfigError: it does not, or is no path.
    """
    fault = _fault(path)
    if fault is not None:
        raise ConfigError(f"The path {path!r} {fault}.")
    return path


def _fault(path: str) -> str | None:
    """What is wrong with a path, in words; backslashes separate its parts where a table is read on other systems."""
    if path.startswith("/") or ".." in path.replace("\\", "/").split("/"):
        return "leaves the table's base path"
    return "holds a NUL character" if "\0" in path else None
