"""Stable radix sort of rows by keys of several 64-bit words; bytes that are equal in all rows are skipped."""

from __future__ import annotations

import numpy as np

from ._arrays import Int, Int32s, Int64s, UInt64s
from ._kernel import kernel

__all__ = ["radix_order"]


@kernel("void(ru8, i8, wi4, wi4, wu8, wu8)")
def _radix_order(
    planes: UInt64s, width: Int, order: Int32s, other_order: Int32s, keys: UInt64s, other_keys: UInt64s
) -> None:
    """Turn ascending ``order`` into the sorted order; the other arrays are work space of the same length."""
    rows = order.size
    counts = np.empty(8 * 256, np.int64)
    from_order, to_order, from_keys, to_keys = order, other_order, keys, other_keys
    for word in range(width - 1, -1, -1):
        plane = planes[word * rows : (word + 1) * rows]
        counts[:] = 0
        for i in range(rows):
            key = plane[i]
            for byte in range(8):
                counts[byte * 256 + np.int64((key >> np.uint64(8 * byte)) & np.uint64(255))] += 1
        loaded = False
        for byte in range(8):
            shift = np.uint64(8 * byte)
            if counts[byte * 256 + np.int64((plane[0] >> shift) & np.uint64(255))] == rows:
                continue  # equal in all rows
            if not loaded:
                for i in range(rows):
                    from_keys[i] = plane[from_order[i]]
                loaded = True
            at = 0
            for value in range(byte * 256, byte * 256 + 256):
                found = counts[value]
                counts[value] = at
                at += found
            for i in range(rows):
                key = from_keys[i]
                place = byte * 256 + np.int64((key >> shift) & np.uint64(255))
                to = counts[place]
                counts[place] = to + 1
                to_keys[to] = key
                to_order[to] = from_order[i]
            from_order, to_order = to_order, from_order
            from_keys, to_keys = to_keys, from_keys
    for i in range(rows):
        order[i] = from_order[i]  # the same array after an even number of passes


def radix_order(planes: UInt64s, width: int) -> Int64s:
    """Row numbers in ascending order of keys; rows with equal keys stay in row order.

    Args:
        planes: uint64[width * n]: the highest word of all n keys, then the next ...; n below 2^31.
        width: words of a key, at least 1.

    Returns:
        int64[n].
    """
    rows = planes.size // width
    order = np.arange(rows, dtype=np.int32)
    if rows > 1:
        work = np.empty(rows, np.int32), np.empty(rows, np.uint64), np.empty(rows, np.uint64)
        _radix_order(planes, width, order, *work)
    return order.astype(np.int64)
