"""Avro binary to Arrow buffers, a column at a time: each kernel reads one column of many records.

::

    data  ..[record 0][record 1][record 2]..
              ^pos[0]   ^pos[1]   ^pos[2]        one cursor per record; ends[i] is where record i ends
    read_longs(...)      reads a value at every cursor, writes out[i], and moves every cursor behind its value
    measure_bytes(...)   the same for strings: where each one is and how long; copy_values then fills exact buffers
    locate_items(...)    lists and maps: walks the items and gives each a cursor of its own; they are the next level

Records do not depend on each other, so a CPU works on many at once, and a loop knows its type: there is nothing to
dispatch on. What is read of a column is checked against the end of its record before it is used.

Shared arguments: ``data`` uint8[]; ``pos`` int64[n], cursors, ``0 <= pos[i] <= ends[i] <= data.size``; ``ends``
int64[n]; ``null`` the byte that stands for null, 0 or 2 by the union's order, or -1 for a column without union;
``valid`` uint8[n], set to 0 or 1 (untouched, and may be empty, when ``null`` is -1). Null values are written as zeros.

Results: the number of nulls (or what a kernel says), or a fault (``avro_cursor.fault``): then ``pos`` of the row at
fault is where its value begins, and rows behind it are untouched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets
from ._bytes import copy_bytes, load_u32, load_u64, store_u32, store_u64
from ._jit import helper, kernel
from .avro_cursor import (
    BAD_BLOCK,
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_DECIMAL,
    BAD_LENGTH,
    BAD_NUMBER,
    CUT_OFF,
    MOST_ITEMS,
    TOO_LARGE,
    fault,
    read_length,
    read_varint,
    skip_value,
)

__all__ = [
    "COPY_SLACK",
    "copy_values",
    "find_invalid_utf8",
    "frame_records",
    "locate_items",
    "measure_bytes",
    "read_booleans",
    "read_branches",
    "read_decimals",
    "read_fixed",
    "read_ints",
    "read_longs",
    "skip_values",
]

COPY_SLACK = 64
"""Bytes that :func:`copy_values` may use behind the last value."""

_NULL = -16
_HIGH_BITS = np.uint64(0x8080808080808080)


@helper
def _enter(data: Bytes, at: Int, end: Int, null: Int) -> Int:
    """Where the value behind a union's branch begins; _NULL for null; a negative reason."""
    if null < 0:
        return np.int64(at)
    if at >= end:
        return np.int64(-CUT_OFF)
    branch = np.int64(data[at])
    if branch == null:
        return np.int64(_NULL)
    return np.int64(at + 1) if branch == 2 - null else np.int64(-BAD_BRANCH)


@kernel("i8(ru1, i8, i8, i8, wi8, wi8)")
def frame_records(data: Bytes, at: Int, count: Int, most_bytes: Int, starts: Int64s, ends: Int64s) -> Int:
    """Find length-framed records (int32 big endian, then the record).

    Args:
        data: uint8[].
        at: where the first length begins.
        count: most records to find; at most the size of ``starts`` and ``ends``.
        most_bytes: stop behind the record that reaches so many bytes.
        starts: int64[], filled with where records begin.
        ends: int64[], filled with where they end.

    Returns:
        How many were found (one or more when ``count`` is), or a fault.
    """
    first = at
    for row in range(count):
        if data.size - at < 4:
            return fault(row, CUT_OFF)
        length = np.int64(0)
        for i in range(4):
            length = (length << 8) | np.int64(data[at + i])
        if length > data.size - at - 4:
            return fault(row, BAD_LENGTH)
        starts[row] = at + 4
        at += 4 + length
        ends[row] = at
        if at - first >= most_bytes:
            return np.int64(row + 1)
    return np.int64(count)


