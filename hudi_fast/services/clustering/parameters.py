"""The parameters of a clustering plan, and how they combine with the options of the call that executes it.

Apache Hudi stores only the sort columns in a plan; sizes and curves are options of the executing call. hudi_fast also
stores sizes and curves that were set: they apply unless the executing call sets others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.timeline.service_plans import ClusteringPlan

__all__ = ["options_of_plan", "parameters_of"]

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
