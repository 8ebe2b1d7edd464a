"""Which write an ``INSERT OVERWRITE`` becomes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_fast.dml.sql_statements import overwrite_options
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

OPERATION, PARTITIONS = "hoodie.datasource.write.operation", "hoodie.static.overwrite.partition.paths"
TABLE, SOME = {OPERATION: "insert_overwrite_table"}, {OPERATION: "insert_overwrite"}
DAY = {"day": "1"}


def never() -> list[str]:
    raise AssertionError("partitions are not asked for")


@pytest.mark.parametrize(
    ("operation", "mode", "partitioned", "clause", "matching", "expected"),
    [
        ("insert", "static", True, {}, never, TABLE),
        ("insert", "STATIC", True, DAY, lambda: ["1/a", "1/b"], {**SOME, PARTITIONS: "1/a,1/b"}),
        ("insert", "static", True, DAY, list, {**SOME, PARTITIONS: ""}),
        ("insert", "Dynamic", True, {}, never, SOME),
        ("insert", "dynamic", True, DAY, never, SOME),
        ("insert", "dynamic", False, {}, never, TABLE),
        ("insert_overwrite", "static", True, DAY, never, SOME),
        ("insert_overwrite_table", "dynamic", True, {}, never, TABLE),
    ],
)
def test_mode_and_clause_decide(
    operation: str,
    mode: str,
    partitioned: bool,
    clause: dict[str, str],
    matching: Callable[[], list[str]],
    expected: dict[str, str],
) -> None:
    assert overwrite_options(operation, mode, partitioned, clause, matching) == expected


def test_what_cannot_be_named_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"overwrite\.mode='both' is not valid"):
        overwrite_options("insert", "both", True, {}, never)
    with pytest.raises(UnsupportedFeatureError, match="their paths have commas"):
        overwrite_options("insert", "static", True, DAY, lambda: ["1,2"])
