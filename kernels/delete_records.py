"""Entries of Hudi's delete blocks: Avro bytes to columns, and back.

::

    measure_deletes   checks every byte; counts entries, bytes of keys and bytes of partition paths
    read_deletes      copies keys and partition paths; per entry: kind and position of the ordering value
    locate_items      several ordering values: the same per value
    read_numbers, measure_values + copy_values, read_decimals
                      one column of values of one kind

An entry is ``union key | union partition path | union ordering value`` in Avro's binary encoding; *branch* is the
number of the ordering value's union branch (0 null, 1 boolean, 2 int, 3 long, 4 float, 5 double, 6 bytes, 7 string,
8 date, 9 decimal, 10 time, 11 timestamp, 12 array at the top and date inside an array). Source: spec section 6.5;
HoodieDeleteRecordList, Hudi 1.2.0.

Shared arguments: ``data`` uint8[], the Avro bytes; ``value_at`` int64[n], positions of values in it; ``present``
bool[n], which rows have a value.

Only :func:`measure_deletes` checks bytes; the other kernels rely on it. Counts in the data are never trusted: an entry
or item takes at least one byte, so every loop ends with the bytes.

Entries of Hudi's delete blocks: columns to Avro bytes (``delete_records`` reads them and describes the format).

::

    number_items, varlen_items, decimal_items   one column of ordering values, as the bytes that an entry holds
    assemble_deletes                            keys, partition paths and those bytes, entry by entry

The caller allocates the worst case; every kernel returns the number of bytes that it used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bools, Bytes, Int, Int32s, Int64s, Offsets, UInt64s
from ._bytes import copy_bytes, load_u32, load_u64, read_varint, store_u32, store_u64, unfold_sign
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "assemble_deletes",
    "copy_values",
    "decimal_items",
    "locate_items",
    "measure_deletes",
    "measure_values",
    "number_items",
    "read_decimals",
    "read_deletes",
    "read_numbers",
    "varlen_items",
]

_ARRAY = 12


@helper
def _read_long(data: Bytes, at: Int, end: Int) -> Any:
    """(value, next position) of the Avro int or long at ``at``; the position is -1 if it is cut off."""
    bits, at = read_varint(data, at, end)
    return unfold_sign(bits), at


@helper
def _read_size(data: Bytes, at: Int, end: Int) -> Any:
    """(length, position of the first byte) of the Avro bytes or string at ``at``; position -1 if it is cut off."""
    length, at = _read_long(data, at, end)
    if at < 0 or length < 0 or length > end - at:
        return np.int64(0), np.int64(-1)
    return length, at


@helper
def _read_optional(data: Bytes, at: Int, end: Int) -> Any:
    """(length, position of the first byte) of the nullable string at ``at``; length -1 for null."""
    branch, at = _read_long(data, at, end)
    if at < 0 or branch == 0:
        return np.int64(-1), at
    if branch != 1:
        return np.int64(-1), np.int64(-1)
    return _read_size(data, at, end)


@helper
def _block_count(data: Bytes, at: Int, end: Int) -> Any:
    """(items, position of the first item) of the array block at ``at``; the position is -1 if it is malformed."""
    count, at = _read_long(data, at, end)
    if at >= 0 and count < 0:
        count = -count
        _, at = _read_long(data, at, end)
        if count < 0:
            at = np.int64(-1)
    return count, at


@helper
def _after_value(data: Bytes, at: Int, end: Int, branch: Int) -> Any:
    """Position after the scalar value at ``at``; -1 if it is cut off or the branch does not exist."""
    if branch == 0:
        return np.int64(at)
    if branch == 1:
        size = np.int64(1)
    elif branch == 4:
        size = np.int64(4)
    elif branch == 5:
        size = np.int64(8)
    elif branch == 6 or branch == 7 or branch == 9:
        size, at = _read_size(data, at, end)
        if at < 0:
            return np.int64(-1)
    elif branch > 0 and branch <= 12:
        _, after = _read_long(data, at, end)
        return after
    else:
        return np.int64(-1)
    return np.int64(at + size) if size <= end - at else np.int64(-1)


@helper
def _after_array(data: Bytes, at: Int, end: Int) -> Any:
    """(items, position after the array wrapper at ``at``); the position is -1 if it is malformed or empty."""
    items = np.int64(0)
    present, at = _read_long(data, at, end)
    if at < 0 or present != 1:
        return items, np.int64(-1)
    while True:
        count, at = _block_count(data, at, end)
        if at < 0:
            return items, np.int64(-1)
        if count == 0:
            return items, at if items > 0 else np.int64(-1)
        for _ in range(count):
            branch, at = _read_long(data, at, end)
            if at >= 0:
                at = _after_value(data, at, end, branch)
            if at < 0:
                return items, np.int64(-1)
            items += 1


@helper
def _after_ordering(data: Bytes, at: Int, end: Int) -> Any:
    """Position after the ordering value with its branch number at ``at``; -1 if it is malformed."""
    branch, at = _read_long(data, at, end)
    if at < 0:
        return at
    if branch == _ARRAY:
        _, at = _after_array(data, at, end)
        return at
    return _after_value(data, at, end, branch)


@kernel("i8(ru1, wi8)")
def measure_deletes(data: Bytes, sizes: Int64s) -> Int:
    """Check a list of entries.

    Args:
        data: uint8[], the Avro bytes.
        sizes: int64[3], filled with the bytes of all keys, the bytes of all partition paths, and the end of the list.

    Returns:
        The number of entries; or ``-1 - i`` if the entry or array block at byte ``i`` is malformed or has no key.
    """
    end = data.size
    at = np.int64(0)
    rows = np.int64(0)
    keys = np.int64(0)
    partitions = np.int64(0)
    while True:
        start = at
        count, at = _block_count(data, at, end)
        if at < 0:
            return np.int64(-1 - start)
        if count == 0:
            sizes[0], sizes[1], sizes[2] = keys, partitions, at
            return rows
        for _ in range(count):
            start = at
            length, at = _read_optional(data, at, end)
            if at < 0 or length < 0:
                return np.int64(-1 - start)
            keys += length
            length, at = _read_optional(data, at + length, end)
            if at < 0:
                return np.int64(-1 - start)
            if length > 0:
                partitions += length
                at += length
            at = _after_ordering(data, at, end)
            if at < 0:
                return np.int64(-1 - start)
            rows += 1


@kernel("void(ru1, wi4, wu1, wi4, wu1, wb1, wb1, wi4, wi8, wi8)")
def read_deletes(
    data: Bytes,
    key_offsets: Offsets,
    keys: Bytes,
    partition_offsets: Offsets,
    partitions: Bytes,
    has_partition: Bools,
    is_default: Bools,
    branch: Int32s,
    value_at: Int64s,
    items: Int64s,
) -> None:
    """Split the n entries that :func:`measure_deletes` has checked.

    Args:
        data: uint8[], the Avro bytes.
        key_offsets: int32[n + 1], filled with the keys' Arrow offsets.
        keys: uint8[], filled with the keys.
        partition_offsets: int32[n + 1], filled with the partition paths' Arrow offsets.
        partitions: uint8[], filled with the partition paths.
        has_partition: bool[n], filled with whether the partition path is not null.
        is_default: bool[n], filled with whether the ordering value is the int 0 or null.
        branch: int32[n], filled with the ordering value's branch.
        value_at: int64[n], filled with the position of the ordering value; for arrays, of the first block.
        items: int64[n], filled with the number of an array's items; 0 for scalars.
    """
    end = data.size
    at = np.int64(0)
    row = np.int64(0)
    key_offsets[0] = 0
    partition_offsets[0] = 0
    while True:
        count, at = _block_count(data, at, end)
        if count == 0:
            return
        for _ in range(count):
            length, at = _read_optional(data, at, end)
            copy_bytes(keys, np.int64(key_offsets[row]), data, at, length)
            key_offsets[row + 1] = np.int32(key_offsets[row] + length)
            length, at = _read_optional(data, at + length, end)
            has_partition[row] = length >= 0
            length = max(length, np.int64(0))
            copy_bytes(partitions, np.int64(partition_offsets[row]), data, at, length)
            partition_offsets[row + 1] = np.int32(partition_offsets[row] + length)
            kind, at = _read_long(data, at + length, end)
            branch[row] = np.int32(kind)
            value_at[row] = at
            items[row] = 0
            is_default[row] = kind == 0
            if kind == _ARRAY:
                items[row], after = _after_array(data, at, end)
                _, value_at[row] = _read_long(data, at, end)  # after the branch of the array itself
            else:
                after = _after_value(data, at, end, kind)
                if kind == 2:
                    value, _ = _read_long(data, at, end)
                    is_default[row] = value == 0
            at = after
            row += 1


@kernel("void(ru1, ri8, rb1, wi4, wi8)")
def locate_items(data: Bytes, value_at: Int64s, present: Bools, branch: Int32s, item_at: Int64s) -> None:
    """Find the items of arrays that :func:`measure_deletes` has checked, k in each.

    Args:
        data: uint8[], the Avro bytes.
        value_at: int64[n], positions of the arrays.
        present: bool[n], which rows have an array.
        branch: int32[k * n], filled with the branches of all first items, then of all second items, and so on; 0 in
            rows without an array.
        item_at: int64[k * n], filled with the positions of the items' values, in the same order.
    """
    end = data.size
    rows = value_at.size
    for row in range(rows):
        at = value_at[row]
        place = row
        while present[row]:
            count, at = _block_count(data, at, end)
            if count == 0:
                break
            for _ in range(count):
                kind, at = _read_long(data, at, end)
                branch[place] = np.int32(kind)
                item_at[place] = at
                at = _after_value(data, at, end, kind)
                place += rows
        while place < branch.size:
            branch[place] = 0
            item_at[place] = 0
            place += rows


@kernel("void(ru1, ri8, rb1, i8, wi8)")
def read_numbers(data: Bytes, value_at: Int64s, present: Bools, width: Int, out: Int64s) -> None:
    """Read numbers into ``out`` int64[n], floats and doubles as bits; 0 for rows without a number.

    ``width`` is 0 for Avro ints and longs; 1, 4 or 8 bytes for booleans, floats or doubles. ``data``, ``value_at``,
    ``present``: see the module docstring.
    """
    for row in range(value_at.size):
        at = value_at[row]
        if not present[row]:
            out[row] = 0
        elif width == 0:
            out[row], _ = _read_long(data, at, data.size)
        elif width == 1:
            out[row] = np.int64(data[at] == 1)
        elif width == 4:
            out[row] = np.int64(load_u32(data, at))
        else:
            out[row] = np.int64(load_u64(data, at))


@kernel("i8(ru1, ri8, rb1, wi4)")
def measure_values(data: Bytes, value_at: Int64s, present: Bools, offsets: Offsets) -> Int:
    """Fill ``offsets`` int32[n + 1] with the Arrow offsets of bytes or strings; return their total size in bytes.

    ``data``, ``value_at``, ``present``: see the module docstring.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(value_at.size):
        if present[row]:
            length, _ = _read_size(data, value_at[row], data.size)
            total += length
        offsets[row + 1] = np.int32(total)
    return total


