"""The plans that need no lookup of stored keys: direct, bucketed and fused.

The direct plan of bulk_insert: each task writes the rows that it reads, or a range of an order.

::

    sort mode                      rows of a task                     files
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    NONE, PARTITION_SORT           as they are read, if that makes    one for each partition that a task holds
                                   few files; else the routed plan
    GLOBAL_SORT, sort columns      a range of the order               about as many ranges as full files
    PARTITION_PATH_REPARTITION...  whole partitions                   as many as their size requires

The total size of the rows decides the number of tasks; the number of cores counts only where it does not make files
smaller. One or two tasks need no count of the rows: a partition gets at most one file more than its size requires.

The bucketed plan: a hash of the key gives the bucket, so one shuffle sends each row to the task of its bucket.

::

    incoming rows ─► partition path and key as text ─► (pandas UDF, the core) the lane of its bucket
                  ─► one shuffle ─► tasks: rows sorted by table partition; assign to buckets, write

All rows of a bucket are in one lane, so only one task writes to a file group. Consecutive buckets of a partition are in
consecutive lanes, starting at a lane that depends on the partition. The write, the partition and the bucket determine
the ids of new file groups, so a repeated attempt of a task creates the same ids.

The fused plan: one shuffle by table partition.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.formats.varlen import gather_array
from hudi_fast.index.buckets import HashingMetadata, bucket_of_keys, first_hashing, load_hashing, node_of_keys
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.merging.row_buffer import RowBuffer, write_failure
from hudi_fast.spark.arrow import ARROW_GROWTH, estimated_bytes, frame_of, parallelism, reads_files
from hudi_fast.spark.incoming.file_scan import FileScan, rows_in_tasks
from hudi_fast.spark.writing.columns import (
    addresses,
    by_partition,
    key_text,
    nested_column,
    pack_bins,
    partition_text,
    task_address,
)
from hudi_fast.spark.writing.packed_rows import FEWEST_ROWS, packed_partitions
from hudi_fast.spark.writing.sent_batches import packs_rows, unpacking_as
from hudi_fast.spark.writing.tasks import Answer, run_tasks, task_token, write_partitions
from hudi_fast.spark.writing.workload import LEAST_BYTES, PARTITIONS_TASK_BYTES, stored_sizes
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.writing.assign import assign_partition, files_of_parts, max_files
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.prepare import prepare_rows, spooled_form, with_auto_keys
from hudi_fast.writing.profile import WorkloadProfile, sizing_of
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "Arrangement",
    "BulkFiles",
    "arrangement",
    "bulk_files",
    "few_tasks",
    "lanes_of_buckets",
    "partition_sizes",
    "run_bucketed",
    "run_direct",
    "run_fused",
    "takes_any_rows",
    "takes_files",
]

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


_LANE = "__hudi_fast_lane"


def run_bucketed(df: Any, plan: WritePlan, tasks: int) -> list[Answer]:
    """Shuffle rows to ``tasks`` tasks that own their buckets; returns the tasks' results."""
    names = df.columns
    path = partition_text(df, plan.key_config, plan.input_schema)
    placed = df.withColumn(_PATH, F.lit("") if path is None else path)
    lane = _lane_udf(plan, tasks)(
        F.struct(F.col(_PATH).alias("p"), key_text(df, plan.key_config, plan.input_schema).alias("k"))
    )
    placed = placed.withColumn(_LANE, lane)
    placed = placed.withColumn(_ADDRESS, task_address(F.col(_LANE), tasks))
    sorted_rows = by_partition(placed.repartition(tasks, _ADDRESS), _PATH)
    routed = sorted_rows.select(*[f"`{name}`" for name in names])
    return run_tasks(routed, plan, write_partitions(plan))


def lanes_of_buckets(
    settings: BucketSettings, hashings: Mapping[str, HashingMetadata], partitions: pa.Array, keys: pa.Array, lanes: int
) -> npt.NDArray[np.int32]:
    """The lane of each row.

    Args:
        settings: of the index.
        hashings: consistent hashing: the stored ranges by partition; other partitions start with the initial ranges.
        partitions: n partition paths, null for a row that will be refused.
        keys: n record keys; likewise.
        lanes: number of lanes.

    Returns:
        int32[n], 0 to ``lanes - 1``; 0 for rows that will be refused.
    """
    found = np.zeros(len(keys), dtype=np.int32)
    coded = partitions.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(-1), dtype=np.int32) + np.int32(1)
    order, bounds = group_rows(codes, len(coded.dictionary) + 1)
    texts = keys.fill_null("")
    for number, path in enumerate(coded.dictionary.to_pylist(), start=1):
        rows = order[bounds[number] : bounds[number + 1]]
        here = gather_array(texts, rows)
        if settings.engine == "SIMPLE":
            buckets = bucket_of_keys(here, settings, path)
        else:
            buckets = node_of_keys(here, settings, hashings.get(path) or first_hashing(path, settings.count))
        found[rows] = (buckets.astype(np.int64) + zlib.crc32(path.encode())) % lanes
    return found


def _lane_udf(plan: WritePlan, lanes: int) -> Callable[..., Any]:
    import pandas as pd

    settings, hashings = plan.index.bucket, _hashings(plan)
    if settings is None:
        raise ValueError(f"the index {plan.index.kind} has no buckets")

    def lane(columns: Any) -> Any:
        paths, keys = pa.array(columns["p"], pa.string()), pa.array(columns["k"], pa.string())
        return pd.Series(lanes_of_buckets(settings, hashings, paths, keys, lanes))

    lane.__annotations__ = {"columns": pd.DataFrame, "return": pd.Series}
    made: Callable[..., Any] = F.pandas_udf(lane, "int")
    return made


def _hashings(plan: WritePlan) -> dict[str, HashingMetadata]:
    """Consistent hashing: the ranges of all partitions, read once in the driver."""
    if plan.index.bucket is None or plan.index.bucket.engine == "SIMPLE":
        return {}
    listed = ((name, load_hashing(plan.storage, plan.view.timeline, name)) for name in plan.view.lister.partitions())
    return {name: found for name, found in listed if found is not None}


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
