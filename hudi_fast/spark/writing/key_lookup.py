"""Tag rows of a DataFrame: by the keys in file slices, or by the record index.

Tags rows of a DataFrame by looking their keys up in the slices of their partition.

::

    rows + partition + key ─► lanes of each partition ─► one shuffle by lane ─► lookup ─► rows + slice

A lane is a task, which reads the keys of all slices of its partitions. A partition has lanes in proportion to its rows.
This is faster than a join with all stored keys, which sorts both sides as text, unless many lanes would read the same
slices. Where most rows are in one partition nearly every lane reads it, and the shuffle would save few reads: rows are
then looked up in the tasks that compute them.

From PySpark 4.1 on, the lookup is part of :mod:`hudi_fast.spark.writing.packed_rows`. Before, only keys and partition
paths are sent to Python and only numbers are returned (:func:`with_looked_up_slices`).

Tags rows of a DataFrame with the metadata table's record index; opens no data file.

::

    large index    rows + key ─► file group of the index ─► one shuffle ─► a few tasks for each such group ─┐
    small index    rows + key ─────────────────────────────► one shuffle ─► tasks that read the whole index ┴─► lookup

Rows of one key are in one task, so combining them needs no further shuffle. From PySpark 4.1 on, the lookup is part of
:mod:`hudi_fast.spark.writing.packed_rows`, unless rows may move to other partitions. Otherwise only keys are sent to
Python and only numbers are returned, and full rows are shuffled again to the task of their file group.

If the index cannot be read, rows get :data:`UNREADABLE` as their slice: the task that writes them reads the index again
and raises the error, because Spark would hide it inside its own exception.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError
from hudi_fast.formats.varlen import gather_array, single_chunk, varlen_buffers
from hudi_fast.index.metadata_lookup import RECORD_INDEX, is_by_partition, locate_keys
from hudi_fast.index.tagging import IncomingKeys
from hudi_fast.kernels.key_table import hash_keys
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.metadata_table.layout import group_file_id_prefix, group_numbers
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.spark.arrow import frame_of
from hudi_fast.spark.reading.column_function import in_lots, int_column, ints_of_columns
from hudi_fast.spark.writing.columns import task_address
from hudi_fast.spark.writing.tasks import is_tried_again, task_attempts
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.located import (
    KEYS_AT_ONCE,
    UNREADABLE,
    KeyPlaces,
    metadata_for,
    places_of_matches,
    slice_numbers,
)
from hudi_fast.writing.lookup import look_up_all
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "LANE",
    "NOT_STORED",
    "IndexLanes",
    "Lanes",
    "by_index_group",
    "by_index_lanes",
    "by_lanes",
    "index_lanes",
    "lanes_of_partitions",
    "places_by_index",
    "places_of_keys",
    "with_looked_up_slices",
    "with_slices",
]

_LANE = "__hudi_fast_lane"
_FIRST, _COUNT = "__hudi_fast_first_lane", "__hudi_fast_lanes"

_MAX_READS = 16
"""A slice is read by at most this many lanes, on the average over stored bytes."""

_MORE_READS = 1.5
"""Reading up to this many times as many stored keys costs less than a shuffle of all rows."""

_MORE_ROWS = 1.25
"""Rows are looked up in the tasks that compute them if no lane gets more than this many times an even share of them."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The tasks that look up the keys of each partition.

    Attributes:
        tasks: number of tasks.
        ranges: (first task, number of tasks) by partition path; a range continues at 0 after the last task. None for
            lanes of all partitions, without a shuffle.
    """

    tasks: int
    ranges: Mapping[str, tuple[int, int]] | None

    @property
    def moves_rows(self) -> bool:
        """Whether rows are sent to their lane."""
        return self.ranges is not None

    def numbers(self, keys: pa.Array, paths: pa.Array) -> npt.NDArray[np.int32]:
        """The lane of each of n rows, int32[n], by record keys and partition paths, string[n]."""
        assert self.ranges is not None
        coded = paths.dictionary_encode()
        known = [self.ranges.get(name, (zlib.crc32(name.encode()), 1)) for name in coded.dictionary.to_pylist()]
        codes = np.asarray(coded.indices)
        first = np.array([one for one, _ in known], dtype=np.uint64)[codes]
        count = np.array([one for _, one in known], dtype=np.uint64)[codes]
        found: npt.NDArray[np.int32] = ((first + _hashes(keys) % count) % np.uint64(self.tasks)).astype(np.int32)
        return found


@dataclass(frozen=True, slots=True)
class IndexLanes:
    """The tasks that look keys up in the record index: each reads some of its file groups.

    Attributes:
        tasks: number of tasks. If there are more than file groups, several tasks share the keys of one.
        groups: number of file groups of the index.
    """

    tasks: int
    groups: int

    @property
    def moves_rows(self) -> bool:
        """Whether rows are sent to their lane."""
        return True

    def numbers(self, keys: pa.Array, paths: pa.Array) -> npt.NDArray[np.int32]:
        """As :meth:`Lanes.numbers`; rows of one key have one lane."""
        parts = max(1, self.tasks // self.groups)
        part = (_hashes(keys) % np.uint64(parts)).astype(np.int64)
        lanes = group_numbers(keys.fill_null(""), self.groups).astype(np.int64) * parts + part
        return (lanes % self.tasks).astype(np.int32)


def _hashes(keys: pa.Array) -> npt.NDArray[np.uint64]:
    buffers = varlen_buffers(keys)
    hashes = np.empty(len(keys), dtype=np.uint64)
    hash_keys(buffers.offsets, buffers.data, hashes)
    return hashes


def lanes_of_partitions(
    rows: Mapping[str, int], slices: Sequence[FileSlice], tasks: int, inputs: int = 0
) -> Lanes | None:
    """Share tasks among partitions by their rows.

    Args:
        rows: number of rows by partition path.
        slices: the slices of these partitions.
        tasks: number of tasks.
        inputs: number of tasks that compute the rows; 0 if they must not look keys up.

    Returns:
        None if the slices would be read too often.
    """
    stored: dict[str, int] = {}
    for one in slices:
        stored[one.partition] = stored.get(one.partition, 0) + one.weight
    total, start = sum(rows.values()), 0.0
    ranges: dict[str, tuple[int, int]] = {}
    for name in sorted(rows):
        share = tasks * rows[name] / max(1, total)
        ranges[name] = int(start) % tasks, min(tasks, max(1, round(share)))
        start += share
    every = max(1, sum(stored.values()))
    read = sum(size * ranges[name][1] for name, size in stored.items() if name in ranges)
    if read > _MAX_READS * every:
        return None
    even = tasks <= inputs and -(-inputs // tasks) * tasks <= _MORE_ROWS * inputs
    return Lanes(tasks, None if even and tasks * every <= min(_MORE_READS * read, _MAX_READS * every) else ranges)


def by_lanes(rows: Any, key: str, path: str, lanes: Lanes) -> Any:
    """The rows in the lanes of their partition.

    Args:
        rows: have the columns ``key`` and ``path``.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        lanes: of the partitions; other partitions have one lane each.
    """
    if lanes.ranges is None:
        return rows.coalesce(lanes.tasks)
    columns = {
        path: pa.array(lanes.ranges, pa.string()),
        _FIRST: pa.array([first for first, _ in lanes.ranges.values()], pa.int32()),
        _COUNT: pa.array([count for _, count in lanes.ranges.values()], pa.int32()),
    }
    places = frame_of(rows.sparkSession, pa.table(columns))
    rows = rows.join(F.broadcast(places), path, "left")
    lane = F.coalesce(F.col(_FIRST) + F.pmod(F.hash(key), F.col(_COUNT)), F.hash(path))
    address = task_address(F.pmod(lane, F.lit(lanes.tasks)), lanes.tasks)
    return rows.withColumn(_LANE, address).repartition(lanes.tasks, _LANE).drop(_FIRST, _COUNT, _LANE)


def with_looked_up_slices(
    rows: Any, key: str, path: str, plan: WritePlan, slices: Sequence[FileSlice], name: str
) -> Any:
    """Rows with the number of the slice that holds their key; once for each slice, where several hold it.

    Args:
        rows: of :func:`by_lanes`.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        plan: the write.
        slices: all slices of the partitions; a slice's number is its position.
        name: of the new column; null where no slice holds the key.
    """
    attempts = task_attempts(rows.sparkSession)
    found = ints_of_columns(_slices_of(plan, slices, attempts), F.col(path), F.col(key))
    return rows.withColumn(name, F.explode_outer(found))


def _slices_of(plan: WritePlan, slices: Sequence[FileSlice], attempts: int) -> Any:
    def find(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for part in in_lots(batches, lambda batch: len(batch[0]), KEYS_AT_ONCE):
            paths = pa.chunked_array([path for path, _ in part])
            keys = pa.concat_arrays([key for _, key in part])
            found, start = _lists(places_of_keys(plan, slices, keys, paths, attempts), len(keys)), 0
            for path, _ in part:
                yield found.slice(start, len(path))
                start += len(path)

    return find


def places_of_keys(
    plan: WritePlan, slices: Sequence[FileSlice], keys: pa.Array, paths: pa.ChunkedArray, attempts: int
) -> KeyPlaces:
    """The slices that hold the keys of rows.

    Args:
        plan: the write.
        slices: all slices of the partitions; a slice's number is its position.
        keys: string[n], record keys.
        paths: string[n], partition paths.
        attempts: how often Spark executes this task at most.
    """
    numbers = slice_numbers(slices)
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        by_partition.setdefault(one.partition, []).append(one)
    coded = single_chunk(paths.dictionary_encode())
    valid = np.asarray(keys.is_valid()) & np.asarray(coded.is_valid())
    codes = np.where(valid, np.asarray(coded.indices.fill_null(-1)), -1).astype(np.int32) + np.int32(1)
    order, bounds = group_rows(codes, len(coded.dictionary) + 1)
    places = []
    for code, name in enumerate(coded.dictionary.to_pylist(), start=1):
        rows = order[bounds[code] : bounds[code + 1]]
        if len(rows) and name in by_partition:
            places.append(_places_or_unreadable(plan, by_partition[name], numbers, keys, rows, attempts))
    return KeyPlaces.joined(places)


def _places_or_unreadable(
    plan: WritePlan,
    slices: Sequence[FileSlice],
    numbers: Mapping[tuple[str, str], int],
    keys: pa.Array,
    rows: Rows,
    attempts: int,
) -> KeyPlaces:
    try:
        return _places(plan, slices, numbers, keys, rows)
    except HudiError as error:
        if is_tried_again(error, attempts):
            raise
        return KeyPlaces.in_slices(rows, np.full(len(rows), UNREADABLE, dtype=np.int64))


def _places(
    plan: WritePlan, slices: Sequence[FileSlice], numbers: Mapping[tuple[str, str], int], keys: pa.Array, rows: Rows
) -> KeyPlaces:
    """The places of the keys of ``rows``; several rows may share a key."""
    chosen = gather_array(keys, rows)
    incoming = IncomingKeys.of(chosen, np.arange(len(chosen), dtype=np.int64))
    found = places_of_matches(look_up_all(plan, slices, incoming, map), numbers)
    buffers = varlen_buffers(chosen)
    found_as = incoming.table.probe(buffers.offsets, buffers.data)  # equal keys are all found at the first of them
    found = found.spread(found_as)
    return KeyPlaces(rows[found.rows], found.slices, found.stored)


def _lists(places: KeyPlaces, count: int) -> pa.ListArray:
    """The slices of each of ``count`` rows, list<int32>."""
    order = np.argsort(places.rows, kind="stable")
    ends = np.cumsum(np.bincount(places.rows, minlength=count))
    values = places.slices[order].astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]).astype(np.int32)), pa.array(values))


LANE = "__hudi_fast_lane"
"""Column with the number of the task that looks up a key."""

NOT_STORED = -1
"""The slice of rows whose key is not stored."""

_READ_PER_ROW = 512
"""Reading up to this many bytes of the index per row costs less than computing the row's file group in Python."""


