"""Collect records by file group, and return them in key order: in bounded memory, with local disk beyond it.

::

    put      records of a group ─► memory ─ above the budget ─► sorted runs in one local Arrow file, in small batches
    take     runs of a group ─► merged range by range: the batches of a range ─► sorted, one record per key ─► piece

If one action has several records of a key, one record is kept: a value wins over a delete (the row moved). Two
different values of a key mean that the key is in two places, which no index can store; this is an error.

While records are put, memory holds up to two budgets. While they are taken, it holds, per group, the batches of one
range and one batch of each run. Each time that the budget is used up, each group with records gets another run.
"""

from __future__ import annotations

import bisect
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.varlen import gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.hfile import key_heads
from hudi_fast.storage.forks import new_lock
from hudi_fast.values import dataclass

__all__ = ["RECORDS", "Bin", "Entries", "GroupBins", "combined", "count_up_to", "key_bytes"]

RECORDS = pa.schema([pa.field("key", pa.string()), pa.field("value", pa.binary())])
"""Records of one file group; a null value is a delete."""

_BUDGET = 128 << 20
"""Bytes of records held in memory before they are written to a file."""

_BATCH = 1 << 18
"""Approximate bytes of a batch in the file."""

_RANGE = 64
"""Number of batches that end in one range of keys."""

Bin: TypeAlias = tuple[str, int]
"""Metadata partition and number of the file group."""

Entries: TypeAlias = tuple[pa.Array, pa.Array]
"""Keys (string or binary) and values (binary)."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted records of one group in the file, in consecutive batches.

    Attributes:
        first: number of its first batch.
        lasts: the last key of each batch.
    """

    first: int
    lasts: tuple[bytes, ...]


