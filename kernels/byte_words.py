"""Strings and byte sequences as 64-bit words with the same sort order."""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets, UInt64s
from ._kernel import kernel

__all__ = ["byte_words", "common_prefix"]


@kernel("i8(ri4, ru1)")
def _common_prefix(offsets: Offsets, data: Bytes) -> Int:
    rows = offsets.size - 1
    if rows < 1:
        return 0
    start = np.int64(offsets[0])
    shared: Int = np.int64(offsets[1]) - start
    for row in range(1, rows):
        begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if end - begin < shared:
            shared = end - begin
        at: Int = 0
        while at < shared and data[begin + at] == data[start + at]:
            at += 1
        shared = at
        if shared == 0:
            return 0
    return shared


@kernel("void(ri4, ru1, ri8, i8, wu8, wu8)")
def _byte_words(offsets: Offsets, data: Bytes, rows: Int64s, skip: Int, words: UInt64s, lengths: UInt64s) -> None:
    for i in range(rows.size):
        row = rows[i]
        begin, end = np.int64(offsets[row]) + skip, np.int64(offsets[row + 1])
        count = np.int64(8) if end - begin > 8 else end - begin
        if count < 0:
            count = np.int64(0)
        word = np.uint64(0)
        for at in range(begin, begin + count):
            word = (word << np.uint64(8)) | np.uint64(data[at])
        words[i] = word << np.uint64(8 * (8 - count)) if count > 0 else np.uint64(0)
        lengths[i] = count


def common_prefix(offsets: Offsets, data: Bytes) -> int:
    """The length in bytes of the common prefix of values, ``offsets`` int32[n + 1] into ``data``; 0 without values."""
    return int(_common_prefix(offsets, data))


def byte_words(offsets: Offsets, data: Bytes, rows: Int64s, skip: int) -> tuple[UInt64s, UInt64s]:
    """Eight bytes of each value as a big-endian word, padded with zeros.

    Args:
        offsets: int32[n+1].
        data: uint8[at least offsets[n]].
        rows: int64[k], rows to take.
        skip: bytes to skip at the start of each value.

    Returns:
        uint64[k] words, and uint64[k] lengths: the number of the eight bytes that belong to the value, 0 to 8. If two
        values have equal words, the value with the smaller length (below 8) sorts first.
    """
    words, lengths = np.empty(rows.size, np.uint64), np.empty(rows.size, np.uint64)
    _byte_words(offsets, data, rows, skip, words, lengths)
    return words, lengths