def by_index_group(rows: Any, key: str, plan: WritePlan, tasks: int) -> Any:
    """Shuffle rows to tasks; each task serves one file group of the record index, or a part of its keys.

    Args:
        rows: has the column ``key``.
        key: name of the column of record keys.
        plan: the write; its index is global, or its table has no partitions.
        tasks: number of tasks.

    Returns:
        The rows with a column :data:`LANE`; rows of one key are in one task and have one lane.
    """
    table = metadata_for(plan)
    groups = _group_count(table)
    parts = max(1, tasks // groups)
    number = int_column(_group_of(groups), F.col(key))
    part = F.pmod(F.hash(key), F.lit(parts))
    lane = F.pmod(number * F.lit(parts) + part, F.lit(tasks))
    return rows.withColumn(LANE, task_address(lane, tasks)).repartition(tasks, LANE)


def by_index_lanes(rows: Any, key: str, plan: WritePlan, tasks: int, count: int) -> Any:
    """Shuffle rows to the tasks that look their keys up; rows of one key are in one task.

    Args:
        rows: has the column ``key``.
        key: name of the column of record keys.
        plan: the write; its index is global, or its table has no partitions.
        tasks: number of tasks.
        count: number of rows.
    """
    if not _reads_whole_index(plan, tasks, count):
        return by_index_group(rows, key, plan, tasks).drop(LANE)
    address = task_address(F.pmod(F.hash(key), F.lit(tasks)), tasks)
    return rows.withColumn(LANE, address).repartition(tasks, LANE).drop(LANE)


def _reads_whole_index(plan: WritePlan, tasks: int, count: int) -> bool:
    """Whether each of ``tasks`` tasks, which share ``count`` rows, may read the whole record index."""
    size = sum(one.weight for one in metadata_for(plan).groups(RECORD_INDEX))
    return tasks * size <= _READ_PER_ROW * count


def index_lanes(plan: WritePlan, tasks: int, count: int) -> IndexLanes | None:
    """The lanes of ``count`` rows whose index is global, or whose table has no partitions.

    Rows of one key meet in one lane, unless keys that are not stored do not matter: then None, for the tasks that read
    the rows.
    """
    if plan.operation == "delete" and _reads_whole_index(plan, tasks, count):
        return None
    return IndexLanes(tasks, _group_count(metadata_for(plan)))


def places_by_index(
    plan: WritePlan, slices: Sequence[FileSlice], keys: pa.Array, paths: pa.ChunkedArray, attempts: int
) -> KeyPlaces:
    """The slices that the record index names for keys, without their rows in the base files.

    Args:
        plan: the write; its index is global, or its table has no partitions.
        slices: all slices of the table; a slice's number is its position.
        keys: string[n], record keys.
        paths: string[n], partition paths, which do not matter.
        attempts: how often Spark executes this task at most.
    """
    table, numbers = metadata_for(plan), slice_numbers(slices)
    rows = np.flatnonzero(np.asarray(keys.is_valid()))
    found = [
        _slices_of_keys(table, numbers, gather_array(keys, rows[start : start + KEYS_AT_ONCE]), attempts)
        for start in range(0, len(rows), KEYS_AT_ONCE)
    ]
    of_row = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    stored = of_row != NOT_STORED
    return KeyPlaces.in_slices(rows[stored], of_row[stored])


def with_slices(rows: Any, key: str, plan: WritePlan, slices: Sequence[FileSlice], name: str) -> Any:
    """Rows with the number of the slice that the record index names for their key.

    Args:
        rows: of :func:`by_index_group`.
        key: name of the column of record keys.
        plan: the write.
        slices: all slices of the table; a slice's number is its position.
        name: of the new column; null where no slice holds the key.
    """
    attempts = task_attempts(rows.sparkSession)
    found = int_column(_slice_of(metadata_for(plan), slice_numbers(slices), attempts), F.col(key))
    return rows.withColumn(name, found).withColumn(name, F.nullif(F.col(name), F.lit(NOT_STORED)))


def _group_count(table: MetadataTable) -> int:
    groups = table.groups(RECORD_INDEX)
    if (partition := _data_partition(table)) is None:
        return len(groups)
    prefix = group_file_id_prefix(RECORD_INDEX, partition)
    return max(1, sum(one.file_id.startswith(prefix) for one in groups))


def _data_partition(table: MetadataTable) -> str | None:
    """The only partition of a table without partitions, for a partitioned record index."""
    return "" if is_by_partition(table) else None


def _group_of(groups: int) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    def numbers(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for keys in batches:
            yield pa.array(group_numbers(keys.fill_null(""), groups))

    return numbers


def _slice_of(
    table: MetadataTable, numbers: Mapping[tuple[str, str], int], attempts: int
) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    def slices(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for part in in_lots(batches, len, KEYS_AT_ONCE):
            keys = pa.concat_arrays(part)
            found = np.full(len(keys), NOT_STORED, dtype=np.int32)
            found[np.asarray(keys.is_valid())] = _slices_of_keys(table, numbers, keys.drop_null(), attempts)
            start = 0
            for batch in part:
                yield pa.array(found[start : start + len(batch)])
                start += len(batch)

    return slices


def _slices_of_keys(
    table: MetadataTable, numbers: Mapping[tuple[str, str], int], keys: pa.Array, attempts: int
) -> npt.NDArray[np.int64]:
    """The slice of each key, int64[n], or :data:`NOT_STORED` or :data:`UNREADABLE`; no key is null."""
    try:
        where = locate_keys(table, keys, _data_partition(table))
    except HudiError as error:
        if is_tried_again(error, attempts):
            raise
        return np.full(len(keys), UNREADABLE, dtype=np.int64)
    places = np.array([numbers.get(group, NOT_STORED) for group in where.groups] + [NOT_STORED], dtype=np.int64)
    return places[where.numbers]  # -1, not found, is the last place
