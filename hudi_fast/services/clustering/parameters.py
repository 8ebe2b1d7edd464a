"""What a clustering plan says about how it is carried out, and how that goes together with the options of whoever does.

Apache Hudi writes the sort columns into a plan and nothing else; it takes sizes and curves from the options of the
call that carries the plan out. Ours writes those down, too, where they were given: they count unless that call gives
others.
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
    """The parameters of a plan that is made with these options."""
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
    """The options that a plan is carried out with.

    Args:
        plan: its sort columns count, whatever the options say.
        options: of the call that carries it out.

    Raises:
        ConfigError: a parameter of the plan cannot be understood.
    """
    given = plan.strategy_params
    changes: dict[str, Any] = {
        field: given[key] for key, field in _FIELDS.items() if key in given and key not in options.explicit
    }
    columns = tuple(one.strip() for one in given.get(_SORT_COLUMNS, "").split(",") if one.strip())
    return replace(options, sort_columns=columns, **changes)
