"""Rows of the table that a DML statement reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.compute import field

from hudi_fast.dml.statement import MergeSpec
from hudi_fast.dml.target import PLACES, check_columns, identity_columns, key_filter, names_rows, read_rows, roots
from hudi_fast.errors import ConfigError
from hudi_fast.writing.write_plan import WritePlan
from tests.dml.dml_tables import new_table, rows, table_options
from tests.writing.plans import drafted


@pytest.fixture
def plan(tmp_path: Path) -> WritePlan:
    new_table(tmp_path, range(6))
    return drafted(tmp_path, rows([0]), table_options())[0]


def test_columns_are_known_by_their_roots() -> None:
    assert roots(["a.b", "c", "a.d"]) == ["a", "c"]
    check_columns(["a"], ["a", "b"], "set")
    with pytest.raises(ConfigError, match=r"set.*\['x'\]"):
        check_columns(["a", "x"], ["a", "b"], "set")


def test_changed_rows_bring_key_partition_and_ordering_columns(plan: WritePlan) -> None:
    assert identity_columns(plan) == ["id", "part", "ts"]


def test_rows_are_read_with_their_places(plan: WritePlan) -> None:
    found = read_rows(plan, ["id", "fare"], field("id") > 3)
    assert found.column_names == ["id", "fare", *PLACES]
    assert sorted(found["id"].to_pylist()) == [4, 5]
    assert {row[PLACES[0]]: row[PLACES[1]] for row in found.to_pylist()} == {"4": "p1", "5": "p2"}
    assert all(found[PLACES[2]].to_pylist())
    assert read_rows(plan, ["id"], field("part") == "nowhere").num_rows == 0


def test_a_merge_by_key_reads_the_rows_with_these_keys(plan: WritePlan) -> None:
    source = pa.table({"key": pa.array([4, None, 9], pa.int64())})
    found = read_rows(plan, ["id"], key_filter(plan, source, [("id", "key")]))
    assert found["id"].to_pylist() == [4]


@pytest.mark.slow("pairs1-None-True")
@pytest.mark.parametrize(
    ("pairs", "condition", "expected"),
    [
        ((("id", "id"),), None, True),
        ((("id", "id"), ("part", "part")), None, True),
        ((("id", "id"), ("fare", "fare")), None, False),
        ((("part", "part"),), None, False),
        ((("id", "id"),), field("target.ts") > 1, False),
    ],
)
def test_a_merge_on_all_key_columns_names_the_rows(
    plan: WritePlan, pairs: tuple[tuple[str, str], ...], condition: object, expected: bool
) -> None:
    assert names_rows(plan, MergeSpec(pairs=pairs, condition=condition)) is expected
