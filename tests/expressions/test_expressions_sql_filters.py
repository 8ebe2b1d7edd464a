"""SQL conditions as filters."""

from __future__ import annotations

import operator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import ConfigError, HudiError, UnsupportedFeatureError
from hudi_fast.expressions.sql_filters import sql_filter

ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "name": ["a", "o'b", None],
        "Town": ["Oslo", "São Paulo", "Rome"],
        "day": [date(2024, 1, n) for n in (1, 2, 3)],
        "fare": [1.5, 2.0, 3.0],
        "ok": [True, False, None],
        "price": pa.array([Decimal("1.20"), Decimal("1.25"), Decimal("2.00")]),
        "point": [{"k": 1}, {"k": 2}, {"k": 3}],
        "a b": [1, 2, 3],
        "utc": pa.array([datetime(2024, 1, n) for n in (1, 2, 3)], pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2024, 1, n) for n in (1, 2, 3)], pa.timestamp("us")),
        "maybe": [None, 5, 6],
    }
)
ANSWERS = [
    ("id = 1", [1]),
    ("id==1", [1]),
    ("id <> 2", [1, 3]),
    ("id > 1.5", [2, 3]),
    ("2 <= id", [2, 3]),
    ("fare >= 2", [2, 3]),
    ("fare < 2e0 and id <= 3", [1]),
    ("id = 1 or id = 3", [1, 3]),
    ("id = 1 or id = 3 and fare > 5", [1]),
    ("not (id = 1 or id = 3)", [2]),
    ("name != 'a'", [2]),
    ("not name = 'a'", [2]),
    ("name in ('a', 'x')", [1]),
    ("name not in ('a')", [2]),
    ("name not in ('a', null)", []),
    ("id in (1.5, 2)", [2]),
    ("name is null", [3]),
    ("name IS NOT NULL AND id < 3", [1, 2]),
    ("ok", [1]),
    ("not ok", [2]),
    ("ok is not true", [2, 3]),
    ("ok = FALSE", [2]),
    ("maybe <=> null", [1]),
    ("maybe <=> 5", [2]),
    ("maybe = null", []),
    ("id between 2 and 3", [2, 3]),
    ("id not between 2 and 3", [1]),
    ("town like 'S_o%'", [2]),
    ("Town not like '%o'", [3]),
    ("town ilike 'rO%'", [3]),
    ("town rlike '^O'", [1]),
    ("startswith(town, 'R') or endswith(town, 'o')", [1, 2, 3]),
    ("contains(town, 'o P')", [2]),
    ("lower(town) = 'oslo' or upper(name) = 'O\\'B'", [1, 2]),
    ("length(town) > 4", [2]),
    ("coalesce(maybe, 0) = 0", [1]),
    ("abs(id - 3) = 2", [1]),
    ("id + 1 = 3 and -id < 0", [2]),
    ("id / 2 = 0.5", [1]),
    ("price = 1.2", [1]),
    ("price > 1", [1, 2, 3]),
    ("point.k >= 2", [2, 3]),
    ("`a b` = 2", [2]),
    ("day >= '2024-01-02'", [2, 3]),
    ("day = date '2024-01-02'", [2]),
    ("year(day) = 2024 and day(day) = 3", [3]),
    ("cast(id as string) = '2'", [2]),
    ("cast(utc as date) = '2024-01-02'", [2]),
    ("utc < '2024-01-02'", [1]),
    ("utc <= timestamp '2024-01-02 00:00:00'", [1, 2]),
    ("utc <= '2024-01-02 02:00:00+02:00'", [1, 2]),
    ("local > '2024-01-01 00:00:00'", [2, 3]),
    ("true", [1, 2, 3]),
    ("id = fare", [2, 3]),
]


def chosen(text: str) -> list[int]:
    return ROWS.filter(sql_filter(text, ROWS.schema)).column("id").to_pylist()


@pytest.mark.parametrize(("text", "ids"), [*ANSWERS, ("name = 'o''b'", [2])])
def test_condition_selects_its_rows(text: str, ids: list[int]) -> None:
    assert chosen(text) == ids


