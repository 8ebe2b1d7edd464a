"""Clustering on Spark: each group is a unit of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hudi_fast.services.clustering.execute import in_threads, weights_of
from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.work import ClusteringExecutor, ClusteringWork
from hudi_fast.spark.services.tasks import in_tasks
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup
from hudi_fast.writing.plan import TaskToken

__all__ = ["cluster_on"]


def cluster_on(spark: Any, driver_bytes: int = 0) -> ClusteringExecutor:
    """What rewrites the groups of a clustering as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: a plan that reads less than that is worked off by the driver itself.
    """

    def execute(work: ClusteringWork) -> list[WriteStat]:
        weights = weights_of(work)
        if sum(weights) < driver_bytes:
            return in_threads(work)
        return in_tasks(spark, work.plan, work.groups, weights, _Groups(replace(work, groups=())))

    return execute


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rewrites one group; holds what is true for all of them."""

    work: ClusteringWork

    def __call__(self, groups: Sequence[ClusteringGroup], number: int, token: TaskToken) -> list[WriteStat]:
        return rewrite_group(replace(self.work, groups=tuple(groups)), number, token)
