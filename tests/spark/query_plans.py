"""What Spark plans and executes for a query."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_fast.spark.reading import python_scan, reader, scan

__all__ = ["files_scanned", "without_python_scan"]


def without_python_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read as in Spark Connect and Spark 3.5, where Python does not learn the columns of a query."""
    for module in (python_scan, scan, reader):
        monkeypatch.setattr(module, "prunes_columns", lambda spark: False)


def files_scanned(frame: Any) -> int:
    """How many files the scan opens, after folders were left out."""
    frame = frame.select("*")  # A plan of its own: a second run of one plan resets its metrics and lists nothing anew.
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    return int(plan.metrics().apply("numFiles").value())
