"""Maps the Java classes of clustering strategies to their selection and execution.

Plans name the class of their execution strategy, so Apache Hudi and hudi_fast can execute each other's plans.

Sources: ``ClusteringPlanStrategy.checkAndGetClusteringPlanStrategy`` and the strategies below
``org.apache.hudi.client.clustering`` (1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.errors import UnsupportedFeatureError

__all__ = ["CONSISTENT", "PlanStrategy", "execution_of", "plan_strategy_of"]

_PLANS = "org.apache.hudi.client.clustering.plan.strategy."
_RUNS = "org.apache.hudi.client.clustering.run.strategy."

CONSISTENT = "consistent"
"""Execution of plans that split and merge the buckets of consistent hashing."""


@dataclass(frozen=True, slots=True)
class PlanStrategy:
    """A plan strategy.

    Attributes:
        grouping: ``size`` (several slices to a group), ``single`` (one slice to a group), ``schema`` (by size, and
            only files of the same columns together), ``commits`` (files of certain writes, by size), or
            ``consistent`` (buckets).
        small_only: slices whose base file is large enough are excluded.
        execution: class name of the execution strategy in plans.
        partition_filter: filter mode of partitions.
    """

    grouping: str
    small_only: bool
    execution: str
    partition_filter: str


_PLAN_CLASSES = {
    "SparkSizeBasedClusteringPlanStrategy": ("size", True, None),
    "SparkRecentDaysClusteringPlanStrategy": ("size", True, "RECENT_DAYS"),
    "SparkSelectedPartitionsClusteringPlanStrategy": ("size", True, "SELECTED_PARTITIONS"),
    "JavaSizeBasedClusteringPlanStrategy": ("size", True, None),
    "JavaRecentDaysClusteringPlanStrategy": ("size", True, "RECENT_DAYS"),
    "SparkSingleFileSortPlanStrategy": ("single", True, None),
    "SparkStreamCopyClusteringPlanStrategy": ("schema", True, None),
    "CommitBasedClusteringPlanStrategy": ("commits", False, None),
    "SparkConsistentBucketClusteringPlanStrategy": (CONSISTENT, False, None),
}
_EXECUTIONS = {
    "SparkSortAndSizeExecutionStrategy": "sort",
    "JavaSortAndSizeExecutionStrategy": "sort",
    "SparkSingleFileSortExecutionStrategy": "single",
    "SparkBinaryCopyClusteringExecutionStrategy": "copy",
    "SparkStreamCopyClusteringExecutionStrategy": "copy",
    "SparkConsistentBucketClusteringExecutionStrategy": CONSISTENT,
    "SingleSparkJobConsistentHashingExecutionStrategy": CONSISTENT,
}


def plan_strategy_of(options: ClusteringOptions) -> PlanStrategy:
    """The plan strategy of ``hoodie.clustering.plan.strategy.class``.

    Raises:
        UnsupportedFeatureError: an unknown class of a plan or execution strategy.
    """
    name = options.plan_class.rpartition(".")[2]
    found = _PLAN_CLASSES.get(name)
    if found is None:
        raise UnsupportedFeatureError(
            f"hoodie.clustering.plan.strategy.class={options.plan_class} is not supported; supported: "
            f"{', '.join(_PLAN_CLASSES)}. Use one of these, or Apache Hudi."
        )
    grouping, small_only, mode = found
    execution = options.execution_class
    strategy = PlanStrategy(grouping, small_only, _full_name(execution), mode or options.partition_filter)
    if grouping == "schema":
        return replace(strategy, execution=f"{_RUNS}SparkStreamCopyClusteringExecutionStrategy")
    execution_of(execution)
    return strategy


def execution_of(class_name: str) -> str:
    """The kind of an execution strategy: ``sort``, ``single``, ``copy`` or :data:`CONSISTENT`.

    Args:
        class_name: of a plan or an option, with or without package.

    Raises:
        UnsupportedFeatureError: an unknown class.
    """
    found = _EXECUTIONS.get(class_name.rpartition(".")[2])
    if found is None:
        raise UnsupportedFeatureError(
            f"The clustering execution strategy {class_name} is not supported; supported: {', '.join(_EXECUTIONS)}. "
            "Use one of these (hoodie.clustering.execution.strategy.class), or Apache Hudi."
        )
    return found


def _full_name(class_name: str) -> str:
    return class_name if "." in class_name else f"{_RUNS}{class_name}"
