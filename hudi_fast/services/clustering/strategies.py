"""Maps the Java classes of clustering strategies to their selection and execution.

Plans name the class of their execution strategy, so Apache Hudi and hudi_fast can execute each other's plans.

Sources: ``ClusteringPlanStrategy.checkAndGetClusteringPlanStrategy`` and the strategies below
``org.apache.hudi.client.clustering`` (1.2.0).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.timeline.service_plans import ClusteringPlan
from hudi_fast.values import dataclass

__all__ = ["CONSISTENT", "PlanStrategy", "execution_of", "options_of_plan", "parameters_of", "plan_strategy_of"]

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


# ---- the parameters of a clustering plan, and how they combine with the options of the call that executes it
#
# Apache Hudi stores only the sort columns in a plan; sizes and curves are options of the executing call. hudi_fast
# also stores sizes and curves that were set: they apply unless the executing call sets others.


_SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
_TARGET_BYTES = "hoodie.clustering.plan.strategy.target.file.max.bytes"
_CURVE = "hoodie.layout.optimize.strategy"
_BUILD = "hoodie.layout.optimize.curve.build.method"
_SAMPLE = "hoodie.layout.optimize.build.curve.sample.size"
_FIELDS = {_TARGET_BYTES: "target_bytes", _CURVE: "curve", _BUILD: "curve_build", _SAMPLE: "curve_sample_rows"}


def parameters_of(options: ClusteringOptions) -> dict[str, str]:
    """The parameters of a plan with these options."""
    found: dict[str, str] = {}
    if options.sort_columns:
        found[_SORT_COLUMNS] = ",".join(options.sort_columns)
    if _TARGET_BYTES in options.explicit:
        found[_TARGET_BYTES] = str(options.target_bytes)
    if options.sort_columns and options.curve != "LINEAR":
        found |= {_CURVE: options.curve, _BUILD: options.curve_build}
        if options.curve_build == "SAMPLE":
            found[_SAMPLE] = str(options.curve_sample_rows)
    return found


def options_of_plan(plan: ClusteringPlan, options: ClusteringOptions) -> ClusteringOptions:
    """The options to execute a plan with.

    Args:
        plan: its sort columns override the options.
        options: of the executing call.

    Raises:
        ConfigError: a parameter of the plan is invalid.
    """
    given = plan.strategy_params
    changes: dict[str, Any] = {
        field: given[key] for key, field in _FIELDS.items() if key in given and key not in options.explicit
    }
    columns = tuple(one.strip() for one in given.get(_SORT_COLUMNS, "").split(",") if one.strip())
    return replace(options, sort_columns=columns, **changes)
