"""Arrow buffers to Avro binary by column: first the sizes, then each column into the gaps left for it.

::

    measure_longs, measure_texts ...   sizes[i] += bytes of the column's value in record i
    (cumulative sizes: record i is out[bounds[i]:bounds[i + 1]])
    write_longs, write_texts ...       write a value at every cursor and move it past the value, in the columns' order

Shared arguments: ``valid`` uint8[n], 0 for null; empty without nulls. ``null`` the branch byte of null, 0 or 2 by the
union's order, or -1 for a column without union. ``sizes`` int64[n], without the bytes of unions. ``pos`` int64[n],
cursors; ``ends`` int64[n], the end of each record, or of each list item; ``out`` uint8[]. Kernels store whole words,
which may extend beyond a value but not beyond its record: later columns overwrite the excess.

Sizes and writes must use the same values; buffers are well-formed Arrow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets, UInt64s
from ._bytes import copy_bytes, load_u32, load_u64, store_u32, store_u64
from ._declared import helper
from ._kernel import kernel
from .avro_structure import swapped

__all__ = [
    "find_wide_decimal",
    "measure_decimals",
    "measure_items",
    "measure_longs",
    "measure_texts",
    "write_branches",
    "write_decimals",
    "write_fixed",
    "write_frames",
    "write_items",
    "write_longs",
    "write_texts",
]

_ONE = np.uint64(1)
_CONTINUED = np.uint64(0x8080808080808080)


@helper
def _zigzag(value: Int) -> Any:
    return np.uint64(np.int64(value) << 1) ^ np.uint64(np.int64(value) >> 63)


@helper
def _varint_size(raw: Any) -> Int:
    size = np.int64(1)
    for shift in (7, 14, 21, 28, 35, 42, 49, 56, 63):
        size += np.int64(raw >> np.uint64(shift) != np.uint64(0))
    return size


@helper
def _varint_word(raw: Any, size: Int) -> Any:
    """The first eight bytes of a number that takes ``size`` bytes."""
    word = (raw & np.uint64(0x000000000FFFFFFF)) | ((raw & np.uint64(0x00FFFFFFF0000000)) << np.uint64(4))
    word = (word & np.uint64(0x00003FFF00003FFF)) | ((word & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2))
    word = (word & np.uint64(0x007F007F007F007F)) | ((word & np.uint64(0x3F803F803F803F80)) << _ONE)
    # continuation bits: one in every byte but the last
    continued = (_ONE << np.uint64(8 * (size - 1))) - _ONE if size <= 8 else ~np.uint64(0)
    return word | (_CONTINUED & continued)


@helper
def _ninth(raw: Any, size: Int) -> Any:
    """The ninth byte of a nine- or ten-byte number."""
    return np.uint8((raw >> np.uint64(56)) & np.uint64(0x7F)) | np.uint8(0x80 if size > 9 else 0)


@helper
def _enter(out: Bytes, at: Int, null: Int, valid: Bytes, row: Int) -> Int:
    """Write the branch of a union, if any; return the position of the value, or -1 for null."""
    if null < 0:
        return np.int64(at)
    if valid.size > 0 and valid[row] == 0:
        out[at] = np.uint8(null)
        return np.int64(-1)
    out[at] = np.uint8(2 - null)
    return np.int64(at + 1)


# ---- sizes


@kernel("void(ri8, ru1, wi8)")
def measure_longs(values: Int64s, valid: Bytes, sizes: Int64s) -> None:
    """Add the sizes of ``values`` int64[n] as int or long; ``valid``, ``sizes``: see the module docstring."""
    if valid.size == 0:
        for row in range(values.size):
            sizes[row] += _varint_size(_zigzag(values[row]))
    else:
        for row in range(values.size):
            sizes[row] += _varint_size(_zigzag(values[row])) * np.int64(valid[row])


@kernel("void(ri4, ru1, wi8)")
def measure_texts(offsets: Offsets, valid: Bytes, sizes: Int64s) -> None:
    """Add the sizes of strings or bytes, ``offsets`` int32[n + 1]; ``valid``, ``sizes``: see the module docstring."""
    for row in range(sizes.size):
        if valid.size == 0 or valid[row] != 0:
            length = np.int64(offsets[row + 1]) - np.int64(offsets[row])
            sizes[row] += length + _varint_size(_zigzag(length))


@helper
def _decimal_bytes(low: Any, high: Any) -> Int:
    """Bytes of the shortest two's complement form, at least 1; as BigInteger.toByteArray."""
    sign = np.uint64(np.int64(high) >> 63)
    flipped = high ^ sign
    size = np.int64(8)
    if flipped == np.uint64(0) and (low ^ sign) >> np.uint64(63) == np.uint64(0):
        flipped = low ^ sign
        size = np.int64(0)
    for shift in (7, 15, 23, 31, 39, 47, 55):
        size += np.int64(flipped >> np.uint64(shift) != np.uint64(0))
    return size + 1