class GroupBins:
    """Records by file group, in memory up to a budget, and beyond it in one local file. Thread-safe.

    Args:
        budget: bytes of records in memory.
        ordered: whether to return records in key order, one per key; else all records, in any order.
        folder: folder of the file; None for the folder of temporary files.
    """

    def __init__(self, budget: int = _BUDGET, ordered: bool = True, folder: str | None = None) -> None:
        self._budget, self._ordered, self._folder = budget, ordered, folder
        self.nbytes = 0
        """Bytes of all records that were put."""
        self._held: dict[Bin, list[pa.Table]] = {}
        self._bytes = 0
        self._lock = new_lock()
        self._storing = new_lock()
        self._file: tempfile._TemporaryFileWrapper[bytes] | None = None
        self._stream: pa.ipc.RecordBatchFileWriter | None = None
        self._batches = 0
        self._runs: dict[Bin, list[_Run]] = {}
        self._source: pa.OSFile | None = None
        self._reader: pa.ipc.RecordBatchFileReader | None = None

    def put(self, name: Bin, table: pa.Table) -> None:
        """Add records of a group: a table of :data:`RECORDS`.

        Raises:
            InvalidDataError: one key has two different values.
        """
        with self._lock:
            self._held.setdefault(name, []).append(table)
            self._bytes += table.nbytes
            self.nbytes += table.nbytes
            if self._bytes <= self._budget:
                return
        with self._storing:  # one thread sorts while others continue to put; memory holds at most two budgets
            with self._lock:
                if self._bytes <= self._budget:
                    return  # another thread has stored them
                full, self._held, self._bytes = self._held, {}, 0
            for one in sorted(full):
                records = pa.concat_tables(full.pop(one))
                self._store(one, combined(one[0], records) if self._ordered else _entries(records))

    def names(self) -> list[Bin]:
        """The groups that have records; call it after the last :meth:`put`."""
        if self._stream is not None and self._file is not None and self._reader is None:
            self._stream.close()
            self._source = pa.OSFile(self._file.name)
            self._reader = pa.ipc.open_file(self._source)
        return sorted({*self._held, *self._runs})

    def take(self, name: Bin) -> Iterator[Entries]:
        """All records of a group, in pieces of bounded size: string[n] and binary[n], null for a delete. Call it once.

        Raises:
            InvalidDataError: one key has two different values.
        """
        with self._lock:
            held = self._held.pop(name, [])
        runs = self._runs.get(name, [])
        if not self._ordered:
            yield from (_entries(table) for table in held)
            for run in runs:
                yield from self._pieces(run)
            return
        rest = combined(name[0], pa.concat_tables(held)) if held else None
        held.clear()
        if not runs:
            if rest is not None:
                yield rest
            return
        yield from self._merged(name[0], runs, rest)

    # ---- internals

    def _store(self, name: Bin, entries: Entries) -> None:
        keys, values = entries
        if not len(keys):
            return
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(prefix="hudi_fast-", suffix=".arrow", dir=self._folder)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._stream = pa.ipc.new_file(self._file.name, RECORDS, options=options)
        assert self._stream is not None
        step = max(1, len(keys) * _BATCH // max(keys.nbytes + values.nbytes, 1))
        first, lasts = self._batches, []
        for start in range(0, len(keys), step):
            part = [keys[start : start + step], values[start : start + step]]
            self._stream.write_batch(pa.RecordBatch.from_arrays(part, RECORDS.names))
            lasts.append(key_bytes(part[0][-1]))
        self._batches += len(lasts)
        self._runs.setdefault(name, []).append(_Run(first, tuple(lasts)))

    def _pieces(self, run: _Run) -> Iterator[Entries]:
        assert self._reader is not None
        for number in range(run.first, run.first + len(run.lasts)):
            with self._lock:
                batch = self._reader.get_batch(number)
            yield batch.column(0), batch.column(1)

    def _merged(self, partition: str, runs: Sequence[_Run], rest: Entries | None) -> Iterator[Entries]:
        """The records of sorted runs, each key at most once in a run."""
        cursors = [_Cursor(self._pieces(run)) for run in runs]
        if rest is not None:
            cursors.append(_Cursor(iter([rest])))
        ends = sorted(last for run in runs for last in run.lasts)
        for bound in [*ends[_RANGE - 1 :: _RANGE], None]:
            parts = [part for cursor in cursors for part in cursor.up_to(bound)]
            if parts:
                tables = [pa.Table.from_arrays(list(part), schema=RECORDS) for part in parts]
                yield combined(partition, pa.concat_tables(tables))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None and self._reader is None:
            self._stream.close()
        if self._source is not None:
            self._source.close()
        if self._file is not None:
            self._file.close()


class _Cursor:
    """Reads ascending pieces up to a key at a time."""

    def __init__(self, pieces: Iterator[Entries]) -> None:
        self._pieces = pieces
        self._piece: Entries | None = None

    def up_to(self, bound: bytes | None) -> Iterator[Entries]:
        """The next entries whose keys are not above ``bound``; None for all."""
        while True:
            if self._piece is None:
                self._piece = next(self._pieces, None)
                if self._piece is None:
                    return
            keys, values = self._piece
            count = len(keys) if bound is None else count_up_to(keys, bound)
            if count:
                yield keys[:count], values[:count]
            if count < len(keys):
                self._piece = keys[count:], values[count:]
                return
            self._piece = None


def combined(partition: str, records: pa.Table) -> Entries:
    """Records of one file group sorted by key bytes, one per key.

    ``records`` are of :data:`RECORDS`, any order.

    Raises:
        InvalidDataError: one key has two different values.
    """
    keys, values = _entries(records)
    order, repeats = _order(keys)
    keys, values = gather_array(keys, order), gather_array(values, order)
    if not repeats:
        return keys, values
    same = np.zeros(len(keys), np.bool_)
    same[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    if not same.any():
        return keys, values
    kept = _one_of_each(partition, keys, values, same)
    return gather_array(keys, kept), gather_array(values, kept)


def count_up_to(keys: pa.Array, last: bytes) -> int:
    """The number of ascending keys that are not above ``last``."""
    return bisect.bisect_right(range(len(keys)), last, key=lambda row: key_bytes(keys[row]))


def _order(keys: pa.Array) -> tuple[npt.NDArray[np.int64], bool]:
    """Row numbers in the order of the keys' bytes, stable; and whether keys may repeat.

    Most keys differ in the eight bytes after their common prefix: sorting these bytes as numbers is several times
    faster than comparing texts.
    """
    if len(keys) < 2:
        return np.arange(len(keys)), False
    ends = pc.min_max(keys)
    framed = pa.concat_arrays(
        [pa.array([ends["min"].as_py()], keys.type), keys, pa.array([ends["max"].as_py()], keys.type)]
    )
    heads = np.empty(len(framed), np.uint64)
    key_heads(*varlen_buffers(framed), heads)
    heads = heads[1:-1]
    order = np.argsort(heads, kind="stable")
    ordered = heads[order]
    if not (ordered[1:] == ordered[:-1]).any():
        return order, False
    return pc.array_sort_indices(keys).to_numpy().astype(np.int64), True


def _one_of_each(
    partition: str, keys: pa.Array, values: pa.Array, same: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Numbers of the records to keep: for each key its value, or its first delete if it has no value."""
    run = np.cumsum(~same) - 1
    alive = values.is_valid().to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(~same)
    with_value = np.flatnonzero(alive)
    chosen[run[with_value[::-1]]] = with_value[::-1]  # the first value of each run
    others = with_value[chosen[run[with_value]] != with_value]
    if len(others):
        differs = pc.not_equal(gather_array(values, others), gather_array(values, chosen[run[others]]))
        clash = np.flatnonzero(differs.to_numpy(zero_copy_only=False))
        if len(clash):
            raise InvalidDataError(
                f"The metadata partition {partition} would get {len(clash)} keys twice, with different records, for "
                f"example {keys[int(others[clash[0]])].as_py()!r}: the table holds rows of one key in several places. "
                "Remove duplicates, or leave the index out."
            )
    return chosen


def _entries(records: pa.Table) -> Entries:
    return single_chunk(records.column(0)), single_chunk(records.column(1))


def key_bytes(key: pa.Scalar) -> bytes:
    """The bytes of a key, which is a text or bytes."""
    found = key.as_py()
    return found if isinstance(found, bytes) else str(found).encode()
