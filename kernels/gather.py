"""Take, interleave, replace and remove rows of Arrow buffers.

Take rows of Arrow buffers by number: from one source, or interleaved from two, as a merge needs.

Variable-length values are measured, allocated, then filled. Row numbers are checked before any read: a kernel reports
the position of the first invalid number, and its caller raises.

A *selector* of :func:`take_two_fixed` and its siblings is an int32 per output row: ``s >= 0`` takes row ``s`` of
source A, ``s < 0`` takes row ``-(s + 1)`` (which is ``~s``) of source B.

Replace and remove some rows of Arrow buffers; the rows between them are copied as a whole.

The changes of source A are two int64 arrays of the same length: *rows*, the changed rows in ascending order without
repetition, and *sources*, for each changed row the row of source B that replaces it, or -1 to remove it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Int32s, Int64s, Offsets
from ._bytes import copy_bytes, load_u16, load_u32, load_u64, prefetch, store_u16, store_u32, store_u64
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "check_changes",
    "gather_varlen",
    "splice_fixed",
    "splice_varlen",
    "take_two_bits",
    "take_two_fixed",
    "take_two_varlen",
]

_AHEAD = 16  # rows between the prefetch of a value's cache line and its copy
_MAX_BYTES = 2**31 - 1


@kernel("i8(ri4, ri8, wi4)")
def _measure(offsets: Offsets, indices: Int64s, out: Offsets) -> Int:
    """Fill ``out`` with the result's offsets; return the last offset, unclipped, or -1 - i for an invalid index i."""
    rows = offsets.size - 1
    total = np.int64(0)
    out[0] = 0
    for i in range(indices.size):
        row = indices[i]
        if row < 0 or row >= rows:
            return -1 - i
        total += np.int64(offsets[row + 1]) - np.int64(offsets[row])
        out[i + 1] = np.int32(total)
    return total


@kernel("void(ri4, ru1, ri8, ri4, wu1)")
def _fill(offsets: Offsets, data: Bytes, indices: Int64s, out_offsets: Offsets, out: Bytes) -> None:
    last = indices.size - 1
    for i in range(indices.size):
        prefetch(data, np.int64(offsets[indices[min(i + _AHEAD, last)]]))
        at = np.int64(out_offsets[i])
        copy_bytes(out, at, data, np.int64(offsets[indices[i]]), np.int64(out_offsets[i + 1]) - at)


@kernel("i8(ri4, i8, i8)")
def _bad_selector(selectors: Int32s, a_rows: Int, b_rows: Int) -> Int:
    """Position of the first selector outside its source, or -1."""
    for i in range(selectors.size):
        s = np.int64(selectors[i])
        if s >= a_rows or ~s >= b_rows:
            return i
    return -1


@helper
def _copy_item(target: Bytes, at: Int, source: Bytes, start: Int, width: Int) -> None:
    if width == 8:
        store_u64(target, at, load_u64(source, start))
    elif width == 4:
        store_u32(target, at, load_u32(source, start))
    elif width == 1:
        target[at] = source[start]
    elif width == 2:
        store_u16(target, at, load_u16(source, start))
    else:
        store_u64(target, at, load_u64(source, start))
        store_u64(target, at + 8, load_u64(source, start + 8))


@helper
def _take_items(a: Bytes, b: Bytes, selectors: Int32s, width: Int, out: Bytes) -> None:
    for i in range(selectors.size):
        s = np.int64(selectors[i])
        if s >= 0:
            _copy_item(out, i * width, a, s * width, width)
        else:
            _copy_item(out, i * width, b, ~s * width, width)


@kernel("void(ru1, ru1, ri4, i8, wu1)")
def _take_two_fixed(a: Bytes, b: Bytes, selectors: Int32s, width: Int, out: Bytes) -> None:
    # One loop per width, so that each loop is compiled for a constant.
    if width == 1:
        _take_items(a, b, selectors, 1, out)
    elif width == 2:
        _take_items(a, b, selectors, 2, out)
    elif width == 4:
        _take_items(a, b, selectors, 4, out)
    elif width == 8:
        _take_items(a, b, selectors, 8, out)
    else:
        _take_items(a, b, selectors, 16, out)


