"""The direct plan of bulk_insert: each task writes the rows that it reads, or a range of an order.

::

    sort mode                      rows of a task                     files
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    NONE, PARTITION_SORT           as they are read, if that makes    one for each partition that a task holds
                                   few files; else the routed plan
    GLOBAL_SORT, sort columns      a range of the order               about as many ranges as full files
    PARTITION_PATH_REPARTITION...  whole partitions                   as many as their size requires

The total size of the rows decides the number of tasks; the number of cores counts only where it does not make files
smaller. One or two tasks need no count of the rows: a partition gets at most one file more than its size requires.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.row_buffer import RowBuffer, write_failure
from hudi_fast.spark.arrow import ARROW_GROWTH, estimated_bytes, parallelism, reads_files
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.incoming.scan_tasks import rows_in_tasks
from hudi_fast.spark.writing.columns import key_text, nested_column, partition_text
from hudi_fast.spark.writing.tasks import Answer, run_tasks, task_token, write_partitions
from hudi_fast.spark.writing.workload import LEAST_BYTES, PARTITIONS_TASK_BYTES
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.prepare import prepare_rows, spooled_form, with_auto_keys
from hudi_fast.writing.profile import WorkloadProfile, sizing_of
from hudi_fast.writing.sizing import files_of_parts, max_files
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["Arrangement", "BulkFiles", "arrangement", "bulk_files", "few_tasks", "run_direct", "takes_any_rows"]

_PATH, _ADDRESS = "__hudi_fast_path", "__hudi_fast_address"

_FEW = 2


class Arrangement(enum.Enum):
    """The rows that a task of a bulk_insert gets."""

    ANY = "any rows"
    RANGES = "a range of an order"
    PARTITIONS = "whole partitions"


@dataclass(frozen=True, slots=True)
class BulkFiles:
    """The files of a bulk_insert.

    Attributes:
        asked: number of files of the maximum size that hold the rows, counted for each partition separately.
        partitions: number of table partitions.
        full: number of files of the maximum size that would hold the rows if they were in one partition.
    """

    asked: int
    partitions: int
    full: int

    @property
    def limit(self) -> int:
        """Maximum number of files to write."""
        return max_files(self.asked, self.partitions)

    def range_tasks(self, wanted: int) -> int:
        """The number of tasks for ranges, each of which ends a file.

        A range should fit into one file, although ranges differ in size.

        Args:
            wanted: tasks that keep all cores busy.
        """
        return min(self.limit - self.partitions + 1, max(wanted, max_files(self.full, 1)))


def arrangement(plan: WritePlan) -> Arrangement:
    """The rows that a task gets, by the sort mode and the options."""
    if (plan.sort_columns and not plan.combine) or plan.sort_mode == "GLOBAL_SORT":
        return Arrangement.RANGES
    if plan.config.is_partitioned and plan.sort_mode.startswith("PARTITION_PATH"):
        return Arrangement.PARTITIONS
    return Arrangement.ANY


def bulk_files(plan: WritePlan, profile: WorkloadProfile) -> BulkFiles:
    """The numbers of files that the size of the rows requires."""
    per_file = sizing_of(plan).records_per_new_file(plan.files.average_record_size)
    counts = [count for count in profile.rows.values() if count]
    return BulkFiles(files_of_parts(counts, per_file), len(counts), -(-sum(counts) // per_file))


def few_tasks(df: Any) -> int:
    """1 or 2 if more tasks would have too little work, or there are no more cores; 0 for more rows."""
    estimate = estimated_bytes(df)
    if estimate is None:
        return 0
    size = estimate * ARROW_GROWTH
    if size <= _FEW * LEAST_BYTES and reads_files(df):
        return 1 + (size > LEAST_BYTES)
    return _FEW if size <= _FEW * PARTITIONS_TASK_BYTES and parallelism(df.sparkSession) <= _FEW else 0


def takes_any_rows(plan: WritePlan) -> bool:
    """Whether a task writes any rows, in any order."""
    unsorted = not plan.combine and not plan.sort_columns
    return unsorted and (
        plan.sort_mode == "NONE" or (not plan.config.is_partitioned and plan.sort_mode.startswith("PARTITION_PATH"))
    )


def run_direct(df: Any, plan: WritePlan, tasks: int, files: FileScan | None = None) -> list[Answer]:
    """Write the rows in the tasks of the sort mode; returns the tasks' results.

    Args:
        df: the rows.
        plan: the write.
        tasks: number of tasks; their maximum where rows are written as they are read.
        files: the same rows, which the tasks read themselves; only if tasks take any rows.
    """
    if not takes_any_rows(plan):
        path = partition_text(df, plan.key_config, plan.input_schema)
        return run_tasks(_distributed(df, plan, path, tasks), plan, write_partitions(plan))
    work = _write_unsorted(plan)
    if files is None:
        return run_tasks(df.coalesce(tasks), plan, work)
    rows = rows_in_tasks(df.sparkSession, files, tasks)
    return run_tasks(rows.numbers, plan, rows.reading(work))


def _distributed(df: Any, plan: WritePlan, path: Any, tasks: int) -> Any:
    """Sort rows by table partition; if rows are combined, rows of one key are in one task.

    Sort columns of the user apply to a partition as a whole, unless rows are combined: then they apply to each file.
    """
    mode = plan.sort_mode
    keyed = bool(plan.key_config.record_key_fields)
    key = key_text(df, plan.key_config, plan.input_schema) if keyed else F.lit("")
    placed = df.withColumn(_PATH, F.lit("") if path is None else path).withColumn(_ADDRESS, key)
    columns = [nested_column(name) for name in plan.sort_columns]
    if columns and plan.sorts_by_key:
        columns.append(F.col(_ADDRESS))
    if columns and not plan.combine:
        placed = placed.repartitionByRange(tasks, _PATH, *columns)
    elif mode == "GLOBAL_SORT":
        placed = placed.repartitionByRange(tasks, _PATH, _ADDRESS)
    elif plan.combine or mode.startswith("PARTITION_PATH"):
        placed = placed.repartition(tasks, _ADDRESS if path is None else _PATH)
    else:
        placed = placed.coalesce(tasks)
    order = [_PATH, _ADDRESS] if mode in ("GLOBAL_SORT", "PARTITION_SORT") else [_PATH]
    return placed.sortWithinPartitions(*order).select(*[f"`{name}`" for name in df.columns])


def _write_unsorted(plan: WritePlan) -> Any:
    """A bulk insert task with rows in any order of partitions."""

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        token = task_token()
        with RowBuffer(partial(write_failure, plan.storage.uri), partial(spooled_form, plan)) as buffer:
            for batch in batches:
                buffer.add(batch)
            collected = buffer.take()
            if collected is None or collected.table.num_rows == 0:
                return Answer()
            incoming = with_auto_keys(plan, prepare_rows(plan, collected.table, collected.release), token.task)
            names = incoming.partitions.dictionary.to_pylist()
            order, bounds = group_rows(np.asarray(incoming.partitions.indices, dtype=np.int32), len(names))
            stats: list[WriteStat] = []
            sequence = 0
            for number, name in enumerate(names):
                rows = order[bounds[number] : bounds[number + 1]]
                for one in assign_partition(plan, name, incoming, rows, token, first_sequence=sequence):
                    stats += write_file_group(plan, one, incoming)
                sequence += len(rows)
        return Answer(stats, frozenset(names))

    return work
