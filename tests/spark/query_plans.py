"""What Spark plans and executes for a query."""

from __future__ import annotations

from typing import Any

__all__ = ["files_scanned"]


def files_scanned(frame: Any) -> int:
    """How many files the scan opens, after folders were left out."""
    frame = frame.select("*")  # A plan of its own: a second run of one plan resets its metrics and lists nothing anew.
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    return int(plan.metrics().apply("numFiles").value())
