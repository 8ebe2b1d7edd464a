"""SQL values as expressions: the answers of Spark, and the columns of two sides.

Module: hudi_fast.expressions.sql_filters.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.expressions.sql_filters import sql_filter, sql_value

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, -7], pa.int32()),
        "big": pa.array([10, 20, None, 2**40], pa.int64()),
        "fare": [1.25, -2.5, None, 3.75],
        "name": ["ab", "Öl", None, ""],
        "ok": [True, False, None, True],
        "price": pa.array([Decimal("1.20"), None, Decimal("2.00"), Decimal("-3.15")]),
        "day": [date(2024, 1, 31), None, date(1969, 12, 31), date(2024, 2, 29)],
    }
)
VALUES = [
    "id + big",
    "id / 2",
    "fare * 2 - id",
    "-fare",
    "id % 3",
    "mod(big, 7)",
    "abs(fare)",
    "round(fare, 1)",
    "round(fare)",
    "floor(fare)",
    "ceil(fare)",
    "concat(name, '-', id)",
    "name || name",
    "upper(name)",
    "length(name)",
    "substring(name, 2, 1)",
    "left(name, 1)",
    "replace(name, 'b', 'cc')",
    "coalesce(name, 'none')",
    "nvl(big, 0)",
    "nullif(id, 2)",
    "if(ok, name, 'no')",
    "CASE WHEN id > 1 THEN big WHEN ok THEN 5 END",
    "CASE id WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE name END",
    "CASE WHEN fare > 1 AND NOT ok THEN 1 ELSE 2 END",
    "greatest(id, 2, big)",
    "least(fare, 0.5)",
    "id > 1",
    "name IS NULL",
    "ok AND id > 0",
    "cast(id AS string)",
    "cast(fare AS int)",
    "year(day)",
    "trim(concat(' ', name))",
    "NULL",
    "'it''s'",
    "DATE '2024-01-01'",
]


SPARK_COLUMNS = "id int, big bigint, fare double, name string, ok boolean, price decimal(3,2), day date"
BOTH = pa.schema({"t.id": pa.int64(), "t.fare": pa.float64(), "s.fare": pa.float64(), "s.name": pa.string()})


def value_of(text: str, rows: pa.Table = ROWS, alias: str = "") -> list[Any]:
    computed = ds.dataset(rows).to_table(columns={"x": sql_value(text, rows.schema, alias)})
    found: list[Any] = computed["x"].to_pylist()
    return found


@pytest.mark.spark
def test_a_value_is_the_same_as_sparks(spark: Any) -> None:
    frame = spark.createDataFrame(ROWS.to_pylist(), SPARK_COLUMNS)
    rows = frame.selectExpr(*(f"{text} AS `{at}`" for at, text in enumerate(VALUES))).collect()
    for at, text in enumerate(VALUES):
        assert value_of(text) == [row[at] for row in rows], text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T.fare", [1.25, -2.5, None, 3.75]),
        ("`fare`", [1.25, -2.5, None, 3.75]),
        ("t.id + ID", [2, 4, 6, -14]),
    ],
)
def test_columns_may_have_the_alias_of_the_table(text: str, expected: list[Any]) -> None:
    assert value_of(text, alias="t") == expected


def test_columns_of_two_sides_are_found_by_side_or_where_only_one_has_them() -> None:
    rows = pa.Table.from_pylist([{"t.id": 1, "t.fare": 2.0, "s.fare": 5.0, "s.name": "a"}], BOTH)
    assert value_of("t.fare + s.fare + id", rows) == [8.0]
    assert value_of("concat(S.NAME, name)", rows) == ["aa"]
    assert rows.filter(sql_filter("t.fare < s.fare AND name = 'a'", BOTH)).num_rows == 1
    with pytest.raises(ConfigError, match=r"'fare' may be t\.fare or s\.fare"):
        sql_value("fare + 1", BOTH)
    with pytest.raises(ConfigError, match=r"'x\.fare' does not exist"):
        sql_value("x.fare + 1", BOTH)


def test_the_time_of_the_computation() -> None:
    now = value_of("current_timestamp()")[0]
    assert abs((datetime.now(UTC) - now).total_seconds()) < 60
    assert value_of("current_date()")[0] in (now.date(), datetime.now(UTC).date())


@pytest.mark.parametrize("text", ["fare % 2", "substring(name, -1, 1)", "round(fare, id)", "sha1(name)", "my_udf(id)"])
def test_what_is_not_known_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="not supported without Spark"):
        sql_value(text, ROWS.schema)


@pytest.mark.parametrize("text", ["fare +", "nothing", "id, fare", "", "name + 1", "select 1"])
def test_what_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        sql_value(text, ROWS.schema)
