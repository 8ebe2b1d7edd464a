"""Filters as trees of values."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import (
    And,
    Anything,
    Cast,
    Column,
    Compare,
    Condition,
    Constant,
    Function,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    columns_of,
    conjuncts,
)

A, B, C = pc.field("a"), pc.field("b"), pc.field("c")
NODE_A, NODE_C = Column(("a",)), Column(("c",))


def constant(value: object) -> Constant:
    return Constant(pa.scalar(value))


@pytest.mark.parametrize(
    ("expression", "condition"),
    [
        (A == 5, Compare("==", NODE_A, constant(5))),
        (pc.scalar(5) < A, Compare("<", constant(5), NODE_A)),
        (A >= dt.date(2024, 1, 31), Compare(">=", NODE_A, constant(dt.date(2024, 1, 31)))),
        (pc.field("s", "t") != "x", Compare("!=", Column(("s", "t")), constant("x"))),
        (pc.field("a.b") == 1, Compare("==", Column(("a.b",)), constant(1))),
        (A, Compare("==", NODE_A, constant(True))),
        (~A, Not(Compare("==", NODE_A, constant(True)))),
        (A.is_null(), IsNull(NODE_A)),
        (pc.is_null(A), IsNull(NODE_A)),
        (A.is_null(nan_is_null=True), IsNull(NODE_A, or_nan=True)),
        (A.is_valid(), Not(IsNull(NODE_A))),
        (pc.starts_with(C, "ab"), StartsWith(NODE_C, "ab")),
        (pc.match_like(C, "ab%"), StartsWith(NODE_C, "ab")),
        (pc.match_like(C, "ab%c"), StartsWith(NODE_C, "ab", exact=False)),
        (pc.match_like(C, "a_c"), StartsWith(NODE_C, "a", exact=False)),
        (pc.match_like(C, r"a\%b"), StartsWith(NODE_C, "a", exact=False)),
        (pc.match_like(C, "abc"), Compare("==", NODE_C, constant("abc"))),
        (A.cast(pa.int64()) > 1, Compare(">", Cast(NODE_A, pa.int64()), constant(1))),
        (pc.year(A) == 2024, Compare("==", Function("year", NODE_A), constant(2024))),
        (pc.is_null(A == 1), Anything()),
        (pc.starts_with(C, "ab", ignore_case=True), Anything()),
        (A + 1 > 2, Anything()),
        (pc.if_else(A, A, B), Anything()),
        (pc.field(0) == 1, Anything()),
    ],
    ids=str,
)
def test_an_expression_is_read_as_it_was_written(expression: pc.Expression, condition: Condition) -> None:
    assert parse_filter(expression) == condition


@pytest.mark.parametrize(
    ("expression", "values", "null_is"),
    [
        (A.isin([1, 2]), [1, 2], False),
        (A.isin([1, None]), [1], True),
        (pc.is_in(A, value_set=pa.array([1, None]), skip_nulls=True), [1], False),
        (A.isin(pa.array([], pa.int64())), [], False),
    ],
    ids=str,
)
def test_a_list_of_values_is_read_with_what_a_null_gives(
    expression: pc.Expression, values: list[int], null_is: bool
) -> None:
    condition = parse_filter(expression)
    assert isinstance(condition, In)
    assert (condition.value, condition.values.to_pylist(), condition.null_is) == (NODE_A, values, null_is)


def test_several_literals_and_options_in_one_expression_are_told_apart() -> None:
    expression = ((A == 1) & pc.starts_with(C, "x")) | (pc.starts_with(C, "y") & (A == 2) & ~(B == "z"))
    condition = parse_filter(expression)
    assert condition == Or(
        (
            And((Compare("==", NODE_A, constant(1)), StartsWith(NODE_C, "x"))),
            And(
                (
                    StartsWith(NODE_C, "y"),
                    Compare("==", NODE_A, constant(2)),
                    Not(Compare("==", Column(("b",)), constant("z"))),
                )
            ),
        )
    )


def test_what_is_not_understood_leaves_the_rest_readable() -> None:
    condition = parse_filter((A == 1) & (A + 1 > 2))
    assert list(conjuncts(condition)) == [Compare("==", NODE_A, constant(1)), Anything()]


def test_conjuncts_are_true_of_every_row_that_matches() -> None:
    parts = list(conjuncts(parse_filter((A == 1) & ~~(B == 2) & ((C == 3) | (C == 4)))))
    assert [type(part) for part in parts] == [Compare, Compare, Or]


def test_columns_are_those_of_all_parts() -> None:
    condition = parse_filter(((A == B) | ~pc.starts_with(C, "x")) & pc.field("s", "t").cast(pa.int64()).isin([1]))
    assert {column.name for column in columns_of(condition)} == {"a", "b", "c", "s.t"}