@pytest.mark.spark
def test_spark_selects_the_same_rows(spark: Any) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = spark.createDataFrame(ROWS.to_pylist(), spark_schema())
    found = {text: sorted(row.id for row in rows.filter(text).select("id").collect()) for text, _ in ANSWERS}
    assert found == dict(ANSWERS)


def spark_schema() -> str:
    kinds = {"id": "bigint", "day": "date", "fare": "double", "ok": "boolean", "price": "decimal(3,2)"}
    kinds |= {"point": "struct<k:bigint>", "utc": "timestamp", "local": "timestamp_ntz", "maybe": "bigint"}
    return ", ".join(
        f"`{name}` {kinds.get(name, 'bigint' if name == 'a b' else 'string')}" for name in ROWS.schema.names
    )


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=20),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.integers(-5, 5),
    st.booleans(),
)
def test_comparisons_agree_with_python_and_leave_nulls_out(
    values: list[int | None], sign: str, number: int, negated: bool
) -> None:
    names = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    compare = getattr(operator, names[sign])
    rows = pa.table({"x": pa.array(values, pa.int32())})
    text = f"not x {sign} {number}" if negated else f"x {sign} {number}"
    found = rows.filter(sql_filter(text, rows.schema)).column("x").to_pylist()
    assert found == [value for value in values if value is not None and compare(value, number) != negated]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expected one condition"),
        ("nope = 1", "at character 1: column 'nope' does not exist .text is in quotes: 'text'.; columns: id, name"),
        ("id = 1 and point.z = 1", r"at character 12: column 'point\.z' does not exist"),
        ("id.k = 1", r"column 'id\.k' does not exist"),
        ("id", "at character 1: expected a condition, found a value of type int64"),
        ("id ==", r"is not a condition: a value is missing after '==?' \(character \d\)"),
        ("id = 1 x", "Expected one condition"),
        ("select 1", "Expected one condition"),
        ("id = 1 ; drop table t", "Expected one condition"),
        ("id in (1, 2", r"expected \) after '2' \(character 11\)"),
        ("id = 'x'", "value of type int64 cannot be compared with 'x'"),
        ("id = true", "int64"),
        ("name = 1", "string"),
        ("ok = 1", "bool"),
        ("day = 'soon'", "date32"),
        ("point = 1", "struct"),
        ("id = " + "9" * 39, "more digits than a decimal, 38"),
        ("name = 'open", "is not a condition: a quotation mark or a comment is not closed"),
        ("day = price", r"the types do not fit .*date32.*decimal"),
        ("name rlike '('", "at character 1: '.' is not a regular expression of RE2"),
        ("id like 'x'", "expected text, found a value of type int64"),
    ],
)
def test_condition_that_makes_no_sense_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sql_filter(text, ROWS.schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sha2(name, 256) = 'x'", r"sha2.* is not supported without Spark"),
        ("my_udf(name) = 'x'", "(?i)my_udf"),
        ("id in (select 1)", "IN .SELECT 1"),
        ("name like town", "a pattern that is not a literal"),
        ("name like 'x!%' escape '!'", "escape"),
        ("fare % 2 = 0", "%"),
        ("id between symmetric 3 and 1", "BETWEEN"),
        ("trim(both 'a' from name) = 'x'", "TRIM"),
        ("name like any ('a', 'b')", "a pattern that is not a literal"),
    ],
)
def test_what_is_not_known_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=said):
        sql_filter(text, ROWS.schema)


@given(st.text(alphabet="id name='\"()<>!,.0123456789 and or in is not null true like", max_size=30))
def test_any_text_is_a_filter_or_an_error_of_ours(text: str) -> None:
    try:
        chosen(text)
    except HudiError as error:
        refusal = str(error)
    else:
        refusal = None
    assert refusal is None or refusal.endswith(".")


@pytest.mark.parametrize(
    "text", ["id >", "(id", "id = 'a", "id like", "1 = = 2", "id in (1,", "not", "id = 1 and", "", "id = )"]
)
def test_errors_of_the_grammar_name_no_class_of_the_parser(text: str) -> None:
    with pytest.raises(ConfigError) as met:
        sql_filter(text, ROWS.schema)
    assert "sqlglot" not in str(met.value)
    assert "\x1b" not in str(met.value)
