"""Plans of rollbacks and restores as tables."""

from __future__ import annotations

import pytest

from hudi_fast.services.undoing import PlannedRestore, PlannedRollback, TouchedFile

FILES = (
    TouchedFile("100", "commit", "p", "f1.parquet", 10, "delete"),
    TouchedFile("100", "commit", "p", ".f2.log", 0, "answer"),
)


@pytest.mark.parametrize("plan", [PlannedRollback(("100",), FILES), PlannedRestore("050", (("100", "commit"),), FILES)])
def test_a_plan_is_a_row_per_file(plan: PlannedRollback | PlannedRestore) -> None:
    rows = plan.to_arrow().to_pylist()
    assert rows == [{name: getattr(file, name) for name in TouchedFile.__slots__} for file in FILES]


def test_an_empty_plan_has_the_columns() -> None:
    assert PlannedRollback(()).to_arrow().column_names == ["instant", "action", "partition", "file", "bytes", "what"]
