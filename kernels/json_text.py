"""Values as the text that they have in JSON: strings, bytes, numbers with a fraction; and texts put together.

Texts are Arrow's: int32 offsets and bytes, ``texts[i] = data[offsets[i] : offsets[i + 1]]``. All are measured,
allocated, then filled, but for numbers, whose texts are short and of bounded length.

::

    strings ── quoted ─────────┐
    bytes ──── base64_quoted ──┼─► texts ─┬─ concatenated ─► texts: members of an object, one column after the other
    numbers ── java_numbers ───┘          └─ joined ───────► texts: items of lists, entries of maps
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_bytes
from ._jit import helper, kernel

__all__ = [
    "BYTE_LISTS_MOST",
    "NUMBER_BYTES",
    "base64_quoted",
    "byte_lists",
    "close_objects",
    "fill_joined",
    "fill_quoted",
    "java_numbers",
    "latin_1",
    "measure_joined",
    "measure_quoted",
    "put_parts",
]

NUMBER_BYTES = 28
"""Most bytes of a text of :func:`java_numbers`."""

BYTE_LISTS_MOST = 6
"""Most bytes that a byte takes in a text of :func:`byte_lists`, brackets aside."""

_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_SPECIAL = np.frombuffer(b'"NaN""Infinity""-Infinity"0.0-0.0', np.uint8)
_QUOTE, _BACKSLASH, _MINUS, _POINT, _ZERO = 34, 92, 45, 46, 48
_COMMA, _SPACE, _EXPONENT, _OPEN, _CLOSE = 44, 32, 69, 123, 125


# ---- strings


@helper
def _escape(data: Bytes, at: Int, end: Int, classes: Bytes) -> Int:
    """How the character at ``at`` is written: 0 as it is, else the number of its bytes that an escape stands for.

    Negative for an escape of two characters.
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


