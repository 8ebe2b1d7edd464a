"""JSON text of strings, bytes and objects.

Texts are Arrow's: int32 offsets and bytes, ``texts[i] = data[offsets[i] : offsets[i + 1]]``. Strings are measured,
then written; for bytes the caller allocates the maximum size.

Shared arguments: ``offsets`` and ``data``, n strings or byte strings; ``out_offsets`` int32[n + 1], offsets of the
texts; ``out`` uint8[], their bytes.

Assembly of JSON texts: members of objects by column, items of lists, entries of maps.

Texts are Arrow's: int32 offsets and bytes, ``texts[i] = data[offsets[i] : offsets[i + 1]]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_text, load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "BYTE_LIST_WIDTH",
    "base64_quoted",
    "byte_lists",
    "close_objects",
    "fill_joined",
    "fill_quoted",
    "latin_1",
    "measure_joined",
    "measure_quoted",
    "put_parts",
]

BYTE_LIST_WIDTH = 6
"""Maximum bytes that :func:`byte_lists` writes for one byte, without brackets."""

_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_QUOTE, _BACKSLASH, _MINUS, _ZERO, _COMMA, _SPACE = 34, 92, 45, 48, 44, 32


# ---- strings


@helper
def _escape(data: Bytes, at: Int, end: Int, classes: Bytes) -> Int:
    """The form of the character at ``at``: 0 if it is not escaped, else the number of bytes that an escape replaces.

    The number is negative for an escape of two characters.
    """
    kind = classes[data[at]]
    if kind < 2:
        return np.int64(kind)
    if kind == 2:
        return np.int64(-1)
    second = np.int64(data[at + 1]) if at + 1 < end else np.int64(0)
    if kind == 3 and 0x80 <= second <= 0x9F:
        return np.int64(2)
    if kind == 4 and 0x80 <= second <= 0x83:
        return np.int64(3)
    return np.int64(0)


_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_SPACES, _QUOTES, _BACKSLASHES = _ONES * np.uint64(32), _ONES * np.uint64(_QUOTE), _ONES * np.uint64(_BACKSLASH)


@helper
def _is_plain(word: Any) -> bool:
    """Whether eight bytes are ASCII without controls, quotes and backslashes, which no style escapes.

    A difference of bytes borrows from the next byte only where the sign of a byte is set already.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    special = (word - _SPACES) | (word + _ONES) | (quotes - _ONES) | (backslashes - _ONES) | word
    return bool(special & _HIGHS == np.uint64(0))


@kernel("i8(ri4, ru1, ru1, wi4)")
def measure_quoted(offsets: Offsets, data: Bytes, classes: Bytes, out: Offsets) -> Int:
    """Measure quoted and escaped texts.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[], UTF-8.
        classes: uint8[256], by first byte of a character: 0 unescaped, as ASCII is but for controls, quotes,
            backslashes and 7F; 1 as ``\\u00XX``; 2 as a backslash and a letter; 3 as ``\\u00XX`` if the second byte
            is below A0; 4 as ``\\u20XX`` if it is below 84.
        out: int32[n + 1], filled with offsets of the texts; invalid if the result is above 2**31 - 1.

    Returns:
        Bytes of all texts.
    """
    total = np.int64(0)
    out[0] = 0
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        total += end - at + 2
        while at < end:
            if at + 8 <= end and _is_plain(load_u64(data, at)):
                at += 8
                continue
            if classes[data[at]] == 0:
                at += 1
                continue
            length = _escape(data, at, end, classes)
            if length > 0:
                total += 6 - length
                at += length
            else:
                total -= length
                at += 1
        out[row + 1] = np.int32(total)
    return total


@helper
def _code_point(data: Bytes, at: Int, length: Int) -> Int:
    first = np.int64(data[at])
    if length == 1:
        return first
    second = np.int64(data[at + 1]) & 0x3F
    if length == 2:
        return ((first & 0x1F) << 6) | second
    return ((first & 0x0F) << 12) | (second << 6) | (np.int64(data[at + 2]) & 0x3F)


