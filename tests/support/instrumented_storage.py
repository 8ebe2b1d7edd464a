"""Storages that record their calls and that fail at a chosen call.

::

    RecordingStorage    numbers and records every call and every write to a stream
    FaultyStorage       does the same and fails the call with a given number:
                          before   raises an error and does nothing
                          after    completes the call, then raises an error (a lost answer)
                          tear     does a part of the call, then raises an error
                        with ``die`` every later call fails, too (a process that ended)

A tear keeps the guarantees of :class:`~hudi_fast.storage.base.Storage`: an atomic write leaves a torn temporary file, a
stream leaves a torn file, the deletion of a folder leaves some of its entries.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.stores import temporary_beside

__all__ = ["CHANGING_CALLS", "FAULT_KINDS", "FaultyStorage", "InjectedFaultError", "RecordingStorage", "StorageCall"]

FAULT_KINDS = ("before", "after", "tear")

CHANGING_CALLS = frozenset(
    {"write_bytes", "create_exclusive", "open_output", "stream_write", "stream_close", "make_dir", "delete_file"}
    | {"delete_dir", "move", "copy_file", "set_modified", "exchange"}
)
"""Names of the calls that change files; the others only read."""

Answer = TypeVar("Answer")


class InjectedFaultError(OSError):
    """The error of an injected fault."""


@dataclass(frozen=True, slots=True)
class StorageCall:
    """One call.

    Attributes:
        number: counts from 0.
        name: the method of ``Storage``, or ``stream_write`` and ``stream_close`` of a stream that it opened.
        path: relative to the table; the source of a move.
    """

    number: int
    name: str
    path: str

    @property
    def changes(self) -> bool:
        """Whether it changes files."""
        return self.name in CHANGING_CALLS


class RecordingStorage(Storage):
    """Records every call in :attr:`calls`. Thread-safe. A pickled copy starts with no calls;
    a copy with another root shares the list.

    Args:
        uri: see :class:`~hudi_fast.storage.base.Storage`.
        options: likewise.
        root: likewise.
    """

    def __init__(
        self, uri: str | os.PathLike[str], options: Mapping[str, str] | None = None, root: str | None = None
    ) -> None:
        super().__init__(uri, options, root)
        self.calls: list[StorageCall] = []
        self._count_lock = threading.Lock()

    def _run(self, name: str, path: str, do: Callable[[], Answer], tear: Callable[[], object] | None = None) -> Answer:
        """Record and execute the call; ``tear`` does a part of it, and is None for calls without parts."""
        self._note(name, path)
        return do()

    def _note(self, name: str, path: str) -> StorageCall:
        with self._count_lock:
            call = StorageCall(len(self.calls), name, path)
            self.calls.append(call)
            return call

    def read_bytes(self, path: str) -> bytes:
        """See ``Storage``."""
        return self._run("read_bytes", path, lambda: Storage.read_bytes(self, path))

    def open_input(self, path: str, size: int | None = None) -> pa.NativeFile:
        """See ``Storage``."""
        return self._run("open_input", path, lambda: Storage.open_input(self, path, size))

    def stat(self, path: str) -> FileStat | None:
        """See ``Storage``; ``exists`` counts as this."""
        return self._run("stat", path, lambda: Storage.stat(self, path))

    def list_dir(self, path: str, recursive: bool = False) -> list[FileStat]:
        """See ``Storage``."""
        return self._run("list_dir", path, lambda: Storage.list_dir(self, path, recursive))

    def write_bytes(self, path: str, data: bytes) -> None:
        """See ``Storage``."""
        self._run("write_bytes", path, lambda: Storage.write_bytes(self, path, data), self._torn(path, data))

    def create_exclusive(self, path: str, data: bytes, *more: Any) -> None:
        """See ``Storage``."""
        self._run(
            "create_exclusive", path, lambda: Storage.create_exclusive(self, path, data, *more), self._torn(path, data)
        )

    def open_output(self, path: str) -> pa.NativeFile:
        """See ``Storage``; the stream's writes and its close are calls of their own."""
        stream = self._run("open_output", path, lambda: Storage.open_output(self, path))
        return pa.PythonFile(_WatchedStream(self, path, stream), mode="w")

    def make_dir(self, path: str) -> None:
        """See ``Storage``."""
        self._run("make_dir", path, lambda: Storage.make_dir(self, path))

    def delete_file(self, path: str, durable: bool = False) -> bool:
        """See ``Storage``."""
        return self._run("delete_file", path, lambda: Storage.delete_file(self, path, durable))

    def delete_files(self, paths: Sequence[str], durable: bool = False) -> None:
        """See ``Storage``; on a local disk each file is a call of its own."""
        if not self.is_local:
            super().delete_files(paths, durable)
            return
        for path in paths:
            self.delete_file(path, durable)

    def delete_dir(self, path: str) -> bool:
        """See ``Storage``."""
        return self._run("delete_dir", path, lambda: Storage.delete_dir(self, path), lambda: self._delete_some(path))

    def copy_file(self, path: str, target: str, other: Storage | None = None) -> None:
        """See ``Storage``."""
        self._run("copy_file", target, lambda: Storage.copy_file(self, path, target, other))

    def move(self, source: str, target: str) -> None:
        """See ``Storage``."""
        self._run("move", source, lambda: Storage.move(self, source, target))

    def set_modified(self, path: str, modified_ms: int) -> None:
        """See ``Storage``."""
        self._run("set_modified", path, lambda: Storage.set_modified(self, path, modified_ms))

    def exchange(self, other: Storage) -> None:
        """See ``Storage``."""
        self._run("exchange", "", lambda: Storage.exchange(self, other))

    def _torn(self, path: str, data: bytes) -> Callable[[], object]:
        def tear() -> None:
            Storage.write_bytes(self, temporary_beside(path), data[: len(data) // 2])

        return tear

    def _delete_some(self, path: str) -> None:
        files = [entry.path for entry in Storage.list_dir(self, path, recursive=True) if not entry.is_dir]
        for name in files[: (len(files) + 1) // 2]:
            Storage.delete_file(self, name)


class FaultyStorage(RecordingStorage):
    """Makes one call fail.

    Args:
        uri: see :class:`~hudi_fast.storage.base.Storage`.
        options: likewise.
        root: likewise.
        at: number of the call that fails; negative: none fails.
        kind: one of :data:`FAULT_KINDS`; calls without parts fail ``before`` instead of ``tear``.
        die: whether all later calls fail too.
        among: calls that ``at`` counts; None for all.
        number: the error is that of the operating system with this number, such as ``errno.ENOSPC``; 0 for a fault
            without one.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        root: str | None = None,
        at: int = -1,
        kind: str = "before",
        die: bool = False,
        among: Callable[[StorageCall], bool] | None = None,
        number: int = 0,
    ) -> None:
        super().__init__(uri, options, root)
        if kind not in FAULT_KINDS:
            raise ValueError(f"unknown kind of fault {kind!r}; use one of {FAULT_KINDS}")
        self.at, self.kind, self.die, self.among, self.number = at, kind, die, among, number
        self._failing = at if among is None else -1
        self._counted = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.uri, self.options, self._root, self.at, self.kind, self.die, self.among, self.number)

    def _note(self, name: str, path: str) -> StorageCall:
        call = super()._note(name, path)
        if self.among is not None and self.among(call):
            with self._count_lock:
                if self._counted == self.at:
                    self._failing = call.number
                self._counted += 1
        return call

    def _run(self, name: str, path: str, do: Callable[[], Answer], tear: Callable[[], object] | None = None) -> Answer:
        call = self._note(name, path)
        failing = self._failing
        if failing < 0 or call.number < failing or (call.number > failing and not self.die):
            return do()
        if call.number == failing and self.kind == "after":
            do()
        elif call.number == failing and self.kind == "tear" and tear is not None:
            tear()
        if self.number:
            raise OSError(self.number, os.strerror(self.number), Storage.absolute(self, path))
        raise InjectedFaultError(f"injected fault: {name} of {path} (call {call.number}, {self.kind})")


class _WatchedStream(io.RawIOBase):
    """A stream into a new file; its writes and its close count as calls of its storage."""

    def __init__(self, storage: RecordingStorage, path: str, stream: pa.NativeFile) -> None:
        self._storage, self._path, self._stream = storage, path, stream

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._stream.tell())

    def write(self, data: Any) -> int:
        content = bytes(data)
        half = content[: len(content) // 2]
        self._storage._run(
            "stream_write", self._path, lambda: self._stream.write(content), lambda: self._stream.write(half)
        )
        return len(content)

    def flush(self) -> None:
        if not self._stream.closed:
            self._stream.flush()

    def close(self) -> None:
        if self._stream.closed:
            return
        try:
            self._storage._run("stream_close", self._path, lambda: None)
        finally:
            self._stream.close()  # the operating system closes the files of a process that is gone
