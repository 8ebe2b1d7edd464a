"""Filters of Spark as conditions and expressions, without a JVM."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

ds = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(ds, "EqualTo"):
    pytest.skip("PySpark before 4.1 passes no filters to data sources in Python", allow_module_level=True)

from hudi_fast.expressions.conditions import Anything  # noqa: E402
from hudi_fast.spark_api.source.readers import understand  # noqa: E402

SCHEMA = pa.schema({"n": pa.int32(), "text": pa.string(), "x": pa.float64(), "s": pa.struct({"a": pa.int32()})})
ROWS = pa.table(
    {"n": [1, 2, None], "text": ["ab", "bc", None], "x": [1.0, float("nan"), None], "s": [{"a": 1}, None, {"a": 3}]},
    SCHEMA,
)


def kept(*filters: Any) -> list[int]:
    """Numbers of the rows that the expression keeps."""
    expression = understand(filters, SCHEMA).expression
    rows = ROWS.append_column("row", pa.array([0, 1, 2]))
    return (rows if expression is None else rows.filter(expression))["row"].to_pylist()


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (ds.EqualTo(("n",), 2), [1]),
        (ds.GreaterThan(("n",), 1), [1]),
        (ds.LessThanOrEqual(("n",), 1), [0]),
        (ds.Not(ds.EqualTo(("n",), 2)), [0]),
        (ds.In(("n",), (2, None)), [1]),
        (ds.IsNull(("n",)), [2]),
        (ds.IsNotNull(("n",)), [0, 1]),
        (ds.EqualNullSafe(("n",), None), [2]),
        (ds.StringStartsWith(("text",), "a"), [0]),
        (ds.StringContains(("text",), "b"), [0, 1]),
        (ds.EqualTo(("s", "a"), 3), [2]),
    ],
)
def test_rows_are_filtered_as_spark_filters_them(filter_: Any, expected: list[int]) -> None:
    assert kept(filter_) == expected


@pytest.mark.parametrize(
    "filter_",
    [
        ds.EqualTo(("missing",), 1),
        ds.EqualTo(("n",), 2**40),
        ds.EqualTo(("n", "a"), 1),
        ds.EqualTo(("x",), float("nan")),
    ],
)
def test_what_cannot_be_understood_keeps_every_row(filter_: Any) -> None:
    found = understand([filter_], SCHEMA)
    assert found.expression is None
    assert kept(filter_) == [0, 1, 2]


def test_floating_columns_leave_out_files_alone() -> None:
    found = understand([ds.GreaterThan(("x",), 5.0)], SCHEMA)
    assert found.expression is None
    assert not isinstance(found.condition, Anything)


def test_all_filters_must_be_true() -> None:
    assert kept(ds.IsNotNull(("n",)), ds.GreaterThan(("n",), 1)) == [1]
    assert isinstance(understand([], SCHEMA).condition, Anything)
