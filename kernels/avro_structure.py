"""The structure of Avro records for ``avro_decode``: frames, unions around records, items of lists, columns to skip.

Shared arguments and results: those of ``avro_decode``.
"""

from __future__ import annotations

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._jit import kernel
from .avro_cursor import (
    BAD_BLOCK,
    BAD_LENGTH,
    CUT_OFF,
    IS_NULL,
    MOST_ITEMS,
    TOO_LARGE,
    enter_value,
    fault,
    read_length,
    read_varint,
    skip_value,
)

__all__ = ["frame_records", "locate_items", "read_branches", "skip_values"]


@kernel("i8(ru1, i8, i8, i8, wi8, wi8)")
def frame_records(data: Bytes, at: Int, count: Int, most_bytes: Int, starts: Int64s, ends: Int64s) -> Int:
    """Find length-framed records (int32 big endian, then the record).

    Args:
        data: uint8[].
        at: where the first length begins.
        count: most records to find; at most the size of ``starts`` and ``ends``.
        most_bytes: stop behind the record that reaches so many bytes.
        starts: int64[], filled with where records begin.
        ends: int64[], filled with where they end.

    Returns:
        How many were found (one or more when ``count`` is), or a fault.
    """
    first = at
    for row in range(count):
        if data.size - at < 4:
            return fault(row, CUT_OFF)
        length = np.int64(0)
        for i in range(4):
            length = (length << 8) | np.int64(data[at + i])
        if length > data.size - at - 4:
            return fault(row, BAD_LENGTH)
        starts[row] = at + 4
        at += 4 + length
        ends[row] = at
        if at - first >= most_bytes:
            return np.int64(row + 1)
    return np.int64(count)


@kernel("i8(ru1, wi8, ri8, i8, wu1)")
def read_branches(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes) -> Int:
    """Read the branches of a union of null and one type, and leave the cursors at the values.

    ``data``, ``pos``, ``ends``, ``null``, ``valid``: see ``avro_decode``.
    """
    nulls = np.int64(0)
    for row in range(pos.size):
        at = enter_value(data, pos[row], ends[row], null)
        if at >= 0:
            valid[row] = 1
            pos[row] = at
        elif at == IS_NULL:
            valid[row] = 0
            pos[row] += 1
            nulls += 1
        else:
            return fault(row, -at)
    return nulls


@kernel("i8(ru1, wi8, ri8, ri8, i8)")
def skip_values(data: Bytes, pos: Int64s, ends: Int64s, program: Int64s, depth: Int) -> Int:
    """Move cursors behind values nobody wants.

    ``data``, ``pos``, ``ends``: see ``avro_decode``; ``program`` int64[] as in ``avro_cursor``, ``depth`` of its
    lists.
    """
    stack = np.empty(depth + 1, np.int64)
    for row in range(pos.size):
        at = skip_value(data, pos[row], ends[row], program, stack)
        if at < 0:
            return fault(row, -at)
        pos[row] = at
    return np.int64(0)


@kernel("i8(ru1, wi8, ri8, i8, wu1, ri8, i8, wi4, wi8, wi8)")
def locate_items(
    data: Bytes,
    pos: Int64s,
    ends: Int64s,
    null: Int,
    valid: Bytes,
    program: Int64s,
    depth: Int,
    offsets: Offsets,
    starts: Int64s,
    item_ends: Int64s,
) -> Int:
    """Find the items of arrays, or the entries of maps.

    Args:
        data: uint8[].
        pos: int64[n], cursors.
        ends: int64[n].
        null: see ``avro_decode``.
        valid: uint8[n].
        program: int64[], the skip program of one item.
        depth: of the lists in that program.
        offsets: int32[n + 1], filled with the Arrow column's offsets.
        starts: int64[room], filled with where items begin, as far as there is room.
        item_ends: int64[room], filled with where they end.

    Returns:
        The number of nulls, or a fault. When ``offsets[n]`` is more than the room, call again from the first cursors
        with enough.
    """
    stack = np.empty(depth + 1, np.int64)
    room = min(starts.size, item_ends.size)
    nulls = np.int64(0)
    total = np.int64(0)
    offsets[0] = 0
    for row in range(pos.size):
        end = ends[row]
        at = enter_value(data, pos[row], end, null)
        if at == IS_NULL:
            valid[row] = 0
            pos[row] += 1
            nulls += 1
            offsets[row + 1] = np.int32(total)
            continue
        while at >= 0:
            count, at = read_varint(data, at, end)
            if at < 0 or count == 0:
                break
            block_end: Int = np.int64(-1)
            if count < 0:
                count = -count
                size, at = read_length(data, at, end)
                if at < 0:
                    break
                block_end = at + size
            if count < 0 or count > end - at:
                return fault(row, BAD_LENGTH)
            if total + count > MOST_ITEMS:
                return fault(row, TOO_LARGE)
            for _ in range(count):
                if total < room:
                    starts[total] = at
                at = skip_value(data, at, end, program, stack)
                if at < 0:
                    break
                if total < room:
                    item_ends[total] = at
                total += 1
            if at >= 0 and block_end >= 0 and at != block_end:
                return fault(row, BAD_BLOCK)
        if at < 0:
            return fault(row, -at)
        if null >= 0:
            valid[row] = 1
        pos[row] = at
        offsets[row + 1] = np.int32(total)
    return nulls
