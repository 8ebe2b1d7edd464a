"""UTF-8 validation: in one pass while the bytes are ASCII, else value by value."""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Offsets
from ._bytes import load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = ["find_invalid_utf8"]

_HIGH_BITS = np.uint64(0x8080808080808080)


@helper
def _utf8_length(data: Bytes, at: Int, end: Int) -> Int:
    """Bytes of the character at ``at``, or 0 if it is not valid UTF-8 (Unicode 15, table 3-7)."""
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
        (first == 0xE0 and second < 0xA0)  # overlong
        or (first == 0xED and second > 0x9F)  # surrogates
        or (first == 0xF0 and second < 0x90)  # overlong
        or (first == 0xF4 and second > 0x8F)  # above U+10FFFF
    )
    return np.int64(0) if wrong else np.int64(size)


@kernel("i8(ri4, ru1)")
def find_invalid_utf8(offsets: Offsets, data: Bytes) -> Int:
    """The first of n values, ``offsets`` int32[n + 1] into ``data`` uint8[], that is not valid UTF-8, or -1."""
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
