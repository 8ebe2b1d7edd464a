"""Space-filling curves: map the coordinates of a row to one position that is close to the positions of similar rows.

::

    n coordinates of 64 bits ── z_values ──────► interleaved bits of the coordinates, highest first: n words
                             └─ hilbert_values ► the same after the Hilbert transform of the coordinates: n words

Coordinates and words are stored in planes: the first coordinate of all rows, then the second, and so on. Positions sort
as numbers, with the words of the first plane highest; as big-endian bytes, row by row, they sort the same way.

The transform between coordinates and the Hilbert curve is the one of J. Skilling, "Programming the Hilbert curve"
(AIP Conference Proceedings 707, 2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Int, UInt64s
from ._kernel import kernel

__all__ = ["hilbert_values", "z_values"]

_BY_TABLE = 8
"""Maximum number of coordinates whose spread bytes fit one word."""


@kernel("void(ru8, i8, i8, ru8, wu8)")
def _interleave_bytes(planes: UInt64s, count: Int, rows: Int, spread: UInt64s, out: UInt64s) -> None:
    """Up to 8 coordinates: ``spread`` maps a byte to its bits with ``count - 1`` zeros after each."""
    step = 8 * count
    for row in range(rows):
        filled = 0  # bits of the current word
        word = np.uint64(0)
        plane = 0
        for shift in range(56, -8, -8):
            bits = np.uint64(0)
            for column in range(count):
                byte = (planes[column * rows + row] >> np.uint64(shift)) & np.uint64(255)
                bits |= spread[byte] << np.uint64(count - 1 - column)
            room = 64 - filled
            if step < room:
                word |= bits << np.uint64(room - step)
                filled += step
            else:
                out[plane * rows + row] = word | (bits >> np.uint64(step - room))
                plane += 1
                filled = step - room
                word = bits << np.uint64(64 - filled) if filled else np.uint64(0)


@kernel("void(ru8, i8, i8, wu8)")
def _interleave_bits(planes: UInt64s, count: Int, rows: Int, out: UInt64s) -> None:
    """Any number of coordinates; ``out`` is zeroed."""
    for row in range(rows):
        at = 0
        for bit in range(63, -1, -1):
            for column in range(count):
                value = (planes[column * rows + row] >> np.uint64(bit)) & np.uint64(1)
                out[(at >> 6) * rows + row] |= value << np.uint64(63 - (at & 63))
                at += 1


@kernel("void(wu8, i8, i8, i8)")
def _hilbert_transform(planes: UInt64s, count: Int, rows: Int, bits: Int) -> None:
    """Turn coordinates into the transposed Hilbert index, in place; only the highest ``bits`` bits are used."""
    one = np.uint64(1)
    shift = np.uint64(64 - bits)
    values = np.empty(count, np.uint64)
    for row in range(rows):
        for column in range(count):
            values[column] = planes[column * rows + row] >> shift
        first: Any = values[0]
        for bit in range(bits - 1, 0, -1):
            place = np.uint64(bit)
            below = (one << place) - one
            first ^= below & (np.uint64(0) - ((first >> place) & one))
            for column in range(1, count):
                value = values[column]
                is_set = np.uint64(0) - ((value >> place) & one)
                swapped = (first ^ value) & below & ~is_set
                first ^= swapped | (below & is_set)
                values[column] = value ^ swapped
        values[0] = first
        for column in range(1, count):
            values[column] ^= values[column - 1]
        turned: Any = np.uint64(0)
        last = values[count - 1]
        for bit in range(bits - 1, 0, -1):
            place = np.uint64(bit)
            turned ^= ((one << place) - one) & (np.uint64(0) - ((last >> place) & one))
        for column in range(count):
            planes[column * rows + row] = (values[column] ^ turned) << shift


def z_values(planes: UInt64s, count: int) -> UInt64s:
    """The position of each row on the Z-order curve.

    Args:
        planes: uint64[count * n]: the first coordinate of all n rows, then the second ...
        count: coordinates of a row, at least 1.

    Returns:
        uint64[count * n]: the highest word of each row, then the next ...
    """
    rows = planes.size // count
    out = np.zeros(count * rows, np.uint64)
    if count > _BY_TABLE:
        _interleave_bits(planes, count, rows, out)
    else:
        _interleave_bytes(planes, count, rows, _spread_bytes(count), out)
    return out


def hilbert_values(planes: UInt64s, count: int, bits: int = 64) -> UInt64s:
    """The position of each row on the Hilbert curve.

    Args:
        planes: uint64[count * n], as for :func:`z_values`.
        count: coordinates of a row, at least 1.
        bits: highest bits of the coordinates to use, 1 to 64; lower bits count as 0.

    Returns:
        uint64[count * n]: the highest word of each row, then the next ...
    """
    turned = planes.copy()
    if count > 1:
        _hilbert_transform(turned, count, planes.size // count, bits)
    return z_values(turned, count)


def _spread_bytes(count: int) -> UInt64s:
    """uint64[256]: each byte with ``count - 1`` zeros between its bits."""
    bytes_ = np.arange(256, dtype=np.uint64)
    found = np.zeros(256, np.uint64)
    for bit in range(8):
        found |= ((bytes_ >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * count)
    return found
