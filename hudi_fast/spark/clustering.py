"""Clustering on Spark: tasks that rewrite some groups each, of about equal weight in sum.

No row passes through Spark: a task gets the numbers of its groups, reads and writes their files itself, and answers
with write stats.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.services.clustering.execute import bytes_of, in_threads
from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.work import ClusteringExecutor, ClusteringWork
from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.routing import pack_bins
from hudi_fast.spark.tasks import ANSWER_SCHEMA, Answer, answers, task_token
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["cluster_on"]

_TASKS_PER_CORE = 2
"""A Python task costs 25 to 40 ms by itself; more tasks than cores keep them all busy to the end."""


def cluster_on(spark: Any, driver_bytes: int = 0) -> ClusteringExecutor:
    """What rewrites the groups of a clustering as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: a plan that reads less than that is worked off by the driver itself.
    """

    def execute(work: ClusteringWork) -> list[WriteStat]:
        count = len(work.groups)
        if sum(bytes_of(work, number) for number in range(count)) < driver_bytes:
            return in_threads(work)
        # The plan goes with every task, so the groups, of which there may be many slices, are sent once.
        context = getattr(spark, "_sc", None)
        groups: Any = work.groups if context is None else context.broadcast(work.groups)
        bins = _bins(work, min(count, parallelism(spark) * _TASKS_PER_CORE))
        numbers = spark.range(len(bins), numPartitions=len(bins))
        run = answers(work.plan, _task(replace(work, groups=()), groups, bins))
        try:
            rows = numbers.mapInArrow(run, ANSWER_SCHEMA).collect()
        finally:
            if context is not None:
                groups.destroy()
        return _stats([pickle.loads(row[0]) for row in rows])

    return execute


def _bins(work: ClusteringWork, tasks: int) -> list[list[int]]:
    """The numbers of the groups that each task rewrites."""
    placed = pack_bins({f"{n:09}": int(bytes_of(work, n)) for n in range(len(work.groups))}, tasks)
    bins: list[list[int]] = [[] for _ in range(tasks)]
    for number, task in placed.items():
        bins[task].append(int(number))
    return bins


def _task(work: ClusteringWork, groups: Any, bins: list[list[int]]) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``groups``: all of the plan, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        whole = replace(work, groups=getattr(groups, "value", groups))
        token = task_token()
        stats: list[WriteStat] = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # numbered as groups, so that file ids do not depend on who rewrites them
                stats += rewrite_group(whole, number, replace(token, task=number))
        return Answer(stats)

    return run


def _stats(found: list[Answer]) -> list[WriteStat]:
    for answer in found:
        if answer.error is not None:
            raise answer.error
    return [stat for answer in found for stat in answer.stats]
