"""Write fractional numbers like Java."""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Offsets
from ._declared import helper
from ._kernel import kernel

__all__ = ["NUMBER_BYTES", "java_numbers"]

NUMBER_BYTES = 28
"""Maximum bytes of a text of :func:`java_numbers`."""

_SPECIAL = np.frombuffer(b'"NaN""Infinity""-Infinity"0.0-0.0', np.uint8)
_MINUS, _POINT, _ZERO, _EXPONENT = 45, 46, 48, 69


@helper
def put_special(out: Bytes, to: Int, start: Int, length: Int) -> Int:
    for i in range(length):
        out[to + i] = _SPECIAL[start + i]
    return to + length


@helper
def put_number(digits: Bytes, count: Int, exponent: Int, out: Bytes, to: Int) -> Int:
    """Write the non-zero number ``0.<digits> * 10 ** exponent`` in the layout of ``Double.toString``."""
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
    """Convert numbers in any decimal form to the layout of ``Double.toString``: ``1.5``, ``1.0E7``, ``1.2E-4``.

    ``offsets`` int32[n + 1] and ``data`` are ``[-]digits[.digits][e[+-]digits]`` with at most 20 digits before the
    ``e``, or ``nan``, ``[-]inf``. Non-finite values are in quotes, as in Java's JSON: ``"NaN"``, ``"-Infinity"``.
    ``out_offsets`` int32[n + 1] are the texts' offsets, and ``out`` has room for ``n * NUMBER_BYTES``.
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
            to = put_number(digits, count, exponent + sign * power, out, to)
        out_offsets[row + 1] = np.int32(to)
