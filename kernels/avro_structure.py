"""The structure of Avro records for ``avro_decode``: frames, unions around records, items of lists, skipped columns.

Shared arguments and results: see ``avro_decode``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._kernel import kernel
from .avro_cursor import (
    BAD_BLOCK,
    BAD_BRANCH,
    BAD_LENGTH,
    BYTES,
    CALL,
    CUT_OFF,
    FIXED,
    IS_NULL,
    ITEM,
    JUMP,
    LIST,
    MAX_CALLS,
    MAX_ITEMS,
    NEXT,
    NULLABLE,
    RETURN,
    TOO_DEEP,
    TOO_LARGE,
    UNION,
    VARINT,
    enter_value,
    fault,
    varint_size,
    varint_value,
    word_at,
)

__all__ = ["frame_records", "read_branches", "walk_values"]


@kernel("i8(ru1, i8, i8, i8, wi8, wi8)")
def frame_records(data: Bytes, at: Int, count: Int, max_bytes: Int, starts: Int64s, ends: Int64s) -> Int:
    """Find length-framed records (int32 big endian, then the record).

    Args:
        data: uint8[].
        at: position of the first length.
        count: maximum number of records; at most the size of ``starts`` and ``ends``.
        max_bytes: stop after the record that reaches this number of bytes.
        starts: int64[], filled with the records' starts.
        ends: int64[], filled with the records' ends.

    Returns:
        The number of records found (at least one if ``count`` is), or a fault.
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
        if at - first >= max_bytes:
            return np.int64(row + 1)
    return np.int64(count)


@kernel("i8(ru1, wi8, ri8, i8, wu1)")
def read_branches(data: Bytes, pos: Int64s, ends: Int64s, null: Int, valid: Bytes) -> Int:
    """Read the branches of a union of null and one type, and move the cursors to the values.

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


@kernel("i8(ru1, wi8, ri8, wu1, ri8, i8, wi4, wi8, wi8)")
def walk_values(
    data: Bytes,
    pos: Int64s,
    ends: Int64s,
    valid: Bytes,
    program: Int64s,
    depth: Int,
    offsets: Offsets,
    starts: Int64s,
    item_ends: Int64s,
) -> Int:
    """Move cursors past skipped values, or past arrays and maps, and locate the items of the latter.

    One long function, because a call that passes arrays takes longer than a step of a program.

    Args:
        data: uint8[8 or more].
        pos: int64[n], cursors.
        ends: int64[n].
        valid: uint8[n], set to 0 where the program's first step reads null, else to 1; or empty.
        program: int64[], see ``avro_cursor``.
        depth: maximum levels of nested lists while the program runs.
        offsets: int32[n + 1], filled with the Arrow offsets of the marked list; or empty.
        starts: int64[room], filled with the starts of the first ``room`` marked items.
        item_ends: int64[room], filled with the ends of these items.

    Returns:
        The number of nulls, or a fault. If ``offsets[n]`` exceeds ``room``, call again with the original cursors and
        larger arrays.
    """
    stack = np.zeros(depth + 1, np.int64)
    calls = np.empty(MAX_CALLS, np.int64)
    room = min(starts.size, item_ends.size)
    nulls, total = np.int64(0), np.int64(0)
    if offsets.size > 0:
        offsets[0] = 0
    for row in range(pos.size):
        at: Any = pos[row]
        end = ends[row]
        step: Any = 0
        level: Any = -1
        called: Any = 0
        block_end: Any = -1
        reason: Any = 0
        if valid.size > 0:
            valid[row] = 1
        while reason == 0:
            op = program[step]
            if op == VARINT or op == BYTES:
                word, more = word_at(data, at), word_at(data, at + 8)
                size = varint_size(word, more)
                if size < 0 or size > end - at:
                    reason = CUT_OFF if size > 0 else -size
                    break
                at += size
                if op == BYTES:
                    length = varint_value(word, more, size)
                    if length < 0 or length > end - at:
                        reason = BAD_LENGTH
                        break
                    at += length
                step += 1
            elif op == NULLABLE:
                if at >= end:
                    reason = CUT_OFF
                    break
                branch = np.int64(data[at])
                at += 1
                if branch == program[step + 1]:
                    if step == 0 and valid.size > 0:
                        valid[row] = 0
                        nulls += 1
                    step = program[step + 2]
                elif branch == 2 - program[step + 1]:
                    step += 3
                else:
                    reason = BAD_BRANCH
            elif op == FIXED:
                if program[step + 1] > end - at:
                    reason = CUT_OFF
                    break
                at += program[step + 1]
                step += 2
            elif op == ITEM:
                if total < room:
                    starts[total] = at
                step += 1
            elif op == NEXT:
                marked = program[step + 2] != 0
                if marked and stack[level] > 0:
                    if total < room:
                        item_ends[total] = at
                    total += 1
                stack[level] -= 1
                if stack[level] > 0:
                    step = program[step + 1]
                    continue
                stack[level] = 0
                if block_end >= 0 and marked and at != block_end:
                    reason = BAD_BLOCK
                    break
                block_end = -1 if marked else block_end
                word, more = word_at(data, at), word_at(data, at + 8)
                size = varint_size(word, more)
                if size < 0 or size > end - at:
                    reason = CUT_OFF if size > 0 else -size
                    break
                at += size
                count: Any = varint_value(word, more, size)
                if count == 0:
                    level -= 1
                    step += 3
                    continue
                if count < 0:
                    count = -count
                    word, more = word_at(data, at), word_at(data, at + 8)
                    size = varint_size(word, more)
                    if size < 0 or size > end - at:
                        reason = CUT_OFF if size > 0 else -size
                        break
                    at += size
                    length = varint_value(word, more, size)
                    if length < 0 or length > end - at:
                        reason = BAD_LENGTH
                        break
                    if not marked:
                        at += length
                        continue
                    block_end = at + length
                if count < 0 or count > end - at:
                    reason = BAD_LENGTH
                    break
                if marked and total + count > MAX_ITEMS:
                    reason = TOO_LARGE
                    break
                stack[level] = count
                step = program[step + 1]
            elif op == LIST:
                level += 1
                stack[level] = 0
                step = program[step + 1]
            elif op == UNION:
                word, more = word_at(data, at), word_at(data, at + 8)
                size = varint_size(word, more)
                if size < 0 or size > end - at:
                    reason = CUT_OFF if size > 0 else -size
                    break
                at += size
                number = varint_value(word, more, size)
                if number < 0 or number >= program[step + 1]:
                    reason = BAD_BRANCH
                    break
                step = program[step + 2 + number]
            elif op == JUMP:
                step = program[step + 1]
            elif op == CALL:
                if called == MAX_CALLS:
                    reason = TOO_DEEP
                    break
                calls[called] = step + 2
                called += 1
                step = program[step + 1]
            elif op == RETURN:
                called -= 1
                step = calls[called]
            else:
                break
        if reason != 0:
            return fault(row, reason)
        pos[row] = at
        if offsets.size > 0:
            offsets[row + 1] = np.int32(total)
    return nulls