@kernel("i8(ri4, ri4, ri4, wi4)")
def _measure_two(a_offsets: Offsets, b_offsets: Offsets, selectors: Int32s, out: Offsets) -> Int:
    total = np.int64(0)
    out[0] = 0
    for i in range(selectors.size):
        s = np.int64(selectors[i])
        if s >= 0:
            total += np.int64(a_offsets[s + 1]) - np.int64(a_offsets[s])
        else:
            total += np.int64(b_offsets[~s + 1]) - np.int64(b_offsets[~s])
        out[i + 1] = np.int32(total)
    return total


@kernel("void(ri4, ru1, ri4, ru1, ri4, ri4, wu1)")
def _fill_two(
    a_offsets: Offsets,
    a_data: Bytes,
    b_offsets: Offsets,
    b_data: Bytes,
    selectors: Int32s,
    out_offsets: Offsets,
    out: Bytes,
) -> None:
    for i in range(selectors.size):
        s = np.int64(selectors[i])
        at = np.int64(out_offsets[i])
        length = np.int64(out_offsets[i + 1]) - at
        if s >= 0:
            copy_bytes(out, at, a_data, np.int64(a_offsets[s]), length)
        else:
            copy_bytes(out, at, b_data, np.int64(b_offsets[~s]), length)


@helper
def _bit(bits: Bytes, position: Int) -> Any:
    return (bits[position >> 3] >> np.uint8(position & 7)) & np.uint8(1)


@kernel("i8(ru1, i8, ru1, i8, ri4, wu1)")
def _take_two_bits(a: Bytes, a_start: Int, b: Bytes, b_start: Int, selectors: Int32s, out: Bytes) -> Int:
    """Fill ``out`` and return the number of its set bits; an empty source has all bits set."""
    a_all, b_all = a.size == 0, b.size == 0
    ones = np.int64(0)
    for byte in range(out.size):
        packed = np.uint8(0)
        for i in range(8 * byte, min(8 * byte + 8, selectors.size)):
            s = np.int64(selectors[i])
            if s >= 0:
                bit = np.uint8(1) if a_all else _bit(a, a_start + s)
            else:
                bit = np.uint8(1) if b_all else _bit(b, b_start + ~s)
            packed |= np.uint8(bit << np.uint8(i & 7))
            ones += np.int64(bit)
        out[byte] = packed
    return ones


def gather_varlen(offsets: Offsets, data: Bytes, indices: Int64s) -> tuple[Offsets, Bytes]:
    """Take rows of a string or binary array.

    Args:
        offsets: int32[n + 1], Arrow offsets.
        data: uint8[].
        indices: int64[k], row numbers in 0..n-1, in any order and any number of times.

    Returns:
        New arrays: int32[k + 1] offsets, starting at 0, and uint8[] bytes.

    Raises:
        IndexError: a row number is out of range.
        OverflowError: the result has 2**31 bytes or more; take fewer rows at a time.
    """
    out_offsets = np.empty(indices.size + 1, np.int32)
    total = int(_measure(offsets, indices, out_offsets))
    if total < 0:
        at = -1 - total
        raise IndexError(f"row number {indices[at]} at position {at} is outside 0..{offsets.size - 2}")
    out = np.empty(_checked_size(total), np.uint8)
    _fill(offsets, data, indices, out_offsets, out)
    return out_offsets, out


def take_two_fixed(a: npt.NDArray[Any], b: npt.NDArray[Any], selectors: Int32s) -> npt.NDArray[Any]:
    """Interleave two arrays of fixed-width items.

    Args:
        a: C-contiguous array of items of 1, 2, 4, 8 or 16 bytes.
        b: array of the same dtype.
        selectors: int32[k], see the module docstring.

    Returns:
        A new array of k items of that dtype.

    Raises:
        ValueError: the dtypes differ, or items have another width.
        IndexError: a selector is outside its source.
    """
    width = a.dtype.itemsize
    if a.dtype != b.dtype or width not in (1, 2, 4, 8, 16):
        raise ValueError(f"cannot interleave {a.dtype} and {b.dtype}: one type of 1, 2, 4, 8 or 16 bytes is needed")
    _check_selectors(selectors, a.size, b.size)
    out = np.empty(selectors.size, a.dtype)
    _take_two_fixed(a.view(np.uint8), b.view(np.uint8), selectors, width, out.view(np.uint8))
    return out


