"""Sort and group rows: counting sort, radix sort, and the words that they compare.

Rows by group number: a stable counting sort.

Stable radix sort of rows by keys of several 64-bit words; bytes that are equal in all rows are skipped.

Strings and byte sequences as 64-bit words with the same sort order.

Space-filling curves: map the coordinates of a row to one position that is close to the positions of similar rows.

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

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets, UInt64s
from ._kernel import kernel

__all__ = ["byte_words", "common_prefix", "group_rows", "hilbert_values", "radix_order", "z_values"]


@kernel("i8(ri4, wi8, wi8)")
def _group_rows(codes: Int32s, order: Int64s, bounds: Int64s) -> Int:
    """Fill ``order`` and zeroed ``bounds``; return -1, or the position of the first code outside the groups."""
    groups = bounds.size - 1
    for i in range(codes.size):
        code = np.int64(codes[i])
        if code < 0 or code >= groups:
            return i
        bounds[code + 1] += 1
    for group in range(groups):
        bounds[group + 1] += bounds[group]
    following = bounds[:groups].copy()
    for i in range(codes.size):
        code = np.int64(codes[i])
        order[following[code]] = i
        following[code] += 1
    return -1


def group_rows(codes: Int32s, groups: int) -> tuple[Int64s, Int64s]:
    """Row numbers ordered by group, in row order within a group.

    Args:
        codes: int32[n], group of each row, 0..groups-1.
        groups: number of groups.

    Returns:
        int64[n] row numbers, and int64[groups + 1] bounds: group g is ``order[bounds[g]:bounds[g + 1]]``.

    Raises:
        ValueError: a code is outside the groups.
    """
    order = np.empty(codes.size, np.int64)
    bounds = np.zeros(groups + 1, np.int64)
    at = int(_group_rows(codes, order, bounds))
    if at >= 0:
        raise ValueError(f"row {at} has group {codes[at]}; there are {groups} groups")
    return order, bounds


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


@kernel("i8(ri4, ru1)")
def _common_prefix(offsets: Offsets, data: Bytes) -> Int:
    rows = offsets.size - 1
    if rows < 1:
        return 0
    start = np.int64(offsets[0])
    shared: Int = np.int64(offsets[1]) - start
    for row in range(1, rows):
        begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if end - begin < shared:
            shared = end - begin
        at: Int = 0
        while at < shared and data[begin + at] == data[start + at]:
            at += 1
        shared = at
        if shared == 0:
            return 0
    return shared


@kernel("void(ri4, ru1, ri8, i8, wu8, wu8)")
def _byte_words(offsets: Offsets, data: Bytes, rows: Int64s, skip: Int, words: UInt64s, lengths: UInt64s) -> None:
    for i in range(rows.size):
        row = rows[i]
        begin, end = np.int64(offsets[row]) + skip, np.int64(offsets[row + 1])
        count = np.int64(8) if end - begin > 8 else end - begin
        if count < 0:
            count = np.int64(0)
        word = np.uint64(0)
        for at in range(begin, begin + count):
            word = (word << np.uint64(8)) | np.uint64(data[at])
        words[i] = word << np.uint64(8 * (8 - count)) if count > 0 else np.uint64(0)
        lengths[i] = count


def common_prefix(offsets: Offsets, data: Bytes) -> int:
    """The length in bytes of the common prefix of values, ``offsets`` int32[n + 1] into ``data``; 0 without values."""
    return int(_common_prefix(offsets, data))


def byte_words(offsets: Offsets, data: Bytes, rows: Int64s, skip: int) -> tuple[UInt64s, UInt64s]:
    """Eight bytes of each value as a big-endian word, padded with zeros.

    Args:
        offsets: int32[n+1].
        data: uint8[at least offsets[n]].
        rows: int64[k], rows to take.
        skip: bytes to skip at the start of each value.

    Returns:
        uint64[k] words, and uint64[k] lengths: the number of the eight bytes that belong to the value, 0 to 8. If two
        values have equal words, the value with the smaller length (below 8) sorts first.
    """
    words, lengths = np.empty(rows.size, np.uint64), np.empty(rows.size, np.uint64)
    _byte_words(offsets, data, rows, skip, words, lengths)
    return words, lengths


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
