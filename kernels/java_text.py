"""Write numbers as Java does.

Write doubles like ``Double.toString``: the shortest decimal that parses to the double; of several, the nearest.

::

    bits ─► q, c: the value is c * 2**q ─► bounds of what rounds to it, in units of 10**k ─► shortest in between ─► text

Powers of ten have 126 bits and products are rounded to odd. Raffaello Giulietti's paper on the Schubfach algorithm,
which the JDK uses since release 19, proves that this is exact for every double.

Write fractional numbers like Java.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import load_u16, load_u64, multiply_high, store_u16, store_u64
from ._declared import helper
from ._kernel import kernel

__all__ = ["NUMBER_BYTES", "POWERS", "java_doubles", "java_numbers"]

NUMBER_BYTES = 36
"""Room for the text of a number: at most 28 bytes, and eight that the words of its digits may overwrite."""

_SPECIAL = np.frombuffer(b'"NaN""Infinity""-Infinity"0.0-0.0', np.uint8)
_MINUS, _POINT, _ZERO, _EXPONENT = 45, 46, 48, 69


@helper
def put_special(out: Bytes, to: Int, start: Int, length: Int) -> Int:
    for i in range(length):
        out[to + i] = _SPECIAL[start + i]
    return to + length


@helper
def _put_words(out: Bytes, to: Int, digits: Bytes, start: Int, count: Int) -> Int:
    """Write ``count`` digits, in words: up to seven bytes after them are overwritten."""
    for i in range(0, count, 8):
        store_u64(out, to + i, load_u64(digits, start + i))
    return to + max(count, 0)


@helper
def put_number(digits: Bytes, start: Int, count: Int, exponent: Int, out: Bytes, to: Int) -> Int:
    """Write the non-zero number ``0.<digits> * 10 ** exponent`` in the layout of ``Double.toString``.

    Its digits are ``digits[start : start + count]``; ``digits`` has eight bytes more.
    """
    if -2 <= exponent <= 7:
        if exponent <= 0:
            out[to] = _ZERO
            out[to + 1] = _POINT
            out[to + 2] = _ZERO
            out[to + 3] = _ZERO
            return _put_words(out, to + 2 - exponent, digits, start, count)
        if exponent < count:
            store_u64(out, to, load_u64(digits, start))
            out[to + exponent] = _POINT
            return _put_words(out, to + exponent + 1, digits, start + exponent, count - exponent)
        for i in range(exponent):
            out[to + i] = digits[start + i] if i < count else np.uint8(_ZERO)
        out[to + exponent] = _POINT
        out[to + exponent + 1] = _ZERO
        return to + exponent + 2
    out[to] = digits[start]
    out[to + 1] = _POINT
    out[to + 2] = _ZERO
    to = _put_words(out, to + 2, digits, start + 1, count - 1) + (1 if count == 1 else 0)
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
    """Convert numbers in any decimal form to the layout of ``Double.toString``: ``1.5``, ``1.0E7``, ``1.2E-4``.

    ``offsets`` int32[n + 1] and ``data`` are ``[-]digits[.digits][e[+-]digits]`` with at most 20 digits before the
    ``e``, or ``nan``, ``[-]inf``. Non-finite values are in quotes, as in Java's JSON: ``"NaN"``, ``"-Infinity"``.
    ``out_offsets`` int32[n + 1] are the texts' offsets, and ``out`` has room for ``n * NUMBER_BYTES``.
    """
    digits = np.empty(72, np.uint8)
    to: Int = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        negative = at < end and data[at] == _MINUS
        if negative:
            at += 1
        if at < end and (data[at] == 110 or data[at] == 105):  # nan, inf
            if data[at] == 110:
                to = put_special(out, to, 0, 5)
            else:
                to = put_special(out, to, 15, 11) if negative else put_special(out, to, 5, 10)
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
            to = put_special(out, to, 29, 4) if negative else put_special(out, to, 26, 3)
        else:
            if negative:
                out[to] = _MINUS
                to += 1
            to = put_number(digits, 0, count, exponent + sign * power, out, to)
        out_offsets[row + 1] = np.int32(to)


_MIN_POWER, _MAX_POWER = -324, 292
_SIGNIFICAND = np.int64(1) << 52
_BITS = np.uint64(0x7FFFFFFFFFFFFFFF)
_DOUBLE_POINT = 2**63


def _powers() -> Int64s:
    """Two words for each k: 10**-k with 126 bits, rounded up; the upper 63 bits, then the lower 63."""
    words = []
    for k in range(_MIN_POWER, _MAX_POWER + 1):
        above, below = (10**-k, 1) if k < 0 else (1, 10**k)
        shift = 126 - (above.bit_length() - below.bit_length())
        while (above << shift if shift >= 0 else above >> -shift) // below >= 1 << 126:
            shift -= 1
        exact = (above << shift) // below if shift >= 0 else above // (below << -shift)
        if exact < 1 << 125:
            exact = (above << (shift + 1)) // below if shift + 1 >= 0 else above // (below << -(shift + 1))
        words += [(exact + 1) >> 63, (exact + 1) & (_DOUBLE_POINT - 1)]
    return np.array(words, dtype=np.int64)


POWERS = _powers()
"""int64[2 * 617], for :func:`java_doubles`."""


@helper
def _scaled(high: Int, low: Int, value: Int) -> Int:
    """``value`` times a power of ten, rounded to odd."""
    low_word = np.uint64(high) * np.uint64(value)
    z = (low_word >> np.uint64(1)) + np.uint64(multiply_high(low, value))
    w = multiply_high(high, value) + np.int64(z >> np.uint64(63))
    result: Int = w | np.int64((z & _BITS) != np.uint64(0))
    return result


@helper
def _shortest(q: Int, c: Int, powers: Int64s) -> tuple[Int, Int]:
    """The digits as a number, and k: the value is digits * 10**k."""
    out = c & 1
    middle = c << 2
    if c != _SIGNIFICAND or q == -1074:
        left = middle - 2
        k = (q * 661971961083) >> 41
    else:
        left = middle - 1
        k = (q * 661971961083 - 274743187321) >> 41
    shift = q + ((-k * 913124641741) >> 38) + 2
    place = 2 * (k - _MIN_POWER)
    high, low = powers[place], powers[place + 1]
    vb = _scaled(high, low, middle << shift)
    vbl = _scaled(high, low, left << shift)
    vbr = _scaled(high, low, (middle + 2) << shift)
    s = vb >> 2
    if s >= 100:
        tens = s // 10 * 10
        lower_in = vbl + out <= tens << 2
        upper_in = ((tens + 10) << 2) + out <= vbr
        if lower_in != upper_in:
            return (tens if lower_in else tens + 10), k
    lower_in = vbl + out <= s << 2
    upper_in = ((s + 1) << 2) + out <= vbr
    if lower_in != upper_in:
        return (s if lower_in else s + 1), k
    nearer = vb - ((s + s + 1) << 1)
    return (s if nearer < 0 or (nearer == 0 and s & 1 == 0) else s + 1), k


_DIGITS = 24
_PAIRS = np.frombuffer(b"".join(b"%02d" % pair for pair in range(100)), np.uint8)


@helper
def _put_eight(digits: Bytes, at: Int, number: Int) -> None:
    """Write the eight digits of a number below 10**8."""
    upper = number // 10_000
    lower = number - upper * 10_000
    first, third = upper // 100, lower // 100
    store_u16(digits, at, load_u16(_PAIRS, 2 * first))
    store_u16(digits, at + 2, load_u16(_PAIRS, 2 * (upper - first * 100)))
    store_u16(digits, at + 4, load_u16(_PAIRS, 2 * third))
    store_u16(digits, at + 6, load_u16(_PAIRS, 2 * (lower - third * 100)))


@helper
def _put_digits(digits: Bytes, number: Int) -> tuple[Int, Int]:
    """Write a positive number of at most 18 digits, so that the last one is at ``_DIGITS - 1``.

    Returns:
        The place of its first digit, and the place after its last one that is not 0.
    """
    upper = number // 100_000_000
    _put_eight(digits, 16, number - upper * 100_000_000)
    first: Int = np.int64(16)
    if upper > 0:
        top = upper // 100_000_000
        _put_eight(digits, 8, upper - top * 100_000_000)
        first = np.int64(8)
        if top > 0:
            _put_eight(digits, 0, top)
            first = np.int64(0)
    while digits[first] == _ZERO:
        first += 1
    last: Int = np.int64(_DIGITS)
    while digits[last - 1] == _ZERO:
        last -= 1
    return first, last


@kernel("void(ri8, ri8, wi4, wu1)")
def java_doubles(bits: Int64s, powers: Int64s, out_offsets: Offsets, out: Bytes) -> None:
    """Write the text of each double; non-finite values in quotes: ``"NaN"``, ``"-Infinity"``.

    ``bits`` are the doubles, ``powers`` is :data:`POWERS`; ``out_offsets`` int32[n + 1] are the texts' offsets, and
    ``out`` has room for ``n * NUMBER_BYTES``.
    """
    digits = np.empty(40, np.uint8)
    to: Int = np.int64(0)
    out_offsets[0] = 0
    for row in range(bits.size):
        word = bits[row]
        negative = word < 0
        exponent = (word >> 52) & 0x7FF
        c = word & (_SIGNIFICAND - 1)
        if exponent == 0x7FF:
            if c != 0:
                to = put_special(out, to, 0, 5)
            else:
                to = put_special(out, to, 15, 11) if negative else put_special(out, to, 5, 10)
            out_offsets[row + 1] = np.int32(to)
            continue
        if exponent == 0 and c == 0:
            to = put_special(out, to, 29, 4) if negative else put_special(out, to, 26, 3)
            out_offsets[row + 1] = np.int32(to)
            continue
        less = np.int64(0)
        number: Int
        k: Int
        q = exponent - 1075
        if exponent == 0:
            q = np.int64(-1074)
            if c < 3:  # such a small subnormal needs a second digit
                c, less = c * 10, np.int64(1)
        else:
            c |= _SIGNIFICAND
        if exponent != 0 and -53 < q < 0 and (c >> -q) << -q == c:
            number, k = c >> -q, np.int64(0)
        else:
            number, k = _shortest(q, c, powers)
        k -= less
        first, last = _put_digits(digits, number)
        if negative:
            out[to] = 45
            to += 1
        to = put_number(digits, first, last - first, k + _DIGITS - first, out, to)
        out_offsets[row + 1] = np.int32(to)
