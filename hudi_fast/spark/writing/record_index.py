"""Tags rows of a DataFrame with the metadata table's record index; opens no data file.

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

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError
from hudi_fast.index.record_index import RECORD_INDEX, is_by_partition, locate_keys
from hudi_fast.merging.gather import gather_array
from hudi_fast.metadata_table.layout import group_file_id_prefix, group_numbers
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.spark.reading.column_function import in_lots, int_column
from hudi_fast.spark.writing.columns import task_address
from hudi_fast.spark.writing.tasks import is_tried_again, task_attempts
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.key_places import KEYS_AT_ONCE, UNREADABLE, KeyPlaces, slice_numbers
from hudi_fast.writing.located import metadata_for
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["LANE", "NOT_STORED", "by_index_group", "by_index_lanes", "places_by_index", "with_slices"]

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
    size = sum(one.weight for one in metadata_for(plan).groups(RECORD_INDEX))
    if tasks * size > _READ_PER_ROW * count:
        return by_index_group(rows, key, plan, tasks).drop(LANE)
    address = task_address(F.pmod(F.hash(key), F.lit(tasks)), tasks)
    return rows.withColumn(LANE, address).repartition(tasks, LANE).drop(LANE)


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
