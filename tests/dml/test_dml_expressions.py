"""Values and conditions of a DML statement, computed over Arrow tables."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.compute import field

from hudi_fast.dml.assignments import check_condition, evaluate, mentioned, parse_value, true_of
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.expressions.sql_filters import sql_value

ROWS = pa.table(
    {"target.fare": [1.0, None, 3.0], "source.note": ["a", "b", None], "target._hoodie_record_key": ["1"] * 3}
)


def value_of(value: Any, kind: pa.DataType) -> list[Any]:
    """The value for each row."""
    expression = parse_value(value, ROWS.column_names, "set 'x'")
    return evaluate(ROWS, {"x": expression}, {"x": kind}, "set 'x'")["x"].to_pylist()


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("target.fare", pa.float64(), [1.0, None, 3.0]),
        (" source.note ", pa.string(), ["a", "b", None]),
        ("'it''s'", pa.string(), ["it's"] * 3),
        ("''", pa.string(), [""] * 3),
        ("-12", pa.int32(), [-12] * 3),
        ("+1.5e1", pa.float32(), [15.0] * 3),
        ("TRUE", pa.bool_(), [True] * 3),
        ("null", pa.date32(), [None] * 3),
        (7, pa.int8(), [7] * 3),
        (None, pa.string(), [None] * 3),
        (field("target.fare") * 2, pa.float64(), [2.0, None, 6.0]),
        (pc.coalesce(field("source.note"), pc.scalar("none")), pa.string(), ["a", "b", "none"]),
    ],
)
def test_columns_literals_and_expressions_are_values(value: Any, kind: pa.DataType, expected: list[Any]) -> None:
    assert value_of(value, kind) == expected


@pytest.mark.parametrize("value", ["fare", "target.fare + 1", "it's", "1.2.3"])
def test_text_that_is_neither_column_nor_literal_is_refused_with_the_columns(value: str) -> None:
    with pytest.raises(ConfigError, match=r"set 'x'.*target\.fare, source\.note\)") as raised:
        parse_value(value, ROWS.column_names, "set 'x'")
    assert "_hoodie_" not in str(raised.value)


def test_an_object_that_is_no_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="set 'x'"):
        parse_value(object(), [], "set 'x'")


def test_a_value_that_does_not_fit_names_column_and_type() -> None:
    with pytest.raises(InvalidDataError, match=r"'x'.*int8"):
        value_of(1000, pa.int8())


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (field("fare") > 1, r"target\.fare"),
        (field("nothing") > 1, "no such column"),
        (field("source.note") > 1, "string"),
    ],
)
def test_an_expression_that_does_not_fit_the_columns_is_refused(expression: pc.Expression, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        true_of(expression, ROWS, "on")


def test_a_value_that_cannot_be_computed_is_invalid_data() -> None:
    with pytest.raises(InvalidDataError, match="on"):
        evaluate(ROWS, {"x": field("source.note").cast(pa.int32())}, {"x": pa.int32()}, "on")


def test_a_condition_that_is_null_is_not_true() -> None:
    assert true_of(field("target.fare") > 1, ROWS, "on").tolist() == [False, False, True]
    assert true_of(None, ROWS, "on").tolist() == [True] * 3


def test_a_condition_is_an_expression() -> None:
    condition = field("a") > 1
    assert check_condition(condition, "on") is condition
    assert check_condition(None, "on") is None
    with pytest.raises(ConfigError, match="a > 1"):
        check_condition("a > 1", "on")


def test_columns_that_an_expression_names_are_found() -> None:
    names = ["target.fare", "source.note"]
    assert mentioned(field("target.fare") > 1, names) == ["target.fare"]
    assert mentioned(None, names) == []


def test_nothing_to_compute_is_a_table_of_no_columns() -> None:
    made = evaluate(ROWS, {}, {}, "on")
    assert (made.num_rows, made.num_columns) == (3, 0)


def test_a_decimal_is_rounded_to_the_digits_of_its_column() -> None:
    prices = pa.table({"price": pa.array([Decimal("1.25"), Decimal("-1.25"), Decimal("9.99"), None])})
    computed = {"price": sql_value("price * 1.1", prices.schema)}
    found = evaluate(prices, computed, {"price": pa.decimal128(5, 2)}, "set")["price"].to_pylist()
    assert found == [Decimal("1.38"), Decimal("-1.38"), Decimal("10.99"), None]
    with pytest.raises(InvalidDataError, match="'price'"):
        evaluate(prices, computed, {"price": pa.decimal128(3, 2)}, "set")
