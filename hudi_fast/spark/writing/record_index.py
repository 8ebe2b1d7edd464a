"""Tags rows of a DataFrame with the metadata table's record index; opens no data file.

::

    rows + key ─► file group of the record index that has the key ─► one shuffle ─► a few tasks for each such group
        ─► lookup ─► rows + slice

Only keys are sent to Python and only numbers are returned, so full rows are shuffled twice (to the index, then to the
task of their file group) and the source runs once. A task opens the index files for its keys only. Rows of one key are
in one task, so combining them needs no further shuffle.

If the index cannot be read, rows get :data:`UNREADABLE` as their slice: the task that writes them reads the index again
and raises the error, because Spark would hide it inside its own exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.errors import HudiError
from hudi_fast.index.record_index import RECORD_INDEX, is_by_partition, locate_keys
from hudi_fast.metadata_table.layout import group_file_id_prefix, group_numbers
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.spark.reading.column_function import in_lots, int_column
from hudi_fast.spark.writing.columns import task_address
from hudi_fast.spark.writing.tasks import is_tried_again, task_attempts
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.located import metadata_for
from hudi_fast.writing.plan import WritePlan

__all__ = ["LANE", "NOT_STORED", "UNREADABLE", "by_index_group", "with_slices"]

LANE = "__hudi_fast_lane"
"""Column with the number of the task that looks up a key."""

UNREADABLE = -2
"""The slice of rows whose index could not be read."""

NOT_STORED = -1
"""The slice of rows whose key is not stored."""

_KEYS_AT_ONCE = 1 << 20


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


def with_slices(rows: Any, key: str, plan: WritePlan, slices: Sequence[FileSlice], name: str) -> Any:
    """Rows with the number of the slice that the record index names for their key.

    Args:
        rows: of :func:`by_index_group`.
        key: name of the column of record keys.
        plan: the write.
        slices: all slices of the table; a slice's number is its position.
        name: of the new column; null where no slice holds the key.
    """
    table = metadata_for(plan)
    numbers = {(one.partition, one.file_id): number for number, one in enumerate(slices)}
    attempts = task_attempts(rows.sparkSession)
    found = int_column(_slice_of(table, numbers, _data_partition(table), attempts), F.col(key))
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
    table: MetadataTable, numbers: dict[tuple[str, str], int], data_partition: str | None, attempts: int
) -> Callable[[Iterator[pa.Array]], Iterator[pa.Array]]:
    def slices(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for part in in_lots(batches, len, _KEYS_AT_ONCE):  # a lookup may read every block of a file group
            keys = pa.concat_arrays(part)
            found = np.full(len(keys), NOT_STORED, dtype=np.int32)
            valid = np.flatnonzero(keys.is_valid())
            try:
                where = locate_keys(table, keys.drop_null(), data_partition)
                places = np.array([numbers.get(group, NOT_STORED) for group in where.groups] + [NOT_STORED], np.int32)
                found[valid] = places[where.numbers]  # -1, not found, is the last place
            except HudiError as error:
                if is_tried_again(error, attempts):
                    raise
                found[valid] = UNREADABLE
            start = 0
            for batch in part:
                yield pa.array(found[start : start + len(batch)])
                start += len(batch)

    return slices
