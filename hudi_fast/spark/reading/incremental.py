"""CDC queries as Spark DataFrames: the core's reader in Python workers, in tasks of about equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.reading.incremental.cdc import CHANGE_SCHEMA, CdcPlan, read_changes
from hudi_fast.spark.arrow import numbers_of, parallelism
from hudi_fast.spark.table_types import spark_schema
from hudi_fast.storage.failures import told_while_read

__all__ = ["incremental_frame"]

_TASK_BYTES = 64 << 20  # each Python task has an overhead of about 0.05 s


def incremental_frame(spark: Any, plan: CdcPlan, filter: pc.Expression | None = None) -> Any:
    """A lazy DataFrame of the changes: op, ts_ms, before, after.

    Args:
        spark: the session.
        plan: of the CDC query.
        filter: on changes; None for all.
    """
    schema = spark_schema(CHANGE_SCHEMA)
    if not plan.units:
        return spark.createDataFrame([], schema)
    weights = [unit.weight for unit in plan.units]
    processors = parallelism(spark)
    tasks = min(len(weights), max(processors, min(4 * processors, sum(weights) // _TASK_BYTES)))
    shares = _shares(weights, tasks)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in [share for batch in batches for share in batch.column(0).to_pylist()]:
            for number in shares[share]:
                for changes in told_while_read(read_changes(plan, plan.units[number]), plan.storage.uri):
                    yield changes if filter is None else changes.filter(filter)

    return numbers_of(spark, tasks, tasks, sum(weights), len(schema)).mapInArrow(run, schema)


def _shares(weights: Sequence[int], tasks: int) -> list[list[int]]:
    """The units of each task: the heaviest first, each to the task with the least so far."""
    shares: list[list[int]] = [[] for _ in range(tasks)]
    loads = [0] * tasks
    for number in sorted(range(len(weights)), key=weights.__getitem__, reverse=True):
        least = loads.index(min(loads))
        shares[least].append(number)
        loads[least] += weights[number] + 1
    return shares