@kernel("i8(ri4, ru1, ru1, wi4)")
def measure_quoted(offsets: Offsets, data: Bytes, classes: Bytes, out: Offsets) -> Int:
    """Measure texts in quotes, what has to be escaped.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[], UTF-8.
        classes: uint8[256], by first byte of a character: 0 written as it is; 1 as ``\\u00XX``; 2 with a backslash and
            a letter; 3 as ``\\u00XX`` where the second byte is below A0; 4 as ``\\u20XX`` where it is below 84.
        out: int32[n + 1], filled with offsets of the texts; meaningless if the result is above 2**31 - 1.

    Returns:
        Bytes of all texts.
    """
    total = np.int64(0)
    out[0] = 0
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        total += end - at + 2
        while at < end:
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
    """What follows the backslash."""
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
    """Write the texts that :func:`measure_quoted` measured.

    Args:
        offsets: int32[n + 1].
        data: uint8[].
        classes: uint8[256].
        out_offsets: int32[n + 1], of :func:`measure_quoted`.
        out: uint8[out_offsets[n]].
    """
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        to = np.int64(out_offsets[row])
        out[to] = _QUOTE
        to += 1
        if np.int64(out_offsets[row + 1]) - to == end - at + 1:
            copy_bytes(out, to, data, at, end - at)
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
    """Each byte as the character of that number, in UTF-8.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[].
        out_offsets: int32[n + 1], filled with offsets of the texts.
        out: uint8[], room for twice the bytes.
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
    """Bytes in base64 (RFC 4648, with padding), in quotes.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[].
        out_offsets: int32[n + 1], filled with offsets of the texts.
        out: uint8[], room for ``2 + 4 * ceil(length / 3)`` bytes of each value.
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
    """Bytes as Java lists them: signed numbers in brackets.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[].
        out_offsets: int32[n + 1], filled with offsets of the texts.
        out: uint8[], room for two bytes of each value and :data:`BYTE_LISTS_MOST` of each byte.
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


# ---- numbers with a fraction


@helper
def _put_special(out: Bytes, to: Int, start: Int, length: Int) -> Int:
    for i in range(length):
        out[to + i] = _SPECIAL[start + i]
    return to + length


@helper
def _put_number(digits: Bytes, count: Int, exponent: Int, out: Bytes, to: Int) -> Int:
    """The number ``0.<digits> * 10 ** exponent``, not zero, as ``Double.toString`` lays it out."""
    if -2 <= exponent <= 7:
        if exponent <= 0:
            out[to] = _ZERO
            to += 1
        for i in range(exponent):
            out[to] = digits[i] if i < count else np.uint8(_ZERO)
            to += 1
        out[to] = _POINT
        to += 1
        for _ in range(-exponent):
            out[to] = _ZERO
            to += 1
        for place in range(max(exponent, 0), count):
            out[to] = digits[place]
            to += 1
        if exponent >= count:
            out[to] = _ZERO
            to += 1
        return to
    out[to] = digits[0]
    out[to + 1] = _POINT
    to += 2
    for i in range(1, count):
        out[to] = digits[i]
        to += 1
    if count == 1:
        out[to] = _ZERO
        to += 1
    out[to] = _EXPONENT
    to += 1
    power = exponent - 1
    if power < 0:
        out[to] = _MINUS
        to += 1
        power = -power
    if power > 99:
        out[to] = np.uint8(_ZERO + power // 100)
        to += 1
    if power > 9:
        out[to] = np.uint8(_ZERO + power // 10 % 10)
        to += 1
    out[to] = np.uint8(_ZERO + power % 10)
    return to + 1


@kernel("void(ri4, ru1, wi4, wu1)")
def java_numbers(offsets: Offsets, data: Bytes, out_offsets: Offsets, out: Bytes) -> None:
    """Numbers in any decimal form as ``Double.toString`` lays them out: ``1.5``, ``1.0E7``, ``1.2E-4``.

    What is no number is in quotes, as in JSON that Java writes: ``"NaN"``, ``"-Infinity"``.

    Args:
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[], ``[-]digits[.digits][e[+-]digits]``, at most 20 digits before the ``e``; or ``nan``, ``[-]inf``.
        out_offsets: int32[n + 1], filled with offsets of the texts.
        out: uint8[n * NUMBER_BYTES].
    """
    digits = np.empty(64, np.uint8)
    to: Int = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        negative = at < end and data[at] == _MINUS
        if negative:
            at += 1
        if at < end and (data[at] == 110 or data[at] == 105):  # nan, inf
            if data[at] == 110:
                to = _put_special(out, to, 0, 5)
            else:
                to = _put_special(out, to, 15, 11) if negative else _put_special(out, to, 5, 10)
            out_offsets[row + 1] = np.int32(to)
            continue
        count, exponent, power, sign = np.int64(0), np.int64(0), np.int64(0), np.int64(1)
        whole, scaled = True, False
        while at < end:
            byte = np.int64(data[at])
            at += 1
            if byte == _POINT:
                whole = False
            elif byte == 101:
                scaled = True
            elif byte == _MINUS:
                sign = np.int64(-1)
            elif byte != 43:
                if scaled:
                    power = power * 10 + byte - _ZERO
                elif byte != _ZERO or count > 0:
                    if count < 64:
                        digits[count] = np.uint8(byte)
                        count += 1
                    exponent += 1 if whole else 0
                elif not whole:
                    exponent -= 1
        while count > 0 and digits[count - 1] == _ZERO:
            count -= 1
        if count == 0:
            to = _put_special(out, to, 29, 4) if negative else _put_special(out, to, 26, 3)
        else:
            if negative:
                out[to] = _MINUS
                to += 1
            to = _put_number(digits, count, exponent + sign * power, out, to)
        out_offsets[row + 1] = np.int32(to)


# ---- put together


@kernel("void(wi8, wu1, ru1, ri4, ru1, ru1)")
def put_parts(at: Int64s, out: Bytes, literal: Bytes, offsets: Offsets, data: Bytes, kept: Bytes) -> None:
    """Write the next part of each of n texts: a literal and a text.

    Args:
        at: int64[n], where the part goes; moved behind it.
        out: uint8[], room for all parts.
        literal: uint8[], goes before each text.
        offsets: int32[n + 1], Arrow offsets; need not start at 0.
        data: uint8[].
        kept: uint8[n], 0 where both are left out; uint8[0] for nowhere.
    """
    size = np.int64(literal.size)
    for row in range(at.size):
        if kept.size > 0 and kept[row] == 0:
            continue
        to, start = at[row], np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        for i in range(size):
            out[to + i] = literal[i]
        copy_bytes(out, to + size, data, start, length)
        at[row] = to + size + length


@kernel("void(ri8, ri8, wu1)")
def close_objects(starts: Int64s, ends: Int64s, out: Bytes) -> None:
    """Put braces around objects.

    Args:
        starts: int64[n], where each object begins: the comma before its first member becomes the brace.
        ends: int64[n], behind its last member; its start where there is none.
        out: uint8[], room for one byte behind each object, or two of one without members.
    """
    for row in range(starts.size):
        out[starts[row]] = _OPEN
        out[max(ends[row], starts[row] + 1)] = _CLOSE


@kernel("i8(ri4, ri4, ru1, i8, wi4)")
def measure_joined(bounds: Offsets, offsets: Offsets, kept: Bytes, separator: Int, out: Offsets) -> Int:
    """Measure lists of texts.

    Args:
        bounds: int32[n + 1], which texts belong to each list; may start anywhere.
        offsets: int32[m + 1], Arrow offsets of the texts.
        kept: uint8[m], 0 for texts that are left out; uint8[0] for none.
        separator: bytes between two texts.
        out: int32[n + 1], filled with offsets of the lists; meaningless if the result is above 2**31 - 1.

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
    """Write the lists that :func:`measure_joined` measured.

    Args:
        bounds: int32[n + 1].
        offsets: int32[m + 1].
        data: uint8[].
        kept: uint8[m], or uint8[0].
        marks: uint8[], what opens a list, what closes it, and what goes between two texts.
        out_offsets: int32[n + 1], of :func:`measure_joined`.
        out: uint8[out_offsets[n]].
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
            copy_bytes(out, to, data, np.int64(offsets[item]), length)
            to += length
        out[to] = marks[1]
