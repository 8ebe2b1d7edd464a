"""Services on Spark: tasks that work off some units of a plan each, of about equal weight in sum.

No row passes through Spark: a task gets the numbers of its units (slices to merge, groups to rewrite), reads and writes
their files itself, and answers with write stats. The units of a plan, of which there may be many, are sent once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.routing import pack_bins
from hudi_fast.spark.writing.tasks import ANSWER_SCHEMA, Answer, answers, task_token
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.plan import TaskToken, WritePlan

__all__ = ["CarryOut", "in_tasks"]

_TASKS_PER_CORE = 2
"""A Python task costs 25 to 40 ms by itself; more tasks than cores keep them all busy to the end."""

CarryOut = Callable[[Any, int, TaskToken], list[WriteStat]]
"""Does one unit: (all units, number of the one, who writes) -> what was written. Picklable."""


def in_tasks(
    spark: Any, plan: WritePlan, units: Sequence[Any], weights: Sequence[float], carry_out: CarryOut
) -> list[WriteStat]:
    """Do all units as tasks of a Spark session.

    Args:
        spark: the session.
        plan: of the service.
        units: what is to be done.
        weights: of each, in bytes.
        carry_out: does one.

    Raises:
        HudiError: what a task refused.
    """
    context = getattr(spark, "_sc", None)
    sent: Any = units if context is None else context.broadcast(units)
    bins = _bins(weights, min(len(units), parallelism(spark) * _TASKS_PER_CORE))
    numbers = spark.range(len(bins), numPartitions=len(bins))
    try:
        rows = numbers.mapInArrow(answers(plan, _task(sent, bins, carry_out)), ANSWER_SCHEMA).collect()
    finally:
        if context is not None:
            sent.destroy()
    return _stats([pickle.loads(row[0]) for row in rows])


def _bins(weights: Sequence[float], tasks: int) -> list[list[int]]:
    """The numbers of the units that each task does."""
    placed = pack_bins({f"{number:09}": int(weight) for number, weight in enumerate(weights)}, tasks)
    bins: list[list[int]] = [[] for _ in range(tasks)]
    for number, task in placed.items():
        bins[task].append(int(number))
    return bins


def _task(sent: Any, bins: list[list[int]], carry_out: CarryOut) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``sent``: the units, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        units, token = getattr(sent, "value", sent), task_token()
        stats: list[WriteStat] = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # names of files and sequence numbers follow the unit, whoever does it
                stats += carry_out(units, number, replace(token, task=number))
        return Answer(stats)

    return run


def _stats(found: list[Answer]) -> list[WriteStat]:
    for answer in found:
        if answer.error is not None:
            raise answer.error
    return [stat for answer in found for stat in answer.stats]
