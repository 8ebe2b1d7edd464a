"""Changed rows of buffers against lists."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.gather import check_changes, splice_fixed, splice_varlen
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers, values_of
from tests.naive import splice as naive
from tests.support.examples import examples


@st.composite
def changes(draw, items):
    a, b = draw(st.lists(items, max_size=30)), draw(st.lists(items, max_size=10))
    rows = sorted(draw(st.sets(st.integers(0, len(a) - 1)))) if a else []
    sources = [draw(st.integers(-1, len(b) - 1)) for _ in rows]
    return a, b, rows, sources


def numbers(values):
    return np.array(values, np.int64)


@given(case=changes(KEYS), before=st.binary(max_size=5))
def test_changed_values_of_any_length(case, before):
    a, b, rows, sources = case
    check_changes(numbers(rows), numbers(sources), len(a), len(b))
    found = splice_varlen(*buffers(a, before, b"after"), *buffers(b, b"", before), numbers(rows), numbers(sources))
    assert found[0][0] == 0
    assert values_of(*found) == naive.splice(a, b, rows, sources)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8", "V16"])
@settings(max_examples=examples(40))
@given(case=changes(st.binary(min_size=16, max_size=16)))
def test_changed_items_of_each_width(dtype, case):
    a, b, rows, sources = case
    width = np.dtype(dtype).itemsize
    a, b = [item[:width] for item in a], [item[:width] for item in b]
    arrays = [np.frombuffer(b"".join(side), dtype) for side in (a, b)]
    found = splice_fixed(*arrays, numbers(rows), numbers(sources))
    assert found.dtype == np.dtype(dtype)
    assert found.tobytes() == b"".join(naive.splice(a, b, rows, sources))


@pytest.mark.parametrize(
    ("rows", "sources"),
    [([1, 1], [0, 0]), ([2, 1], [0, 0]), ([5], [0]), ([-1], [0]), ([1], [2]), ([1], [-2])],
    ids=["twice", "not ascending", "after the end", "negative", "no such source", "negative source"],
)
def test_changes_outside_their_sources_are_refused(rows, sources):
    with pytest.raises(IndexError, match="rows must ascend"):
        check_changes(numbers(rows), numbers(sources), 5, 2)


def test_each_change_needs_a_source():
    with pytest.raises(ValueError, match="2 rows, 1 sources"):
        check_changes(numbers([1, 2]), numbers([0]), 5, 2)


def test_items_of_two_types_are_refused():
    with pytest.raises(ValueError, match="items of int32 by items of int64"):
        splice_fixed(np.zeros(2, np.int32), np.zeros(1, np.int64), numbers([0]), numbers([0]))


def test_a_result_beyond_32_bit_offsets_is_refused():
    long = np.array([0, 2**30], np.int32)
    many = np.array([0, 2**30, 2**30], np.int32)
    nothing = np.empty(0, np.uint8)
    with pytest.raises(OverflowError, match="take fewer rows"):
        splice_varlen(many, nothing, long, nothing, numbers([1]), numbers([0]))
