"""Avro binary to Arrow buffers by column: each kernel reads one column of many records.

::

    data  ..[record 0][record 1][record 2]..
              ^pos[0]   ^pos[1]   ^pos[2]        one cursor per record; ends[i] is the end of record i
    read_longs(...)      reads a value at every cursor, writes out[i], and moves every cursor past its value
    measure_bytes(...)   the same for strings: their positions and lengths; copy_values then fills exact buffers
    avro_structure       nested records; lists: each item gets a cursor, and the items are the rows of the next level

Records are independent, so the CPU overlaps the work on many of them, and each loop handles one type without dispatch.
All bytes of a column are checked against the end of their record before use.

Shared arguments: ``data`` uint8[8 or more]; ``pos`` int64[n], cursors, ``0 <= pos[i] <= ends[i] <= data.size``;
``ends`` int64[n]; ``null`` the branch byte of null, 0 or 2 by the union's order, or -1 for a column without union;
``valid`` uint8[n], set to 0 or 1 (unchanged, may be empty, when ``null`` is -1). Nulls are written as zeros.

Results: the number of nulls (unless a kernel documents another), or a fault (``avro_cursor.fault``). After a fault,
``pos`` of the faulty row is the position of its value, and later rows are unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets
from ._bytes import copy_bytes, load_u32, load_u64, store_u32, store_u64
from ._declared import helper
from ._kernel import kernel
from .avro_structure import (
    BAD_BOOLEAN,
    BAD_DECIMAL,
    BAD_LENGTH,
    BAD_NUMBER,
    CUT_OFF,
    IS_NULL,
    MAX_ITEMS,
    TOO_LARGE,
    enter_value,
    fault,
    swapped,
    varint_size,
    varint_value,
    word_at,
)

__all__ = [
    "COPY_SLACK",
    "copy_values",
    "measure_bytes",
    "read_booleans",
    "read_decimals",
    "read_fixed",
    "read_ints",
    "read_longs",
]

COPY_SLACK = 64
"""Bytes that :func:`copy_values` may overwrite after the last value."""

_NULL = -16
_HIGH_BITS = np.uint64(0x8080808080808080)


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, i8, wi4)")
def read_ints(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, low: Int, high: Int, out: Int32s) -> Int:
    """Read ints or an enum's indices in ``low``..``high`` into ``out`` int32[n].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = enter_value(data, pos[row], ends[row], null)
        if at >= 0:
            word, more = word_at(data, at), word_at(data, at + 8)
            size = varint_size(word, more)
            if size < 0 or size > ends[row] - at:
                return fault(row, CUT_OFF if size > 0 else -size)
            after = at + size
            value = varint_value(word, more, size)
            if value < low or value > high:
                return fault(row, BAD_NUMBER)
            out[row] = np.int32(value)
            if null >= 0:
                valid[row] = 1
            pos[row] = after
        elif at == IS_NULL:
            out[row] = 0
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, i8, wi8)")
def read_longs(
    data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes, low: Int, high: Int, out: Int64s
) -> Int:
    """Read longs in ``low``..``high`` into ``out`` int64[n].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = enter_value(data, pos[row], ends[row], null)
        if at >= 0:
            word, more = word_at(data, at), word_at(data, at + 8)
            size = varint_size(word, more)
            if size < 0 or size > ends[row] - at:
                return fault(row, CUT_OFF if size > 0 else -size)
            after = at + size
            value = varint_value(word, more, size)
            if value < low or value > high:
                return fault(row, BAD_NUMBER)
            out[row] = value
            if null >= 0:
                valid[row] = 1
            pos[row] = after
        elif at == IS_NULL:
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
        at = enter_value(data, pos[row], ends[row], null)
        if at >= 0:
            if at >= ends[row]:
                return fault(row, CUT_OFF)
            if data[at] > 1:
                return fault(row, BAD_BOOLEAN)
            out[row] = data[at]
            if null >= 0:
                valid[row] = 1
            pos[row] = at + 1
        elif at == IS_NULL:
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
        at = enter_value(data, pos[row], ends[row], null)
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
        elif at == IS_NULL:
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
    """Copy values of ``width`` bytes (floats, doubles, fixed) unchanged into ``out`` uint8[n * width].

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
    """The signed number in ``width`` (1 to 8) bytes as int64."""
    return np.int64(swapped(word_at(data, at))) >> np.int64(64 - 8 * width)


