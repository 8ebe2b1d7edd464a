"""Compaction and log compaction on Spark: each file slice is a unit of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_fast.services.compaction.execute import carry_out, in_threads, weights_of
from hudi_fast.services.compaction.work import CompactionWork, Executor
from hudi_fast.spark.services.tasks import in_tasks
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.writing.plan import TaskToken

__all__ = ["compact_on"]


def compact_on(spark: Any, driver_bytes: int = 0) -> Executor:
    """What carries the slices of a compaction out as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: a plan that reads less than that is worked off by the driver itself.
    """

    def execute(work: CompactionWork) -> list[WriteStat]:
        weights = weights_of(work)
        if sum(weights) < driver_bytes:
            return in_threads(work)
        return in_tasks(spark, work.plan, work.operations, weights, _Slices(replace(work, operations=())))

    return execute


@dataclass(frozen=True, slots=True)
class _Slices:
    """Merges one slice; holds what is true for all of them."""

    work: CompactionWork

    def __call__(self, operations: Sequence[CompactionOperation], number: int, token: TaskToken) -> list[WriteStat]:
        return carry_out(replace(self.work, operations=tuple(operations)), number, token)
