"""The bucketed plan: a hash of the key gives the bucket, so one shuffle sends each row to the task of its bucket.

::

    incoming rows ─► partition path and key as text ─► (pandas UDF, the core) the lane of its bucket
                  ─► one shuffle ─► tasks: rows sorted by table partition; assign to buckets, write

All rows of a bucket are in one lane, so only one task writes to a file group. Consecutive buckets of a partition are in
consecutive lanes, starting at a lane that depends on the partition. The write, the partition and the bucket determine
the ids of new file groups, so a repeated attempt of a task creates the same ids.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.index.bucket import bucket_of_keys
from hudi_fast.index.consistent import HashingMetadata, first_hashing, load_hashing, node_of_keys
from hudi_fast.index.tagging import BucketSettings
from hudi_fast.kernels.grouping import group_rows
from hudi_fast.merging.gather import gather_array
from hudi_fast.spark.writing.columns import by_partition, key_text, partition_text, task_address
from hudi_fast.spark.writing.tasks import Answer, run_tasks, write_partitions
from hudi_fast.writing.write_plan import WritePlan

__all__ = ["lanes_of_buckets", "run_bucketed"]

_PATH, _LANE, _ADDRESS = "__hudi_fast_path", "__hudi_fast_lane", "__hudi_fast_address"


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
