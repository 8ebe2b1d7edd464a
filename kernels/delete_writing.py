"""Entries of Hudi's delete blocks: columns to Avro bytes (``delete_records`` reads them and describes the format).

::

    number_items, varlen_items, decimal_items   one column of ordering values, as the bytes that an entry holds
    assemble_deletes                            keys, partition paths and those bytes, entry by entry

The caller allocates the worst case; every kernel returns the number of bytes that it used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bools, Bytes, Int, Int64s, Offsets, UInt64s
from ._bytes import copy_bytes, store_u32, store_u64
from ._declared import helper
from ._kernel import kernel

__all__ = ["assemble_deletes", "decimal_items", "number_items", "varlen_items"]

_ARRAY = 12


@helper
def _write_long(out: Bytes, at: Int, value: Any) -> Any:
    """Write an Avro int or long; return the next position."""
    bits = np.uint64(value << np.int64(1)) ^ np.uint64(value >> np.int64(63))
    while bits >= np.uint64(0x80):
        out[at] = np.uint8(bits & np.uint64(0x7F)) | np.uint8(0x80)
        bits >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(bits)
    return np.int64(at + 1)


@kernel("i8(ri8, rb1, i8, i8, wi8, wu1)")
def number_items(values: Int64s, present: Bools, branch: Int, width: Int, offsets: Int64s, out: Bytes) -> Int:
    """Write numbers, each after its branch; return the number of bytes written.

    Args:
        values: int64[n], as :func:`read_numbers` returns them.
        present: bool[n], which rows have a number; other rows take no bytes.
        branch: branch of the union.
        width: 0, 1, 4 or 8, as for :func:`read_numbers`.
        offsets: int64[n + 1], filled with the start of each item.
        out: uint8[11 * n], filled from the front.
    """
    at = np.int64(0)
    for row in range(values.size):
        offsets[row] = at
        if not present[row]:
            continue
        at = _write_long(out, at, np.int64(branch))
        if width == 0:
            at = _write_long(out, at, values[row])
        elif width == 1:
            out[at] = np.uint8(values[row] & 1)
            at += 1
        elif width == 4:
            store_u32(out, at, np.uint32(values[row]))
            at += 4
        else:
            store_u64(out, at, np.uint64(values[row]))
            at += 8
    offsets[values.size] = at
    return at


@kernel("i8(ri4, ru1, rb1, i8, wi8, wu1)")
def varlen_items(value_offsets: Offsets, data: Bytes, present: Bools, branch: Int, offsets: Int64s, out: Bytes) -> Int:
    """Write bytes or strings, each after its branch and length; return the number of bytes written.

    Args:
        value_offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the values.
        present: bool[n], which rows have a value; other rows take no bytes.
        branch: branch of the union.
        offsets: int64[n + 1], filled with the start of each item.
        out: uint8[6 * n + bytes of all values], filled from the front.
    """
    at = np.int64(0)
    for row in range(present.size):
        offsets[row] = at
        if present[row]:
            start = np.int64(value_offsets[row])
            length = np.int64(value_offsets[row + 1]) - start
            at = _write_long(out, at, np.int64(branch))
            at = _write_long(out, at, length)
            copy_bytes(out, at, data, start, length)
            at += length
    offsets[present.size] = at
    return at


@helper
def _byte(low: Any, high: Any, index: Int) -> Any:
    """Byte ``index`` of a 128-bit number; byte 0 is the lowest."""
    word = high if index > 7 else low
    return np.uint8((word >> np.uint64(8 * (index % 8))) & np.uint64(0xFF))


@kernel("i8(ru8, rb1, i8, wi8, wu1)")
def decimal_items(words: UInt64s, present: Bools, branch: Int, offsets: Int64s, out: Bytes) -> Int:
    """Write decimals in the shortest form, as Java's BigInteger, each after its branch and length.

    Returns the number of bytes written.

    Args:
        words: uint64[2 * n], 128-bit two's complement numbers, the low word first.
        present: bool[n], which rows have a decimal; other rows take no bytes.
        branch: branch of the union.
        offsets: int64[n + 1], filled with the start of each item.
        out: uint8[18 * n], filled from the front.
    """
    at = np.int64(0)
    for row in range(present.size):
        offsets[row] = at
        if not present[row]:
            continue
        low, high = words[2 * row], words[2 * row + 1]
        negative = high >> np.uint64(63) != np.uint64(0)
        sign = np.uint8(0xFF if negative else 0)
        length = np.int64(16)
        # Drop leading bytes that only repeat the sign of the next byte.
        while length > 1 and _byte(low, high, length - 1) == sign:
            if (_byte(low, high, length - 2) >= 0x80) != negative:
                break
            length -= 1
        at = _write_long(out, at, np.int64(branch))
        at = _write_long(out, at, length)
        for i in range(length - 1, -1, -1):
            out[at] = _byte(low, high, i)
            at += 1
    offsets[present.size] = at
    return at


@kernel("i8(ri4, ru1, ri4, ru1, rb1, rb1, ri8, ru1, i8, wu1)")
def assemble_deletes(
    key_offsets: Offsets,
    keys: Bytes,
    partition_offsets: Offsets,
    partitions: Bytes,
    has_partition: Bools,
    is_default: Bools,
    item_offsets: Int64s,
    items: Bytes,
    columns: Int,
    out: Bytes,
) -> Int:
    """Write the list of n entries; return the number of bytes written.

    Args:
        key_offsets: int32[n + 1], Arrow offsets.
        keys: uint8[], the keys.
        partition_offsets: int32[n + 1], Arrow offsets.
        partitions: uint8[], the partition paths.
        has_partition: bool[n], whether the partition path is not null.
        is_default: bool[n], entries with the int 0 as ordering value.
        item_offsets: int64[columns * (n + 1)], the start of each item in ``items``, column by column.
        items: uint8[], the items of all columns.
        columns: number of ordering values; two or more are written as an array.
        out: uint8[11 + 23 * n + bytes of keys, partition paths and items], filled from the front.
    """
    rows = is_default.size
    at = np.int64(0)
    if rows > 0:
        at = _write_long(out, at, np.int64(rows))
    for row in range(rows):
        start = np.int64(key_offsets[row])
        length = np.int64(key_offsets[row + 1]) - start
        at = _write_long(out, _write_long(out, at, np.int64(1)), length)
        copy_bytes(out, at, keys, start, length)
        at += length
        at = _write_long(out, at, np.int64(has_partition[row]))
        if has_partition[row]:
            start = np.int64(partition_offsets[row])
            length = np.int64(partition_offsets[row + 1]) - start
            at = _write_long(out, at, length)
            copy_bytes(out, at, partitions, start, length)
            at += length
        if is_default[row]:
            out[at], out[at + 1] = 4, 0
            at += 2
            continue
        if columns > 1:
            at = _write_long(out, _write_long(out, at, np.int64(_ARRAY)), np.int64(1))
            at = _write_long(out, at, np.int64(columns))
        for column in range(columns):
            place = column * (rows + 1) + row
            length = item_offsets[place + 1] - item_offsets[place]
            copy_bytes(out, at, items, item_offsets[place], length)
            at += length
        if columns > 1:
            out[at] = 0
            at += 1
    out[at] = 0
    return at + 1
