"""Parameters that a clustering plan stores, and options that it is executed with."""

from __future__ import annotations

import pytest

from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.services.clustering.strategies import options_of_plan, parameters_of
from hudi_fast.timeline.service_plans import ClusteringPlan

PLAN = "hoodie.clustering.plan.strategy."
LAYOUT = "hoodie.layout.optimize."


def options(**given: str) -> ClusteringOptions:
    return ClusteringOptions.from_options(given)


def executed(parameters: dict[str, str], **given: str) -> ClusteringOptions:
    return options_of_plan(ClusteringPlan(groups=(), strategy_params=parameters), options(**given))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({f"{PLAN}sort.columns": "a,b"}, {f"{PLAN}sort.columns": "a,b"}),
        ({f"{PLAN}target.file.max.bytes": "7000"}, {f"{PLAN}target.file.max.bytes": "7000"}),
        ({f"{LAYOUT}strategy": "HILBERT"}, {}),
        (
            {f"{PLAN}sort.columns": "a", f"{LAYOUT}strategy": "HILBERT"},
            {
                f"{PLAN}sort.columns": "a",
                f"{LAYOUT}strategy": "HILBERT",
                f"{LAYOUT}curve.build.method": "DIRECT",
            },
        ),
    ],
)
def test_a_plan_stores_what_was_given(given: dict[str, str], expected: dict[str, str]) -> None:
    assert parameters_of(options(**given)) == expected


def test_a_plan_is_executed_with_its_sort_columns() -> None:
    given = {f"{PLAN}sort.columns": "other"}
    assert executed({f"{PLAN}sort.columns": "a, b"}, **given).sort_columns == ("a", "b")
    assert executed({}, **given).sort_columns == ()


def test_options_of_the_call_come_before_those_of_the_plan() -> None:
    stored = {f"{PLAN}target.file.max.bytes": "7000"}
    assert int(executed(stored).target_bytes) == 7000
    assert executed(stored, **{f"{PLAN}target.file.max.bytes": "9000"}).target_bytes == 9000
