"""Rows in temporary files, and the first pass over a stream.

Rows in a temporary file, split by a number: a table partition, a file group, or a hash of the key.

::

    add(rows, numbers) ─► some rows in memory ─► sorted by number ─► one compressed segment for each number
    read(number)       ─► its segments, in the order in which the rows were added

Where the system allows it, the file has no name: no other process can open it, and it disappears when the process ends,
even if it is killed.

The first pass over a stream: rows are checked, converted, and split in a temporary file.

Rows are split by table partition; or by a hash of the key where the index has to see all rows with one key at once,
because it looks in all partitions.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CommitError
from hudi_fast.formats.varlen import gather, varlen_buffers
from hudi_fast.kernels.hashes import xx_hash64
from hudi_fast.merging.row_buffer import return_freed_bytes, spool_folder
from hudi_fast.storage.forks import new_lock
from hudi_fast.values import dataclass
from hudi_fast.writing.prepare import check_rows, columns_for, spooled_form
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["Piece", "SpillFile", "SpillSettings", "SpilledRows", "chunks_of", "hashed", "spill_rows", "splits_by_key"]

Numbers = npt.NDArray[np.int64]

_COMPRESSION = "lz4"


@dataclass(frozen=True, slots=True)
class SpillSettings:
    """Memory and folder of a write that is larger than memory.

    The other sizes are shares of the memory, because steps of the write hold several parts at a time, and copies.

    Attributes:
        memory: Arrow bytes that all rows in memory may have.
        folder: of temporary files; made if it does not exist. None for the system's.
    """

    memory: int = 1 << 30
    folder: str | None = None

    @property
    def max_bytes(self) -> int:
        """Arrow bytes of rows that are written without temporary files."""
        return self.memory // 2

    @property
    def part_bytes(self) -> int:
        """Arrow bytes of rows that are written at a time; a table partition with more is split by file group."""
        return max(1, self.memory // 4)

    @property
    def chunk_bytes(self) -> int:
        """Arrow bytes of rows that are read at a time."""
        return max(1, self.memory // 8)

    @property
    def run_bytes(self) -> int:
        """Arrow bytes of rows that a :class:`SpillFile` collects before it writes them."""
        return max(1, self.memory // 16)

    def failure(self, uri: str) -> Callable[[str, OSError], CommitError]:
        """Makes the error of a write to the table at ``uri`` from the folder and the error of its temporary file."""

        def made(folder: str, error: OSError) -> CommitError:
            return CommitError(
                f"The rows of the write to {uri} have more than {self.max_bytes} bytes, so they go through temporary "
                f"files in {folder}, which cannot be written: {error}. The table is as before. Free space there, or "
                "set hoodie.memory.spillable.map.path to a local folder with more space."
            )

        return made


@dataclass(frozen=True, slots=True)
class _Segment:
    number: int
    offset: int
    length: int
    rows: int
    row_bytes: float


class SpillFile:
    """Rows by number. Adding is for one thread; reading, after :meth:`finish`, for any number of them.

    Args:
        settings: memory and folder.
        uri: of the table, for messages.
    """

    def __init__(self, settings: SpillSettings, uri: str) -> None:
        self._settings = settings
        self._failure = settings.failure(uri)
        self._folder = settings.folder or spool_folder()
        self._file: IO[bytes] | None = None
        self._end = 0
        self._lock = new_lock()
        self._batches: list[pa.RecordBatch] = []
        self._numbers: list[Numbers] = []
        self._bytes = 0
        self._segments: dict[int, list[_Segment]] = {}

    def add(self, rows: pa.RecordBatch | pa.Table, numbers: npt.NDArray[np.integer]) -> None:
        """Append rows.

        Args:
            rows: n rows, with the columns of all others.
            numbers: int[n], the number of each row.

        Raises:
            CommitError: the file cannot be written.
        """
        batches = [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
        start = 0
        for batch in batches:
            limit = max(1, int(batch.num_rows * self._settings.run_bytes / max(1, batch.nbytes)))
            for first in range(0, batch.num_rows, limit):
                part = batch.slice(first, limit)
                self._batches.append(part)
                self._numbers.append(numbers[start : start + part.num_rows].astype(np.int64))
                start += part.num_rows
                self._bytes += part.nbytes
                if self._bytes >= self._settings.run_bytes:
                    self._write_run()

    def finish(self) -> None:
        """Write the rows that are still in memory.

        Raises:
            CommitError: the file cannot be written.
        """
        self._write_run()

    def numbers(self) -> list[int]:
        """The numbers that have rows, ascending."""
        return sorted(self._segments)

    def count(self, number: int) -> int:
        """How many rows have a number."""
        return sum(one.rows for one in self._segments.get(number, ()))

    def size(self, number: int) -> int:
        """Arrow bytes of the rows with a number."""
        return int(sum(one.rows * one.row_bytes for one in self._segments.get(number, ())))

    def read(
        self, number: int, start: int = 0, end: int | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows with a number, in the order in which they were added.

        Args:
            number: number of the rows.
            start: position of the first row.
            end: position after the last row; None for all.
            columns: names of the columns, in any order; None for all.

        Raises:
            OSError: the file cannot be read.
        """
        first = 0
        for segment in self._segments.get(number, ()):
            last = first + segment.rows
            low, high = max(start, first), last if end is None else min(end, last)
            if low < high:
                yield self._read(segment, columns).slice(low - first, high - low)
            first = last

    def close(self) -> None:
        """Delete the file."""
        self._batches, self._numbers, self._segments = [], [], {}
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write_run(self) -> None:
        if not self._batches:
            return
        numbers, rows = np.concatenate(self._numbers), pa.Table.from_batches(self._batches).combine_chunks()
        self._batches, self._numbers, self._bytes = [], [], 0
        order = np.argsort(numbers, kind="stable")
        numbers, rows = numbers[order], gather(rows, order)
        cuts = [0, *(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist(), len(numbers)]
        for start, end in itertools.pairwise(cuts):
            self._write(int(numbers[start]), rows.slice(start, end - start))

    def _write(self, number: int, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=_COMPRESSION)) as writer:
            writer.write_table(rows)
        content = sink.getvalue()
        try:
            if self._file is None:
                os.makedirs(self._folder, mode=0o700, exist_ok=True)
                self._file = tempfile.TemporaryFile(prefix="hudi_fast-", dir=self._folder, buffering=0)
            left = memoryview(content)
            while len(left):
                left = left[self._file.write(left) :]
        except OSError as error:
            raise self._failure(self._folder, error) from error
        made = _Segment(number, self._end, len(memoryview(content)), rows.num_rows, rows.nbytes / rows.num_rows)
        self._segments.setdefault(number, []).append(made)
        self._end += made.length

    def _read(self, segment: _Segment, columns: Sequence[str] | None) -> pa.RecordBatch:
        if self._file is None:
            raise ValueError("the file is closed")
        with self._lock:
            self._file.seek(segment.offset)
            content = bytearray(segment.length)
            left = memoryview(content)
            while len(left):
                count = self._file.readinto(left)  # type: ignore[attr-defined]
                if not count:
                    raise OSError(f"A temporary file in {self._folder} ends too early.")
                left = left[count:]
        if columns is None:
            return pa.ipc.open_stream(content).read_all().combine_chunks().to_batches()[0]
        names = pa.ipc.open_stream(content).schema.names
        options = pa.ipc.IpcReadOptions(included_fields=[names.index(one) for one in columns])
        return pa.ipc.open_stream(content, options=options).read_all().combine_chunks().to_batches()[0]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a :class:`SpillFile`: of the rows with a number, from ``start`` to the one before ``end``."""

    file: SpillFile
    number: int
    start: int = 0
    end: int | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        return self.file.read(self.number, self.start, self.end)

    @property
    def size(self) -> int:
        """Approximate Arrow bytes of the rows."""
        count = self.file.count(self.number)
        end = count if self.end is None else self.end
        return self.file.size(self.number) * (end - self.start) // max(1, count)


_HASH_PARTS = 256
_BATCH_ROWS = 1 << 18
_RETURNED = 1 << 29
"""Bytes after which freed memory is returned to the operating system."""


@dataclass(frozen=True)
class SpilledRows:
    """All rows of a write.

    Attributes:
        file: the rows, by the number of their partition or by a hash of their key.
        by_key: whether they are split by key.
        partitions: number of rows by partition path. The number of a partition is its position.
    """

    file: SpillFile
    by_key: bool
    partitions: dict[str, int]

    @property
    def size(self) -> int:
        """Arrow bytes of all rows."""
        return sum(self.file.size(number) for number in self.file.numbers())

    def groups(self, max_bytes: int) -> Iterator[list[int]]:
        """Numbers of the file, grouped so that their rows have at most ``max_bytes``; a larger one is alone."""
        group, size = list[int](), 0
        for number in self.file.numbers():
            more = self.file.size(number)
            if group and size + more > max_bytes:
                yield group
                group, size = [], 0
            group.append(number)
            size += more
        if group:
            yield group

    def table(self, numbers: Iterable[int]) -> pa.Table:
        """The rows of some numbers."""
        return pa.Table.from_batches([batch for number in numbers for batch in self.file.read(number)])


def splits_by_key(plan: WritePlan) -> bool:
    """Whether rows with one key must be in one part, whatever their partitions."""
    return plan.index.is_global and plan.operation in ("upsert", "delete")


def spill_rows(plan: WritePlan, batches: Iterable[pa.RecordBatch], settings: SpillSettings) -> SpilledRows:
    """Check all rows and write them to a temporary file.

    Args:
        plan: the write; its instant is not needed yet.
        batches: the rows.
        settings: memory and folder.

    Raises:
        HudiError: of rows that cannot be written, as for :func:`hudi_fast.writing.prepare.prepare_rows`.
        CommitError: the temporary file cannot be written.
    """
    by_key = splits_by_key(plan)
    names: dict[str, int] = {}
    counts: dict[str, int] = {}
    file, row, unreturned = SpillFile(settings, plan.storage.uri), 0, 0
    try:
        for batch in _cut(batches, settings.chunk_bytes):
            given = batch.select(columns_for(plan, batch.schema.names))
            rows = check_rows(plan, pa.Table.from_batches([given]), row, joins_chunks=False)
            codes, paths = np.asarray(rows.partitions.indices), rows.partitions.dictionary.to_pylist()
            found = np.bincount(codes, minlength=len(paths)).tolist()
            for path, count in zip(paths, found, strict=True):
                names.setdefault(path, len(names))
                counts[path] = counts.get(path, 0) + count
            numbers = np.array([names[path] for path in paths], dtype=np.int64)[codes]
            file.add(spooled_form(plan, given), hashed(rows.key_array(), _HASH_PARTS) if by_key else numbers)
            row += batch.num_rows
            unreturned += batch.nbytes
            del batch, given, rows
            if unreturned >= _RETURNED:
                return_freed_bytes(unreturned)
                unreturned = 0
        file.finish()
    except BaseException:
        file.close()
        raise
    return SpilledRows(file, by_key, counts)


def hashed(keys: pa.Array, parts: int) -> npt.NDArray[np.int64]:
    """A number below ``parts`` for each key, int64[n], equal for equal keys.

    Args:
        keys: string[n], no nulls.
        parts: number of parts.
    """
    buffers = varlen_buffers(keys)
    codes = np.empty(len(keys), dtype=np.uint64)
    xx_hash64(buffers.offsets, buffers.data, np.uint64(0), codes)
    return (codes % np.uint64(parts)).astype(np.int64)


def chunks_of(pieces: Iterable[Piece], max_bytes: int) -> Iterator[pa.Table]:
    """Rows of some pieces in tables of about ``max_bytes``, each column in one chunk."""
    batches, size = list[pa.RecordBatch](), 0
    for piece in pieces:
        for batch in _cut(piece.batches(), max_bytes):
            if batches and size + batch.nbytes > max_bytes:
                yield pa.Table.from_batches(batches).combine_chunks()
                batches, size = [], 0
            batches.append(batch)
            size += batch.nbytes
    if batches:
        yield pa.Table.from_batches(batches).combine_chunks()


def _cut(batches: Iterable[pa.RecordBatch], max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Batches with at most ``max_bytes`` and :data:`_BATCH_ROWS` rows; empty ones are dropped."""
    for batch in batches:
        limit = min(_BATCH_ROWS, max(1, int(batch.num_rows * max_bytes / max(1, batch.nbytes))))
        for start in range(0, batch.num_rows, limit):
            yield batch.slice(start, limit)
