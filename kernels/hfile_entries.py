"""Entries of one data block of an HFile: keys and values copied into Arrow buffers, or written from them.

An entry, all big endian: int32 key length | int32 value length | key | value | one byte 0 (a version number that Hudi
does not use). The key: int16 length of its content | content | byte length of the column family | family and
qualifier (empty in Hudi's files) | int64 timestamp | byte type. Keys of builds between the releases 1.0 and 1.1 end
after the content. Source: HFile reference section 1.5; HFileDataBlock, Hudi 1.2.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_bytes
from ._declared import helper
from ._kernel import kernel

__all__ = ["copy_entries", "measure_entries", "write_entries"]

_PUT = 4
_LENGTHS = 8
_BEFORE_CONTENT = 2  # bytes of a key before its content: content length
_AROUND_CONTENT = 12  # bytes of a key besides its content: content length, family length, timestamp, type


@helper
def _int32(data: Bytes, at: Int) -> Any:
    """The signed int32 at ``at``, big endian."""
    high = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16
    value = high | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@helper
def _int16(data: Bytes, at: Int) -> Any:
    """The two bytes at ``at``, big endian; values above 32767 are negative to Hudi."""
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@kernel("i8(ru1, wi8)")
def measure_entries(data: Bytes, sizes: Int64s) -> Int:
    """Check the entries of a block.

    Args:
        data: uint8[], the block's payload, not compressed.
        sizes: int64[2], filled with the bytes of all keys and the bytes of all values.

    Returns:
        The number of entries; or ``-1 - i`` if the entry at byte ``i`` is malformed.
    """
    at = np.int64(0)
    end = data.size
    rows = np.int64(0)
    sizes[0], sizes[1] = 0, 0
    while at < end:
        key_at = at + _LENGTHS
        if end - at < _LENGTHS + _BEFORE_CONTENT + 1:
            return np.int64(-1 - at)
        key_length, value_length = _int32(data, at), _int32(data, at + 4)
        content = _int16(data, key_at)
        if key_length < content + _BEFORE_CONTENT or content > 32767 or value_length < 0:
            return np.int64(-1 - at)
        if key_length + value_length + 1 > end - key_at:
            return np.int64(-1 - at)
        last = key_at + key_length + value_length
        if data[last] != 0:
            return np.int64(-1 - at)
        if key_length > content + _BEFORE_CONTENT:
            if key_length < content + _AROUND_CONTENT or data[key_at + key_length - 1] != _PUT:
                return np.int64(-1 - at)
            if np.int64(data[key_at + 2 + content]) > key_length - content - _AROUND_CONTENT:
                return np.int64(-1 - at)
        sizes[0] += content
        sizes[1] += value_length
        at = last + 1
        rows += 1
    return rows


@kernel("void(ru1, wi4, wu1, wi4, wu1)")
def copy_entries(data: Bytes, key_offsets: Offsets, keys: Bytes, value_offsets: Offsets, values: Bytes) -> None:
    """Copy the n entries of an uncompressed block ``data`` that :func:`measure_entries` has checked.

    Fills ``key_offsets`` and ``value_offsets`` int32[n + 1], and ``keys`` and ``values`` uint8[].
    """
    at = np.int64(0)
    key_offsets[0] = 0
    value_offsets[0] = 0
    for row in range(key_offsets.size - 1):
        key_at = at + _LENGTHS
        value_at = key_at + _int32(data, at)
        content, length = _int16(data, key_at), _int32(data, at + 4)
        copy_bytes(keys, np.int64(key_offsets[row]), data, key_at + 2, content)
        copy_bytes(values, np.int64(value_offsets[row]), data, value_at, length)
        key_offsets[row + 1] = np.int32(key_offsets[row] + content)
        value_offsets[row + 1] = np.int32(value_offsets[row] + length)
        at = value_at + length + 1


@helper
def _store_int32(out: Bytes, at: Int, value: Int) -> None:
    """Write a non-negative number as int32, big endian."""
    out[at] = np.uint8(value >> 24)
    out[at + 1] = np.uint8(value >> 16 & 0xFF)
    out[at + 2] = np.uint8(value >> 8 & 0xFF)
    out[at + 3] = np.uint8(value & 0xFF)


@kernel("i8(ri4, ru1, ri4, ru1, i8, wu1, wi8)")
def write_entries(
    key_offsets: Offsets,
    keys: Bytes,
    value_offsets: Offsets,
    values: Bytes,
    row: Int,
    out: Bytes,
    filled: Int64s,
) -> Int:
    """Write entries until one does not fit.

    Args:
        key_offsets: int32[n + 1], Arrow offsets of the keys' contents, none longer than 32767 bytes.
        keys: uint8[], bytes of the keys' contents.
        value_offsets: int32[n + 1], Arrow offsets of the values.
        values: uint8[], bytes of the values.
        row: the first entry to write.
        out: uint8[], filled with the payload of the block.
        filled: int64[1], number of bytes of ``out`` in use; incremented.

    Returns:
        The first row that did not fit, or n.
    """
    at = filled[0]
    rows = np.int64(key_offsets.size - 1)
    row = np.int64(row)
    while row < rows:
        key_start, value_start = np.int64(key_offsets[row]), np.int64(value_offsets[row])
        content = np.int64(key_offsets[row + 1]) - key_start
        length = np.int64(value_offsets[row + 1]) - value_start
        if content + length + _LENGTHS + _AROUND_CONTENT + 1 > out.size - at:
            break
        _store_int32(out, at, content + _AROUND_CONTENT)
        _store_int32(out, at + 4, length)
        out[at + 8] = np.uint8(content >> 8)
        out[at + 9] = np.uint8(content & 0xFF)
        at += _LENGTHS + 2
        copy_bytes(out, at, keys, key_start, content)
        at += content
        out[at] = np.uint8(0)  # no column family
        out[at + 1] = np.uint8(0x7F)  # the largest timestamp
        for i in range(at + 2, at + 9):
            out[i] = np.uint8(0xFF)
        out[at + 9] = np.uint8(_PUT)
        at += 10
        copy_bytes(out, at, values, value_start, length)
        at += length
        out[at] = np.uint8(0)
        at += 1
        row += 1
    filled[0] = at
    return row