def take_two_varlen(
    a_offsets: Offsets, a_data: Bytes, b_offsets: Offsets, b_data: Bytes, selectors: Int32s
) -> tuple[Offsets, Bytes]:
    """Interleave two string or binary arrays.

    Args:
        a_offsets: int32[n + 1], Arrow offsets of source A.
        a_data: uint8[], bytes of source A.
        b_offsets: int32[m + 1], Arrow offsets of source B.
        b_data: uint8[], bytes of source B.
        selectors: int32[k], see the module docstring.

    Returns:
        New arrays: int32[k + 1] offsets, starting at 0, and uint8[] bytes.

    Raises:
        IndexError: a selector is outside its source.
        OverflowError: the result has 2**31 bytes or more; take fewer rows at a time.
    """
    _check_selectors(selectors, a_offsets.size - 1, b_offsets.size - 1)
    out_offsets = np.empty(selectors.size + 1, np.int32)
    total = int(_measure_two(a_offsets, b_offsets, selectors, out_offsets))
    out = np.empty(_checked_size(total), np.uint8)
    _fill_two(a_offsets, a_data, b_offsets, b_data, selectors, out_offsets, out)
    return out_offsets, out


def take_two_bits(
    a: Bytes | None,
    a_start: int,
    a_rows: int,
    b: Bytes | None,
    b_start: int,
    b_rows: int,
    selectors: Int32s,
) -> tuple[Bytes, int]:
    """Interleave two bitmaps: validity, or boolean values.

    Args:
        a: uint8[], bits of source A, least significant first; None when all are set.
        a_start: bit position of A's row 0.
        a_rows: rows of A.
        b: uint8[], bits of source B; None when all are set.
        b_start: bit position of B's row 0.
        b_rows: rows of B.
        selectors: int32[k], see the module docstring.

    Returns:
        A new uint8[(k + 7) // 8] bitmap, unused bits 0, and the number of bits set.

    Raises:
        IndexError: a selector is outside its source, or a bitmap is shorter than its rows.
    """
    for bits, start, rows in ((a, a_start, a_rows), (b, b_start, b_rows)):
        if bits is not None and rows > 0 and (start < 0 or start + rows > 8 * bits.size):
            raise IndexError(f"a bitmap of {8 * bits.size} bits has no {rows} rows from bit {start} on")
    _check_selectors(selectors, a_rows, b_rows)
    out = np.empty((selectors.size + 7) // 8, np.uint8)
    nothing = np.empty(0, np.uint8)
    ones = _take_two_bits(nothing if a is None else a, a_start, nothing if b is None else b, b_start, selectors, out)
    return out, int(ones)


def _check_selectors(selectors: Int32s, a_rows: int, b_rows: int) -> None:
    at = int(_bad_selector(selectors, a_rows, b_rows))
    if at >= 0:
        chosen = int(selectors[at])
        side, row, rows = ("A", chosen, a_rows) if chosen >= 0 else ("B", ~chosen, b_rows)
        raise IndexError(f"selector {chosen} at position {at} is row {row} of source {side}, which has {rows} rows")


def _checked_size(total: int) -> int:
    if total > _MAX_BYTES:
        raise OverflowError(f"{total} bytes do not fit 32-bit offsets; take fewer rows at a time")
    return total


@kernel("i8(ri8, ri8, i8, i8)")
def _bad_change(rows: Int64s, sources: Int64s, a_rows: Int, b_rows: Int) -> Int:
    """Position of the first change whose row does not follow the previous row, or is outside its source; or -1."""
    before = np.int64(-1)
    for i in range(rows.size):
        if rows[i] <= before or rows[i] >= a_rows or sources[i] < -1 or sources[i] >= b_rows:
            return i
        before = rows[i]
    return -1


@kernel("void(ru1, ru1, ri8, ri8, i8, wu1)")
def _splice_items(a: Bytes, b: Bytes, rows: Int64s, sources: Int64s, width: Int, out: Bytes) -> None:
    at, done = np.int64(0), np.int64(0)
    for i in range(rows.size):
        length = (rows[i] - done) * width
        copy_bytes(out, at, a, done * width, length)
        at += length
        if sources[i] >= 0:
            copy_bytes(out, at, b, sources[i] * width, width)
            at += width
        done = rows[i] + 1
    copy_bytes(out, at, a, done * width, a.size - done * width)


@kernel("i8(ri4, ri4, ri8, ri8, wi4)")
def _splice_offsets(a: Offsets, b: Offsets, rows: Int64s, sources: Int64s, out: Offsets) -> Int:
    """Fill ``out`` with the result's offsets; return the last offset, unclipped."""
    shift = -np.int64(a[0])
    at, done = np.int64(0), np.int64(0)
    for i in range(rows.size + 1):
        row = rows[i] if i < rows.size else np.int64(a.size - 1)
        for number in range(done, row):
            out[at] = np.int32(a[number] + shift)
            at += 1
        if i < rows.size:
            old = np.int64(a[row + 1]) - np.int64(a[row])
            if sources[i] < 0:
                shift -= old
            else:
                out[at] = np.int32(a[row] + shift)
                at += 1
                shift += np.int64(b[sources[i] + 1]) - np.int64(b[sources[i]]) - old
            done = row + 1
    total = np.int64(a[a.size - 1]) + shift
    out[at] = np.int32(total)
    return total


@kernel("void(ri4, ru1, ri4, ru1, ri8, ri8, wu1)")
def _splice_bytes(
    a: Offsets, a_data: Bytes, b: Offsets, b_data: Bytes, rows: Int64s, sources: Int64s, out: Bytes
) -> None:
    at, done = np.int64(0), np.int64(a[0])
    for i in range(rows.size):
        length = np.int64(a[rows[i]]) - done
        copy_bytes(out, at, a_data, done, length)
        at += length
        if sources[i] >= 0:
            start = np.int64(b[sources[i]])
            length = np.int64(b[sources[i] + 1]) - start
            copy_bytes(out, at, b_data, start, length)
            at += length
        done = np.int64(a[rows[i] + 1])
    copy_bytes(out, at, a_data, done, np.int64(a[a.size - 1]) - done)


def check_changes(rows: Int64s, sources: Int64s, a_rows: int, b_rows: int) -> None:
    """Check changes once for all columns; the other functions rely on it.

    Args:
        rows: int64[k], see the module docstring.
        sources: int64[k].
        a_rows: number of rows of source A.
        b_rows: number of rows of source B.

    Raises:
        ValueError: the arrays differ in length.
        IndexError: rows do not ascend, or a row is outside its source.
    """
    if rows.size != sources.size:
        raise ValueError(f"each changed row needs a source: {rows.size} rows, {sources.size} sources")
    at = int(_bad_change(rows, sources, a_rows, b_rows))
    if at >= 0:
        raise IndexError(
            f"change {at} replaces row {rows[at]} of {a_rows} by row {sources[at]} of {b_rows}: rows must ascend, and "
            "both must be in their sources"
        )


def splice_fixed(a: npt.NDArray[Any], b: npt.NDArray[Any], rows: Int64s, sources: Int64s) -> npt.NDArray[Any]:
    """Change rows of an array of fixed-width items.

    Args:
        a: C-contiguous array of n items.
        b: array of the same dtype.
        rows: int64[k], checked by :func:`check_changes`.
        sources: int64[k].

    Returns:
        A new array of that dtype: n items, less the removed items.

    Raises:
        ValueError: the dtypes differ.
    """
    if a.dtype != b.dtype:
        raise ValueError(f"cannot replace items of {a.dtype} by items of {b.dtype}")
    out = np.empty(a.size - np.count_nonzero(sources < 0), a.dtype)
    _splice_items(a.view(np.uint8), b.view(np.uint8), rows, sources, a.dtype.itemsize, out.view(np.uint8))
    return out


def splice_varlen(
    a_offsets: Offsets, a_data: Bytes, b_offsets: Offsets, b_data: Bytes, rows: Int64s, sources: Int64s
) -> tuple[Offsets, Bytes]:
    """Change rows of a string or binary array.

    Args:
        a_offsets: int32[n + 1], Arrow offsets of source A.
        a_data: uint8[].
        b_offsets: int32[m + 1], Arrow offsets of source B.
        b_data: uint8[].
        rows: int64[k], checked by :func:`check_changes`.
        sources: int64[k].

    Returns:
        New arrays: int32 offsets, starting at 0, of n rows less the removed rows, and uint8[] bytes.

    Raises:
        OverflowError: the result has 2**31 bytes or more; take fewer rows at a time.
    """
    out_offsets = np.empty(a_offsets.size - np.count_nonzero(sources < 0), np.int32)
    total = int(_splice_offsets(a_offsets, b_offsets, rows, sources, out_offsets))
    if total > _MAX_BYTES:
        raise OverflowError(f"{total} bytes do not fit 32-bit offsets; take fewer rows at a time")
    out = np.empty(total, np.uint8)
    _splice_bytes(a_offsets, a_data, b_offsets, b_data, rows, sources, out)
    return out_offsets, out
