"""Tags rows of a DataFrame by looking their keys up in the slices of their partition.

::

    rows + partition + key ─► lanes of each partition ─► one shuffle by lane ─► lookup ─► rows + slice

Only keys and partition paths are sent to Python and only numbers are returned. A partition has lanes in proportion to
its rows, and each lane reads the keys of all its slices. This is faster than a join with all stored keys, which sorts
both sides as text, unless many lanes would read the same slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError
from hudi_fast.index.tagging import IncomingKeys
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.gather import gather_array
from hudi_fast.spark.reading.column_function import int_of_columns
from hudi_fast.spark.writing.record_index import NOT_STORED, UNREADABLE
from hudi_fast.spark.writing.routing import addresses, slice_bytes
from hudi_fast.spark.writing.tasks import is_tried_again, task_attempts
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.lookup import look_up_all
from hudi_fast.writing.plan import WritePlan

__all__ = ["Lanes", "by_lanes", "lanes_of_partitions", "with_looked_up_slices"]

_LANE = "__hudi_fast_lane"
_FIRST, _COUNT = "__hudi_fast_first_lane", "__hudi_fast_lanes"

_MOST_READS = 16
"""A slice is read by at most this many lanes, on the average over stored bytes."""

_KEYS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Lanes:
    """The tasks that look up the keys of each partition.

    Attributes:
        tasks: number of tasks.
        ranges: (first task, number of tasks) by partition path; a range continues at 0 after the last task.
    """

    tasks: int
    ranges: Mapping[str, tuple[int, int]]


def lanes_of_partitions(rows: Mapping[str, int], slices: Sequence[FileSlice], tasks: int) -> Lanes | None:
    """Share tasks among partitions by their rows.

    Args:
        rows: number of rows by partition path.
        slices: the slices of these partitions.
        tasks: number of tasks.

    Returns:
        None if the slices would be read too often.
    """
    stored: dict[str, int] = {}
    for one in slices:
        stored[one.partition] = stored.get(one.partition, 0) + slice_bytes(one)
    total, start = sum(rows.values()), 0.0
    ranges: dict[str, tuple[int, int]] = {}
    for name in sorted(rows):
        share = tasks * rows[name] / max(1, total)
        ranges[name] = int(start) % tasks, min(tasks, max(1, round(share)))
        start += share
    read = sum(size * ranges[name][1] for name, size in stored.items() if name in ranges)
    return Lanes(tasks, ranges) if read <= _MOST_READS * max(1, sum(stored.values())) else None


def by_lanes(rows: Any, key: str, path: str, lanes: Lanes) -> Any:
    """Shuffle rows to the lanes of their partition; rows of one key are in one task.

    Args:
        rows: have the columns ``key`` and ``path``.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        lanes: of the partitions; other partitions have one lane each.
    """
    listed = [(name, first, count) for name, (first, count) in lanes.ranges.items()]
    places = rows.sparkSession.createDataFrame(listed, f"{path} string, {_FIRST} int, {_COUNT} int")
    rows = rows.join(F.broadcast(places), path, "left")
    lane = F.coalesce(F.col(_FIRST) + F.pmod(F.hash(key), F.col(_COUNT)), F.hash(path))
    numbers = F.array(*[F.lit(one) for one in addresses(lanes.tasks)])
    address = F.element_at(numbers, (F.pmod(lane, F.lit(lanes.tasks)) + F.lit(1)).cast("int"))
    return rows.withColumn(_LANE, address).repartition(lanes.tasks, _LANE).drop(_FIRST, _COUNT, _LANE)


def with_looked_up_slices(
    rows: Any, key: str, path: str, plan: WritePlan, slices: Sequence[FileSlice], name: str
) -> Any:
    """Rows with the number of the slice that holds their key.

    Args:
        rows: of :func:`by_lanes`.
        key: name of the column of record keys.
        path: name of the column of partition paths.
        plan: the write.
        slices: all slices of the partitions; a slice's number is its position.
        name: of the new column; null where no slice holds the key.
    """
    attempts = task_attempts(rows.sparkSession)
    found = int_of_columns(_slice_of(plan, slices, attempts), F.col(path), F.col(key))
    return rows.withColumn(name, found).withColumn(name, F.nullif(F.col(name), F.lit(NOT_STORED)))


def _slice_of(plan: WritePlan, slices: Sequence[FileSlice], attempts: int) -> Any:
    numbers = {(one.partition, one.file_id): number for number, one in enumerate(slices)}
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        by_partition.setdefault(one.partition, []).append(one)

    def find(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for part in _parts(batches):
            paths = pa.chunked_array([path for path, _ in part]).dictionary_encode().combine_chunks()
            keys = pa.concat_arrays([key for _, key in part])
            found = _found(plan, by_partition, numbers, paths, keys, attempts)
            start = 0
            for path, _ in part:
                yield pa.array(found[start : start + len(path)])
                start += len(path)

    return find


def _found(
    plan: WritePlan,
    by_partition: Mapping[str, list[FileSlice]],
    numbers: Mapping[tuple[str, str], int],
    paths: pa.DictionaryArray,
    keys: pa.Array,
    attempts: int,
) -> npt.NDArray[np.int32]:
    """The slice of each key; :data:`UNREADABLE` for a partition whose files cannot be read."""
    found = np.full(len(keys), NOT_STORED, dtype=np.int32)
    valid = np.asarray(keys.is_valid()) & np.asarray(paths.is_valid())
    codes = np.where(valid, np.asarray(paths.indices.fill_null(-1)), -1).astype(np.int32) + np.int32(1)
    order, bounds = group_rows(codes, len(paths.dictionary) + 1)
    for code, name in enumerate(paths.dictionary.to_pylist(), start=1):
        rows = order[bounds[code] : bounds[code + 1]]
        here = by_partition.get(name, [])
        if not len(rows) or not here:
            continue
        try:
            found[rows] = _slices_of_keys(plan, here, numbers, gather_array(keys, rows))
        except HudiError as error:
            if is_tried_again(error, attempts):
                raise
            found[rows] = UNREADABLE
    return found


def _slices_of_keys(
    plan: WritePlan, slices: Sequence[FileSlice], numbers: Mapping[tuple[str, str], int], keys: pa.Array
) -> npt.NDArray[np.int32]:
    coded = keys.dictionary_encode()
    unique = np.full(len(coded.dictionary), NOT_STORED, dtype=np.int32)
    incoming = IncomingKeys.of(coded.dictionary, np.arange(len(unique), dtype=np.int64))
    for match in look_up_all(plan, slices, incoming, map):
        unique[match.incoming_rows] = numbers[match.slice.partition, match.slice.file_id]
    found: npt.NDArray[np.int32] = unique[np.asarray(coded.indices)]
    return found


def _parts(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[list[tuple[pa.Array, pa.Array]]]:
    """Group batches to lists of many keys: each lookup reads the keys of every slice."""
    waiting: list[tuple[pa.Array, pa.Array]] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += len(batch[0])
        if count >= _KEYS_AT_ONCE:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting
