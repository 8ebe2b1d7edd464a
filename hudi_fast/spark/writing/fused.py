"""The fused plan: one shuffle by table partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.spark.arrow import frame_of
from hudi_fast.spark.incoming.file_scan import FileScan
from hudi_fast.spark.writing.columns import by_partition, partition_text, task_address
from hudi_fast.spark.writing.packed_partitions import FEWEST_ROWS, packed_partitions
from hudi_fast.spark.writing.routing import addresses, pack_bins
from hudi_fast.spark.writing.sent_batches import packs_rows, unpacking_as
from hudi_fast.spark.writing.tasks import (
    Answer,
    run_tasks,
    write_partitions,
)
from hudi_fast.spark.writing.workload import stored_sizes
from hudi_fast.writing.profile import WorkloadProfile
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["partition_sizes", "run_fused", "takes_files"]

_PATH, _ADDRESS = "__hudi_fast_path", "__hudi_fast_address"

_LISTED_PARTITIONS = 1000
"""Without a profile, the files of more table partitions than this are not listed to balance the tasks."""

_LITERAL_PARTITIONS = 32
"""Beyond this number of partitions, tasks are assigned by a join, a job of about 0.2 s. A literal map is searched
from its start for each row."""


def takes_files(spark: Any, plan: WritePlan, profile: WorkloadProfile | None, files: FileScan) -> bool:
    """Whether rows that Python reads are sent as bytes: the table has partitions, and not too many for the rows."""
    if not packs_rows(spark) or not plan.config.is_partitioned or profile is None:
        return False
    return profile.total >= FEWEST_ROWS * len(profile.rows) * len(files.tasks)


def run_fused(
    df: Any, plan: WritePlan, profile: WorkloadProfile | None, tasks: int, files: FileScan | None = None
) -> list[Answer]:
    """Shuffle rows to tasks that own whole table partitions; returns the tasks' results.

    Args:
        df: the rows.
        plan: the write.
        profile: rows per partition; None if unknown.
        tasks: number of tasks.
        files: the same rows, which tasks read themselves; only if :func:`takes_files`.
    """
    if files is not None:
        owners = pack_bins(partition_sizes(plan, profile), tasks)
        packed = packed_partitions(df.sparkSession, files, plan, owners, tasks)
        return run_tasks(packed, plan, unpacking_as(files.schema, write_partitions(plan)))
    names = df.columns
    path = partition_text(df, plan.key_config, plan.input_schema)
    if path is None:
        routed = df.repartition(1)
    else:
        placed = _addressed(df.withColumn(_PATH, path), plan, profile, tasks)
        sorted_rows = by_partition(placed.repartition(tasks, _ADDRESS), _PATH)
        routed = sorted_rows.select(*[f"`{name}`" for name in names])
    return run_tasks(routed, plan, write_partitions(plan))


def _addressed(placed: Any, plan: WritePlan, profile: WorkloadProfile | None, tasks: int) -> Any:
    """Rows with a column whose hash gives their task: known partitions balanced by size, others by hash."""
    numbers = addresses(tasks)
    others = task_address(F.pmod(F.hash(_PATH), F.lit(tasks)), tasks)
    known = {name: numbers[bin_] for name, bin_ in pack_bins(partition_sizes(plan, profile), tasks).items()}
    if not known:
        return placed.withColumn(_ADDRESS, others)
    if len(known) <= _LITERAL_PARTITIONS:
        literals = F.create_map(*[F.lit(each) for pair in known.items() for each in pair])
        return placed.withColumn(_ADDRESS, F.coalesce(literals[F.col(_PATH)], others))
    columns = {_PATH: pa.array(known, pa.string()), _ADDRESS: pa.array(known.values(), pa.int32())}
    listed = frame_of(placed.sparkSession, pa.table(columns))
    return placed.join(F.broadcast(listed), _PATH, "left").withColumn(_ADDRESS, F.coalesce(_ADDRESS, others))


def partition_sizes(plan: WritePlan, profile: WorkloadProfile | None) -> dict[str, int]:
    """Bytes that a task reads for each table partition: incoming rows and stored files.

    Args:
        plan: the write.
        profile: rows per partition; None if unknown. Without it the result is empty if there are too many partitions.
    """
    if profile is not None:
        sizes = stored_sizes(plan, profile.rows)
        return {name: sizes.get(name, 0) + count * profile.row_bytes for name, count in profile.rows.items()}
    return {} if len(plan.view.lister.partitions()) > _LISTED_PARTITIONS else stored_sizes(plan, None)
