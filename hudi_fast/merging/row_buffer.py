"""Rows that stay in their batches, and buffers that collect them.

Collects rows: incoming rows of a table partition or file group, or the log rows of a file slice.

Up to a budget the rows stay in memory. Beyond it they move to a file in one of Spark's local folders, or in the folder
for temporary files. The file is mapped into memory: the process holds the pages that it is reading, and the kernel may
drop them. Where the system allows it, the file has no name, so it disappears when the process ends in any way.

Rows that stay in their batches, read a part at a time: a copy of all of them would need too much memory.

The rows are a table in memory, or in a memory-mapped local file, whose chunks are the batches of the file. Pages of the
file that were read stay resident until they are released, so reading releases them after some bytes. Released pages can
be read again.

::

    parts(rows)  ─► row numbers whose rows have about as many bytes as the caller asks for
    take(part)   ─► these rows, in one chunk: within a batch without a copy, else gathered batch by batch

Return freed memory to the operating system between the steps of a large file group.

The C library and Arrow keep freed memory for later allocations. After the log of a slice with millions of rows has been
decoded, the process would hold some hundred MiB of it in addition to the allocations of the next step.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError
from hudi_fast.formats.varlen import gather
from hudi_fast.values import dataclass

__all__ = [
    "LOG_BUDGET",
    "ROW_BUDGET",
    "BatchedRows",
    "CollectedRows",
    "RowBuffer",
    "read_failure",
    "return_freed_bytes",
    "return_freed_memory",
    "spool_folder",
    "take_rows",
    "write_failure",
]

ROW_BUDGET = 128 << 20
"""Arrow bytes of rows that a task keeps in memory before it spools them."""

LOG_BUDGET = 128 << 20
"""Arrow bytes of log rows of a file slice that are kept in memory before they are spooled."""

_BATCH_BYTES = 32 << 20
"""Arrow bytes of a batch in the file: smaller batches are joined."""

_ADVICE = "set spark.local.dir (on a cluster, the local folders of its workers) to folders with more space"

_LOCAL_DIRS = "SPARK_LOCAL_DIRS"
"""Environment variable of Python workers: Spark's local folders, separated by commas."""


@dataclass(frozen=True)
class CollectedRows:
    """Rows in memory, or in a mapped file.

    Attributes:
        table: the rows; for a mapped file, its batches are the chunks.
        release: for a mapped file: makes its pages leave memory; they remain readable. None for rows in memory.
    """

    table: pa.Table
    release: Callable[[], None] | None = None


class RowBuffer:
    """Collects batches in memory up to a budget, and beyond it in a temporary file.

    Args:
        failure: makes the error for a file that cannot be written, from the folder and its error.
        convert: applied to batches that go to the file; None for no change.
        budget: Arrow bytes in memory; None for :data:`ROW_BUDGET`.
        folder: folder of the temporary file; None for :func:`spool_folder`.
    """

    def __init__(
        self,
        failure: Callable[[str, OSError], Exception],
        convert: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
        budget: int | None = None,
        folder: str | None = None,
    ) -> None:
        self._failure = failure
        self._convert = convert
        self._budget = ROW_BUDGET if budget is None else budget
        self._folder = folder
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._writer: Any = None
        self._file: IO[bytes] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            Exception: the error of ``failure``: the temporary file cannot be written.
            HudiError: an error of ``convert``.
        """
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > (self._budget if self._file is None else min(self._budget, _BATCH_BYTES)):
            self._spill()

    def take(self) -> CollectedRows | None:
        """All rows added since the last call; None for no rows.

        Raises:
            Exception: the error of ``failure``: the temporary file cannot be written.
            HudiError: an error of ``convert``.
        """
        if not self._batches and self._file is None:
            return None
        if self._file is None:
            table = pa.Table.from_batches(self._batches)
            self._batches, self._bytes = [], 0
            return CollectedRows(table)
        self._spill()
        with self._disk_errors():
            self._writer.close()
            with self._file as file:  # the mapping keeps the content
                file.flush()
                mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._writer, self._file = None, None
        table = pa.ipc.open_file(pa.py_buffer(mapping)).read_all()
        return CollectedRows(table, lambda: mapping.madvise(mmap.MADV_DONTNEED))

    def __enter__(self) -> RowBuffer:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError, ValueError):  # an error of the last write would hide the first error
                if self._writer is not None:
                    self._writer.close()
            with contextlib.suppress(OSError):
                self._file.close()

    def _spill(self) -> None:
        batches, self._batches, self._bytes = self._batches, [], 0
        for batch in _joined(batches):
            made = batch if self._convert is None else self._convert(batch)
            with self._disk_errors():
                if self._file is None:
                    folder = self._folder or spool_folder()
                    self._file = tempfile.TemporaryFile(prefix="hudi_fast-", dir=folder)
                if self._writer is None:
                    self._writer = pa.ipc.new_file(self._file, made.schema)
                self._writer.write_batch(made)

    @contextlib.contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(self._folder or spool_folder(), error) from error


def write_failure(uri: str, folder: str, error: OSError) -> CommitError:
    """The error of a write task that cannot write its temporary file; the task writes to the table at ``uri``."""
    return CommitError(
        f"A task of the write to {uri} moves incoming rows beyond its memory budget to a file in {folder}, which "
        f"cannot be written: {error}. The table is as before. Free space there, or {_ADVICE}."
    )


def read_failure(uri: str, folder: str, error: OSError) -> OSError:
    """The error of a process that cannot write the log rows of a file slice of the table at ``uri``."""
    return OSError(
        error.errno,
        f"Log rows of a file slice of {uri} beyond {LOG_BUDGET >> 20} MiB are moved to a file in {folder}, which "
        f"cannot be written: {error}. Free space there, or {_ADVICE}; without Spark, set TMPDIR.",
    )


def spool_folder(environment: Mapping[str, str] = os.environ) -> str:
    """The local folder of Spark with the most free space; without any, the folder for temporary files.

    Args:
        environment: variables of the worker.
    """
    given = [name for name in environment.get(_LOCAL_DIRS, "").split(",") if name]
    usable = [name for name in given if os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK)]
    return max(usable, key=lambda name: shutil.disk_usage(name).free, default=tempfile.gettempdir())


def _joined(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join consecutive batches up to about :data:`_BATCH_BYTES`; the list is emptied on the way."""
    batches.reverse()
    while batches:
        some, size = [batches.pop()], 0
        size += some[0].nbytes
        while batches and size + batches[-1].nbytes <= _BATCH_BYTES:
            size += batches[-1].nbytes
            some.append(batches.pop())
        yield some[0] if len(some) == 1 else pa.concat_batches(some)


