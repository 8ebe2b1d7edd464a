"""Entries of one data block of an HFile: keys and values copied out into Arrow buffers.

An entry, all big endian: int32 key length | int32 value length | key | value | one byte 0 (a version number that Hudi
does not use). The key: int16 length of its content | content | byte length of the column family | family and
qualifier (empty in Hudi's files) | int64 timestamp | byte type. Source: HFile reference section 1.5; HFileDataBlock,
Hudi 1.2.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_bytes
from ._jit import helper, kernel

__all__ = ["copy_entries", "measure_entries"]

_PUT = 4
_LENGTHS = 8
_AROUND_CONTENT = 12  # of a key: content length, family length, timestamp, type


@helper
def _int32(data: Bytes, at: Int) -> Any:
    """The signed int32 at ``at``, big endian."""
    high = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16
    value = high | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    return value - (np.int64(1) << 32) if value >= np.int64(1) << 31 else value


@helper
def _int16(data: Bytes, at: Int) -> Any:
    """The two bytes at ``at``, big endian; above 32767 what is a negative number to Hudi."""
    return np.int64(data[at]) << 8 | np.int64(data[at + 1])


@kernel("i8(ru1, wi8)")
def measure_entries(data: Bytes, sizes: Int64s) -> Int:
    """Check the entries of a block.

    Args:
        data: uint8[], the block's payload, not compressed.
        sizes: int64[2], filled with the bytes of all keys and the bytes of all values.

    Returns:
        The number of entries; or ``-1 - i``, where the entry at byte ``i`` is malformed.
    """
    at = np.int64(0)
    end = data.size
    rows = np.int64(0)
    sizes[0], sizes[1] = 0, 0
    while at < end:
        key_at = at + _LENGTHS
        if end - at < _LENGTHS + _AROUND_CONTENT + 1:
            return np.int64(-1 - at)
        key_length, value_length = _int32(data, at), _int32(data, at + 4)
        content = _int16(data, key_at)
        if key_length < content + _AROUND_CONTENT or content > 32767 or value_length < 0:
            return np.int64(-1 - at)
        if key_length + value_length + 1 > end - key_at:
            return np.int64(-1 - at)
        family = np.int64(data[key_at + 2 + content])
        last = key_at + key_length + value_length
        if family > key_length - content - _AROUND_CONTENT or data[key_at + key_length - 1] != _PUT or data[last] != 0:
            return np.int64(-1 - at)
        sizes[0] += content
        sizes[1] += value_length
        at = last + 1
        rows += 1
    return rows


@kernel("void(ru1, wi4, wu1, wi4, wu1)")
def copy_entries(data: Bytes, key_offsets: Offsets, keys: Bytes, value_offsets: Offsets, values: Bytes) -> None:
    """Copy the n entries of a block that :func:`measure_entries` has checked.

    Args:
        data: uint8[], the block's payload, not compressed.
        key_offsets: int32[n + 1], filled with the keys' Arrow offsets.
        keys: uint8[], filled with the keys' contents.
        value_offsets: int32[n + 1], filled with the values' Arrow offsets.
        values: uint8[], filled with the values.
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
