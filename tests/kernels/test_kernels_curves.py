"""Z-order and Hilbert values, the radix sort and words of bytes against integers of Python, and what curves promise."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hudi_fast.kernels.sorting import byte_words, common_prefix, hilbert_values, radix_order, z_values
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.formats.varlen import varlen_buffers
from tests.naive import curves as naive

WORD = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 3), st.integers(2**64 - 3, 2**64 - 1))


@st.composite
def cells(draw, limit=9):
    count = draw(st.integers(1, limit))
    return count, draw(st.lists(st.tuples(*[WORD] * count), min_size=1, max_size=20))


def planes(rows, count):
    return np.array([row[column] for column in range(count) for row in rows], np.uint64)


def whole(words, count):
    """Words in planes as integers of Python."""
    return [int("".join(format(int(word), "064b") for word in row), 2) for row in words.reshape(count, -1).T]


@given(cells())
def test_z_values_are_the_bits_in_turns(drawn):
    count, rows = drawn
    assert whole(z_values(planes(rows, count), count), count) == [naive.z_value(list(row)) for row in rows]


@given(cells(), st.integers(1, 64))
def test_hilbert_values_are_those_of_the_cells(drawn, bits):
    count, rows = drawn
    found = whole(hilbert_values(planes(rows, count), count, bits if count > 1 else 64), count)
    if count == 1:
        assert found == [row[0] for row in rows]
        return
    shift = 64 - bits
    expected = [naive.hilbert_value([value >> shift for value in row], bits) for row in rows]
    assert [value >> (shift * count) for value in found] == expected
    assert all(value & ((1 << (shift * count)) - 1) == 0 for value in found)


@given(cells(limit=4), st.integers(1, 64))
def test_fewer_bits_are_the_beginning_of_the_same_hilbert_value(drawn, bits):
    count, rows = drawn
    if count == 1:
        count, rows = 2, [(row[0], row[0] ^ 5) for row in rows]
    all_bits = whole(hilbert_values(planes(rows, count), count), count)
    some = whole(hilbert_values(planes(rows, count), count, bits), count)
    shift = (64 - bits) * count
    assert [value >> shift for value in some] == [value >> shift for value in all_bits]


@pytest.mark.parametrize(("count", "bits"), [(2, 1), (2, 4), (3, 2), (3, 3), (4, 2)])
def test_the_hilbert_curve_visits_each_cell_once_and_steps_to_a_neighbour(count, bits):
    cube = list(itertools.product(range(1 << bits), repeat=count))
    values = whole(hilbert_values(planes(cube, count) << np.uint64(64 - bits), count, bits), count)
    places = [value >> ((64 - bits) * count) for value in values]
    assert sorted(places) == list(range(len(cube)))
    walk = [cell for _, cell in sorted(zip(places, cube, strict=True))]
    for here, there in itertools.pairwise(walk):
        assert sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1


@given(cells(limit=3))
def test_bytes_of_rows_sort_as_their_words_do(drawn):
    count, rows = drawn
    z = z_values(planes(rows, count), count)
    texts = [row.tobytes() for row in naive.byte_rows(z, count)]
    assert sorted(range(len(rows)), key=lambda row: texts[row]) == radix_order(z, count).tolist()


@given(cells(limit=3))
def test_equal_keys_stay_in_row_order(drawn):
    count, rows = drawn
    assert radix_order(planes(rows, count), count).tolist() == naive.sorted_rows(rows)


def test_no_rows_have_no_order():
    assert radix_order(np.empty(0, np.uint64), 2).tolist() == []
    assert z_values(np.empty(0, np.uint64), 3).size == 0


@given(
    st.lists(st.binary(max_size=20).map(lambda tail: b"prefix" + tail) | st.binary(max_size=4), max_size=20),
    st.integers(0, 12),
    st.integers(0, 3),
)
def test_words_of_bytes_and_what_values_begin_with_alike(values, skip, first):
    array = pa.array([b"left out"] * first + values, pa.binary()).slice(first)
    buffers = varlen_buffers(array)
    assert common_prefix(*buffers) == naive.common_prefix(values)
    rows = np.arange(len(values), dtype=np.int64)[::-1].copy()
    words, lengths = byte_words(*buffers, rows, skip)
    assert list(zip(words.tolist(), lengths.tolist(), strict=True)) == [
        naive.byte_word(value, skip) for value in reversed(values)
    ]
