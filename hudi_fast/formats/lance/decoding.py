"""Decode Lance files with pylance in a separate process.

pylance ends its process on some damaged files: a failed internal check cannot pass through the stream of batches that
it returns. So a separate process reads the files, and its end becomes an error of the file.

::

    describe_file, read_rows ─► an idle process, or a new one ─► frames of its answer ─► schema, batches
                                                                  its end             ─► an error

A new process starts in half a second; up to :data:`_KEPT` processes wait for more files. They end when their standard
input is closed, which happens when this process ends in any way.

Provide files of a table on the local disk, where pylance reads and writes them.

Files of a local table need no copy, unless their path has control characters, which pylance refuses. Other files are
copied: before they are read, and after they are written.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.formats.lance import decoder
from hudi_fast.formats.lance.decoder import BATCH, END, ERROR, FRAME, MISSING
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import in_child
from hudi_fast.storage.untrusted import stored_json

__all__ = ["LanceFile", "LocalInput", "LocalOutput", "describe_file", "read_rows"]

_KEPT = 2
"""Maximum number of processes that wait for more files; each takes about 150 MB."""

_PANIC = "panicked at"
"""Text in the line before the message of a failed check in Rust."""

_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM)
"""Signals that do not mean that the file is damaged."""


class LanceFile(NamedTuple):
    """The footer of a file.

    Attributes:
        rows: number of rows.
        data_bytes: bytes of the encoded values.
        schema: the stored columns, with the file's metadata.
    """

    rows: int
    data_bytes: int
    schema: pa.Schema


def describe_file(path: str) -> LanceFile:
    """Read the footer of a file.

    Args:
        path: path of the file on the local disk.

    Raises:
        FileNotFoundError: there is no such file.
        pa.ArrowInvalid: pylance cannot read the file.
        HudiError: the decoding process could not start, or was killed.
    """
    with _borrowed() as process:
        (_, numbers), (_, schema) = process.frames({"path": path})
    rows, data_bytes = _list_in(numbers)
    return LanceFile(rows, data_bytes, pa.ipc.read_schema(pa.py_buffer(schema)))


def read_rows(
    path: str, columns: Sequence[str], ranges: Sequence[tuple[int, int]], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Decode ranges of rows of a file, in order; checks neither the values nor the number of rows.

    Args:
        path: path of the file on the local disk.
        columns: names of the columns.
        ranges: for each range, the number of its first row and its number of rows; memory holds a part of one range.
        batch_rows: maximum rows of a batch.

    Raises:
        FileNotFoundError: there is no such file.
        pa.ArrowInvalid: pylance cannot read the file.
        HudiError: the decoding process could not start, or was killed.
    """
    request = {"path": path, "columns": list(columns), "ranges": list(ranges), "batch_rows": batch_rows}
    with _borrowed() as process:
        for kind, content in process.frames(request):
            if kind == BATCH:
                yield pa.ipc.open_stream(content).read_next_batch()


class _Decoder:
    """One decoding process.

    Attributes:
        is_idle: whether the process waits for a request.
    """

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
        try:
            self._process = subprocess.Popen(
                # -P: the folder of the program has modules with the names of standard modules
                [sys.executable, "-P", decoder.__file__],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        except OSError as error:
            self._errors.close()
            raise HudiError(f"The process that decodes Lance files cannot start: {error}.") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self.is_idle = True

    @property
    def is_running(self) -> bool:
        """Whether the process can still take a request."""
        return self._process.poll() is None

    def frames(self, request: Mapping[str, Any]) -> Iterator[tuple[bytes, bytes]]:
        """Kind and content of each frame of the answer, except the last one.

        Raises:
            FileNotFoundError: the answer is that there is no such file.
            pa.ArrowInvalid: the answer is another error, or the process ended.
            HudiError: the process could not start, or was killed.
        """
        self.is_idle = False
        with contextlib.suppress(BrokenPipeError):  # the process has ended: reading the answer raises the error
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()
        while True:
            kind, size = FRAME.unpack(self._read(FRAME.size))
            content = self._read(size)
            self.is_idle = kind in (END, ERROR)
            if kind == ERROR:
                name, text = _list_in(content)
                raise FileNotFoundError(text) if name == MISSING else pa.ArrowInvalid(f"{name}: {text}")
            if kind == END:
                return
            yield kind, content

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this process's ends of the pipes; the other process ends when all ends are closed."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        self._errors.close()

    def _read(self, size: int) -> bytes:
        content: bytes = self._answers.read(size)
        if len(content) < size:
            self._explain_end()
        return content

    def _explain_end(self) -> NoReturn:
        """Raise the reason why there is no answer."""
        status: int = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        panics = [after for line, after in pairwise(lines) if _PANIC in line]
        text = str((panics or lines[-1:] or ["it printed nothing"])[0])
        if status < 0 and -status not in _FROM_OUTSIDE:
            raise pa.ArrowInvalid(f"pylance ended its process with {signal.Signals(-status).name}: {text}")
        how = f"{signal.Signals(-status).name} ended it, perhaps for lack of memory" if status < 0 else text
        raise HudiError(f"The process that decodes Lance files gave no answer: {how}. Read the table again.")


def _list_in(content: bytes) -> Any:
    try:
        return stored_json(content)
    except ValueError as error:  # such as a number of rows with more than 64 bits
        raise pa.ArrowInvalid(str(error)) from error


_idle: list[_Decoder] = []


@contextlib.contextmanager
def _borrowed() -> Iterator[_Decoder]:
    """A process for the caller alone; it is kept afterwards if its answer was complete."""
    process = _kept() or _Decoder()
    try:
        yield process
    finally:
        if process.is_idle and len(_idle) < _KEPT:
            _idle.append(process)
        else:
            process.end()


def _kept() -> _Decoder | None:
    with contextlib.suppress(IndexError):  # no process is idle
        while True:
            process = _idle.pop()
            if process.is_running:
                return process
            process.end()
    return None


def _forget_all() -> None:
    """Called in a child of ``fork``: the processes belong to the parent."""
    for one in _idle:
        one.forget()
    _idle.clear()


def _end_all() -> None:
    while _idle:
        _idle.pop().end()


in_child(_forget_all)
atexit.register(_end_all)


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