@kernel("void(ru8, ru1, wi8)")
def measure_decimals(values: UInt64s, valid: Bytes, sizes: Int64s) -> None:
    """Add the sizes of decimals, ``values`` uint64[2 * n]; ``valid``, ``sizes``: see the module docstring."""
    for row in range(sizes.size):
        if valid.size == 0 or valid[row] != 0:
            sizes[row] += 1 + _decimal_bytes(values[2 * row], values[2 * row + 1])


@kernel("i8(ru8, ru1, i8, u8, u8)")
def find_wide_decimal(values: UInt64s, valid: Bytes, width: Int, max_high: Any, max_low: Any) -> Int:
    """The first row with a number that does not fit, or -1.

    Args:
        values: uint64[2 * n], low half and high half of each unscaled number.
        valid: uint8[n], 0 for null; empty without nulls.
        width: available bytes.
        max_high: upper half of the largest number of the precision.
        max_low: lower half of that number.
    """
    for row in range(values.size // 2):
        if valid.size == 0 or valid[row] != 0:
            low, high = values[2 * row], values[2 * row + 1]
            if _decimal_bytes(low, high) > width:
                return np.int64(row)
            if np.int64(high) < 0:
                low = ~low + _ONE
                high = ~high + (_ONE if low == np.uint64(0) else np.uint64(0))
            if high > max_high or (high == max_high and low > max_low):
                return np.int64(row)
    return np.int64(-1)


@kernel("void(ri4, ri8, ru1, wi8)")
def measure_items(offsets: Offsets, item_bounds: Int64s, valid: Bytes, sizes: Int64s) -> None:
    """Add the sizes of arrays or maps, each one block.

    ``offsets`` int32[n + 1] from 0 are the items of each row, ``item_bounds`` int64[m + 1] the cumulative sizes of the
    items, from 0; ``valid``, ``sizes``: see the module docstring.
    """
    for row in range(sizes.size):
        if valid.size == 0 or valid[row] != 0:
            first, after = np.int64(offsets[row]), np.int64(offsets[row + 1])
            sizes[row] += 1
            if after > first:
                sizes[row] += _varint_size(_zigzag(after - first)) + item_bounds[after] - item_bounds[first]


# ---- values


@kernel("void(ri8, wu1)")
def write_frames(bounds: Int64s, out: Bytes) -> None:
    """Write the length prefix of each record, int32 big endian, at ``bounds`` int64[n + 1] of ``out``."""
    for row in range(bounds.size - 1):
        at = bounds[row]
        length = bounds[row + 1] - at - 4
        for i in range(4):
            out[at + i] = np.uint8((length >> (24 - 8 * i)) & 255)


@kernel("void(ru1, i8, wi8, wu1)")
def write_branches(valid: Bytes, null: Int, pos: Int64s, out: Bytes) -> None:
    """Write the branches of unions around records; ``valid``, ``null``, ``pos``, ``out``: see the module docstring."""
    for row in range(pos.size):
        _enter(out, pos[row], null, valid, row)
        pos[row] += 1


@kernel("void(ri8, ru1, i8, wi8, ri8, wu1)")
def write_longs(values: Int64s, valid: Bytes, null: Int, pos: Int64s, ends: Int64s, out: Bytes) -> None:
    """Write ``values`` int64[n] as int or long.

    ``valid``, ``null``, ``pos``, ``ends``, ``out``: see the module docstring.
    """
    some_null = valid.size > 0
    for row in range(pos.size):
        at: Any = pos[row]
        if null >= 0:
            if some_null and valid[row] == 0:
                out[at] = np.uint8(null)
                pos[row] = at + 1
                continue
            out[at] = np.uint8(2 - null)
            at += 1
        raw = _zigzag(values[row])
        size = _varint_size(raw)
        word = _varint_word(raw, size)
        if at + 8 <= ends[row]:
            store_u64(out, at, word)
            if size > 8:
                out[at + 8] = _ninth(raw, size)
                if size > 9:
                    out[at + 9] = 1
        else:
            for i in range(size):
                out[at + i] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(0xFF))
        pos[row] = at + size


@helper
def _copy_32(target: Bytes, at: Int, source: Bytes, start: Int) -> None:
    first, second = load_u64(source, start), load_u64(source, start + 8)
    third, fourth = load_u64(source, start + 16), load_u64(source, start + 24)
    store_u64(target, at, first)
    store_u64(target, at + 8, second)
    store_u64(target, at + 16, third)
    store_u64(target, at + 24, fourth)


@kernel("void(ri4, ru1, ru1, i8, wi8, ri8, wu1)")
def write_texts(offsets: Offsets, data: Bytes, valid: Bytes, null: Int, pos: Int64s, ends: Int64s, out: Bytes) -> None:
    """Write strings or bytes with their lengths, ``offsets`` int32[n + 1] into ``data`` uint8[].

    ``valid``, ``null``, ``pos``, ``ends``, ``out``: see the module docstring.
    """
    last_load = data.size - 64
    some_null = valid.size > 0
    for row in range(pos.size):
        at: Any = pos[row]
        if null >= 0:
            if some_null and valid[row] == 0:
                out[at] = np.uint8(null)
                pos[row] = at + 1
                continue
            out[at] = np.uint8(2 - null)
            at += 1
        start = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        raw = _zigzag(length)
        size = _varint_size(raw)
        word = _varint_word(raw, size)
        if at + 8 <= ends[row]:
            store_u64(out, at, word)
        else:
            for i in range(size):
                out[at + i] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(0xFF))
        at += size
        if length <= 64 and start <= last_load and at + 64 <= ends[row]:
            _copy_32(out, at, data, start)
            if length > 32:
                _copy_32(out, at + 32, data, start + 32)
        else:
            copy_bytes(out, at, data, start, length)
        pos[row] = at + length