@helper
def _letter(byte: Int) -> Int:
    """The character after the backslash."""
    if byte == 8:
        return 98
    if byte == 9:
        return 116
    if byte == 10:
        return 110
    if byte == 12:
        return 102
    if byte == 13:
        return 114
    return byte


@kernel("void(ri4, ru1, ru1, ri4, wu1)")
def fill_quoted(offsets: Offsets, data: Bytes, classes: Bytes, out_offsets: Offsets, out: Bytes) -> None:
    """Write the texts that :func:`measure_quoted` measured, with its ``out`` as ``out_offsets``.

    ``offsets``, ``data``, ``classes``: as there; ``out``: see the module docstring.
    """
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        to = np.int64(out_offsets[row])
        out[to] = _QUOTE
        to += 1
        if np.int64(out_offsets[row + 1]) - to == end - at + 1:
            copy_text(out, to, data, at, end - at)
            to += end - at
            at = end
        while at < end:
            length = np.int64(0) if classes[data[at]] == 0 else _escape(data, at, end, classes)
            if length == 0:
                out[to] = data[at]
                to += 1
                at += 1
            elif length < 0:
                out[to] = _BACKSLASH
                out[to + 1] = _letter(np.int64(data[at]))
                to += 2
                at += 1
            else:
                code = _code_point(data, at, length)
                out[to] = _BACKSLASH
                out[to + 1] = 117
                for digit in range(4):
                    out[to + 2 + digit] = _HEX[(code >> (12 - 4 * digit)) & 15]
                to += 6
                at += length
        out[to] = _QUOTE


# ---- bytes


@kernel("void(ri4, ru1, wi4, wu1)")
def latin_1(offsets: Offsets, data: Bytes, out_offsets: Offsets, out: Bytes) -> None:
    """Write each byte as the character of that number, in UTF-8. ``out`` has room for twice the bytes.

    ``offsets``, ``data``, ``out_offsets``: see the module docstring.
    """
    to = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        for at in range(np.int64(offsets[row]), np.int64(offsets[row + 1])):
            byte = data[at]
            if byte < 0x80:
                out[to] = byte
                to += 1
            else:
                out[to] = 0xC0 | (byte >> 6)
                out[to + 1] = 0x80 | (byte & 0x3F)
                to += 2
        out_offsets[row + 1] = np.int32(to)


@kernel("void(ri4, ru1, wi4, wu1)")
def base64_quoted(offsets: Offsets, data: Bytes, out_offsets: Offsets, out: Bytes) -> None:
    """Write bytes in base64 (RFC 4648, with padding), in quotes.

    ``out`` has room for ``2 + 4 * ceil(length / 3)`` bytes of each value; ``offsets``, ``data``, ``out_offsets``: see
    the module docstring.
    """
    to = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        out[to] = _QUOTE
        to += 1
        while at < end:
            left = end - at
            word = np.int64(data[at]) << 16
            if left > 1:
                word |= np.int64(data[at + 1]) << 8
            if left > 2:
                word |= np.int64(data[at + 2])
            out[to] = _BASE64[word >> 18]
            out[to + 1] = _BASE64[(word >> 12) & 63]
            out[to + 2] = _BASE64[(word >> 6) & 63] if left > 1 else np.uint8(61)
            out[to + 3] = _BASE64[word & 63] if left > 2 else np.uint8(61)
            to += 4
            at += 3
        out[to] = _QUOTE
        to += 1
        out_offsets[row + 1] = np.int32(to)


