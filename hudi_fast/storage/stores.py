"""How stores write: stores with folders, and stores of whole objects.

Writes to file systems that have folders: local disk, HDFS, and file systems of fsspec.

Unlike object stores they create a file under its final name before it has its content. So content is written to a
temporary name beside the file and then put in place whole: exclusively, or over an existing file.

::

    create     temporary file ─► in place, if nothing is there         timeline, markers, properties
    replace    temporary file ─► in place, over an existing file       files that change
    open_output                  the final name at once                data files, which a marker announces
    sync       all of them on the disk                                 before a commit becomes visible

Names are full names, which begin with :attr:`hudi_fast.storage.places.Place.root`.

Writes to object stores: put, create, replace and delete whole objects.

:mod:`pyarrow.fs` reads and lists. Writes use the store's own client for three reasons: it has conditional writes; its
retries can be disabled (see :mod:`hudi_fast.storage.conditional`); and it creates no folder objects, unlike file
systems on top of object stores.

::

    create_confirmed   create ─► created / exists
                          └─ unknown outcome: whose mark does the object have?
                                ours ─► created    another ─► exists    no object ─► create again with the same mark

Retrying with the same condition also prevents a request in flight from taking effect later: the object of the retry
already exists then.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa

from hudi_fast.errors import StorageUnreachableError
from hudi_fast.storage.conditional import ThrottledError, Versioned
from hudi_fast.values import dataclass

__all__ = [
    "FolderStore",
    "Listed",
    "ObjectStore",
    "ObjectStream",
    "RootedStore",
    "by_folder",
    "create_confirmed",
    "temporary_beside",
    "with_retries",
]


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


_BACKOFF = (0.05, 0.4, 1.6)
"""Seconds between attempts; each is randomised between half and all of it, so that writers do not retry in step."""

_RANDOM = random.SystemRandom()  # leaves the caller's seeded `random` untouched

_RETRY_WINDOW = 15.0
"""Seconds after the first attempt, or the last request to slow down, in which retries may start."""

_SLOW_DOWN_SECONDS = 100.0
"""Seconds after the first attempt in which retries may start while the store asks to slow down."""

_LONGEST_PAUSE = 6.4

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Listed:
    """An object, or a folder that contains objects.

    Attributes:
        name: full name, without a trailing slash.
        size: bytes; 0 for a folder.
        modified_ms: milliseconds since the epoch; 0 for a folder.
        is_dir: whether it is a folder.
    """

    name: str
    size: int
    modified_ms: int
    is_dir: bool


class ObjectStream(Protocol):
    """The stream that a :class:`pyarrow.PythonFile` writes to. The object appears on close."""

    closed: bool

    def write(self, data: bytes) -> int:
        """Append bytes."""
        ...

    def tell(self) -> int:
        """Bytes written."""
        ...

    def flush(self) -> None:
        """Does nothing: the object appears on close."""
        ...

    def close(self) -> None:
        """Complete the object."""
        ...


class ObjectStore(Protocol):
    """Objects by their full names (``bucket/key``). Thread-safe; not picklable."""

    def read(self, name: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        ...

    def create(self, name: str, data: bytes, mark: str = "") -> str | None:
        """See ``ConditionalStore``; stores ``mark`` with the object."""
        ...

    def replace(self, name: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        ...

    def mark_of(self, name: str) -> str | None:
        """The mark of an object, ``""`` without mark; None if the object does not exist.

        Raises:
            OSError: the request failed this time.
        """
        ...

    def has_folder(self, name: str) -> bool:
        """Whether the object ``<name>/`` exists. Content of the folder does not count, except on Azure.

        Raises:
            OSError: the request failed this time.
        """
        ...

    def drop_folder(self, name: str) -> None:
        """Delete the object of a folder and nothing below it; does nothing where a folder is not an object.

        Raises:
            OSError: the object may be left.
        """
        ...

    def put(self, name: str, data: bytes) -> None:
        """Create or replace an object atomically.

        Raises:
            OSError: the outcome is unknown.
        """
        ...

    def stream(self, name: str) -> ObjectStream | None:
        """A stream into a new object; None if pyarrow's streams write what this store requires."""
        ...

    def listed(self, name: str, recursive: bool) -> list[Listed] | None:
        """Entries of a folder, including folders without an object of their own; None if pyarrow lists such folders.

        Raises:
            OSError: the request failed this time.
        """
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects of one bucket; missing ones are ignored.

        Raises:
            OSError: some objects may be left.
        """
        ...


class RootedStore:
    """An :class:`ObjectStore` below a base path, as :class:`~hudi_fast.storage.conditional.ConditionalStore`."""

    def __init__(self, store: ObjectStore, root: str) -> None:
        self._store = store
        self._root = root

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._store!r}, {self._root!r})"

    def read(self, path: str) -> Versioned | None:
        """See ``ConditionalStore``."""
        return self._store.read(f"{self._root}/{path}")

    def create(self, path: str, data: bytes) -> str | None:
        """See ``ConditionalStore``."""
        return self._store.create(f"{self._root}/{path}", data)

    def replace(self, path: str, data: bytes, version: str) -> str | None:
        """See ``ConditionalStore``."""
        return self._store.replace(f"{self._root}/{path}", data, version)


def create_confirmed(
    store: ObjectStore, name: str, data: bytes, still_allowed: Callable[[], object] = lambda: None
) -> bool:
    """Create an object by its full name, and resolve unknown outcomes; False if an object of another writer exists.

    Args:
        store: the store.
        name: full name.
        data: content.
        still_allowed: see :func:`with_retries`.

    Raises:
        ThrottledError: nothing was written.
        PermissionError: nothing was written.
        OSError: the outcome is still unknown after all attempts; the object may exist.
    """
    mark = uuid.uuid4().hex
    unconfirmed = False

    def once() -> bool:
        nonlocal unconfirmed
        try:
            if store.create(name, data, mark) is not None:
                return True
        except (ThrottledError, PermissionError):
            raise
        except OSError:
            unconfirmed = True
            found = store.mark_of(name)
            if found is None:
                raise
            return found == mark
        return unconfirmed and store.mark_of(name) == mark

    def checked() -> None:
        try:
            still_allowed()
        except Exception as error:
            if unconfirmed:
                raise OSError(
                    f"The outcome of writing {name} is unknown, and a retry is not allowed: {error}"
                ) from error
            raise

    try:
        return with_retries(once, checked)
    except (ThrottledError, PermissionError) as error:
        if unconfirmed:
            raise OSError(f"{error}; an attempt before had no answer") from error
        raise


def with_retries(call: Callable[[], Result], still_allowed: Callable[[], object] = lambda: None) -> Result:
    """Call a function that can be repeated; retry when the store fails or asks to slow down.

    After a failure no attempt starts late, because a lock holder has checked its lock for about the next minute. A
    store that asks to slow down has done nothing, and may do so for long: attempts continue for longer then.

    Args:
        call: the function.
        still_allowed: called before each retry after the store has asked to slow down; raises an error, for example
            because a lock was lost, to end the attempts.

    Raises:
        OSError: the last attempt failed; there is no retry where it would not help: file not found, no permission.
    """
    started = since = time.monotonic()
    failures, pause = 0, _BACKOFF[0]
    while True:
        try:
            return call()
        except (FileNotFoundError, FileExistsError, PermissionError):
            raise
        except ThrottledError:
            since = time.monotonic()
            if since - started > _SLOW_DOWN_SECONDS:
                raise
            time.sleep(pause * _RANDOM.uniform(0.5, 1))
            pause = min(2 * pause, _LONGEST_PAUSE)
            still_allowed()
        except OSError as error:
            if failures == len(_BACKOFF) or time.monotonic() - since > _window(error):
                raise
            time.sleep(_BACKOFF[failures] * _RANDOM.uniform(0.5, 1))
            failures += 1


def _window(error: OSError) -> float:
    """Seconds after the first attempt in which retries may start.

    If no answer came, the window is at most half of the timeout in the storage options, so that a retry as long as the
    first attempt ends before the timeout.
    """
    if not isinstance(error, StorageUnreachableError) or error.seconds is None:
        return _RETRY_WINDOW
    return min(_RETRY_WINDOW, error.seconds / 2)


def by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    """Names of files by their folders."""
    found: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    return found
