"""Bounds decide which sets of rows a condition may be true of: never too few, and as few as they can."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import Column
from hudi_fast.reading.skipping.bounds import Bounds, may_match
from tests.support.examples import examples

KINDS: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "g": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "b": pa.bool_(),
    "n": pa.decimal128(9, 2),
}
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
POOL: dict[str, list[Any]] = {
    "i": [-3, 0, 1, 2, 2**20],
    "l": [-3, 0, 1, 2**53, 2**53 + 1],
    "f": [-1.5, -0.0, 0.0, 0.1, 3.0, math.nan, math.inf],
    "g": [-1.5, -0.0, 0.0, 0.1, 3.0, math.nan, -math.inf],
    "s": ["", "a", "ab", "abc", "b", "\ue000", "😀", "a%"],
    "d": [DAY, DAY + dt.timedelta(1), dt.date(1969, 12, 31)],
    "t": [NOON, NOON + dt.timedelta(microseconds=1), NOON - dt.timedelta(days=1)],
    "b": [True, False],
    "n": [Decimal("-1.00"), Decimal("0.10"), Decimal("3.00")],
}
NAMES = sorted(KINDS)


def bounds_of(table: pa.Table, groups: int) -> dict[Column, Bounds]:
    """What exact statistics say of each group of rows; column ``group`` numbers them."""
    found = {}
    for name in table.column_names[1:]:
        parts = [table.filter(pc.field("group") == number).column(name) for number in range(groups)]
        real = [part.filter(pc.invert(pc.is_nan(part))) if pa.types.is_floating(part.type) else part for part in parts]
        ends = [pc.min_max(part).as_py() for part in real]
        found[Column((name,))] = Bounds(
            pa.array([end["min"] for end in ends], table.schema.field(name).type),
            pa.array([end["max"] for end in ends], table.schema.field(name).type),
            pa.array([part.null_count > 0 for part in parts]),
            pa.array([part.null_count < len(part) for part in parts]),
        )
    return found


def leaves() -> st.SearchStrategy[pc.Expression]:
    def literal(name: str) -> st.SearchStrategy[Any]:
        return st.sampled_from([*POOL[name], None]).map(lambda value: pa.scalar(value, KINDS[name]))

    def compare(name: str) -> st.SearchStrategy[pc.Expression]:
        signs = [pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal]
        return st.tuples(st.sampled_from(signs), literal(name), st.booleans()).map(
            lambda made: made[0](pc.field(name), made[1]) if made[2] else made[0](pc.scalar(made[1]), pc.field(name))
        )

    def listed(name: str) -> st.SearchStrategy[pc.Expression]:
        return st.lists(st.sampled_from([*POOL[name], None]), max_size=3).map(
            lambda values: pc.field(name).isin(pa.array(values, KINDS[name]))
        )

    def null(name: str) -> st.SearchStrategy[pc.Expression]:
        nan = KINDS[name] in (pa.float32(), pa.float64())
        return st.sampled_from([pc.field(name).is_null(), pc.field(name).is_valid(), pc.field(name).is_null(nan)])

    texts = st.sampled_from(["a", "ab%", "%b", "a_", "", r"a\%"])
    likes = texts.map(lambda pattern: pc.match_like(pc.field("s"), pattern))
    begins = texts.map(lambda prefix: pc.starts_with(pc.field("s"), prefix))
    columns = st.sampled_from(
        [
            pc.field("i") < pc.field("l"),
            pc.field("f") == pc.field("g"),
            pc.field("f") >= 1,
            pc.field("i") == 0.5,
            pc.field("i").cast(pa.int64()) > pc.field("l"),
            pc.field("i").cast(pa.float32()) != 1.0,
            pc.field("d").cast(pa.timestamp("s")) == dt.datetime(2024, 2, 29),
            pc.field("b"),
            ~pc.field("b"),
            pc.field("i") + 1 > 2,
        ]
    )
    by_name = st.sampled_from(NAMES).flatmap(lambda name: st.one_of(compare(name), listed(name), null(name)))
    return st.one_of(by_name, by_name, by_name, likes, begins, columns)


CONDITIONS = st.recursive(
    leaves(),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda two: two[0] & two[1]),
        st.tuples(parts, parts).map(lambda two: two[0] | two[1]),
        parts.map(lambda part: ~part),
    ),
    max_leaves=4,
)
ROWS = st.lists(
    st.tuples(st.integers(0, 3), *(st.sampled_from([*POOL[name], None]) for name in NAMES)), min_size=1, max_size=12
)


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(rows=ROWS, filter_=CONDITIONS)
def test_no_set_with_a_matching_row_is_left_out(rows: list[tuple[Any, ...]], filter_: pc.Expression) -> None:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(values, KINDS[name]) for name, values in zip(NAMES, columns[1:], strict=True)]
    table = pa.table([pa.array(columns[0]), *arrays], names=["group", *NAMES])
    wanted = set(table.filter(filter_).column("group").to_pylist())
    kept = set(np.flatnonzero(may_match(parse_filter(filter_), bounds_of(table, 4), 4)).tolist())
    assert wanted <= kept


ROWS_OF_THREE = {"i": [1, 5, None], "s": ["ab", "b", None], "b": [True, False, None]}


def kept(filter_: pc.Expression, values: dict[str, list[Any]] = ROWS_OF_THREE) -> list[int]:
    """Which of single rows are kept by bounds that are exact."""
    arrays = {name: pa.array(column, KINDS[name]) for name, column in values.items()}
    count = len(next(iter(arrays.values())))
    table = pa.table({"group": pa.array(range(count)), **arrays})
    return np.flatnonzero(may_match(parse_filter(filter_), bounds_of(table, count), count)).tolist()


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (pc.field("i") == 1, [0]),
        (pc.field("i") != 1, [1]),
        (~(pc.field("i") == 1), [1]),
        (~(pc.field("i") > 1), [0]),
        (pc.field("i") > 4, [1]),
        (pc.field("i") >= 6, []),
        (pc.field("i") == pa.scalar(None, pa.int32()), []),
        (pc.field("i").isin([1, 7]), [0]),
        (pc.field("i").isin([1, None]), [0, 2]),
        (~pc.field("i").isin([1]), [1, 2]),
        (pc.field("i").isin(range(1000, 3000)), []),
        (pc.field("i").isin([*range(1000, 3000), 5]), [1]),
        (pc.field("i").is_null(), [2]),
        (pc.field("i").is_valid(), [0, 1]),
        (pc.starts_with(pc.field("s"), "a"), [0]),
        (~pc.starts_with(pc.field("s"), "a"), [1]),
        (pc.match_like(pc.field("s"), "b%x"), [1]),
        (pc.field("b"), [0]),
        (~pc.field("b"), [1]),
        ((pc.field("i") == 1) | (pc.field("s") == "b"), [0, 1]),
        ((pc.field("i") == 1) & (pc.field("s") == "b"), []),
        ((pc.field("i") + 1 == 2) & (pc.field("s") == "b"), [1]),
        (pc.field("i").cast(pa.int64()) == 5, [1]),
    ],
    ids=str,
)
def test_exact_bounds_leave_out_what_does_not_match(filter_: pc.Expression, expected: list[int]) -> None:
    assert kept(filter_) == expected


def test_values_between_the_bounds_may_be_there() -> None:
    bounds = Bounds(pa.array([1]), pa.array([5]), pa.array([False]), pa.array([True]))
    for value, kept_ in ((0, False), (3, True), (6, False)):
        assert may_match(parse_filter(pc.field("i") == value), {Column(("i",)): bounds}, 1).tolist() == [kept_]
    assert may_match(parse_filter(pc.field("i").isin([0, 6])), {Column(("i",)): bounds}, 1).tolist() == [False]


def test_what_is_unknown_is_kept() -> None:
    nothing = Bounds(*(pa.nulls(1, kind) for kind in (pa.int64(), pa.int64(), pa.bool_(), pa.bool_())))
    for filter_ in (pc.field("i") == 1, pc.field("i").is_null(), ~pc.field("i").isin([1]), pc.field("j") == 1):
        assert may_match(parse_filter(filter_), {Column(("i",)): nothing}, 1).tolist() == [True]


def test_sides_that_do_not_compare_are_kept() -> None:
    bounds = Bounds(pa.array([1]), pa.array([5]), pa.array([False]), pa.array([True]))
    assert may_match(parse_filter(pc.field("i") == "x"), {Column(("i",)): bounds}, 1).tolist() == [True]


def test_nan_passes_what_is_not_a_comparison() -> None:
    bounds = {Column(("g",)): Bounds(pa.array([1.0]), pa.array([2.0]), pa.array([False]), pa.array([True]))}
    for filter_, kept_ in (
        (pc.field("g") > 5.0, False),
        (~(pc.field("g") <= 5.0), True),
        (pc.field("g") != 1.0, True),
        (pc.field("g").is_null(nan_is_null=True), True),
        (pc.field("g").isin([math.nan]), True),
        (pc.field("g").isin([7.0]), False),
    ):
        assert may_match(parse_filter(filter_), bounds, 1).tolist() == [kept_], filter_
