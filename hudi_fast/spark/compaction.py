"""Compaction and log compaction on Spark: one task for each file slice.

No row passes through Spark: a task gets the numbers of its slices, reads and writes their files itself, and answers
with write stats.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.services.execute import bytes_of, carry_out, in_threads
from hudi_fast.services.work import CompactionWork, Executor
from hudi_fast.spark.tasks import ANSWER_SCHEMA, Answer, answers, task_token
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["compact_on"]


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
        numbers = spark.range(count, numPartitions=count)
        run = answers(work.plan, _task(replace(work, operations=()), operations))
        try:
            rows = numbers.mapInArrow(run, ANSWER_SCHEMA).collect()
        finally:
            if context is not None:
                operations.destroy()
        return _stats([pickle.loads(row[0]) for row in rows])

    return execute


def _task(work: CompactionWork, operations: Any) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``operations``: all of the plan, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        whole = replace(work, operations=getattr(operations, "value", operations))
        stats: list[WriteStat] = []
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            stats += carry_out(whole, number, task_token())
        return Answer(stats)

    return run


def _stats(found: list[Answer]) -> list[WriteStat]:
    for answer in found:
        if answer.error is not None:
            raise answer.error
    return [stat for answer in found for stat in answer.stats]