@helper
def _within(high: Any, low: Any, max_high: Any, max_low: Any) -> bool:
    """Whether the absolute value of a 128-bit number is at most the limit."""
    top, rest = np.uint64(high), low
    if high < 0:
        rest = ~rest + np.uint64(1)
        top = ~top + (np.uint64(1) if rest == np.uint64(0) else np.uint64(0))
    return bool(top < max_high or (top == max_high and rest <= max_low))


@kernel("i8(ru1, wi8, ri8, i8, wu1, i8, u8, u8, wu8)")
def read_decimals(
    data: Bytes,
    pos: Int64s,
    ends: Int64s,
    null: Int,
    valid: Bytes,
    width: Int,
    max_high: Any,
    max_low: Any,
    out: Any,
) -> Int:
    """Read unscaled numbers, big endian two's complement, into ``out`` uint64[2 * n]: low half, high half.

    ``width`` is the size of a fixed, or -1 for bytes with a length prefix; ``max_high`` and ``max_low`` are the halves
    of the largest number of the precision.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = enter_value(data, pos[row], ends[row], null)
        if at == IS_NULL:
            out[2 * row] = np.uint64(0)
            out[2 * row + 1] = np.uint64(0)
            valid[row] = 0
            pos[row] += 1
            nulls += 1
            continue
        size: Int = np.int64(width)
        if at >= 0 and width < 0:
            word, more = word_at(data, at), word_at(data, at + 8)
            digits = varint_size(word, more)
            if digits < 0 or digits > ends[row] - at:
                return fault(row, CUT_OFF if digits > 0 else -digits)
            size = varint_value(word, more, digits)
            at += digits
            if size < 0:
                return fault(row, BAD_LENGTH)
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
        if not _within(high, low, max_high, max_low):
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
    """Read the positions of strings or bytes: ``starts`` int64[n] in ``data``, and ``offsets`` int32[n + 1].

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see the module docstring.
    """
    nulls = np.int64(0)
    total = np.int64(0)
    offsets[0] = 0
    for row in range(pos.size):
        at = enter_value(data, pos[row], ends[row], null)
        if at >= 0:
            word, more = word_at(data, at), word_at(data, at + 8)
            size = varint_size(word, more)
            if size < 0 or size > ends[row] - at:
                return fault(row, CUT_OFF if size > 0 else -size)
            after = at + size
            length = varint_value(word, more, size)
            if length < 0 or length > ends[row] - after:
                return fault(row, BAD_LENGTH)
            starts[row] = after
            total += length
            if total > MAX_ITEMS:
                return fault(row, TOO_LARGE)
            if null >= 0:
                valid[row] = 1
            pos[row] = after + length
        elif at == IS_NULL:
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
    """Copy the values of ``data`` at the ``starts`` and ``offsets`` that :func:`measure_bytes` found.

    ``out`` uint8[offsets[n] + COPY_SLACK or more]: bytes after the last value are overwritten.
    """
    if out.size < np.int64(offsets[starts.size]) + COPY_SLACK:
        return
    last_load = data.size - 64
    for row in range(starts.size):
        start = starts[row]
        at = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - at
        # copies whole words; the next value overwrites the excess
        if length <= 64 and start <= last_load:
            _copy_32(out, at, data, start)
            if length > 32:
                _copy_32(out, at + 32, data, start + 32)
        else:
            copy_bytes(out, at, data, start, length)
