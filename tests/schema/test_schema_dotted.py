"""Columns by dotted names: where they are, of which type, and their values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_fast.schema.names import dotted_values, find_dotted

PLACES = pa.array([{"x": 1, "y": {"z": "a"}}, None, {"x": None, "y": None}, {"x": 4, "y": {"z": "d"}}])
ROWS = pa.table({"id": pa.array([1, 2, 3, 4]), "place": PLACES, "a.b": pa.array(["p", "q", "r", "s"])})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("id", ("id", pa.int64())),
        ("place.x", ("place", pa.int64())),
        ("place.y.z", ("place", pa.string())),
        ("place.y", ("place", pa.struct([("z", pa.string())]))),
        ("a.b", ("a.b", pa.string())),
        ("a", None),
        ("place.w", None),
        ("place.x.w", None),
        ("id.x", None),
        ("place.", None),
        ("", None),
    ],
)
def test_a_column_is_found_by_its_dotted_name(name: str, expected: tuple[str, pa.DataType] | None) -> None:
    assert find_dotted(ROWS.schema, name) == expected


def test_values_are_null_where_a_struct_around_them_is() -> None:
    assert dotted_values(ROWS, "place.x").to_pylist() == [1, None, None, 4]
    assert dotted_values(ROWS, "place.y.z").to_pylist() == ["a", None, None, "d"]
    assert dotted_values(ROWS.slice(1), "place.y.z").to_pylist() == [None, None, "d"]
    assert dotted_values(pa.concat_tables([ROWS, ROWS.slice(3)]), "place.x").to_pylist() == [1, None, None, 4, 4]
    assert dotted_values(ROWS, "a.b").to_pylist() == ["p", "q", "r", "s"]