@kernel("void(ru1, ri8, rb1, ri4, wu1)")
def copy_values(data: Bytes, value_at: Int64s, present: Bools, offsets: Offsets, out: Bytes) -> None:
    """Copy bytes or strings into ``out`` uint8[], at ``offsets`` from :func:`measure_values`.

    ``data``, ``value_at``, ``present``: see the module docstring.
    """
    for row in range(value_at.size):
        if present[row]:
            length, at = _read_size(data, value_at[row], data.size)
            copy_bytes(out, np.int64(offsets[row]), data, at, length)


@kernel("i8(ru1, ri8, rb1, wu8)")
def read_decimals(data: Bytes, value_at: Int64s, present: Bools, out: UInt64s) -> Int:
    """Read decimals, big-endian two's complement numbers of any length, into ``out`` uint64[2 * n].

    Each decimal becomes a 128-bit number, the low word first; 0 for rows without a decimal. ``data``, ``value_at``,
    ``present``: see the module docstring.

    Returns:
        -1; or the first row whose number has no bytes or more than 128 bits.
    """
    for row in range(value_at.size):
        out[2 * row] = np.uint64(0)
        out[2 * row + 1] = np.uint64(0)
        if not present[row]:
            continue
        length, at = _read_size(data, value_at[row], data.size)
        if length == 0:
            return row
        negative = data[at] >= 0x80
        low = np.uint64(0xFFFFFFFFFFFFFFFF) if negative else np.uint64(0)
        high = low
        for i in range(length - 16):
            if data[at + i] != (0xFF if negative else 0):
                return row
        if length > 16 and (data[at + length - 16] >= 0x80) != negative:
            return row
        for i in range(max(length - 16, np.int64(0)), length):
            high = (high << np.uint64(8)) | (low >> np.uint64(56))
            low = (low << np.uint64(8)) | np.uint64(data[at + i])
        out[2 * row] = low
        out[2 * row + 1] = high
    return -1


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