@kernel("void(ri4, ru1, wi4, wu1)")
def byte_lists(offsets: Offsets, data: Bytes, out_offsets: Offsets, out: Bytes) -> None:
    """Write bytes as Java lists them: signed numbers in brackets.

    ``out`` has room for two bytes of each value and :data:`BYTE_LIST_WIDTH` of each byte; ``offsets``, ``data``,
    ``out_offsets``: see the module docstring.
    """
    to = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        start, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        out[to] = 91
        to += 1
        for at in range(start, end):
            if at > start:
                out[to] = _COMMA
                out[to + 1] = _SPACE
                to += 2
            value = np.int64(data[at])
            if value > 127:
                out[to] = _MINUS
                to += 1
                value = 256 - value
            if value > 99:
                out[to] = np.uint8(_ZERO + value // 100)
                to += 1
            if value > 9:
                out[to] = np.uint8(_ZERO + value // 10 % 10)
                to += 1
            out[to] = np.uint8(_ZERO + value % 10)
            to += 1
        out[to] = 93
        to += 1
        out_offsets[row + 1] = np.int32(to)


_OPEN, _CLOSE = 123, 125


@kernel("void(wi8, wu1, ru1, ri4, ru1, ru1)")
def put_parts(at: Int64s, out: Bytes, literal: Bytes, offsets: Offsets, data: Bytes, kept: Bytes) -> None:
    """Write the next part of each of n texts: a literal and a text.

    Args:
        at: int64[n], positions to write at; moved past the part.
        out: uint8[], room for all parts.
        literal: uint8[], written before each text.
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[].
        kept: uint8[n], 0 where literal and text are left out; uint8[0] to keep all.
    """
    size = np.int64(literal.size)
    for row in range(at.size):
        if kept.size > 0 and kept[row] == 0:
            continue
        to, start = at[row], np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        copy_text(out, to, literal, 0, size)
        copy_text(out, to + size, data, start, length)
        at[row] = to + size + length


@kernel("void(ri8, ri8, wu1)")
def close_objects(starts: Int64s, ends: Int64s, out: Bytes) -> None:
    """Put braces around objects.

    Args:
        starts: int64[n], the start of each object: the brace overwrites the comma before its first member.
        ends: int64[n], the end of its last member; its start if it has no members.
        out: uint8[], room for one byte after each object, or two after an object without members.
    """
    for row in range(starts.size):
        out[starts[row]] = _OPEN
        out[max(ends[row], starts[row] + 1)] = _CLOSE


@kernel("i8(ri4, ri4, ru1, i8, wi4)")
def measure_joined(bounds: Offsets, offsets: Offsets, kept: Bytes, separator: Int, out: Offsets) -> Int:
    """Measure lists of texts.

    Args:
        bounds: int32[n + 1], the range of texts of each list; may start anywhere.
        offsets: int32[m + 1], Arrow offsets of the texts.
        kept: uint8[m], 0 for texts that are left out; uint8[0] to keep all.
        separator: bytes between two texts.
        out: int32[n + 1], filled with offsets of the lists; invalid if the result is above 2**31 - 1.

    Returns:
        Bytes of all lists.
    """
    total = np.int64(0)
    out[0] = 0
    for row in range(bounds.size - 1):
        count = np.int64(0)
        for item in range(np.int64(bounds[row]), np.int64(bounds[row + 1])):
            if kept.size == 0 or kept[item] != 0:
                total += np.int64(offsets[item + 1]) - np.int64(offsets[item])
                count += 1
        total += 2 + separator * max(np.int64(0), count - 1)
        out[row + 1] = np.int32(total)
    return total


@kernel("void(ri4, ri4, ru1, ru1, ru1, ri4, wu1)")
def fill_joined(
    bounds: Offsets, offsets: Offsets, data: Bytes, kept: Bytes, marks: Bytes, out_offsets: Offsets, out: Bytes
) -> None:
    """Write the lists that :func:`measure_joined` measured, with the same ``bounds``, ``offsets`` and ``kept``.

    ``data`` are the bytes of the texts; ``marks`` the opening byte, the closing byte and the separator; ``out_offsets``
    the ``out`` of :func:`measure_joined`; ``out`` uint8[out_offsets[n]].
    """
    for row in range(bounds.size - 1):
        to = np.int64(out_offsets[row])
        out[to] = marks[0]
        to += 1
        first = True
        for item in range(np.int64(bounds[row]), np.int64(bounds[row + 1])):
            if kept.size > 0 and kept[item] == 0:
                continue
            if not first:
                for i in range(2, marks.size):
                    out[to] = marks[i]
                    to += 1
            first = False
            length = np.int64(offsets[item + 1]) - np.int64(offsets[item])
            copy_text(out, to, data, np.int64(offsets[item]), length)
            to += length
        out[to] = marks[1]
