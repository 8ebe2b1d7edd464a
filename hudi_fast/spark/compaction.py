"""Compaction and log compaction on Spark: tasks that work off some file slices each, of about equal weight in sum.

No row passes through Spark: a task gets the numbers of its slices, reads and writes their files itself, and answers
with write stats.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.services.compaction.execute import bytes_of, carry_out, in_threads
from hudi_fast.services.compaction.work import CompactionWork, Executor
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.routing import pack_bins
from hudi_fast.spark.tasks import ANSWER_SCHEMA, Answer, answers, task_token
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["compact_on"]

_TASKS_PER_CORE = 2
"""A Python task costs 25 to 40 ms by itself; more tasks than cores keep them all busy to the end."""


def compact_on(spark: Any, driver_bytes: int = 0) -> Executor:
    """What carries the slices of a compaction out as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: a plan that reads less than that is worked off by the driver itself.
    """

    def execute(work: CompactionWork) -> list[WriteStat]:
        count = len(work.operations)
        if sum(bytes_of(work, number) for number in range(count)) < driver_bytes:
            return in_threads(work)
        # The plan goes with every task, so the slices, of which there may be many, are sent once.
        context = getattr(spark, "_sc", None)
        operations: Any = work.operations if context is None else context.broadcast(work.operations)
        bins = _bins(work, min(count, parallelism(spark) * _TASKS_PER_CORE))
        numbers = spark.range(len(bins), numPartitions=len(bins))
        run = answers(work.plan, _task(replace(work, operations=()), operations, bins))
        try:
            rows = numbers.mapInArrow(run, ANSWER_SCHEMA).collect()
        finally:
            if context is not None:
                operations.destroy()
        return _stats([pickle.loads(row[0]) for row in rows])

    return execute


def _bins(work: CompactionWork, tasks: int) -> list[list[int]]:
    """The numbers of the operations that each task carries out."""
    placed = pack_bins({f"{n:09}": int(bytes_of(work, n)) for n in range(len(work.operations))}, tasks)
    bins: list[list[int]] = [[] for _ in range(tasks)]
    for number, task in placed.items():
        bins[task].append(int(number))
    return bins


def _task(work: CompactionWork, operations: Any, bins: list[list[int]]) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``operations``: all of the plan, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        whole = replace(work, operations=getattr(operations, "value", operations))
        token = task_token()
        stats: list[WriteStat] = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # numbered as operations, so that sequence numbers of one task do not repeat
                stats += carry_out(whole, number, replace(token, task=number))
        return Answer(stats)

    return run


def _stats(found: list[Answer]) -> list[WriteStat]:
    for answer in found:
        if answer.error is not None:
            raise answer.error
    return [stat for answer in found for stat in answer.stats]
