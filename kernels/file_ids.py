"""Convert file ids between text and the numbers in the record index: the halves of a UUID, and a file index.

::

    "1a2b3c4d-...-0"  ── parse_file_ids ──►  high, low int64 | index int32     (-1: the UUID alone)
                      ◄── format_file_ids ─

Only text that round-trips is parsed: lower-case UUIDs, and indexes of one to nine digits without leading zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets
from ._declared import helper
from ._kernel import kernel

__all__ = ["format_file_ids", "measure_file_ids", "parse_file_ids"]

UUID_SIZE = 36
NO_INDEX = -1
_MAX_DIGITS = 9


@helper
def _digit(byte: Any) -> Int:
    """The value of a lower-case hexadecimal digit; 16 for other bytes."""
    code = np.int64(byte)
    if 48 <= code <= 57:
        return np.int64(code - 48)
    return np.int64(code - 87) if 97 <= code <= 102 else np.int64(16)


@helper
def _index_digits(index: Int) -> Int:
    size = np.int64(1)
    while index >= 10:
        index //= 10
        size += 1
    return size


@kernel("void(ri4, ru1, wi8, wi8, wi4, wu1)")
def parse_file_ids(offsets: Offsets, data: Bytes, high: Int64s, low: Int64s, index: Int32s, parsed: Bytes) -> None:
    """Split file ids.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], the file ids.
        high: int64[n], filled with the upper halves of the UUIDs; -1 if not parsed.
        low: int64[n], filled with the lower halves; -1 if not parsed.
        index: int32[n], filled with the numbers after the UUIDs; -1 if absent or not parsed.
        parsed: uint8[n], filled with 1 if the text is a UUID, or a UUID with an index, as this module writes it.
    """
    for row in range(offsets.size - 1):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        size = end - start
        good = size == UUID_SIZE or (UUID_SIZE + 2 <= size <= UUID_SIZE + 1 + _MAX_DIGITS)
        upper, lower = np.uint64(0), np.uint64(0)
        number = np.int64(NO_INDEX)
        if good:
            bad = np.int64(0)
            for place in range(UUID_SIZE):
                byte = data[start + place]
                if place == 8 or place == 13 or place == 18 or place == 23:
                    bad |= np.int64(byte != 45) << 4
                    continue
                digit = _digit(byte)
                bad |= digit
                nibble = np.uint64(digit & 15)
                if place < 18:
                    upper = (upper << np.uint64(4)) | nibble
                else:
                    lower = (lower << np.uint64(4)) | nibble
            good = bad & 16 == 0
        if good and size > UUID_SIZE:
            first = start + UUID_SIZE + 1
            good = data[first - 1] == 45 and (data[first] != 48 or end - first == 1)
            number = np.int64(0)
            for at in range(first, end):
                digit = _digit(data[at])
                good = good and digit < 10
                number = number * 10 + digit
        parsed[row] = np.uint8(good)
        high[row] = np.int64(upper) if good else np.int64(-1)
        low[row] = np.int64(lower) if good else np.int64(-1)
        index[row] = np.int32(number) if good else np.int32(NO_INDEX)


@kernel("i8(ri4, ru1, ri4, wi4)")
def measure_file_ids(index: Int32s, as_text: Bytes, text_offsets: Offsets, offsets: Offsets) -> Int:
    """Compute the offsets of the texts of file ids.

    Args:
        index: int32[n], the numbers after the UUIDs; -1 if absent.
        as_text: uint8[n], 1 if the file id is stored as text.
        text_offsets: int32[n + 1], offsets of the stored texts.
        offsets: int32[n + 1], filled with offsets from 0 on.

    Returns:
        The bytes of all texts; -1 if there are 2 GiB or more.
    """
    total = np.int64(0)
    offsets[0] = 0
    for row in range(index.size):
        if as_text[row] != 0:
            total += np.int64(text_offsets[row + 1]) - np.int64(text_offsets[row])
        elif index[row] < 0:
            total += UUID_SIZE
        else:
            total += UUID_SIZE + 1 + _index_digits(np.int64(index[row]))
        if total > 2**31 - 1:
            return np.int64(-1)
        offsets[row + 1] = np.int32(total)
    return total


@kernel("void(ri8, ri8, ri4, ru1, ri4, ru1, ri4, wu1)")
def format_file_ids(
    high: Int64s,
    low: Int64s,
    index: Int32s,
    as_text: Bytes,
    text_offsets: Offsets,
    text: Bytes,
    offsets: Offsets,
    out: Bytes,
) -> None:
    """Write the texts of file ids.

    Args:
        high: int64[n], upper halves of the UUIDs.
        low: int64[n], lower halves.
        index: int32[n], the numbers after the UUIDs; -1 if absent.
        as_text: uint8[n], 1 if the file id is stored as text.
        text_offsets: int32[n + 1], offsets of the stored texts.
        text: uint8[], the stored texts.
        offsets: int32[n + 1], from :func:`measure_file_ids`.
        out: uint8[offsets[n]], filled with the texts.
    """
    for row in range(high.size):
        at = np.int64(offsets[row])
        if as_text[row] != 0:
            for place in range(np.int64(text_offsets[row]), np.int64(text_offsets[row + 1])):
                out[at] = text[place]
                at += 1
            continue
        word = np.uint64(high[row])
        left = 64
        for place in range(UUID_SIZE):
            if place == 8 or place == 13 or place == 18 or place == 23:
                out[at + place] = 45
                continue
            if left == 0:
                word = np.uint64(low[row])
                left = 64
            left -= 4
            nibble = np.int64((word >> np.uint64(left)) & np.uint64(15))
            out[at + place] = np.uint8(nibble + 48 if nibble < 10 else nibble + 87)
        if index[row] >= 0:
            out[at + UUID_SIZE] = 45
            number = np.int64(index[row])
            end = np.int64(offsets[row + 1])
            while end > at + UUID_SIZE + 1:
                end -= 1
                out[end] = np.uint8(48 + number % 10)
                number //= 10
