"""Writes to local folders.

A file is written to a temporary name and then put in place whole: linked, which fails if the file exists, or renamed
over the existing file while an advisory lock on the folder blocks other writers that replace a file in it. Files never
change in place, so an open file shows one state. The version consists of inode number, modification time and a hash of
the content, because inode numbers are reused.

This excludes only writers on this machine that use this module. On a network file system it is as reliable as the locks
of that system.

Checks that a local table consists of folders and regular files below its base path.

A table that was unpacked or copied from elsewhere may contain anything. A symbolic link could lead readers, cleans and
deletes out of the table, or into an endless loop; opening a named pipe waits for ever. Both are refused. The base path
itself belongs to the caller: it may be a link, or be below one.

Swap two local folders.

Linux and macOS swap atomically (``renameat2`` with ``RENAME_EXCHANGE``, ``renamex_np`` with ``RENAME_SWAP``). Other
systems and file systems need three renames, during which the first folder is missing for a moment.

Local files that survive a loss of power: they are written to disk before a commit becomes visible.

::

    write files ─► closed: noted, and the disk begins to write the large ones ─► sync: contents, in parallel
        ─► names of their folders ─► the completed file: its content, its name ─► the commit is acknowledged

An operating system keeps written content in memory for half a minute, and the name of a file may be on disk long before
its content. One call to :func:`sync` for all files of a commit costs a few writes of the disk's journal; one call per
file would cost as much for each file. Large files are partly on disk by then: Linux begins to write their content when
they are closed (``sync_file_range``), while other files are being made.

Processes that do not commit, such as Spark's tasks, call :func:`sync` after they have written their files.

Writes to local folders: hard links create exclusively, renames replace.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import os
import re
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.conditional import Versioned
from hudi_fast.storage.failures import naming_file
from hudi_fast.storage.file_locks import LockableFile, check_locks
from hudi_fast.storage.forks import ThreadPool, new_lock
from hudi_fast.storage.stores import temporary_beside

__all__ = [
    "LocalConditionalStore",
    "LocalEntry",
    "LocalStore",
    "NotedFile",
    "begin",
    "check_entries",
    "delete_folder",
    "exchange_by_renames",
    "exchange_folders",
    "folders_beside",
    "link_file",
    "local_entries",
    "note",
    "sync",
    "to_disk",
]


class LocalConditionalStore:
    """A :class:`~hudi_fast.storage.conditional.ConditionalStore` below an absolute local folder."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._root!r})"

    def read(self, path: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        return _read(f"{self._root}/{path}")

    def create(self, path: str, data: bytes) -> str | None:
        """See ``ConditionalStore``."""
        target = f"{self._root}/{path}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with _temporary_file(target, data) as (temporary, version):
            try:
                os.link(temporary, target)
            except FileExistsError:
                return None
        return version

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        target = f"{self._root}/{path}"
        try:
            with _folder_lock(os.path.dirname(target)), _temporary_file(target, data) as (temporary, made):
                found = _read(target)
                if found is None or found.version != version:
                    return None
                os.replace(temporary, target)
        except FileNotFoundError:
            return None  # the folder does not exist
        return made


@contextlib.contextmanager
def _folder_lock(folder: str) -> Iterator[None]:
    check_locks()
    opened = LockableFile(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        opened.lock(wait=True)
        yield
    finally:
        opened.close()


@contextlib.contextmanager
def _temporary_file(target: str, data: bytes) -> Iterator[tuple[str, str]]:
    folder, _, name = target.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
    try:
        with open(temporary, "xb") as sink:
            sink.write(data)
            sink.flush()
            version = _version(os.fstat(sink.fileno()), data)
        yield temporary, version
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _read(target: str) -> Versioned | None:
    try:
        with open(target, "rb") as source:
            data = source.read()
            return Versioned(data, _version(os.fstat(source.fileno()), data))
    except FileNotFoundError:
        return None


def _version(stat: os.stat_result, data: bytes) -> str:
    return f"{stat.st_ino}-{stat.st_mtime_ns}-{hashlib.sha256(data).hexdigest()[:24]}"


LocalEntry = tuple[str, int, int, bool]
"""Path below the root, bytes, milliseconds since the epoch, whether it is a folder."""


def check_entries(root: str, path: str) -> None:
    """Check each part of a path below ``root`` that exists.

    A process that can change the table's folder can still create a link after the check.

    Raises:
        CorruptTableError: a part is neither a folder nor a regular file.
    """
    at = root
    for part in path.split("/"):
        at = f"{at}/{part}"
        try:
            mode = os.lstat(at).st_mode
        except OSError:  # it does not exist, or the access itself will raise the error
            return
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _refusal(root, at[len(root) + 1 :], mode)


def folders_beside(parent: str, prefix: str) -> list[str]:
    """Folders named ``prefix`` and a random id, left over from this library, in a folder that may hold anything."""
    ours = re.compile(re.escape(prefix) + "[0-9a-f]{32}")
    with os.scandir(parent or "/") as entries:
        names = [one.name for one in entries if ours.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
    return [f"{parent}/{name}" for name in sorted(names)]


def local_entries(root: str, path: str, recursive: bool) -> list[LocalEntry]:
    """The entries of a folder below ``root``; none if it does not exist.

    Raises:
        CorruptTableError: an entry is neither a folder nor a regular file.
    """
    found: list[LocalEntry] = []
    folders = [path]
    while folders:
        folder = folders.pop()
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(f"{root}/{folder}" if folder else root) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # deleted in the meantime
                        continue
                    inside = f"{prefix}{entry.name}"
                    is_dir = stat.S_ISDIR(status.st_mode)
                    if not (is_dir or stat.S_ISREG(status.st_mode)):
                        raise _refusal(root, inside, status.st_mode)
                    found.append((inside, 0 if is_dir else status.st_size, status.st_mtime_ns // 1_000_000, is_dir))
                    if is_dir and recursive:
                        folders.append(inside)
        except (FileNotFoundError, NotADirectoryError):
            continue
    return found


def _refusal(root: str, path: str, mode: int) -> CorruptTableError:
    what = "a symbolic link" if stat.S_ISLNK(mode) else "an entry that is neither a file nor a folder"
    return CorruptTableError(
        f"The table {root} holds {what}. It may consist of folders and files only, because a link can lead out of it; "
        "nothing was done with it. Put a copy in its place, or mount the other folder there.",
        path,
    )


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


_TRIES = 20

_DELETES_AT_ONCE = 16


class LocalStore:
    """A :class:`~hudi_fast.storage.stores.FolderStore` of the local file system.

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
                to_disk(temporary)
            os.link(temporary, name)
        finally:
            os.unlink(temporary)
        _drop_checksum_sidecar(name)
        if waits:
            to_disk(os.path.dirname(name))
        elif self._syncs and data:  # an empty file, such as a marker, is of no use after a loss of power
            note(name)

    def replace(self, name: str, data: bytes) -> None:
        """See ``FolderStore``."""
        temporary = self._write_temporary(name, data)
        if self._syncs and os.path.exists(name):  # only the old content is on disk
            to_disk(temporary)
        os.replace(temporary, name)
        _drop_checksum_sidecar(name)
        if self._syncs:
            note(name)

    def open_output(self, name: str) -> pa.NativeFile:
        """See ``FolderStore``."""
        self._make_parent(name)
        return NotedFile.create(name) if self._syncs else self._files.open_output_stream(name)

    def sync(self, root: str, others: Sequence[str] = ()) -> None:
        """See ``FolderStore``."""
        if self._syncs:
            sync(root, others)

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
            to_disk(os.path.dirname(name))
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
            to_disk(source)
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
