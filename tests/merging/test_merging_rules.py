"""Ordering values, deletes and combining, against the rules applied to one row after the other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from hudi_fast.errors import InvalidDataError, SchemaMismatchError
from hudi_fast.formats.varlen import replace_rows
from hudi_fast.merging.fold import combine
from hudi_fast.merging.rules import (
    COMMIT_TIME,
    EVENT_TIME,
    MergeRules,
    at_least,
    delete_mask,
    ordering_columns,
    ordering_rank,
)
from tests.support.examples import examples

NUMBERS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-3, 3),
    pa.int64(): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.float64(): st.sampled_from([-1.5, -0.0, 0.0, 1.5, float("inf"), float("-inf")]),
    pa.decimal128(7, 2): st.integers(-300, 300).map(lambda digits: Decimal(digits).scaleb(-2)),
    pa.bool_(): st.booleans(),
}
OTHERS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text("abé鍵", max_size=3),
    pa.binary(): st.binary(max_size=2),
    pa.date32(): st.dates(dt.date(1960, 1, 1), dt.date(1980, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1)),
    pa.timestamp("ms"): st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(1980, 1, 1)).map(
        lambda value: value.replace(microsecond=0)
    ),
}
KINDS = st.sampled_from([*NUMBERS, *OTHERS])


def comparable(kind: pa.DataType, value: Any) -> Any:
    """Null is 0 beside numbers and the lowest beside all else."""
    if kind in NUMBERS:
        return (0, 0 if value is None else value)
    if isinstance(value, str):
        value = value.encode()
    return (0,) if value is None else (1, value)


def columns(data: st.DataObject, kinds: list[pa.DataType], count: int) -> list[list[Any]]:
    return [
        data.draw(st.lists(st.none() | {**NUMBERS, **OTHERS}[kind], min_size=count, max_size=count)) for kind in kinds
    ]


@given(st.lists(KINDS, min_size=1, max_size=3), st.integers(0, 8), st.data())
def test_ordering_values_compare_as_rows_do(kinds: list[pa.DataType], count: int, data: st.DataObject) -> None:
    new, old = columns(data, kinds, count), columns(data, kinds, count)
    arrays = [[pa.array(values, kind) for values, kind in zip(side, kinds, strict=True)] for side in (new, old)]
    expected = [
        tuple(comparable(kind, new[c][row]) for c, kind in enumerate(kinds))
        >= tuple(comparable(kind, old[c][row]) for c, kind in enumerate(kinds))
        for row in range(count)
    ]
    assert at_least(*arrays).tolist() == expected
    chunked = [[pa.chunked_array([array.slice(0, 2), array.slice(2)]) for array in side] for side in arrays]
    assert at_least(*chunked).tolist() == expected


@given(st.lists(KINDS, min_size=1, max_size=3), st.integers(0, 8), st.data())
def test_ranks_compare_as_the_ordering_values_do(kinds: list[pa.DataType], count: int, data: st.DataObject) -> None:
    values = columns(data, kinds, count)
    rank = ordering_rank([pa.array(each, kind) for each, kind in zip(values, kinds, strict=True)], count)
    rows = [tuple(comparable(kind, values[c][row]) for c, kind in enumerate(kinds)) for row in range(count)]
    for first in range(count):
        for second in range(count):
            assert (rank[first] < rank[second]) == (rows[first] < rows[second])


def test_nan_is_the_highest_number() -> None:
    nan = pa.array([float("nan"), float("inf"), float("nan")])
    assert at_least([nan], [pa.array([float("inf"), float("nan"), float("nan")])]).tolist() == [True, False, True]


def test_without_ordering_columns_all_ranks_are_equal() -> None:
    assert ordering_rank([], 3).tolist() == [0, 0, 0]


def naive_combine(keys: list[str], rank: list[int], deletes: list[bool]) -> list[int]:
    kept: dict[str, int] = {}
    for row, key in enumerate(keys):
        earlier = kept.get(key)
        if earlier is None or deletes[row] or deletes[earlier] or rank[row] >= rank[earlier]:
            kept[key] = row
    return sorted(kept.values())


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "é"]), st.integers(-2, 2), st.booleans()), max_size=12))
def test_of_rows_with_one_key_the_greatest_and_last_stays(rows: list[tuple[str, int, bool]]) -> None:
    keys, rank, deletes = ([row[i] for row in rows] for i in range(3))
    array, ranks = pa.array(keys, pa.string()), np.array(rank, np.int64)
    assert combine(array, ranks, None).tolist() == naive_combine(keys, rank, [False] * len(keys))
    assert combine(array, ranks, np.array(deletes, np.bool_)).tolist() == naive_combine(keys, rank, deletes)


def test_deletes_are_told_by_flag_and_by_marker() -> None:
    rows = pa.table(
        {"_hoodie_is_deleted": [True, False, None, None], "op": ["x", "D", None, "D"], "n": [1, 7, 7, None]}
    )
    assert delete_mask(MergeRules(EVENT_TIME), rows).tolist() == [True, False, False, False]
    assert delete_mask(MergeRules(EVENT_TIME, (), "op", "D"), rows).tolist() == [True, True, False, True]
    assert delete_mask(MergeRules(EVENT_TIME, (), "n", "7"), rows).tolist() == [True, True, True, False]
    assert delete_mask(MergeRules(EVENT_TIME, (), "op", "none"), rows.select(["op"])) is None
    assert delete_mask(MergeRules(EVENT_TIME), rows.select(["n"])) is None
    with pytest.raises(SchemaMismatchError, match="boolean"):
        delete_mask(MergeRules(EVENT_TIME), rows.rename_columns(["a", "_hoodie_is_deleted", "c"]))


def test_ordering_columns_are_found_inside_structs() -> None:
    rows = pa.table({"s": [{"t": {"u": 3}}, {"t": None}, None], "a.b": [1, 2, 3]})
    found = ordering_columns(MergeRules(EVENT_TIME, ("s.t.u", "a.b")), rows)
    assert [column.to_pylist() for column in found] == [[3, None, None], [1, 2, 3]]
    assert ordering_columns(MergeRules(COMMIT_TIME, ("s.t.u",)), rows) == ()
    with pytest.raises(InvalidDataError, match=r"'x\.y' is not among"):
        ordering_columns(MergeRules(EVENT_TIME, ("x.y",)), rows)


@given(st.integers(0, 12), st.data())
def test_rows_are_replaced_and_left_out_by_position(count: int, data: st.DataObject) -> None:
    fate = data.draw(st.lists(st.sampled_from("krd"), min_size=count, max_size=count))
    replaced = [row for row, what in enumerate(fate) if what == "r"]
    dropped = [row for row, what in enumerate(fate) if what == "d"]
    base = pa.table(
        {"n": pa.array(range(count), pa.int64()), "s": pa.array([f"b{row}" for row in range(count)], pa.string())}
    )
    updates = pa.table(
        {
            "n": pa.array([-row for row in replaced], pa.int64()),
            "s": pa.array([None] * len(replaced), pa.string()),
        }
    )
    found = replace_rows(base, updates, np.array(replaced, np.int64), np.array(dropped, np.int64))
    wanted = [
        {"n": -row, "s": None} if what == "r" else {"n": row, "s": f"b{row}"}
        for row, what in enumerate(fate)
        if what != "d"
    ]
    assert found.to_pylist() == wanted
