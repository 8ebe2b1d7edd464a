"""Groups the units of a service plan into Spark tasks of similar total weight.

No row passes through Spark: a task gets the numbers of its units (slices to merge, groups to rewrite), reads and writes
their files, and returns write statistics. The units of a plan are sent to each worker once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.routing import pack_bins
from hudi_fast.spark.writing.tasks import Answer, run_tasks, task_token
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["in_tasks"]

_TASKS_PER_CORE = 2
"""A Python task has an overhead of 25 to 40 ms; more tasks than cores keep all cores busy until the end."""
Function = Callable[[Any, TaskToken], list[WriteStat]]
"""Executes one unit; picklable."""


def in_tasks(
    spark: Any, plan: FilePlan | None, units: Sequence[Any], weights: Sequence[float], function: Function
) -> list[WriteStat]:
    """Apply a function to all units as tasks of a Spark session.

    Args:
        spark: the session.
        plan: of the service; None for work on the metadata table, whose files have no markers.
        units: the units.
        weights: of each unit, in bytes.
        function: executes one unit.

    Raises:
        HudiError: a task refused its unit.
    """
    context = getattr(spark, "_sc", None)
    sent: Any = units if context is None else context.broadcast(units)
    bins = _bins(weights, min(len(units), parallelism(spark) * _TASKS_PER_CORE))
    numbers = spark.range(len(bins), numPartitions=len(bins))
    try:
        found = run_tasks(numbers, plan, _task(sent, bins, function))
    finally:
        if context is not None:
            sent.destroy()
    return [stat for answer in found for stat in answer.stats]


def _bins(weights: Sequence[float], tasks: int) -> list[list[int]]:
    """The numbers of the units of each task."""
    placed = pack_bins({f"{number:09}": int(weight) for number, weight in enumerate(weights)}, tasks)
    bins: list[list[int]] = [[] for _ in range(tasks)]
    for number, task in placed.items():
        bins[task].append(int(number))
    return bins


def _task(sent: Any, bins: list[list[int]], function: Function) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``sent``: the units, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        units, token = getattr(sent, "value", sent), task_token()
        stats: list[WriteStat] = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # file names and sequence numbers depend on the unit only
                stats += function(units[number], replace(token, task=number))
        return Answer(stats)

    return run
