"""Any file system of fsspec: its guarantees are probed before the first write.

::

    exclusive   threads create one file with mode "xb" at once; one of them succeeds       else: one writer only
    whole       a reader watches a file that is replaced, and never sees a part            else: refused
                by a rename of a temporary file, or else by one ``pipe_file``
    listed      a new file is in the listing of its folder at once, with its time          else: refused

    create      claim ``.<name>.claim`` exclusively ─► nothing at the name? ─► put in place whole ─► delete the claim

A file system without exclusive creation can be written if the storage option ``single_writer`` declares that no other
program writes there. The probes use a folder in the table's folder and take some dozen requests, once per process.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from hudi_fast.errors import (
    ConfigError,
    HudiError,
    StorageAccessError,
    StorageUnreachableError,
    UnsupportedFeatureError,
)
from hudi_fast.storage.extras import import_extra
from hudi_fast.storage.forks import ThreadPool, new_lock
from hudi_fast.storage.stores import temporary_beside
from hudi_fast.values import dataclass

__all__ = ["FsspecFiles", "FsspecStore", "Promises", "try_out"]

_RIVALS = 4
_ROUNDS = 3
_REPLACEMENTS = 12
_SAMPLE = 64 << 10
_TIMES = ("mtime", "modified", "last_modified", "LastModified", "created", "time")
_RENAME, _PIPE = "rename", "pipe"


@dataclass(frozen=True, slots=True)
class Promises:
    """The guarantees of a file system.

    Attributes:
        exclusive: whether exactly one of several concurrent creations of one file succeeds.
        whole: how to replace a file so that readers see the old or the new content: ``rename``, ``pipe``, or "".
        listed: whether a new file is in the listing of its folder at once, with its modification time.
    """

    exclusive: bool
    whole: str
    listed: bool


_known: dict[Any, Promises] = {}
_guard = new_lock()


class FsspecStore:
    """A :class:`~hudi_fast.storage.stores.FolderStore` of a file system of fsspec.

    Args:
        fs: the file system.
        scheme: of the table's path, for messages.
        root: the table's base path.
        single_writer: whether the caller declares that no other program writes.
    """

    sets_times = False

    def __init__(self, fs: Any, scheme: str, root: str, single_writer: bool) -> None:
        self._fs, self._scheme, self._root, self._single_writer = fs, scheme, root, single_writer

    def check_writable(self, root: str) -> None:
        """See ``FolderStore``."""
        self._promises()

    def sync(self, root: str, others: Sequence[str] = ()) -> None:
        """See ``FolderStore``."""

    def create(self, name: str, data: bytes, durable: bool = False) -> None:
        """See ``FolderStore``."""
        promises = self._promises()
        self._make_parent(name)
        if not promises.exclusive:
            self._require_absent(name)
            self._put(name, data, promises)
            return
        if not data:
            _create(self._fs, name, b"")
            return
        folder, _, last = name.rpartition("/")
        claim = f"{folder}/.{last}.claim"
        try:
            _create(self._fs, claim, b"")
        except FileExistsError as error:
            raise FileExistsError(
                f"{name} is being created by another writer. If that writer has ended, delete {claim}."
            ) from error
        try:
            self._require_absent(name)
            self._put(name, data, promises)
        finally:
            self._fs.rm_file(claim)

    def replace(self, name: str, data: bytes) -> None:
        """See ``FolderStore``."""
        promises = self._promises()
        self._make_parent(name)
        self._put(name, data, promises)

    def open_output(self, name: str) -> pa.NativeFile:
        """See ``FolderStore``."""
        self._make_parent(name)
        return pa.PythonFile(self._fs.open(name, "wb"), mode="w")

    def make_folder(self, name: str) -> None:
        """See ``FolderStore``."""
        self._fs.makedirs(name, exist_ok=True)

    def delete_file(self, name: str, durable: bool = False) -> bool:
        """See ``FolderStore``."""
        try:
            self._fs.rm_file(name)
        except FileNotFoundError:
            return False
        return True

    def delete_folder(self, name: str) -> bool:
        """See ``FolderStore``."""
        self._fs.invalidate_cache()
        if not self._fs.exists(name):
            return False
        with contextlib.suppress(FileNotFoundError):
            self._fs.rm(name, recursive=True)
        return True

    def move(self, source: str, target: str) -> None:
        """See ``FolderStore``."""
        _REPLACING[self._promises().whole](self._fs, source, target)

    def set_modified(self, name: str, modified_ms: int) -> None:
        """See ``FolderStore``."""
        raise UnsupportedFeatureError(f"{self._scheme}:// sets the times of its files itself: {name}.")

    def _put(self, name: str, data: bytes, promises: Promises) -> None:
        if promises.whole == _PIPE:
            self._fs.pipe_file(name, data)
            return
        temporary = temporary_beside(name)
        try:
            self._fs.pipe_file(temporary, data)
            _rename(self._fs, temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                self._fs.rm_file(temporary)
            raise

    def _require_absent(self, name: str) -> None:
        self._fs.invalidate_cache()
        if self._fs.exists(name):
            raise FileExistsError(f"{name} already exists.")

    def _make_parent(self, name: str) -> None:
        self._fs.makedirs(name.rpartition("/")[0], exist_ok=True)

    def _promises(self) -> Promises:
        key = getattr(self._fs, "_fs_token", id(self._fs))
        with _guard:
            found = _known.get(key)
            if found is None:
                found = _known[key] = self._tried_out()
        where = f"Writing to {self._scheme}://"
        if not found.whole or not found.listed:
            why = "shows readers parts of a file that is replaced" if not found.whole else "lists new files late"
            raise UnsupportedFeatureError(f"{where} is not supported: it {why}.")
        if not found.exclusive and not self._single_writer:
            raise ConfigError(
                f"{where} needs the storage option single_writer=true: it cannot create a file on the condition that "
                "it does not exist yet, so two writers would overwrite each other. Set it if no other program, thread "
                "or table service writes to the table at the same time."
            )
        return found

    def _tried_out(self) -> Promises:
        fresh = not self._fs.exists(self._root)
        folder = f"{self._root}/.hudi_fast-trial-{uuid.uuid4().hex}"
        try:
            self._fs.makedirs(folder, exist_ok=True)
            return try_out(self._fs, folder)
        except (OSError, NotImplementedError) as error:
            text = str(error) or type(error).__name__
            raise UnsupportedFeatureError(
                f"Writing to {self._scheme}:// is not supported, or not allowed here: {text}."
            ) from error
        finally:
            with contextlib.suppress(Exception):
                self._fs.rm(folder, recursive=True)
            with contextlib.suppress(Exception):
                _ = self._fs.rmdir(self._root) if fresh else None


class FsspecFiles(pafs.FSSpecHandler):  # type: ignore[misc]  # pyarrow has no types
    """Reads and lists files. Does not use fsspec's cached listings; finds modification times under any of their names.

    Args:
        fs: the file system.
        scheme: of the table's path, for messages.
    """

    def __init__(self, fs: Any, scheme: str) -> None:
        super().__init__(fs)
        self._scheme = scheme

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        """See :class:`pyarrow.fs.FileSystemHandler`."""
        with self._explained(paths[0] if paths else ""):
            self.fs.invalidate_cache()
            return list(super().get_file_info(paths))

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """See :class:`pyarrow.fs.FileSystemHandler`."""
        with self._explained(selector.base_dir):
            self.fs.invalidate_cache()
            return list(super().get_file_info_selector(selector))

    def open_input_file(self, path: str) -> pa.NativeFile:
        """See :class:`pyarrow.fs.FileSystemHandler`."""
        with self._explained(path):
            return super().open_input_file(path)

    @contextlib.contextmanager
    def _explained(self, path: str) -> Iterator[None]:
        """Raise server errors, for which file systems have classes of their own, as errors of hudi_fast."""
        where = path if "://" in path else f"{self._scheme}://{path}"
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, HudiError):
            raise
        except PermissionError as error:
            raise StorageAccessError(f"{where} cannot be accessed: {error}. Check storage_options.") from error
        except OSError as error:
            if type(error) is OSError and error.errno is not None:
                raise
            raise _unanswered(where, error) from error
        except Exception as error:
            raise _unanswered(where, error) from error

    @staticmethod
    def _create_file_info(path: str, info: dict[str, Any]) -> pafs.FileInfo:
        kind = {"directory": pafs.FileType.Directory, "file": pafs.FileType.File}
        found = kind.get(info["type"], pafs.FileType.Unknown)
        size = info["size"] if found == pafs.FileType.File else None
        return pafs.FileInfo(path, found, size=size, mtime_ns=_time_of(info))


def try_out(fs: Any, folder: str) -> Promises:
    """Probe the guarantees of a file system.

    Args:
        fs: a file system of fsspec.
        folder: an existing folder, for the files of the probes.

    Raises:
        OSError: the folder cannot be written.
    """
    whole = next((way for way in _ways(fs) if _replaces_whole(fs, f"{folder}/whole", way)), "")
    return Promises(_creates_exclusively(fs, folder), whole, _lists_at_once(fs, folder))


def _creates_exclusively(fs: Any, folder: str) -> bool:
    with ThreadPool(_RIVALS) as pool:
        for number in range(_ROUNDS):
            start = threading.Barrier(_RIVALS)

            def compete(rival: int, start: threading.Barrier = start, name: str = f"{folder}/one{number}") -> bool:
                start.wait()
                try:
                    _create(fs, name, b"%d" % rival)
                except FileExistsError:
                    return False
                return True

            try:
                won = list(pool.map(compete, range(_RIVALS)))
            except Exception:  # mode "xb" is unknown, or fails in its own way
                return False
            if won.count(True) != 1 or fs.cat_file(f"{folder}/one{number}") != b"%d" % won.index(True):
                return False
    return True


def _ways(fs: Any) -> list[str]:
    """Ways to replace a file that the file system's class implements itself; fsspec's default rename copies."""
    general = import_extra("fsspec.spec", "fsspec", "A file system of fsspec").AbstractFileSystem

    def has(name: str) -> bool:
        return getattr(type(fs), name, None) is not getattr(general, name, None)

    return [way for way, name in ((_RENAME, "mv"), (_PIPE, "pipe_file")) if has(name)]


def _replaces_whole(fs: Any, name: str, way: str) -> bool:
    contents = [bytes([number]) * _SAMPLE for number in range(2)]
    fs.pipe_file(name, contents[0])
    ended, torn = threading.Event(), []

    def watch() -> None:
        while not ended.is_set():
            try:
                if fs.cat_file(name) not in contents:
                    torn.append("a part")
            except Exception:
                torn.append("nothing")

    reader = threading.Thread(target=watch)
    reader.start()
    try:
        for number in range(_REPLACEMENTS):
            content = contents[number % 2]
            if way == _PIPE:
                fs.pipe_file(name, content)
            else:
                fs.pipe_file(f"{name}.new", content)
                _rename(fs, f"{name}.new", name)
            if fs.cat_file(name) != content:
                return False
    except Exception:  # it does not replace
        return False
    finally:
        ended.set()
        reader.join()
    return not torn


def _lists_at_once(fs: Any, folder: str) -> bool:
    began = time.time()
    for number in range(_ROUNDS):
        name = f"{folder}/listed/{number}"
        fs.makedirs(f"{folder}/listed", exist_ok=True)
        fs.pipe_file(name, b"x")
        fs.invalidate_cache()
        found = [one for one in fs.ls(f"{folder}/listed", detail=True) if one["name"].rpartition("/")[2] == str(number)]
        if not found or found[0]["size"] != 1 or abs(_time_of(found[0]) / 1e9 - began) > _DAY:
            return False
    return True


def _unanswered(where: str, error: Exception) -> StorageUnreachableError:
    return StorageUnreachableError(
        f"{where} cannot be accessed: {type(error).__name__}: {error}. Check the path, the network, and the "
        "storage_options, which fsspec gets."
    )


_DAY = 86400.0
"""Maximum seconds by which a server's clock may differ; a missing time differs by more."""


def _time_of(info: dict[str, Any]) -> int:
    """Modification time in nanoseconds; 0 if unknown."""
    for key in _TIMES:
        value = info.get(key)
        if isinstance(value, datetime):
            return int(value.timestamp() * 1_000_000) * 1000
        if isinstance(value, int | float) and value > 0:
            return int(value * 1_000_000) * 1000
    return 0


def _create(fs: Any, name: str, data: bytes) -> None:
    with fs.open(name, "xb") as sink:
        if data:
            sink.write(data)


def _rename(fs: Any, source: str, target: str) -> None:
    fs.mv(source, target)


def _copy(fs: Any, source: str, target: str) -> None:
    fs.pipe_file(target, fs.cat_file(source))
    fs.rm_file(source)


_REPLACING: dict[str, Callable[[Any, str, str], None]] = {_RENAME: _rename, _PIPE: _copy}
