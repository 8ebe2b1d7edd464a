"""Read sources and write their records, group by group: in threads here, as tasks in spark/metadata.py.

::

    sources ─ read ─► EncodedRecords ─ route ─► by (partition, group) ─► sorted by key, one per key ─► GroupWriter
                                                  └ above a memory budget: a local Arrow file, memory-mapped

One of several records of a key in one action is kept: a value wins over a delete (the row moved). Two different values
of a key mean one key in two places, which no index can store; this is an error.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.gather import gather_array
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, RecordSource
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["RECORDS", "GroupBins", "GroupWriter", "MapGroups", "WriteRecords", "combined", "routed", "run_in_threads"]

RECORDS = pa.schema([pa.field("key", pa.string()), pa.field("value", pa.binary())])
"""Records of one file group; a null value is a delete."""

_BUDGET = 512 << 20
"""Bytes of records held in memory before they are written to a file."""

Bin: TypeAlias = tuple[str, int]
"""Metadata partition and number of the file group."""


class GroupWriter(Protocol):
    """Writes the records of one file group of a metadata partition; picklable."""

    @property
    def schema(self) -> str:
        """Avro JSON of the values."""
        ...

    def route(self, records: EncodedRecords) -> npt.NDArray[np.int32]:
        """int32[n]: the file group (position among the groups of the partition) of each record."""
        ...

    def write(self, partition: str, group: int, keys: pa.Array, values: pa.Array) -> WriteStat:
        """Write keys (string[n], ascending by bytes, distinct) and values (binary[n], null for a delete)."""
        ...


WriteRecords: TypeAlias = Callable[[Sequence[RecordSource], GroupWriter], list[WriteStat]]
"""Reads all sources and writes their records; one stat for each file group that received records."""

MapGroups: TypeAlias = Callable[[Sequence[Any], Sequence[int], Callable[[Any], WriteStat]], list[WriteStat]]
"""Applies a function to file groups, each with the bytes to read for it; one stat for each, in any order."""


def run_in_threads(sources: Sequence[RecordSource], writer: GroupWriter, threads: int = 2) -> list[WriteStat]:
    """Read sources and write their records in threads of this process."""
    with GroupBins() as bins, ThreadPoolExecutor(threads, thread_name_prefix="hudi_fast") as pool:
        heaviest_first = sorted(sources, key=lambda one: one.weight, reverse=True)
        for _ in pool.map(lambda source: _collect(source, writer, bins), heaviest_first):
            pass
        return list(pool.map(lambda one: _write(writer, one, bins.take(one)), bins.names()))


def routed(records: EncodedRecords, writer: GroupWriter) -> Iterator[tuple[int, pa.Table]]:
    """Records by file group, as tables of :data:`RECORDS`."""
    groups = writer.route(records)
    if not len(groups):
        return
    order, bounds = group_rows(groups, int(groups.max()) + 1)
    keys, values = single_chunk(records.keys), single_chunk(records.values)
    for group in np.flatnonzero(np.diff(bounds)):
        rows = order[bounds[group] : bounds[group + 1]].astype(np.int64)
        columns = [gather_array(keys, rows), gather_array(values, rows)]
        yield int(group), pa.Table.from_arrays(columns, schema=RECORDS)


def combined(partition: str, records: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Records of one file group sorted by key bytes, one per key.

    ``records`` are of :data:`RECORDS`, any order.

    Raises:
        InvalidDataError: two different values for one key.
    """
    keys, values = (single_chunk(records.column(number)) for number in range(2))
    order = pc.array_sort_indices(keys).to_numpy().astype(np.int64)
    keys = gather_array(keys, order)
    same = np.zeros(len(keys), np.bool_)
    same[1:] = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    values = gather_array(values, order)
    if not same.any():
        return keys, values
    kept = _one_of_each(partition, keys, values, same)
    return gather_array(keys, kept), gather_array(values, kept)


def _one_of_each(
    partition: str, keys: pa.Array, values: pa.Array, same: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Numbers of the records to keep: the value of each key, or its first delete."""
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


def _collect(source: RecordSource, writer: GroupWriter, bins: GroupBins) -> None:
    for records in source.read(writer.schema):
        for group, table in routed(records, writer):
            bins.put((str(records.partition), group), table)


def _write(writer: GroupWriter, name: Bin, records: pa.Table) -> WriteStat:
    return writer.write(*name, *combined(name[0], records))


class GroupBins:
    """Records by file group, in memory up to a budget, above it in one local file. Thread-safe.

    ``budget`` is in bytes.
    """

    def __init__(self, budget: int = _BUDGET) -> None:
        self._budget = budget
        self._held: dict[Bin, list[pa.Table]] = {}
        self._bytes = 0
        self._lock = threading.Lock()
        self._file: tempfile._TemporaryFileWrapper[bytes] | None = None
        self._stream: pa.ipc.RecordBatchFileWriter | None = None
        self._batches = 0
        self._stored: dict[Bin, list[int]] = {}
        self._reader: pa.ipc.RecordBatchFileReader | None = None

    def put(self, name: Bin, table: pa.Table) -> None:
        """Add records of a group."""
        with self._lock:
            self._held.setdefault(name, []).append(table)
            self._bytes += table.nbytes
            if self._bytes > self._budget:
                self._store()

    def names(self) -> list[Bin]:
        """The groups that have records; call it after the last :meth:`put`."""
        if self._stream is not None and self._file is not None:
            self._store()
            self._stream.close()
            self._reader = pa.ipc.open_file(pa.memory_map(self._file.name))
        return sorted({*self._held, *self._stored})

    def take(self, name: Bin) -> pa.Table:
        """All records of a group."""
        with self._lock:
            tables = self._held.pop(name, [])
            if self._reader is not None:
                batches = [self._reader.get_batch(number) for number in self._stored.get(name, ())]
                tables.append(pa.Table.from_batches(batches, RECORDS))
        return pa.concat_tables(tables)

    def _store(self) -> None:
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile(prefix="hudi_fast-", suffix=".arrow")
            self._stream = pa.ipc.new_file(self._file.name, RECORDS)
        assert self._stream is not None
        for name, tables in self._held.items():
            for batch in pa.concat_tables(tables).combine_chunks().to_batches():
                self._stream.write_batch(batch)
                self._stored.setdefault(name, []).append(self._batches)
                self._batches += 1
        self._held, self._bytes = {}, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None and self._reader is None:
            self._stream.close()
        if self._file is not None:
            self._file.close()
