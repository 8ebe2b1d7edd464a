"""The fused plan: one shuffle by table partition; and the direct plan of bulk_insert, which has no shuffle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.kernels.grouping import group_rows
from hudi_fast.spark.arrow import ARROW_GROWTH, estimated_bytes, parallelism
from hudi_fast.spark.writing.columns import key_text, partition_text
from hudi_fast.spark.writing.routing import addresses, pack_bins, slice_bytes
from hudi_fast.spark.writing.tasks import (
    ANSWER_SCHEMA,
    ROW_BUDGET,
    Answer,
    RowBuffer,
    answers,
    task_token,
    write_partitions,
)
from hudi_fast.spark.writing.workload import TASKS_PER_CORE
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import latest_slices
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys

__all__ = ["run_direct", "run_fused"]

_PATH, _ADDRESS = "__hudi_fast_path", "__hudi_fast_address"

_MAPPED_PARTITIONS = 1000
"""More table partitions are distributed by hash: an expression that maps them would be slow to plan."""


def run_fused(df: Any, plan: WritePlan, tasks: int) -> list[Any]:
    """Shuffle rows to ``tasks`` tasks that own whole table partitions; returns the tasks' results."""
    names = df.columns
    path = partition_text(df, plan.key_config, plan.input_schema)
    if path is None:
        routed = df.repartition(1)
    else:
        placed = df.withColumn(_PATH, path)
        placed = placed.withColumn(_ADDRESS, _address(plan, tasks))
        routed = placed.repartition(tasks, _ADDRESS).sortWithinPartitions(_PATH).select(*[f"`{n}`" for n in names])
    collected: list[Any] = routed.mapInArrow(answers(plan, write_partitions(plan)), ANSWER_SCHEMA).collect()
    return collected


def run_direct(df: Any, plan: WritePlan, tasks: int) -> list[Any]:
    """Bulk insert: each task writes the rows that it reads, in the distribution of the sort mode."""
    mode = plan.sort_mode
    path = partition_text(df, plan.key_config, plan.input_schema)
    if not plan.combine and (mode == "NONE" or (path is None and mode.startswith("PARTITION_PATH"))):
        rows, work = df.coalesce(tasks or _enough_tasks(df)), _write_unsorted(plan)
    else:
        rows, work = _distributed(df, plan, path, tasks), write_partitions(plan)
    collected: list[Any] = rows.mapInArrow(answers(plan, work), ANSWER_SCHEMA).collect()
    return collected


def _enough_tasks(df: Any) -> int:
    """The fewest tasks that keep all cores busy and each task's rows in memory: a Python task costs 25 to 40 ms.

    Input of unknown size keeps its tasks, since ``coalesce`` never makes more of them.
    """
    estimate = estimated_bytes(df)
    if estimate is None:
        return 1 << 30
    return max(parallelism(df.sparkSession) * TASKS_PER_CORE, estimate * ARROW_GROWTH // ROW_BUDGET + 1)


def _distributed(df: Any, plan: WritePlan, path: Any, tasks: int) -> Any:
    """Sort rows by table partition; if rows are combined, rows of one key are in one task."""
    mode = plan.sort_mode
    spread = tasks or parallelism(df.sparkSession) * TASKS_PER_CORE
    keyed = bool(plan.key_config.record_key_fields)
    key = key_text(df, plan.key_config, plan.input_schema) if keyed else F.lit("")
    placed = df.withColumn(_PATH, F.lit("") if path is None else path).withColumn(_ADDRESS, key)
    if mode == "GLOBAL_SORT":
        placed = placed.repartitionByRange(spread, _PATH, _ADDRESS)
    elif plan.combine or mode.startswith("PARTITION_PATH"):
        placed = placed.repartition(spread, _ADDRESS if path is None else _PATH)
    elif tasks:
        placed = placed.coalesce(tasks)
    order = [_PATH, _ADDRESS] if mode in ("GLOBAL_SORT", "PARTITION_SORT") else [_PATH]
    return placed.sortWithinPartitions(*order).select(*[f"`{name}`" for name in df.columns])


def _address(plan: WritePlan, tasks: int) -> Any:
    """A column whose hash gives the task of a row: known partitions balanced by size, others by hash."""
    table = F.array(*[F.lit(number) for number in addresses(tasks)])
    spread = F.pmod(F.hash(F.col(_PATH)), F.lit(tasks))
    bins = pack_bins(_partition_sizes(plan), tasks)
    if bins:
        known = F.create_map(*[F.lit(value) for item in sorted(bins.items()) for value in item])
        spread = F.coalesce(known[F.col(_PATH)], spread)
    return F.element_at(table, (spread + F.lit(1)).cast("int"))


def _partition_sizes(plan: WritePlan) -> dict[str, int]:
    """Bytes of each table partition; empty when there are too many to map."""
    partitions = plan.view.lister.partitions()
    if len(partitions) > _MAPPED_PARTITIONS:
        return {}
    sizes: dict[str, int] = {}
    for name in partitions:
        sizes[name] = sum(map(slice_bytes, latest_slices(plan.view, name)))
    return sizes


def _write_unsorted(plan: WritePlan) -> Any:
    """A bulk insert task with rows in any order of partitions."""

    def work(batches: Iterator[pa.RecordBatch]) -> Answer:
        token = task_token()
        with RowBuffer() as buffer:
            for batch in batches:
                buffer.add(batch)
            table = buffer.take()
            if table is None or table.num_rows == 0:
                return Answer()
            incoming = with_auto_keys(plan, prepare_rows(plan, table), token.task)
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