@kernel("i8(ru1, wi8, ri8, i8, wu1)")
def read_branches(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes) -> Int:
    """Read the branches of a union of null and one type, and leave the cursors at the values.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            valid[row] = 1
            pos[row] = at
        elif at == _NULL:
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, i8, wi4)")
def read_ints(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, low: Int, high: Int, out: Int32s) -> Int:
    """Read ints or an enum's indices into ``out`` int32[n]; each must be ``low`` or more and ``high`` or less.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            value, at = read_varint(data, at, ends[row])
            if at < 0:
                return fault(row, -at)
            if value < low or value > high:
                return fault(row, BAD_NUMBER)
            out[row] = np.int32(value)
            if null >= 0:
                valid[row] = 1
            pos[row] = at
        elif at == _NULL:
            out[row] = 0
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, wi8)")
def read_longs(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, out: Int64s) -> Int:
    """Read longs into ``out`` int64[n].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            value, at = read_varint(data, at, ends[row])
            if at < 0:
                return fault(row, -at)
            out[row] = value
            if null >= 0:
                valid[row] = 1
            pos[row] = at
        elif at == _NULL:
            out[row] = 0
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, wu1)")
def read_booleans(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, out: Bytes) -> Int:
    """Read booleans into ``out`` uint8[n], 0 or 1.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            if at >= ends[row]:
                return fault(row, CUT_OFF)
            if data[at] > 1:
                return fault(row, BAD_BOOLEAN)
            out[row] = data[at]
            if null >= 0:
                valid[row] = 1
            pos[row] = at + 1
        elif at == _NULL:
            out[row] = 0
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@helper
def _read_items(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, width: Int, out: Bytes) -> Int:
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            if width > ends[row] - at:
                return fault(row, CUT_OFF)
            if width == 8:
                store_u64(out, row * 8, load_u64(data, at))
            elif width == 4:
                store_u32(out, row * 4, load_u32(data, at))
            else:
                copy_bytes(out, row * width, data, at, width)
            if null >= 0:
                valid[row] = 1
            pos[row] = at + width
        elif at == _NULL:
            for i in range(width):
                out[row * width + i] = 0
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, wu1)")
def read_fixed(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, width: Int, out: Bytes) -> Int:
    """Read values of ``width`` bytes (floats, doubles, fixed) as they are into ``out`` uint8[n * width].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    if out.size < pos.size * width:
        return fault(0, TOO_LARGE)
    if width == 8:
        return _read_items(data, pos, ends, null, valid, 8, out)
    if width == 4:
        return _read_items(data, pos, ends, null, valid, 4, out)
    return _read_items(data, pos, ends, null, valid, width, out)


@helper
def _big_endian(data: Bytes, at: Int, width: Int) -> Any:
    """The signed number in ``width`` (1 to 8) bytes, as int64."""
    value = -np.int64(data[at] >> np.uint8(7))
    for i in range(width):
        value = (value << 8) | np.int64(data[at + i])
    return value


@helper
def _within(high: Any, low: Any, most_high: Any, most_low: Any) -> bool:
    """Whether the 128-bit number is at most the limit, both without their signs."""
    top, rest = np.uint64(high), low
    if high < 0:
        rest = ~rest + np.uint64(1)
        top = ~top + (np.uint64(1) if rest == np.uint64(0) else np.uint64(0))
    return bool(top < most_high or (top == most_high and rest <= most_low))


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, u8, u8, wu8)")
def read_decimals(
    data: Bytes,
    pos: Int64s,
    ends: Int64s,
    null: Int,
    valid: Bytes,
    width: Int,
    most_high: Any,
    most_low: Any,
    out: Any,
) -> Int:
    """Read unscaled numbers, big endian two's complement, into ``out`` uint64[2 * n]: low half, high half.

    ``width`` is that of a fixed, or -1 for bytes with a length in front; ``most_high`` and ``most_low`` are the halves
    of the largest number that the precision allows.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at == _NULL:
            out[2 * row] = np.uint64(0)
            out[2 * row + 1] = np.uint64(0)
            valid[row] = 0
            pos[row] += 1
            nulls += 1
            continue
        size: Int = np.int64(width)
        if at >= 0 and width < 0:
            size, at = read_length(data, at, ends[row])
        if at < 0:
            return fault(row, -at)
        if size > ends[row] - at:
            return fault(row, CUT_OFF)
        if size < 1:
            return fault(row, BAD_LENGTH)
        after = at + size
        sign = -np.int64(data[at] >> np.uint8(7))
        while after - at > 16:
            if data[at] != np.uint8(sign & 255) or (data[at + 1] >> np.uint8(7)) != np.uint8(sign & 1):
                return fault(row, BAD_DECIMAL)
            at += 1
        if after - at > 8:
            high = _big_endian(data, at, after - at - 8)
            low = np.uint64(_big_endian(data, after - 8, 8))
        else:
            high = sign
            low = np.uint64(_big_endian(data, at, after - at))
        if not _within(high, low, most_high, most_low):
            return fault(row, BAD_DECIMAL)
        out[2 * row] = low
        out[2 * row + 1] = np.uint64(high)
        if null >= 0:
            valid[row] = 1
        pos[row] = after
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, wi8, wi4)")
def measure_bytes(
    data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, starts: Int64s, offsets: Offsets
) -> Int:
    """Read where strings or bytes are: ``starts`` int64[n] in ``data``, and the column's ``offsets`` int32[n + 1].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    total = np.int64(0)
    offsets[0] = 0
    for row in range(pos.size):
        at = _enter(data, pos[row], ends[row], null)
        if at >= 0:
            length, at = read_length(data, at, ends[row])
            if at < 0:
                return fault(row, -at)
            starts[row] = at
            total += length
            if total > MOST_ITEMS:
                return fault(row, TOO_LARGE)
            if null >= 0:
                valid[row] = 1
            pos[row] = at + length
        elif at == _NULL:
            starts[row] = pos[row]
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
        offsets[row + 1] = np.int32(total)
    return nulls


@helper
def _copy_32(target: Bytes, at: Int, source: Bytes, start: Int) -> None:
    first, second = load_u64(source, start), load_u64(source, start + 8)
    third, fourth = load_u64(source, start + 16), load_u64(source, start + 24)
    store_u64(target, at, first)
    store_u64(target, at + 8, second)
    store_u64(target, at + 16, third)
    store_u64(target, at + 24, fourth)


@kernel("void(ru1, ri8, ri4, wu1)")
def copy_values(data: Bytes, starts: Int64s, offsets: Offsets, out: Bytes) -> None:
    """Copy the values that :func:`measure_bytes` found.

    Args:
        data: uint8[], what they are in.
        starts: int64[n], where each begins.
        offsets: int32[n + 1], from 0.
        out: uint8[offsets[n] + COPY_SLACK or more]; what lies behind the last value is overwritten.
    """
    if out.size < np.int64(offsets[starts.size]) + COPY_SLACK:
        return
    last_load = data.size - 64
    for row in range(starts.size):
        start = starts[row]
        at = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - at
        # whole words at once; what is too much of them, the next value overwrites
        if length <= 64 and start <= last_load:
            _copy_32(out, at, data, start)
            if length > 32:
                _copy_32(out, at + 32, data, start + 32)
        else:
            copy_bytes(out, at, data, start, length)


@kernel("i8(ru1, wi8, ri8, ri8, i8)")
def skip_values(data: Bytes, pos: Int64s, ends: Int64s, program: Int64s, depth: Int) -> Int:
    """Move cursors behind values nobody wants.

    ``data``, ``pos``, ``ends``: see the module docstring; ``program`` int64[] as in ``avro_cursor``, ``depth`` of its
    lists.
    """
    stack = np.empty(depth + 1, np.int64)
    for row in range(pos.size):
        at = skip_value(data, pos[row], ends[row], program, stack)
        if at < 0:
            return fault(row, -at)
        pos[row] = at
    return np.int64(0)


@kernel("i8(ru1, wi8, ri8, i8, wu1, ri8, i8, wi4, wi8, wi8)")
def locate_items(
    data: Bytes,
    pos: Int64s,
    ends: Int64s,
    null: Int,
    valid: Bytes,
    program: Int64s,
    depth: Int,
    offsets: Offsets,
    starts: Int64s,
    item_ends: Int64s,
) -> Int:
    """Find the items of arrays, or the entries of maps.

    Args:
        data: uint8[].
        pos: int64[n], cursors.
        ends: int64[n].
        null: see the module docstring.
        valid: uint8[n].
        program: int64[], the skip program of one item.
        depth: of the lists in that program.
        offsets: int32[n + 1], filled with the Arrow column's offsets.
        starts: int64[room], filled with where items begin, as far as there is room.
        item_ends: int64[room], filled with where they end.

    Returns:
        The number of nulls, or a fault. When ``offsets[n]`` is more than the room, call again from the first cursors
        with enough.
    """
    stack = np.empty(depth + 1, np.int64)
    room = min(starts.size, item_ends.size)
    nulls = np.int64(0)
    total = np.int64(0)
    offsets[0] = 0
    for row in range(pos.size):
        end = ends[row]
        at = _enter(data, pos[row], end, null)
        if at == _NULL:
            valid[row] = 0
            pos[row] += 1
            nulls += 1
            offsets[row + 1] = np.int32(total)
            continue
        while at >= 0:
            count, at = read_varint(data, at, end)
            if at < 0 or count == 0:
                break
            block_end: Int = np.int64(-1)
            if count < 0:
                count = -count
                size, at = read_length(data, at, end)
                if at < 0:
                    break
                block_end = at + size
            if count < 0 or count > end - at:
                return fault(row, BAD_LENGTH)
            if total + count > MOST_ITEMS:
                return fault(row, TOO_LARGE)
            for _ in range(count):
                if total < room:
                    starts[total] = at
                at = skip_value(data, at, end, program, stack)
                if at < 0:
                    break
                if total < room:
                    item_ends[total] = at
                total += 1
            if at >= 0 and block_end >= 0 and at != block_end:
                return fault(row, BAD_BLOCK)
        if at < 0:
            return fault(row, -at)
        if null >= 0:
            valid[row] = 1
        pos[row] = at
        offsets[row + 1] = np.int32(total)
    return nulls


@helper
def _utf8_length(data: Bytes, at: Int, end: Int) -> Int:
    """Bytes of the character at ``at``, or 0 if there is none that UTF-8 allows (Unicode 15, table 3-7)."""
    first = np.int64(data[at])
    if first < 0x80:
        return np.int64(1)
    if first < 0xC2 or first > 0xF4:
        return np.int64(0)
    size = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if size > end - at:
        return np.int64(0)
    for i in range(1, size):
        if data[at + i] & np.uint8(0xC0) != np.uint8(0x80):
            return np.int64(0)
    second = np.int64(data[at + 1])
    wrong = (
        (first == 0xE0 and second < 0xA0)  # more bytes than needed
        or (first == 0xED and second > 0x9F)  # surrogates
        or (first == 0xF0 and second < 0x90)
        or (first == 0xF4 and second > 0x8F)  # above U+10FFFF
    )
    return np.int64(0) if wrong else np.int64(size)


@kernel("i8(ri4, ru1)")
def find_invalid_utf8(offsets: Offsets, data: Bytes) -> Int:
    """The first of n values that is not UTF-8, or -1.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[].
    """
    rows = offsets.size - 1
    at = np.int64(offsets[0])
    end = np.int64(offsets[rows])
    seen = np.uint64(0)
    while at + 8 <= end:
        seen |= load_u64(data, at)
        at += 8
    while at < end:
        seen |= np.uint64(data[at])
        at += 1
    if seen & _HIGH_BITS == np.uint64(0):
        return np.int64(-1)
    for row in range(rows):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        while at < end:
            if at + 8 <= end and load_u64(data, at) & _HIGH_BITS == np.uint64(0):
                at += 8
                continue
            size = _utf8_length(data, at, end)
            if size == 0:
                return np.int64(row)
            at += size
    return np.int64(-1)
