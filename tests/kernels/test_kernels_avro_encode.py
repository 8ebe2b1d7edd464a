"""Avro writing kernels against bytes by hand; nothing outside a record is touched."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels.avro_encode import (
    find_wide_decimal,
    measure_decimals,
    measure_items,
    measure_longs,
    measure_texts,
    write_branches,
    write_decimals,
    write_fixed,
    write_frames,
    write_items,
    write_longs,
    write_texts,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.arrow_buffers import buffers
from tests.naive.avro_rows import minimal, varint

LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 63).map(lambda bits: -(2**bits)) | st.integers(-70, 70)
DECIMALS = (
    st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(0, 126).map(lambda bits: -(2**bits)) | st.integers(-9, 9)
)
NO_FLAGS = np.empty(0, np.uint8)


def flags(values):
    """Validity as kernels take it: empty when nothing is null."""
    return np.array([value is not None for value in values], np.uint8) if None in values else NO_FLAGS


def written(sizes, null, write):
    """What ``write(pos, ends, out)`` puts into records of these sizes, with as many untouched bytes between them."""
    sizes = [size + (null >= 0) for size in sizes]
    bounds = np.cumsum([7, *(size + 9 for size in sizes)])
    out = np.full(int(bounds[-1]), 0xAB, np.uint8)
    pos = bounds[:-1].copy()
    ends = pos + np.array(sizes, np.int64)
    write(pos, ends, out)
    assert pos.tolist() == ends.tolist()
    inside = np.zeros(len(out), bool)
    for start, end in zip(bounds[:-1], ends, strict=True):
        inside[start:end] = True
    assert (out[~inside] == 0xAB).all()
    return [out[start:end].tobytes() for start, end in zip(bounds[:-1], ends, strict=True)]


def in_union(parts, null):
    if null < 0:
        return parts
    return [bytes([null]) if part is None else bytes([2 - null]) + part for part in parts]


def kept(values, null):
    return values if null >= 0 else [value for value in values if value is not None]


@pytest.mark.parametrize("null", [-1, 0, 2])
@given(values=st.lists(LONGS | st.none(), max_size=12))
def test_longs(null, values):
    values = kept(values, null)
    longs, valid = np.array([value or 0 for value in values], np.int64), flags(values)
    sizes = np.zeros(len(values), np.int64)
    measure_longs(longs, valid, sizes)
    parts = [None if value is None else varint(value) for value in values]
    assert sizes.tolist() == [len(part or b"") for part in parts]
    found = written(sizes.tolist(), null, lambda pos, ends, out: write_longs(longs, valid, null, pos, ends, out))
    assert found == in_union(parts, null)


@pytest.mark.parametrize("null", [-1, 0, 2])
@given(values=st.lists(st.binary(max_size=150) | st.none(), max_size=8), before=st.binary(max_size=9))
def test_texts(null, values, before):
    values = kept(values, null)
    offsets, data = buffers([value or b"" for value in values], before)
    valid, sizes = flags(values), np.zeros(len(values), np.int64)
    measure_texts(offsets, valid, sizes)
    parts = [None if value is None else varint(len(value)) + value for value in values]
    assert sizes.tolist() == [len(part or b"") for part in parts]
    found = written(
        sizes.tolist(), null, lambda pos, ends, out: write_texts(offsets, data, valid, null, pos, ends, out)
    )
    assert found == in_union(parts, null)


@pytest.mark.parametrize("null", [-1, 0, 2])
@given(values=st.lists(DECIMALS | st.none(), max_size=8), extra=st.integers(0, 3))
def test_decimals(null, values, extra):
    values = kept(values, null)
    raw = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
    numbers, valid, sizes = np.frombuffer(raw, np.uint64), flags(values), np.zeros(len(values), np.int64)
    measure_decimals(numbers, valid, sizes)
    parts = [None if value is None else varint(len(minimal(value))) + minimal(value) for value in values]
    assert sizes.tolist() == [len(part or b"") for part in parts]
    width = max((len(minimal(value)) for value in values if value is not None), default=1) + extra
    fixed = [None if value is None else value.to_bytes(width, "big", signed=True) for value in values]
    for kind, expected in ((-1, parts), (width, fixed)):
        lengths = [len(part or b"") for part in expected]
        found = written(
            lengths, null, lambda pos, ends, out, kind=kind: write_decimals(numbers, kind, valid, null, pos, ends, out)
        )
        assert found == in_union(expected, null)


def test_decimals_that_do_not_fit():
    def first_wide(values, width, limit):
        raw = b"".join((value or 0).to_bytes(16, "little", signed=True) for value in values)
        high, low = np.uint64(limit >> 64), np.uint64(limit & (2**64 - 1))
        return find_wide_decimal(np.frombuffer(raw, np.uint64), flags(values), width, high, low)

    assert first_wide([127, -128, 128], 1, 999) == 2
    assert first_wide([127, -128, -129], 1, 999) == 2
    assert first_wide([999, -999, None], 2, 999) == -1
    assert first_wide([999, -1000], 2, 999) == 1
    assert first_wide([10**38 - 1, -(10**38) + 1, 10**38], 16, 10**38 - 1) == 2
    assert first_wide([-(2**127)], 16, 10**38 - 1) == 0


@pytest.mark.parametrize("width", [1, 3, 4, 8, 16])
def test_fixed_values(width):
    values = bytes(range(2 * width))
    valid = np.array([1, 0], np.uint8)
    data = np.frombuffer(values, np.uint8)
    found = written([width, 0], 0, lambda pos, ends, out: write_fixed(data, width, valid, 0, pos, out))
    assert found == [b"\2" + values[:width], b"\0"]
    found = written([width] * 2, -1, lambda pos, ends, out: write_fixed(data, width, NO_FLAGS, -1, pos, out))
    assert found == [values[:width], values[width:]]


def test_branches_and_frames():
    valid = np.array([1, 0], np.uint8)
    assert written([0, 0], 2, lambda pos, ends, out: write_branches(valid, 2, pos, out)) == [b"\0", b"\2"]
    out = np.full(4 + 300 + 4, 0xAB, np.uint8)
    write_frames(np.array([0, 304, 308]), out)
    assert (out[:4].tobytes(), out[304:].tobytes()) == (b"\0\0\1\x2c", bytes(4))
    assert (out[4:304] == 0xAB).all()


def test_items_are_placed_within_their_lists():
    # lists of 2, none, null and 1 items; the items have 1, 2 and 70 bytes
    offsets, bounds = np.array([0, 2, 2, 2, 3], np.int32), np.array([0, 1, 3, 73])
    valid, sizes = np.array([1, 1, 0, 1], np.uint8), np.zeros(4, np.int64)
    measure_items(offsets, bounds, valid, sizes)
    assert sizes.tolist() == [1 + 3 + 1, 1, 0, 1 + 70 + 1]
    places, ends_of = np.empty(3, np.int64), np.empty(3, np.int64)

    def write(pos, ends, out):
        write_items(offsets, bounds, valid, 0, pos, places, ends_of, out)
        for place, end in zip(places, ends_of, strict=True):
            out[place:end] = 0xCD

    found = written(sizes.tolist(), 0, write)
    assert found == [b"\2\4" + b"\xcd" * 3 + b"\0", b"\2\0", b"\0", b"\2\2" + b"\xcd" * 70 + b"\0"]
    assert (ends_of - places).tolist() == [1, 2, 70]
