"""The fused plan: one shuffle by table partition; and the direct plan of bulk_insert, which has no shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.row_buffer import RowBuffer, write_failure
from hudi_fast.spark.arrow import ARROW_GROWTH, estimated_bytes, frame_of, parallelism
from hudi_fast.spark.writing.columns import by_partition, key_text, nested_column, partition_text, task_address
from hudi_fast.spark.writing.routing import addresses, pack_bins
from hudi_fast.spark.writing.tasks import (
    Answer,
    run_tasks,
    task_token,
    write_partitions,
)
from hudi_fast.spark.writing.workload import TASKS_PER_CORE
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.prepare import prepare_rows, spooled_form, with_auto_keys
from hudi_fast.writing.profile import WorkloadProfile

__all__ = ["TASK_BYTES", "run_direct", "run_fused"]

TASK_BYTES = 256 << 20
"""Arrow bytes of rows that a task for whole partitions may have; a part of them may be in a local file."""

_PATH, _ADDRESS = "__hudi_fast_path", "__hudi_fast_address"

_LISTED_PARTITIONS = 1000
"""Without a profile, the files of more table partitions than this are not listed to balance the tasks."""

_LITERAL_PARTITIONS = 32
"""Beyond this number of partitions, tasks are assigned by a join, a job of about 0.2 s. A literal map is searched
from its start for each row."""


def run_fused(df: Any, plan: WritePlan, profile: WorkloadProfile | None, tasks: int) -> list[Answer]:
    """Shuffle rows to tasks that own whole table partitions; returns the tasks' results.

    Args:
        df: the rows.
        plan: the write.
        profile: rows per partition; None if unknown.
        tasks: number of tasks.
    """
    names = df.columns
    path = partition_text(df, plan.key_config, plan.input_schema)
    if path is None:
        routed = df.repartition(1)
    else:
        placed = _addressed(df.withColumn(_PATH, path), plan, profile, tasks)
        sorted_rows = by_partition(placed.repartition(tasks, _ADDRESS), _PATH)
        routed = sorted_rows.select(*[f"`{name}`" for name in names])
    return run_tasks(routed, plan, write_partitions(plan))


def run_direct(df: Any, plan: WritePlan, tasks: int) -> list[Answer]:
    """Bulk insert: each task writes the rows that it reads, in the distribution of the sort mode."""
    mode = plan.sort_mode
    path = partition_text(df, plan.key_config, plan.input_schema)
    unsorted = not plan.combine and not plan.sort_columns
    if unsorted and (mode == "NONE" or (path is None and mode.startswith("PARTITION_PATH"))):
        rows, work = df.coalesce(tasks or _enough_tasks(df)), _write_unsorted(plan)
    else:
        rows, work = _distributed(df, plan, path, tasks), write_partitions(plan)
    return run_tasks(rows, plan, work)


def _enough_tasks(df: Any) -> int:
    """The fewest tasks that keep all cores busy and have at most :data:`TASK_BYTES`: a Python task costs 25 to 40 ms.

    Input of unknown size keeps its tasks, since ``coalesce`` never makes more of them.
    """
    estimate = estimated_bytes(df)
    if estimate is None:
        return 1 << 30
    return max(parallelism(df.sparkSession) * TASKS_PER_CORE, estimate * ARROW_GROWTH // TASK_BYTES + 1)


def _tasks_of_shuffle(df: Any) -> int:
    known = estimated_bytes(df) is not None
    return _enough_tasks(df) if known else parallelism(df.sparkSession) * TASKS_PER_CORE


def _distributed(df: Any, plan: WritePlan, path: Any, tasks: int) -> Any:
    """Sort rows by table partition; if rows are combined, rows of one key are in one task.

    Sort columns of the user apply to a partition as a whole, unless rows are combined: then they apply to each file.
    """
    mode = plan.sort_mode
    spread = tasks or _tasks_of_shuffle(df)
    keyed = bool(plan.key_config.record_key_fields)
    key = key_text(df, plan.key_config, plan.input_schema) if keyed else F.lit("")
    placed = df.withColumn(_PATH, F.lit("") if path is None else path).withColumn(_ADDRESS, key)
    columns = [nested_column(name) for name in plan.sort_columns]
    if columns and plan.sorts_by_key:
        columns.append(F.col(_ADDRESS))
    if columns and not plan.combine:
        placed = placed.repartitionByRange(spread, _PATH, *columns)
    elif mode == "GLOBAL_SORT":
        placed = placed.repartitionByRange(spread, _PATH, _ADDRESS)
    elif plan.combine or mode.startswith("PARTITION_PATH"):
        placed = placed.repartition(spread, _ADDRESS if path is None else _PATH)
    elif tasks:
        placed = placed.coalesce(tasks)
    order = [_PATH, _ADDRESS] if mode in ("GLOBAL_SORT", "PARTITION_SORT") else [_PATH]
    return placed.sortWithinPartitions(*order).select(*[f"`{name}`" for name in df.columns])


def _addressed(placed: Any, plan: WritePlan, profile: WorkloadProfile | None, tasks: int) -> Any:
    """Rows with a column whose hash gives their task: known partitions balanced by size, others by hash."""
    numbers = addresses(tasks)
    others = task_address(F.pmod(F.hash(_PATH), F.lit(tasks)), tasks)
    known = {name: numbers[bin_] for name, bin_ in pack_bins(_partition_sizes(plan, profile), tasks).items()}
    if not known:
        return placed.withColumn(_ADDRESS, others)
    if len(known) <= _LITERAL_PARTITIONS:
        literals = F.create_map(*[F.lit(each) for pair in known.items() for each in pair])
        return placed.withColumn(_ADDRESS, F.coalesce(literals[F.col(_PATH)], others))
    columns = {_PATH: pa.array(known, pa.string()), _ADDRESS: pa.array(known.values(), pa.int32())}
    listed = frame_of(placed.sparkSession, pa.table(columns))
    return placed.join(F.broadcast(listed), _PATH, "left").withColumn(_ADDRESS, F.coalesce(_ADDRESS, others))


def _partition_sizes(plan: WritePlan, profile: WorkloadProfile | None) -> dict[str, int]:
    """Bytes that a task reads for each table partition; empty when there is no profile and too many partitions."""
    present = plan.view.lister.partitions()
    if profile is None and len(present) > _LISTED_PARTITIONS:
        return {}
    names = present if profile is None else [name for name in present if name in profile.rows]
    sizes = {name: sum(one.weight for one in latest_slices(plan.view, name)) for name in names}
    if profile is not None:
        sizes = {name: sizes.get(name, 0) + count * profile.row_bytes for name, count in profile.rows.items()}
    return sizes


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