@helper
def _write_items(values: Bytes, width: Int, valid: Bytes, null: Int, pos: Int64s, out: Bytes) -> None:
    for row in range(pos.size):
        at = _enter(out, pos[row], null, valid, row)
        if at < 0:
            pos[row] += 1
            continue
        if width == 8:
            store_u64(out, at, load_u64(values, row * 8))
        elif width == 4:
            store_u32(out, at, load_u32(values, row * 4))
        elif width == 1:
            out[at] = values[row]
        else:
            copy_bytes(out, at, values, row * width, width)
        pos[row] = at + width


@kernel("void(ru1, i8, ru1, i8, wi8, wu1)")
def write_fixed(values: Bytes, width: Int, valid: Bytes, null: Int, pos: Int64s, out: Bytes) -> None:
    """Write ``values`` uint8[n * width] of ``width`` bytes each unchanged: floats, doubles, fixed, booleans.

    ``valid``, ``null``, ``pos``, ``out``: see the module docstring.
    """
    if width == 8:
        _write_items(values, 8, valid, null, pos, out)
    elif width == 4:
        _write_items(values, 4, valid, null, pos, out)
    elif width == 1:
        _write_items(values, 1, valid, null, pos, out)
    else:
        _write_items(values, width, valid, null, pos, out)


@kernel("void(ru8, i8, ru1, i8, wi8, ri8, wu1)")
def write_decimals(values: UInt64s, width: Int, valid: Bytes, null: Int, pos: Int64s, ends: Int64s, out: Bytes) -> None:
    """Write unscaled numbers big endian, ``values`` uint64[2 * n] (low half, high half).

    ``width`` is the size of the fixed, or -1 for the shortest form with a length prefix. ``valid``, ``null``, ``pos``,
    ``ends``, ``out``: see the module docstring.
    """
    some_null = valid.size > 0
    for row in range(pos.size):
        at: Any = pos[row]
        if null >= 0:
            if some_null and valid[row] == 0:
                out[at] = np.uint8(null)
                pos[row] = at + 1
                continue
            out[at] = np.uint8(2 - null)
            at += 1
        low, high = values[2 * row], values[2 * row + 1]
        size: Any = np.int64(width)
        if width < 0:
            size = _decimal_bytes(low, high)
            out[at] = np.uint8(2 * size)
            at += 1
        if size <= 8 and at + 8 <= ends[row]:
            store_u64(out, at, swapped(low << np.uint64(64 - 8 * size)))
        else:
            sign = np.uint64(np.int64(high) >> 63)
            for i in range(size):
                place = size - 1 - i
                word = low if place < 8 else (high if place < 16 else sign)
                out[at + i] = np.uint8((word >> np.uint64(8 * (place & 7))) & np.uint64(255))
        pos[row] = at + size


@kernel("void(ri4, ri8, ru1, i8, wi8, wi8, wi8, wu1)")
def write_items(
    offsets: Offsets,
    item_bounds: Int64s,
    valid: Bytes,
    null: Int,
    pos: Int64s,
    item_pos: Int64s,
    item_ends: Int64s,
    out: Bytes,
) -> None:
    """Write the block headers of arrays or maps, and position the items.

    ``offsets`` int32[n + 1] are the items of each row, ``item_bounds`` int64[m + 1] the cumulative sizes of the
    items; item ``offsets[0]`` is the first. ``item_pos`` and ``item_ends`` int64[m] are filled with the items'
    cursors and ends. ``valid``, ``null``, ``pos``, ``out``: see the module docstring.
    """
    base = np.int64(offsets[0])
    some_null = valid.size > 0
    for row in range(pos.size):
        at: Any = pos[row]
        if null >= 0:
            if some_null and valid[row] == 0:
                out[at] = np.uint8(null)
                pos[row] = at + 1
                continue
            out[at] = np.uint8(2 - null)
            at += 1
        first, after = np.int64(offsets[row]) - base, np.int64(offsets[row + 1]) - base
        if after > first:
            raw = _zigzag(after - first)
            size = _varint_size(raw)
            word = _varint_word(raw, size)
            for i in range(size):
                out[at + i] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(0xFF))
            at += size
            shift = at - item_bounds[first]
            for item in range(first, after):
                item_pos[item] = shift + item_bounds[item]
                item_ends[item] = shift + item_bounds[item + 1]
            at = shift + item_bounds[after]
        out[at] = 0
        pos[row] = at + 1
