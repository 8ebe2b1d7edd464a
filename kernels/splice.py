"""Replace and remove some rows of Arrow buffers; the rows between them are copied as a whole.

The changes of source A are two int64 arrays of the same length: *rows*, the changed rows in ascending order without
repetition, and *sources*, for each changed row the row of source B that replaces it, or -1 to remove it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import copy_bytes
from ._kernel import kernel

__all__ = ["check_changes", "splice_fixed", "splice_varlen"]

_MAX_BYTES = 2**31 - 1


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
