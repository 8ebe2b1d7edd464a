"""Gathers against picking from lists."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.gather import gather_varlen, take_two_bits, take_two_fixed, take_two_varlen
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import KEYS, buffers, values_of
from tests.naive import gather as naive
from tests.support.examples import examples


@st.composite
def two_sources(draw, items):
    a, b = draw(st.lists(items, max_size=30)), draw(st.lists(items, max_size=30))
    choices = [*range(len(a)), *(~row for row in range(len(b)))]
    selectors = draw(st.lists(st.sampled_from(choices), max_size=60)) if choices else []
    return a, b, selectors


@given(values=st.lists(KEYS, min_size=1, max_size=30), data=st.data(), before=st.binary(max_size=5))
def test_gathered_rows_are_the_rows_asked_for(values, data, before):
    indices = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=60))
    found = gather_varlen(*buffers(values, before, b"after"), np.array(indices, np.int64))
    assert found[0][0] == 0
    assert values_of(*found) == naive.take(values, indices)


@given(case=two_sources(KEYS), before=st.binary(max_size=5))
def test_interleaving_values_of_any_length(case, before):
    a, b, selectors = case
    found = take_two_varlen(*buffers(a, before), *buffers(b, b"", before), np.array(selectors, np.int32))
    assert values_of(*found) == naive.take_two(a, b, selectors)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "i8", "V16"])
@settings(max_examples=examples(30))
@given(case=two_sources(st.binary(min_size=16, max_size=16)))
def test_interleaving_items_of_each_width(dtype, case):
    a, b, selectors = case
    width = np.dtype(dtype).itemsize
    a, b = [item[:width] for item in a], [item[:width] for item in b]
    arrays = [np.frombuffer(b"".join(side), dtype) for side in (a, b)]
    found = take_two_fixed(*arrays, np.array(selectors, np.int32))
    assert found.dtype == np.dtype(dtype)
    assert found.tobytes() == b"".join(naive.take_two(a, b, selectors))


@given(
    case=two_sources(st.booleans()),
    a_start=st.integers(0, 20),
    b_start=st.integers(0, 20),
    a_all=st.booleans(),
    b_all=st.booleans(),
)
def test_interleaving_bitmaps_at_any_bit(case, a_start, b_start, a_all, b_all):
    a, b, selectors = case
    a, b = [True] * len(a) if a_all else a, [True] * len(b) if b_all else b
    packed = [
        None if whole else np.packbits(np.array([True] * start + side, bool), bitorder="little")
        for side, start, whole in ((a, a_start, a_all), (b, b_start, b_all))
    ]
    bits, ones = take_two_bits(packed[0], a_start, len(a), packed[1], b_start, len(b), np.array(selectors, np.int32))
    expected = naive.take_two(a, b, selectors)
    assert bits.tolist() == np.packbits(np.array(expected, bool), bitorder="little").tolist()
    assert ones == sum(expected)


@pytest.mark.parametrize("bad", [-1, 3, 2**40])
def test_a_row_number_outside_the_array_is_refused(bad):
    with pytest.raises(IndexError, match=f"row number {bad} at position 1"):
        gather_varlen(*buffers([b"a", b"b", b"c"]), np.array([0, bad], np.int64))


@pytest.mark.parametrize(("bad", "told"), [(2, "row 2 of source A"), (-4, "row 3 of source B")])
def test_a_selector_outside_its_source_is_refused(bad, told):
    a, b = [b"a", b"b"], [b"x", b"y", b"z"]
    selectors = np.array([0, -1, bad], np.int32)
    with pytest.raises(IndexError, match=told):
        take_two_varlen(*buffers(a), *buffers(b), selectors)
    with pytest.raises(IndexError, match=told):
        take_two_fixed(np.zeros(2, np.int32), np.zeros(3, np.int32), selectors)
    with pytest.raises(IndexError, match=told):
        take_two_bits(None, 0, 2, None, 0, 3, selectors)


def test_a_bitmap_shorter_than_its_rows_is_refused():
    with pytest.raises(IndexError, match="no 8 rows from bit 1 on"):
        take_two_bits(np.zeros(1, np.uint8), 1, 8, None, 0, 0, np.zeros(1, np.int32))


def test_items_of_two_types_are_refused():
    with pytest.raises(ValueError, match="one type of 1, 2, 4, 8 or 16 bytes"):
        take_two_fixed(np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32))


def test_results_beyond_32_bit_offsets_are_refused():
    offsets, data = buffers([b"x" * 2**20])
    with pytest.raises(OverflowError, match="2147483648 bytes"):
        gather_varlen(offsets, data, np.zeros(2048, np.int64))
    with pytest.raises(OverflowError, match="2147483648 bytes"):
        take_two_varlen(offsets, data, offsets, data, np.tile(np.array([0, -1], np.int32), 1024))
