"""Avro kernels against numbers and bytes written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hudi_fast.kernels import avro_structure as cursor
from hudi_fast.kernels.avro_decode import (
    COPY_SLACK,
    copy_values,
    measure_bytes,
    read_booleans,
    read_decimals,
    read_fixed,
    read_ints,
    read_longs,
)
from hudi_fast.kernels.avro_structure import find_invalid_utf8, frame_records, read_branches, walk_values
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.avro_rows import minimal, varint

LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 63).map(lambda bits: -(2**bits)) | st.integers(-70, 70)
NO_FLAGS, NO_OFFSETS, NO_PLACES = np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int64)


def laid_out(parts, before=b"\xff" * 8):
    """Values one behind the other, up to the very end of the buffer: data, cursors, ends."""
    bounds = np.cumsum([len(before), *map(len, parts)])
    return np.frombuffer(before + b"".join(parts), np.uint8), bounds[:-1].copy(), bounds[1:].copy()


def optional(parts, null):
    """Parts in a union whose null is the byte ``null``; None for null."""
    return [bytes([null]) if each is None else bytes([2 - null]) + each for each in parts]


def fault_of(result):
    row, reason = divmod(-int(result), 16)
    return row, reason


@pytest.mark.parametrize("null", [-1, 0, 2])
@given(values=st.lists(LONGS | st.none(), max_size=20))
def test_longs_of_any_size_up_to_the_end_of_the_data(null, values):
    values = [value for value in values if null >= 0 or value is not None]
    parts = [None if value is None else varint(value) for value in values]
    data, pos, ends = laid_out(parts if null < 0 else optional(parts, null))
    valid, out = np.empty(len(values) if null >= 0 else 0, np.uint8), np.empty(len(values), np.int64)
    assert read_longs(data, pos, ends, null, valid, -(2**63), 2**63 - 1, out) == values.count(None)
    assert out.tolist() == [value or 0 for value in values]
    assert valid.tolist() == ([value is not None for value in values] if null >= 0 else [])
    assert pos.tolist() == ends.tolist()


@given(value=LONGS, cut=st.integers(1, 10))
def test_numbers_cut_off_are_told(value, cut):
    part = varint(value)[:-cut]
    data, pos, ends = laid_out([b"\0", part])
    out = np.empty(2, np.int64)
    assert fault_of(read_longs(data, pos, ends, -1, NO_FLAGS, -(2**63), 2**63 - 1, out)) == (1, cursor.CUT_OFF)
    assert pos[1] == 9


@given(values=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
def test_ints_within_their_bounds(values):
    data, pos, ends = laid_out([varint(value) for value in values])
    out = np.empty(len(values), np.int32)
    low, high = min(values, default=0), max(values, default=0)
    assert read_ints(data, pos, ends, -1, NO_FLAGS, low, high, out) == 0
    assert out.tolist() == values
    if low < high:
        data, pos, ends = laid_out([varint(value) for value in values])
        found = read_ints(data, pos, ends, -1, NO_FLAGS, low, high - 1, out)
        assert fault_of(found) == (values.index(high), cursor.BAD_NUMBER)


@given(values=st.lists(st.binary(max_size=150) | st.none(), max_size=12), slack=st.integers(0, 40))
def test_bytes_are_measured_and_copied_and_nothing_behind_them_is_touched(values, slack):
    parts = [None if value is None else varint(len(value)) + value for value in values]
    data, pos, ends = laid_out(optional(parts, 0))
    starts, offsets = np.empty(len(values), np.int64), np.empty(len(values) + 1, np.int32)
    valid = np.empty(len(values), np.uint8)
    assert measure_bytes(data, pos, ends, 0, valid, starts, offsets) == values.count(None)
    expected = b"".join(value or b"" for value in values)
    assert offsets.tolist() == np.cumsum([0, *(len(value or b"") for value in values)]).tolist()
    out = np.full(len(expected) + COPY_SLACK + slack, 0xAB, np.uint8)
    copy_values(data, starts, offsets, out)
    assert out[: len(expected)].tobytes() == expected
    assert (out[len(expected) + COPY_SLACK :] == 0xAB).all()


def test_too_small_a_target_is_left_alone():
    out = np.zeros(3 + COPY_SLACK - 1, np.uint8)
    copy_values(np.frombuffer(b"abcdefgh", np.uint8), np.array([0]), np.array([0, 3], np.int32), out)
    assert not out.any()


@given(
    values=st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-300, 300), max_size=10),
    extra=st.integers(0, 4),
)
def test_decimals_of_any_width(values, extra):
    limit = 10**38 - 1
    high, low = np.uint64(limit >> 64), np.uint64(limit & (2**64 - 1))
    width = max((len(minimal(value)) for value in values), default=1) + extra
    for parts, kind in [
        ([value.to_bytes(width, "big", signed=True) for value in values], width),
        ([varint(len(minimal(value))) + minimal(value) for value in values], -1),
    ]:
        data, pos, ends = laid_out(parts)
        out = np.empty(2 * len(values), np.uint64)
        assert read_decimals(data, pos, ends, -1, NO_FLAGS, kind, high, low, out) == 0
        assert [int.from_bytes(each.tobytes(), "little", signed=True) for each in out.reshape(-1, 2)] == values
        assert pos.tolist() == ends.tolist()


@pytest.mark.parametrize("precision", [1, 5, 18, 19, 20, 37, 38])
def test_decimals_have_no_more_digits_than_their_type(precision):
    limit = 10**precision - 1
    high, low = np.uint64(limit >> 64), np.uint64(limit & (2**64 - 1))
    for value, fits in [(limit, True), (-limit, True), (limit + 1, False), (-limit - 1, False)]:
        data, pos, ends = laid_out([value.to_bytes(17, "big", signed=True)])
        found = read_decimals(data, pos, ends, -1, NO_FLAGS, 17, high, low, np.empty(2, np.uint64))
        assert found == 0 if fits else fault_of(found) == (0, cursor.BAD_DECIMAL)


@pytest.mark.parametrize("width", [1, 3, 4, 8, 16, 20])
def test_fixed_values_of_each_width(width):
    values = [bytes(range(start, start + width)) for start in (1, 50)]
    data, pos, ends = laid_out(optional([values[0], None, values[1]], 2))
    out, valid = np.full(3 * width, 0xAB, np.uint8), np.empty(3, np.uint8)
    assert read_fixed(data, pos, ends, 2, valid, width, out) == 1
    assert out.tobytes() == values[0] + bytes(width) + values[1]
    data, pos, ends = laid_out([values[0][1:]])
    assert fault_of(read_fixed(data, pos, ends, -1, valid, width, out)) == (0, cursor.CUT_OFF)
    assert read_fixed(data, pos, ends, -1, valid, width, out[: width - 1]) < 0


def test_booleans_and_branches():
    data, pos, ends = laid_out(optional([b"\1", None, b"\0"], 0))
    out, valid = np.empty(3, np.uint8), np.empty(3, np.uint8)
    assert read_booleans(data, pos.copy(), ends, 0, valid, out) == 1
    assert (out.tolist(), valid.tolist()) == ([1, 0, 0], [1, 0, 1])
    assert read_branches(data, pos, ends, 0, valid) == 1
    assert (ends - pos).tolist() == [1, 0, 1]
    assert fault_of(read_branches(data, np.array([0]), np.array([1]), 0, valid)) == (0, cursor.BAD_BRANCH)


@given(values=st.lists(st.binary(max_size=20) | st.text(max_size=12).map(str.encode), min_size=1, max_size=6))
def test_the_first_value_that_is_not_utf8(values):
    def wrong(value):
        try:
            value.decode()
        except UnicodeDecodeError:
            return True
        return False

    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    expected = next((row for row, value in enumerate(values) if wrong(value)), -1)
    assert find_invalid_utf8(offsets, np.frombuffer(b"".join(values) + b"\xff", np.uint8)) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"\xc0\x80",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xc3",
        b"\x80",
    ],
)
def test_bytes_that_no_utf8_has(text):
    offsets = np.array([0, 9, 9 + len(text)], np.int32)
    assert find_invalid_utf8(offsets, np.frombuffer(b"plain one" + text, np.uint8)) == 1


def test_frames_stop_at_bytes_and_at_rows():
    data = np.frombuffer(b"".join(len(part).to_bytes(4, "big") + part for part in (b"a", b"", b"ccc")), np.uint8)
    starts, ends = np.zeros(3, np.int64), np.zeros(3, np.int64)
    assert frame_records(data, 0, 3, 100, starts, ends) == 3
    assert (starts.tolist(), ends.tolist()) == ([4, 9, 13], [5, 9, 16])
    assert frame_records(data, 0, 3, 6, starts, ends) == 2
    assert frame_records(data, 0, 1, 100, starts, ends) == 1
    assert fault_of(frame_records(data[:-1], 0, 3, 100, starts, ends)) == (2, cursor.BAD_LENGTH)
    assert fault_of(frame_records(data[:12], 0, 3, 100, starts, ends)) == (2, cursor.CUT_OFF)


ITEMS = np.array([cursor.LIST, 4, cursor.ITEM, cursor.BYTES, cursor.NEXT, 2, 1, cursor.END])


def walk(parts, program, room=10):
    data, pos, ends = laid_out(parts)
    offsets = np.empty(len(parts) + 1, np.int32)
    starts, item_ends = np.zeros(room, np.int64), np.zeros(room, np.int64)
    found = walk_values(data, pos, ends, NO_FLAGS, program, 1, offsets, starts, item_ends)
    return found, offsets, data, starts, item_ends, pos, ends


def test_items_of_lists_are_found_in_all_their_blocks():
    sized = varint(-2) + varint(5) + varint(1) + b"c" + varint(2) + b"dd" + b"\0"
    parts = [varint(2) + varint(1) + b"a" + varint(0) + varint(1) + varint(1) + b"b" + b"\0", b"\0", sized]
    found, offsets, data, starts, item_ends, pos, ends = walk(parts, ITEMS)
    assert found == 0
    assert offsets.tolist() == [0, 3, 3, 5]
    spans = zip(starts[:5].tolist(), item_ends[:5].tolist(), strict=True)
    assert [data[a:b].tobytes() for a, b in spans] == [b"\x02a", b"\0", b"\x02b", b"\x02c", b"\x04dd"]
    assert pos.tolist() == ends.tolist()
    found, offsets, _, starts, item_ends, *_ = walk(parts, ITEMS, room=2)
    assert (found, offsets[-1]) == (0, 5)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (varint(1) + b"\x02", cursor.BAD_LENGTH),
        (varint(1) + b"\x02a", cursor.CUT_OFF),
        (varint(-1) + varint(9) + b"\x02a\0", cursor.BAD_LENGTH),
        (varint(-1) + varint(1) + b"\x02a\0", cursor.BAD_BLOCK),
        (varint(9) + b"\0\0\0", cursor.BAD_LENGTH),
        (b"\x80" * 10, cursor.BAD_VARINT),
        (varint(-(2**63)) + varint(2) + b"\0\0", cursor.BAD_LENGTH),
    ],
)
def test_damaged_lists_are_told(part, reason):
    assert fault_of(walk([b"\0", part], ITEMS)[0]) == (1, reason)


def test_blocks_with_a_size_are_stepped_over_when_nobody_wants_them():
    program = np.array([cursor.LIST, 3, cursor.BYTES, cursor.NEXT, 2, 0, cursor.END])
    data, pos, ends = laid_out([varint(-7) + varint(3) + b"???" + b"\0"])
    assert walk_values(data, pos, ends, NO_FLAGS, program, 1, NO_OFFSETS, NO_PLACES, NO_PLACES) == 0
    assert pos.tolist() == ends.tolist()