Rows = npt.NDArray[np.int64]

_RESIDENT = 64 << 20
"""Bytes of batches that are read before their pages are released."""


class BatchedRows:
    """Rows by number.

    Args:
        table: n rows, in batches.
        release: makes the pages of a mapped file leave memory; they remain readable. None for rows in memory.
    """

    def __init__(self, table: pa.Table, release: Callable[[], None] | None = None) -> None:
        self._release = release
        self._schema = table.schema
        self._batches: list[pa.RecordBatch] = table.to_batches()
        lengths = np.array([batch.num_rows for batch in self._batches], dtype=np.int64)
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        self._row_bytes = np.array([batch.nbytes for batch in self._batches]) / np.maximum(lengths, 1)
        self._read = 0.0
        if release is not None:
            release()

    def parts(self, rows: Rows, max_rows: int, max_bytes: int) -> Iterator[Rows]:
        """Cut ``rows`` into parts.

        Args:
            rows: int64[n], row numbers in any order.
            max_rows: maximum rows of a part.
            max_bytes: approximate maximum size of a part; a larger row is a part of its own. Each row counts with the
                average size of its batch.
        """
        start = 0
        while start < len(rows):
            ahead = rows[start : start + max_rows]
            sizes = np.cumsum(self._row_bytes[self._batch_of(ahead)])
            count = max(1, int(np.searchsorted(sizes, max_bytes, side="right")))
            yield ahead[:count]
            start += count

    def take(self, rows: Rows, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these numbers: int64[n], any order; each column is one chunk.

        Args:
            rows: row numbers.
            columns: names of the columns; None for all.
        """
        names = self._schema.names if columns is None else list(columns)
        if not len(rows):
            return self._schema.empty_table().select(names)
        numbers = self._batch_of(rows)
        order = None if (numbers[1:] >= numbers[:-1]).all() else np.argsort(numbers, kind="stable")
        if order is not None:
            rows, numbers = rows[order], numbers[order]
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(rows)]
        pieces = [
            self._take_from(int(numbers[start]), rows[start:end], names) for start, end in itertools.pairwise(cuts)
        ]
        found = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces).combine_chunks()
        if order is None:
            return found
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return gather(found, back)

    def _take_from(self, number: int, rows: Rows, names: Sequence[str]) -> pa.Table:
        batch = self._batches[number]
        if self._release is not None:
            if self._read > _RESIDENT:
                self._release()
                self._read = 0.0
            self._read += self._row_bytes[number] * batch.num_rows
        return gather(pa.Table.from_batches([batch]).select(names), rows - self._starts[number])

    def _batch_of(self, rows: Rows) -> Rows:
        return np.searchsorted(self._ends, rows, side="right")


def take_rows(
    table: pa.Table, batched: BatchedRows | None, rows: Rows, columns: Sequence[str] | None = None
) -> pa.Table:
    """Rows by number, from one chunk or from batches.

    Args:
        table: all rows.
        batched: the same rows if they are in a mapped file; None for rows in memory.
        rows: int64[n], in any order.
        columns: names of the columns; None for all.
    """
    if batched is not None:
        return batched.take(rows, columns)
    return gather(table if columns is None else table.select(list(columns)), rows)


_MANY_ROWS, _MANY_BYTES = 1_000_000, 64 << 20
"""A step with fewer rows or bytes frees little memory. Returning memory takes about 10 ms."""


def return_freed_memory(rows: int) -> None:
    """Return freed memory after a step that handled ``rows`` rows; does nothing for few rows."""
    if rows >= _MANY_ROWS:
        _return()


def return_freed_bytes(size: int) -> None:
    """Return freed memory after a step that handled ``size`` Arrow bytes; does nothing for few bytes."""
    if size >= _MANY_BYTES:
        _return()


def _return() -> None:
    pa.default_memory_pool().release_unused()
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    """``malloc_trim`` of glibc; a function that does nothing where the C library lacks it."""
    with contextlib.suppress(OSError, AttributeError):
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return found
    return lambda _: 0
