"""Java's ``String.hashCode`` and ``List.hashCode`` for many strings at a time.

Hudi selects buckets, and file groups of the metadata table, by these hashes. Strings are UTF-8; Java hashes UTF-16 code
units, so a character above U+FFFF counts as two. Arithmetic wraps at 32 bits, as in Java.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int32s, Offsets
from ._bytes import load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = ["hash_text", "list_hash_combine", "string_hash_codes"]

_NOT_ASCII = np.uint64(0x8080808080808080)
_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_EVEN_PAIRS = np.uint64(0x0000FFFF0000FFFF)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_31, _31_TO_2, _31_TO_4 = np.uint64(31), np.uint64(31**2), np.uint64(31**4)
_31_TO_8 = np.uint32(31**8 & 0xFFFFFFFF)


@helper
def _continuation(data: Bytes, position: Int, end: Int) -> Any:
    """Payload of a UTF-8 continuation byte; 0 beyond the end, so malformed text is never read past its end."""
    return np.int64(data[position] & 0x3F) if position < end else np.int64(0)


@helper
def _hash_any(data: Bytes, start: Int, end: Int, code: Any) -> Any:
    """Continue ``code`` over text with multi-byte characters."""
    at = start
    h = np.uint32(code)
    while at < end:
        lead = np.int64(data[at])
        if lead < 0x80:
            point, size = lead, 1
        elif lead < 0xE0:
            point, size = (lead & 0x1F) << 6 | _continuation(data, at + 1, end), 2
        elif lead < 0xF0:
            point = (lead & 0x0F) << 12 | _continuation(data, at + 1, end) << 6 | _continuation(data, at + 2, end)
            size = 3
        else:
            point = (lead & 0x07) << 18 | _continuation(data, at + 1, end) << 12
            point |= _continuation(data, at + 2, end) << 6 | _continuation(data, at + 3, end)
            size = 4
        at += size
        if point > 0xFFFF:
            h = np.uint32(h * np.uint32(31) + np.uint32(0xD800 + ((point - 0x10000) >> 10)))
            point = 0xDC00 + ((point - 0x10000) & 0x3FF)
        h = np.uint32(h * np.uint32(31) + np.uint32(point))
    return h


@helper
def hash_text(data: Bytes, start: Int, end: Int) -> Any:
    """``String.hashCode`` of the UTF-8 text ``data[start:end]``, as uint32."""
    at = np.int64(start)
    h = np.uint32(0)
    # Eight ASCII characters a step, combined as pairs, then fours, to shorten the chain of dependent multiplications.
    while at + 8 <= end:
        word = load_u64(data, at)
        if word & _NOT_ASCII:
            break
        pairs = (word & _EVEN_BYTES) * _31 + (word >> np.uint64(8) & _EVEN_BYTES)
        fours = (pairs & _EVEN_PAIRS) * _31_TO_2 + (pairs >> np.uint64(16) & _EVEN_PAIRS)
        eight = (fours & _LOW_HALF) * _31_TO_4 + (fours >> np.uint64(32))
        h = np.uint32(h * _31_TO_8 + np.uint32(eight & _LOW_HALF))
        at += 8
    return _hash_any(data, at, end, h)


@kernel("void(ri4, ru1, wi4)")
def string_hash_codes(offsets: Offsets, data: Bytes, out: Int32s) -> None:
    """Fill ``out`` int32[n] with the ``String.hashCode`` of each string; 0 for an empty string, as in Java.

    ``offsets`` int32[n + 1] and ``data`` are the strings as UTF-8.
    """
    for row in range(offsets.size - 1):
        out[row] = np.int32(hash_text(data, np.int64(offsets[row]), np.int64(offsets[row + 1])))


@kernel("void(wi4, ri4)")
def list_hash_combine(codes: Int32s, elements: Int32s) -> None:
    """One step of ``List.hashCode`` per row: ``codes = 31 * codes + elements``.

    ``codes`` are all 1 before the first element; ``elements`` are hash codes, 0 for null.
    """
    for row in range(codes.size):
        codes[row] = np.int32(np.uint32(codes[row]) * np.uint32(31) + np.uint32(elements[row]))
