"""Assembly of JSON texts: members of objects by column, items of lists, entries of maps.

Texts are Arrow's: int32 offsets and bytes, ``texts[i] = data[offsets[i] : offsets[i + 1]]``.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_bytes
from ._kernel import kernel

__all__ = ["close_objects", "fill_joined", "measure_joined", "put_parts"]

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
        for i in range(size):
            out[to + i] = literal[i]
        copy_bytes(out, to + size, data, start, length)
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
            copy_bytes(out, to, data, np.int64(offsets[item]), length)
            to += length
        out[to] = marks[1]
