"""Deleting files on Spark: tasks delete some paths each, and answer whether they were there and are gone.

Few files are deleted by the driver's threads: a job costs more than they do.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.services.deleting import Deleter, in_threads
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.tasks import ANSWER_SCHEMA
from hudi_fast.storage.base import Storage

__all__ = ["delete_on"]

_FEW = 2_000
"""A local file costs about 50 microseconds, a job a tenth of a second or two."""

_TASKS_PER_CORE = 2

Batches = Iterator[pa.RecordBatch]


def delete_on(spark: Any, driver_files: int = _FEW) -> Deleter:
    """What deletes files as tasks of a Spark session.

    Args:
        spark: the session.
        driver_files: fewer files than that are deleted by the driver itself.
    """

    def delete(storage: Storage, paths: Sequence[str]) -> list[bool]:
        if len(paths) < driver_files:
            return in_threads(storage, paths)
        tasks = min(len(paths), parallelism(spark) * _TASKS_PER_CORE)
        parts = [list(paths[number::tasks]) for number in range(tasks)]
        numbers = spark.range(tasks, numPartitions=tasks)
        answers = [False] * len(paths)
        for row in numbers.mapInArrow(_task(storage, parts), ANSWER_SCHEMA).collect():
            number, done = pickle.loads(row[0])
            answers[number::tasks] = done
        return answers

    return delete


def _task(storage: Storage, parts: list[list[str]]) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                answer = pickle.dumps((number, in_threads(storage, parts[number])))
                yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    return run
