"""The rows of a clustering's group, in the order of its new files.

Reads the merged rows of a clustering's group, and the key filters of its files.

The rows of a group in the order of its new files, in bounded memory.

::

    no sort columns ─────────────────────────────────────────── rows as they are read ─────────────────────────┐
    rows fit ─────── all rows, read ─► order ──────────────────────────────────────────────────── gathered ────┼─► rows
    else ─────────── sort columns, read ─► order ─► the part of each row                                       │
                     all rows, read ─► each to its part on local disk ─► one part after another, gathered ─────┘

Each batch updates the estimated size of all rows; reading stops once the estimate exceeds the memory.

Prefetching: produces items in another thread while earlier ones are consumed.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.base_file import BaseFileFooter
from hudi_fast.formats.bloom_filter import BloomFilter, union_filters
from hudi_fast.formats.varlen import gather
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.merging.rules import merge_schema
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.services.clustering.cluster_work import ClusteringWork, slices_of
from hudi_fast.services.clustering.ordering import order_rows, sort_roots, sort_values
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.service_plans import ClusteringGroup
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.output_file import carried_schema
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "GroupInput",
    "KnownKeys",
    "OrderedRows",
    "SpilledRows",
    "ahead",
    "group_input",
    "joined_filters",
    "known_keys",
    "ordered_rows",
    "read_rows",
    "side_by_side",
]

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class GroupInput:
    """The input of one group of a clustering.

    Attributes:
        work: the clustering.
        partition: partition path of all its slices.
        slices: file slices, in the order of the plan.
        output_groups: number of new file groups.
    """

    work: ClusteringWork
    partition: str
    slices: tuple[FileSlice, ...]
    output_groups: int

    @property
    def is_merged(self) -> bool:
        """Whether there are logs to merge."""
        return any(one.log_files for one in self.slices)

    @property
    def threads(self) -> int:
        """Threads for this group while other groups run at the same time."""
        return max(self.work.plan.files.threads // max(self.work.group_count, 1), 1)


def group_input(work: ClusteringWork, group: ClusteringGroup) -> GroupInput:
    """Find the files of a group.

    Raises:
        CorruptTableError: one of them is missing.
        UnsupportedFeatureError: the group has slices of several partitions.
    """
    slices = tuple(slices_of(work.plan.storage, group, work.plan.view.history))
    partitions = {one.partition for one in slices}
    if len(partitions) != 1:
        raise UnsupportedFeatureError(
            f"A group of the clustering {work.plan.instant} of {work.plan.storage.uri} has slices of "
            f"{len(partitions)} partitions: {sorted(partitions)}; expected those of one. Use Apache Hudi for it, or "
            "roll it back and plan another one."
        )
    return GroupInput(work, partitions.pop(), slices, max(group.output_groups, 1))


def read_rows(
    source: GroupInput, columns: pa.Schema | None = None, slices: Sequence[int] | None = None
) -> Generator[pa.RecordBatch]:
    """The rows of all slices, merged, slice by slice; their order is deterministic.

    Args:
        source: the group.
        columns: columns to read; None for all columns that a new file takes from stored rows.
        slices: numbers of slices to read; None for all.

    Raises:
        CorruptTableError: one of the files cannot be read.
    """
    plan, merge = source.work.plan, source.work.merge
    wanted = carried_schema(plan) if columns is None else columns
    needed = merge_schema(merge, wanted, plan.file_schema)
    scan = SliceScan(plan.storage, plan.config, wanted, wanted, None, _BATCH_ROWS, merge, needed)
    for number in range(len(source.slices)) if slices is None else slices:
        yield from read_slice(scan, source.slices[number])


@dataclass(frozen=True)
class KnownKeys:
    """The combined footers of a group's base files.

    Attributes:
        rows: total number of rows.
        filter: a bloom filter of all their keys; None when keys must be hashed again.
    """

    rows: int
    filter: BloomFilter | None


def known_keys(source: GroupInput) -> KnownKeys:
    """Read the footers of the base files.

    Their filters are joined if one file gets all rows and there are no log files.

    Raises:
        CorruptTableError: a file or its filter cannot be read.
    """
    plan = source.work.plan
    rows = 0

    def footers() -> Iterator[tuple[str, BaseFileFooter]]:
        nonlocal rows
        for one in source.slices:
            if one.base_file is not None:
                with open_base(plan.storage, one.base_file) as reader:
                    rows += reader.num_rows
                    yield one.base_file.path, reader.footer()

    found = footers()
    joined = None if source.is_merged or source.output_groups > 1 else joined_filters(plan, found)
    for _ in found:
        pass  # rows are counted even if no filter is needed
    return KnownKeys(rows, joined)


def joined_filters(plan: FilePlan, footers: Iterable[tuple[str, BaseFileFooter]]) -> BloomFilter | None:
    """The filters of whole files, joined one by one.

    None when keys must be hashed: filters are disabled, or a file has no filter, or one of another size or kind.

    Args:
        plan: settings of filters.
        footers: of the files, with their paths.
    """
    settings = plan.files.bloom
    if not settings.enabled or not plan.config.populate_meta_fields:
        return None
    like = BloomFilter.create(settings.entries, settings.fpp, settings.max_entries, settings.type)
    all_have_one = True

    def filters() -> Iterator[BloomFilter]:
        nonlocal all_have_one
        for path, footer in footers:
            if footer.bloom_filter is None:
                all_have_one = False
                return
            yield BloomFilter.from_base64(footer.bloom_filter, footer.bloom_type, settings.max_entries, path)

    found = union_filters(filters(), like)
    return found if all_have_one else None


Item = TypeVar("Item")
Made = TypeVar("Made")

_DEPTH = 2


def ahead(items: Generator[Item], threads: int) -> Generator[Item]:
    """The same items, produced in another thread while earlier ones are consumed.

    Args:
        items: closed at the end, or when the consumer stops.
        threads: with less than 2 nothing is prefetched.
    """
    if threads < 2:
        yield from items
        return

    def following() -> list[Item]:
        return [item for item in [next(items, None)] if item is not None]

    with ThreadPool(1, thread_name_prefix="hudi_fast") as pool:
        try:
            waiting: deque[Future[list[Item]]] = deque(pool.submit(following) for _ in range(_DEPTH))
            while item := waiting.popleft().result():
                waiting.append(pool.submit(following))
                yield item[0]
        finally:
            pool.submit(items.close).result()


def side_by_side(make: Callable[[Item], Made], items: Iterable[Item], threads: int) -> list[Made]:
    """The result for each item, in order, computed by several threads."""
    if threads < 2:
        return [make(item) for item in items]
    with ThreadPool(threads, thread_name_prefix="hudi_fast") as pool:
        return list(pool.map(make, items))


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
