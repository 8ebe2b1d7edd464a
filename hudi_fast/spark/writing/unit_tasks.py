"""Groups units of work into Spark tasks of similar total weight.

No row passes through the JVM: a task gets the numbers of its units (slices to merge, groups to rewrite, rows to write),
reads and writes their files, and returns write statistics or other results. The units are sent to each worker once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.spark.arrow import parallelism
from hudi_fast.spark.writing.routing import pack_bins
from hudi_fast.spark.writing.tasks import Answer, run_tasks, task_token
from hudi_fast.spark.writing.workload import TASKS_PER_CORE
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["bins_of", "in_tasks", "most_tasks", "results_in_tasks"]

Function = Callable[[Any, TaskToken], list[WriteStat]]
"""Executes one unit; picklable."""

_Found = list[tuple[int, Any]]
"""The number of each unit of a task, and its result."""


def in_tasks(
    spark: Any, plan: FilePlan | None, units: Sequence[Any], weights: Sequence[float], function: Function
) -> list[WriteStat]:
    """Apply a function that writes files to all units, as tasks of a Spark session.

    Args:
        spark: the session.
        plan: of the write or service; None for work on the metadata table, whose files have no markers.
        units: the units.
        weights: of each unit, in bytes.
        function: executes one unit.

    Raises:
        HudiError: a task refused its unit.
    """
    return [stat for answer in _run(spark, plan, units, weights, function, _stats) for stat in answer.stats]


def results_in_tasks(
    spark: Any, units: Sequence[Any], weights: Sequence[float], function: Callable[[Any], Any]
) -> list[Any]:
    """Apply a function that writes no files to all units, as tasks; returns its results in the order of the units.

    Args:
        spark: the session.
        units: the units.
        weights: of each unit, in bytes.
        function: executes one unit; picklable.

    Raises:
        HudiError: a task refused its unit.
    """
    answers = _run(spark, None, units, weights, lambda unit, _: function(unit), _results)
    by_number = dict(found for answer in answers for found in answer.results)
    return [by_number[number] for number in range(len(units))]


def most_tasks(spark: Any) -> int:
    """The largest number of tasks that units are grouped into.

    A Python task has an overhead of 25 to 40 ms; more tasks than cores keep all cores busy until the end.
    """
    return parallelism(spark) * TASKS_PER_CORE


def bins_of(weights: Sequence[float], count: int) -> list[list[int]]:
    """The numbers of the units of each of ``count`` bins of similar total weight."""
    placed = pack_bins({f"{number:09}": int(weight) for number, weight in enumerate(weights)}, count)
    bins: list[list[int]] = [[] for _ in range(count)]
    for number, chosen in placed.items():
        bins[chosen].append(int(number))
    return bins


def _run(
    spark: Any,
    plan: FilePlan | None,
    units: Sequence[Any],
    weights: Sequence[float],
    function: Callable[[Any, TaskToken], Any],
    answer: Callable[[_Found], Answer],
) -> list[Answer]:
    if not units:
        return []
    context = getattr(spark, "_sc", None)
    sent: Any = units if context is None else context.broadcast(units)
    bins = bins_of(weights, min(len(units), most_tasks(spark)))
    numbers = spark.range(len(bins), numPartitions=len(bins))
    try:
        return run_tasks(numbers, plan, _task(sent, bins, function, answer))
    finally:
        if context is not None:
            sent.destroy()


def _task(
    sent: Any, bins: list[list[int]], function: Callable[[Any, TaskToken], Any], answer: Callable[[_Found], Answer]
) -> Callable[[Iterator[pa.RecordBatch]], Answer]:
    """``sent``: the units, or a broadcast variable of them."""

    def run(batches: Iterator[pa.RecordBatch]) -> Answer:
        units, token = getattr(sent, "value", sent), task_token()
        found: _Found = []
        for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
            for number in bins[task]:  # file names and sequence numbers depend on the unit only
                found.append((number, function(units[number], replace(token, task=number))))
        return answer(found)

    return run


def _stats(found: _Found) -> Answer:
    return Answer([stat for _, stats in found for stat in stats])


def _results(found: _Found) -> Answer:
    return Answer(results=list(found))
