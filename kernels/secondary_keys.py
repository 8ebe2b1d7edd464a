"""Keys of secondary indexes: two texts joined by ``$``; backslash, ``$`` and NUL in them are escaped by a backslash.

::

    values, record keys  ── measure_joined, write_joined ──►  value$key
    value$key            ── measure_parts, write_parts ────►  values, record keys

An unescaped NUL before the ``$`` means null. All special bytes are ASCII, so texts are processed byte by byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Offsets
from ._declared import helper
from ._kernel import kernel

__all__ = ["measure_joined", "measure_parts", "write_joined", "write_parts"]

NUL = 0
SEPARATOR = 0x24
ESCAPE = 0x5C


@helper
def _special(byte: Any) -> bool:
    return bool(byte == NUL or byte == SEPARATOR or byte == ESCAPE)


@kernel("i8(ri4, ru1, ru1, ri4, ru1, wi4)")
def measure_joined(
    value_offsets: Offsets, values: Bytes, valid: Bytes, key_offsets: Offsets, keys: Bytes, offsets: Offsets
) -> Int:
    """Compute the offsets of joined keys.

    Args:
        value_offsets: int32[n + 1], Arrow offsets.
        values: uint8[], the values.
        valid: uint8[n], 0 for null; empty without nulls.
        key_offsets: int32[n + 1], Arrow offsets of the record keys.
        keys: uint8[], the record keys.
        offsets: int32[n + 1], filled with offsets from 0 on.

    Returns:
        The bytes of all keys; -1 if there are 2 GiB or more.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(offsets.size - 1):
        if valid.size > 0 and valid[row] == 0:
            total += 1
        else:
            total += np.int64(value_offsets[row + 1]) - np.int64(value_offsets[row])
            for at in range(np.int64(value_offsets[row]), np.int64(value_offsets[row + 1])):
                total += np.int64(_special(values[at]))
        total += 1 + np.int64(key_offsets[row + 1]) - np.int64(key_offsets[row])
        for at in range(np.int64(key_offsets[row]), np.int64(key_offsets[row + 1])):
            total += np.int64(_special(keys[at]))
        if total > 2**31 - 1:
            return np.int64(-1)
        offsets[row + 1] = np.int32(total)
    return total


@kernel("void(ri4, ru1, ru1, ri4, ru1, ri4, wu1)")
def write_joined(
    value_offsets: Offsets,
    values: Bytes,
    valid: Bytes,
    key_offsets: Offsets,
    keys: Bytes,
    offsets: Offsets,
    out: Bytes,
) -> None:
    """Write the joined keys.

    Args:
        value_offsets: int32[n + 1], Arrow offsets.
        values: uint8[], the values.
        valid: uint8[n], 0 for null; empty without nulls.
        key_offsets: int32[n + 1], Arrow offsets of the record keys.
        keys: uint8[], the record keys.
        offsets: int32[n + 1], from :func:`measure_joined`.
        out: uint8[offsets[n]], filled with the keys.
    """
    for row in range(offsets.size - 1):
        end = np.int64(offsets[row])
        if valid.size > 0 and valid[row] == 0:
            out[end] = NUL
            end += 1
        else:
            for at in range(np.int64(value_offsets[row]), np.int64(value_offsets[row + 1])):
                if _special(values[at]):
                    out[end] = ESCAPE
                    end += 1
                out[end] = values[at]
                end += 1
        out[end] = SEPARATOR
        end += 1
        for at in range(np.int64(key_offsets[row]), np.int64(key_offsets[row + 1])):
            if _special(keys[at]):
                out[end] = ESCAPE
                end += 1
            out[end] = keys[at]
            end += 1


@kernel("i8(ri4, ru1, wi4, wi4, wi4, wu1)")
def measure_parts(
    offsets: Offsets, data: Bytes, separators: Offsets, value_offsets: Offsets, key_offsets: Offsets, valid: Bytes
) -> Int:
    """Find the separators of joined keys, and the offsets of their parts.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the joined keys.
        separators: int32[n], filled with the position in ``data`` of the unescaped ``$``.
        value_offsets: int32[n + 1], filled with offsets of the values, from 0 on.
        key_offsets: int32[n + 1], filled with offsets of the record keys, from 0 on.
        valid: uint8[n], filled with 0 if the value is null, else 1.

    Returns:
        The first row without an unescaped ``$``; -1 if there is none.
    """
    value_offsets[0] = 0
    key_offsets[0] = 0
    for row in range(offsets.size - 1):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        at = start
        size = np.int64(0)
        while at < end and data[at] != SEPARATOR:
            at += 2 if data[at] == ESCAPE and at + 1 < end else 1
            size += 1
        if at >= end:
            return np.int64(row)
        separators[row] = np.int32(at)
        null = at == start + 1 and data[start] == NUL
        valid[row] = np.uint8(not null)
        value_offsets[row + 1] = np.int32(value_offsets[row] + (0 if null else size))
        at += 1
        size = np.int64(0)
        while at < end:
            at += 2 if data[at] == ESCAPE and at + 1 < end else 1
            size += 1
        key_offsets[row + 1] = np.int32(key_offsets[row] + size)
    return np.int64(-1)


@kernel("void(ri4, ru1, ri4, ri4, ri4, wu1, wu1)")
def write_parts(
    offsets: Offsets,
    data: Bytes,
    separators: Offsets,
    value_offsets: Offsets,
    key_offsets: Offsets,
    values: Bytes,
    keys: Bytes,
) -> None:
    """Write the parts of joined keys.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the joined keys.
        separators: int32[n], from :func:`measure_parts`.
        value_offsets: int32[n + 1], from :func:`measure_parts`.
        key_offsets: int32[n + 1], from :func:`measure_parts`.
        values: uint8[value_offsets[n]], filled with the values; no bytes for null.
        keys: uint8[key_offsets[n]], filled with the record keys.
    """
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        for place in range(np.int64(value_offsets[row]), np.int64(value_offsets[row + 1])):
            if data[at] == ESCAPE and at + 1 < end:
                at += 1
            values[place] = data[at]
            at += 1
        at = np.int64(separators[row]) + 1
        for place in range(np.int64(key_offsets[row]), np.int64(key_offsets[row + 1])):
            if data[at] == ESCAPE and at + 1 < end:
                at += 1
            keys[place] = data[at]
            at += 1
