"""The rows of a group in the order of its new files, in bounded memory.

::

    no sort columns ─────────────────────────────────────────── rows as they are read ─────────────────────────┐
    rows fit ─────── all rows, read ─► order ──────────────────────────────────────────────────── gathered ────┼─► rows
    else ─────────── sort columns, read ─► order ─► the part of each row                                       │
                     all rows, read ─► each to its part on local disk ─► one part after another, gathered ─────┘

Each batch updates the estimated size of all rows; reading stops once the estimate exceeds the memory.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.gather import gather
from hudi_fast.services.clustering.ahead import ahead, side_by_side
from hudi_fast.services.clustering.ordering import order_rows, sort_roots, sort_values
from hudi_fast.services.clustering.rows import GroupInput, read_rows
from hudi_fast.writing.file_columns import carried_schema

__all__ = ["OrderedRows", "SpilledRows", "ordered_rows"]

Rows = npt.NDArray[np.int64]

_AT_ONCE = 1 << 16
_PARTS_IN_MEMORY = 3
"""Copies of a part in memory: as read, in one chunk, and as gathered rows."""

_MAX_PARTS = 1024


@dataclass(frozen=True)
class OrderedRows:
    """Rows to write.

    Attributes:
        count: number of rows; without sort columns, the expected number.
        tables: the rows, in order, with the columns that a new file takes from stored rows.
        spilled: whether they were spilled to local disk.
    """

    count: int
    tables: Generator[pa.Table]
    spilled: bool = False


def ordered_rows(source: GroupInput, expected: int, memory: int) -> OrderedRows:
    """The rows of a group, in the order of its new files.

    Args:
        source: the group.
        expected: rows of its base files.
        memory: Arrow bytes of rows that may be held.

    Raises:
        ConfigError: a sort column does not exist.
        CorruptTableError: one of the files cannot be read.
        UnsupportedFeatureError: the type of a sort column is not sortable.
    """
    if not source.work.ordering.columns:
        return OrderedRows(expected, (pa.Table.from_batches([batch]) for batch in read_rows(source)))
    held = _held(source, expected, memory)
    if isinstance(held, pa.Table):
        order = order_rows(sort_values(held, source.work.ordering.columns), source.work.ordering)
        return OrderedRows(held.num_rows, _gathered(held, order))
    order = _order(source)
    return OrderedRows(len(order), _by_parts(source, order, math.ceil(held * _PARTS_IN_MEMORY / memory)), spilled=True)


# ---- in memory


class _Held:
    """The rows of all slices, as long as they fit; slices may be read in parallel."""

    def __init__(self, source: GroupInput, expected: int, memory: int) -> None:
        self.too_much = 0.0  # estimated bytes of all rows, once they exceed the memory
        self._source, self._expected, self._memory = source, expected, memory
        self._bytes = self._rows = 0
        self._lock = Lock()

    def read(self, number: int) -> list[pa.RecordBatch]:
        """The rows of one slice; stops when the rows of all slices exceed the memory."""
        batches: list[pa.RecordBatch] = []
        if self.too_much:
            return batches
        for batch in read_rows(self._source, slices=[number]):
            batches.append(batch)
            with self._lock:
                self._bytes += batch.nbytes
                self._rows += batch.num_rows
                whole = max(self._bytes, self._bytes / self._rows * self._expected)
                if whole > self._memory:
                    self.too_much = whole
            if self.too_much:
                break
        return batches


def _held(source: GroupInput, expected: int, memory: int) -> pa.Table | float:
    """All rows, each column in one chunk; or their estimated bytes if they exceed the memory."""
    held = _Held(source, expected, memory)
    read = side_by_side(held.read, range(len(source.slices)), source.threads)
    if held.too_much:
        return held.too_much
    schema = carried_schema(source.work.plan)
    table = pa.Table.from_batches([batch for batches in read for batch in batches], schema)
    read.clear()
    columns = [list(table.column(number).chunks) for number in range(table.num_columns)]
    del table  # frees the chunks of a column once they are combined
    return pa.Table.from_arrays(
        side_by_side(_joined, zip(columns, schema.types, strict=True), source.threads), schema=schema
    )


def _joined(parts: tuple[list[pa.Array], pa.DataType]) -> pa.ChunkedArray:
    chunks, kind = parts
    joined = pa.chunked_array(chunks, kind).combine_chunks()
    chunks.clear()
    return joined


def _gathered(rows: pa.Table, order: Rows) -> Generator[pa.Table]:
    for start in range(0, len(order), _AT_ONCE):
        yield gather(rows, order[start : start + _AT_ONCE])


# ---- over local disk


def _order(source: GroupInput) -> Rows:
    columns = source.work.ordering.columns
    roots = sort_roots(carried_schema(source.work.plan), columns)
    batches = list(read_rows(source, roots))
    values = sort_values(pa.Table.from_batches(batches, roots), columns)
    batches.clear()
    return order_rows(values, source.work.ordering)


def _by_parts(source: GroupInput, order: Rows, parts: int) -> Generator[pa.Table]:
    """Rows sorted with local disk: ``order`` is int64[n], cut into ``parts`` runs of equal length."""
    count = max(min(parts, _MAX_PARTS, len(order)), 1)
    bounds = np.linspace(0, len(order), count + 1).astype(np.int64)
    part_of = np.empty(len(order), np.int32)
    for part in range(count):
        part_of[order[bounds[part] : bounds[part + 1]]] = part
    with SpilledRows(carried_schema(source.work.plan), count) as spilled:
        at = 0
        for batch in ahead(read_rows(source), source.threads):
            rows = pa.Table.from_batches([batch])
            numbers, starts = group_rows(part_of[at : at + batch.num_rows], count)
            for part in np.flatnonzero(np.diff(starts)).tolist():
                spilled.add(part, gather(rows, numbers[starts[part] : starts[part + 1]]))
            at += batch.num_rows
        if at != len(order):
            raise CorruptTableError(
                f"The slices of a clustering's group in partition {source.partition!r} of "
                f"{source.work.plan.storage.uri} had {len(order)} rows when they were sorted and {at} when they "
                "were read. Run the clustering again."
            )
        for part in range(count):
            rows_of_part = order[bounds[part] : bounds[part + 1]]
            places = np.empty(len(rows_of_part), np.int64)
            places[np.argsort(rows_of_part)] = np.arange(len(rows_of_part))
            yield from _gathered(spilled.take(part), places)


# ---- spills rows to local disk in parts that fit into memory, to sort them one part at a time
#
# Each part is an Arrow stream, compressed with LZ4. Rows are buffered in memory until they fill a batch.


_WAITING = 2 << 20
"""Arrow bytes of a part that are buffered before they are written."""


class SpilledRows:
    """Rows in numbered parts, each in the order of arrival; a context manager that deletes the files.

    Args:
        schema: of the rows.
        parts: number of parts.
        folder: of the files; None for the folder of temporary files.
    """

    def __init__(self, schema: pa.Schema, parts: int, folder: str | None = None) -> None:
        self._schema = schema
        self._folder = tempfile.TemporaryDirectory(prefix="hudi_fast-clustering-", dir=folder)
        self._waiting: list[list[pa.Table]] = [[] for _ in range(parts)]
        self._bytes = [0] * parts
        self._writers: list[pa.ipc.RecordBatchStreamWriter | None] = [None] * parts

    def add(self, part: int, rows: pa.Table) -> None:
        """Append rows to a part."""
        self._waiting[part].append(rows)
        self._bytes[part] += rows.nbytes
        if self._bytes[part] >= _WAITING:
            self._write(part)

    def take(self, part: int) -> pa.Table:
        """All rows of a part, each column in one chunk if it fits; deletes the part's file."""
        self._write(part)
        writer, self._writers[part] = self._writers[part], None
        if writer is None:
            return self._schema.empty_table()
        writer.close()
        path = self._path(part)
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            rows = reader.read_all()
        os.unlink(path)
        return rows.combine_chunks()

    def __enter__(self) -> SpilledRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._writers:
            if writer is not None:
                writer.close()
        self._folder.cleanup()

    def _write(self, part: int) -> None:
        if not self._waiting[part]:
            return
        rows = pa.concat_tables(self._waiting[part]).combine_chunks()
        self._waiting[part], self._bytes[part] = [], 0
        writer = self._writers[part]
        if writer is None:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            writer = pa.ipc.new_stream(str(self._path(part)), self._schema, options=options)
            self._writers[part] = writer
        writer.write_table(rows)

    def _path(self, part: int) -> Path:
        return Path(self._folder.name) / f"{part}.arrow"
