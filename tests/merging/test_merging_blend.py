"""Which values a partial update mode lets stand, for every kind of column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.merging.blend import effective_values, fill_gaps
from hudi_fast.merging.rules import COMMIT_TIME, FILL_UNAVAILABLE, IGNORE_DEFAULTS, MergeRules


@pytest.mark.parametrize(
    ("kind", "default", "is_default", "other"),
    [
        (pa.int32(), 7, 7, 0),
        (pa.int64(), 0, 0, 1),
        (pa.float64(), 1.5, 1.5, 0.0),
        (pa.bool_(), False, False, True),
        (pa.string(), "", "", "x"),
        (pa.binary(), "\u00ff\u0000", b"\xff\x00", b"\xff"),
        (pa.decimal128(6, 2), "\u00ff", Decimal("-0.01"), Decimal("0.00")),
        (pa.date32(), 1, dt.date(1970, 1, 2), dt.date(1970, 1, 1)),
        (pa.timestamp("us", "UTC"), 0, dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)),
    ],
)
def test_a_default_says_nothing_and_null_beside_it_does(
    kind: pa.DataType, default: Any, is_default: Any, other: Any
) -> None:
    rules = MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS, defaults={"c": default})
    say = effective_values(rules, "c", pa.array([is_default, other, None], kind))
    assert say is not None
    assert say.tolist() == [False, True, True]


def test_without_a_default_null_says_nothing() -> None:
    rules = MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS)
    for kind in (pa.int32(), pa.list_(pa.int32()), pa.struct([("a", pa.int8())])):
        say = effective_values(rules, "c", pa.chunked_array([pa.nulls(2, kind)]))
        assert say is not None
        assert say.tolist() == [False, False]
    assert effective_values(rules, "c", pa.array([0, 1])) is None


def test_a_default_of_several_values_lets_every_value_stand() -> None:
    rules = MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS, defaults={"c": []})
    assert effective_values(rules, "c", pa.array([[], None], pa.list_(pa.int32()))) is None


def test_a_default_that_is_no_value_of_the_column_is_refused_by_name() -> None:
    rules = MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS, defaults={"c": "x"})
    with pytest.raises(UnsupportedFeatureError, match=r"default 'x' of column 'c' \(int32\)"):
        effective_values(rules, "c", pa.array([1], pa.int32()))


def test_the_text_for_what_was_not_sent_counts_in_texts_and_bytes_alone() -> None:
    rules = MergeRules(COMMIT_TIME, partial_mode=FILL_UNAVAILABLE, unavailable_value="7é")
    for column in (pa.array(["7é", "7", None]), pa.array(["7é".encode(), b"7", None])):
        say = effective_values(rules, "c", column)
        assert say is not None
        assert say.tolist() == [False, True, True]
    assert effective_values(rules, "c", pa.array([7])) is None
    assert effective_values(MergeRules(COMMIT_TIME, partial_mode=FILL_UNAVAILABLE), "c", pa.array(["7"])) is None


def test_either_side_may_be_the_winner() -> None:
    older = pa.table({"a": pa.array([1, None, 3]), "b": ["x", "y", None]})
    newer = pa.table({"a": pa.array([None, 20, 30]), "b": ["X", "Y", "Z"]})
    rules = MergeRules(COMMIT_TIME, partial_mode=IGNORE_DEFAULTS)
    rows, gave_way = fill_gaps(rules, older, newer, np.array([True, False, False]))
    assert rows.to_pylist() == [{"a": 1, "b": "X"}, {"a": 20, "b": "y"}, {"a": 3, "b": "Z"}]
    assert gave_way.tolist() == [True, True, True]
    _, gave_way = fill_gaps(rules, newer, older, np.array([False, True, False]))
    assert gave_way.tolist() == [True, True, False]
