"""Texts that Hudi stores: sequence numbers, file ids, keys of secondary indexes.

Texts ``<prefix><number>`` for consecutive numbers, as Arrow buffers: Hudi's ``_hoodie_commit_seqno`` column.

Convert file ids between text and the numbers in the record index: the halves of a UUID, and a file index.

::

    "1a2b3c4d-...-0"  ── parse_file_ids ──►  high, low int64 | index int32     (-1: the UUID alone)
                      ◄── format_file_ids ─

Only text that round-trips is parsed: lower-case UUIDs, and indexes of one to nine digits without leading zeros.

Keys of secondary indexes: two texts joined by ``$``; backslash, ``$`` and NUL in them are escaped by a backslash.

::

    values, record keys  ── measure_joined, write_joined ──►  value$key
    value$key            ── measure_parts, write_parts ────►  values, record keys

An unescaped NUL before the ``$`` means null. All special bytes are ASCII, so texts are processed byte by byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets
from ._bytes import copy_bytes
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "format_file_ids",
    "format_sequence_numbers",
    "measure_file_ids",
    "measure_joined",
    "measure_parts",
    "parse_file_ids",
    "write_joined",
    "write_parts",
]


@kernel("void(ru1, i8, wi4, wu1)")
def _format(prefix: Bytes, start: Int, offsets: Offsets, out: Bytes) -> None:
    digits = np.int64(1)
    power = np.int64(10)  # 10 ** digits; stays at 10**18 for numbers of 19 digits, the maximum of int64
    while digits < 19 and start >= power:
        digits += 1
        power = power * 10 if digits < 19 else power
    at = np.int64(0)
    offsets[0] = 0
    for i in range(offsets.size - 1):
        number = start + i
        if digits < 19 and number >= power:
            digits += 1
            power = power * 10 if digits < 19 else power
        copy_bytes(out, at, prefix, 0, prefix.size)
        at += prefix.size + digits
        place = at
        for _ in range(digits):
            place -= 1
            out[place] = np.uint8(48 + number % 10)
            number //= 10
        offsets[i + 1] = np.int32(at)


def format_sequence_numbers(prefix: Bytes, start: int, count: int) -> tuple[Offsets, Bytes]:
    """Texts of ``prefix`` followed by the decimal numbers ``start`` to ``start + count - 1``.

    Args:
        prefix: uint8[], the text before each number.
        start: first number, at least 0.
        count: number of texts.

    Returns:
        int32[count + 1] offsets, starting at 0, and uint8[] bytes.

    Raises:
        ValueError: ``start`` or ``count`` is negative.
        OverflowError: the texts have 2**31 bytes or more, or a number exceeds 2**63 - 1.
    """
    if start < 0 or count < 0:
        raise ValueError(f"sequence numbers start at 0 or above and are 0 or more; got {start} and {count}")
    if start + count > 2**63:
        raise OverflowError(f"sequence numbers up to {start + count - 1} do not fit 64 bits")
    total = count * prefix.size + _digits_below(start + count) - _digits_below(start)
    if total > 2**31 - 1:
        raise OverflowError(f"{total} bytes of sequence numbers do not fit 32-bit offsets; ask for fewer at a time")
    offsets = np.empty(count + 1, np.int32)
    out = np.empty(total, np.uint8)
    _format(prefix, start, offsets, out)
    return offsets, out


def _digits_below(bound: int) -> int:
    """Total number of decimal digits of the numbers 0..bound-1."""
    total, low, digits = 0, 0, 1
    while low < bound:
        high = min(bound, 10**digits)
        total += (high - low) * digits
        low, digits = high, digits + 1
    return total


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
