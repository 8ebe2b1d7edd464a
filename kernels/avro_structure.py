"""The structure of Avro records: cursor, text and frames.

Avro binary under a cursor: varints, lengths, union branches, and programs that skip values.

Shared by ``avro_decode`` and ``avro_structure``. A *cursor* is a byte position per record (or per list item). A *fault*
is the reason why the bytes under a cursor are invalid. Every step checks the end of its own record, so damaged bytes
cannot lead outside.

A *walk program* is a flat int64 array that describes how the values of a type follow each other. Its steps are
``VARINT``, ``BYTES``, ``FIXED n``, ``NULLABLE null-byte after``, ``UNION count target...``, ``JUMP target``,
``LIST next`` (the position of the ``NEXT`` that ends the items' steps), ``NEXT first-of-items marked``, ``CALL target``
(the steps of a record that contains itself, up to ``RETURN``), and ``END``. With ``ITEM`` before the items' steps and
``marked`` 1, the positions of the items are recorded; a program may mark only one list, which must not be nested. Items
take at least one byte; the code that builds programs ensures this. Source: Avro 1.11 specification, "Binary Encoding".

UTF-8 validation: in one pass while the bytes are ASCII, else value by value.

The structure of Avro records for ``avro_decode``: frames, unions around records, items of lists, skipped columns.

Shared arguments and results: see ``avro_decode``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s, Offsets
from ._bytes import load_u64
from ._declared import helper
from ._kernel import kernel

__all__ = [
    "IS_NULL",
    "MAX_CALLS",
    "MAX_ITEMS",
    "enter_value",
    "fault",
    "find_invalid_utf8",
    "frame_records",
    "read_branches",
    "swapped",
    "varint_size",
    "varint_value",
    "walk_values",
    "word_at",
]

# Reasons of faults; kernels return them through `fault`.
CUT_OFF = 1
BAD_VARINT = 2
BAD_LENGTH = 3
BAD_BRANCH = 4
BAD_BOOLEAN = 5
BAD_NUMBER = 6
BAD_BLOCK = 7
BAD_DECIMAL = 8
TOO_LARGE = 9
TOO_DEEP = 10

IS_NULL = -16  # differs from the reasons of all faults, so one number can hold either

MAX_ITEMS = 2**31 - 1  # of 32-bit Arrow offsets
MAX_CALLS = 1000
"""Maximum levels of records that contain themselves."""

VARINT = 0
BYTES = 1
FIXED = 2
NULLABLE = 3
UNION = 4
JUMP = 5
LIST = 6
NEXT = 7
ITEM = 8
END = 9
CALL = 10
RETURN = 11

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_LOW_BITS = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)


@helper
def fault(row: Int, reason: Int) -> Int:
    """The result of a kernel that stops at ``row`` for ``reason`` (1 to 15): a negative number that encodes both."""
    return -(np.int64(row) * 16 + reason)


# These helpers take and return numbers and have no loops, so they are inlined. Passing an array to a function would
# cost more than the work here, because the array's references are counted.


@helper
def word_at(data: Bytes, at: Int) -> Any:
    """Eight bytes of ``data`` uint8[8 or more] from ``at`` on, little endian, as uint64; zeros after its end."""
    if at + 8 <= data.size:
        return load_u64(data, at)
    missing = at + 8 - data.size
    if missing >= 8 or data.size < 8:
        return np.uint64(0)
    return load_u64(data, data.size - 8) >> np.uint64(8 * missing)


@helper
def swapped(word: Any) -> Any:
    """``word`` uint64 with its bytes reversed."""
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) << np.uint64(8)) | (
        (word >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    )
    word = ((word & np.uint64(0x0000FFFF0000FFFF)) << np.uint64(16)) | (
        (word >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    )
    return (word << np.uint64(32)) | (word >> np.uint64(32))


@helper
def varint_size(word: Any, more: Any) -> Int:
    """The size of a zig-zag number in bytes, 1 to 10; or -BAD_VARINT.

    ``word`` has the first eight bytes, ``more`` the next eight, which are used if the number does not end in ``word``.
    """
    if word & np.uint64(0x80) == np.uint64(0):
        return np.int64(1)
    stops = ~word & _HIGH_BITS
    if stops != np.uint64(0):
        # one bit in each byte up to the first without a continuation bit
        own = (stops ^ (stops - _ONE)) & _LOW_BITS
        return np.int64((own * _LOW_BITS) >> np.uint64(56))
    if more & np.uint64(0x80) == np.uint64(0):
        return np.int64(9)
    return np.int64(10) if (more >> np.uint64(8)) & np.uint64(0xFF) <= _ONE else np.int64(-BAD_VARINT)


@helper
def varint_value(word: Any, more: Any, size: Int) -> Int:
    """The number in the first ``size`` bytes of ``word`` and ``more``, see :func:`varint_size`."""
    if size == 1:
        raw = word & np.uint64(0x7F)
    else:
        raw = word & (_LOW_SEVEN >> np.uint64(64 - 8 * min(size, 8)))
        raw = (raw & np.uint64(0x007F007F007F007F)) | ((raw & np.uint64(0x7F007F007F007F00)) >> _ONE)
        raw = (raw & np.uint64(0x00003FFF00003FFF)) | ((raw & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
        raw = (raw & np.uint64(0x000000000FFFFFFF)) | ((raw & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
        if size > 8:
            raw |= (more & np.uint64(0x7F)) << np.uint64(56)
        if size > 9:
            raw |= (more & np.uint64(0x100)) << np.uint64(55)
    return np.int64(raw >> _ONE) ^ -np.int64(raw & _ONE)


@helper
def enter_value(data: Bytes, at: Int, end: Int, null: Int) -> Int:
    """Read the branch of a union of null and one type.

    Args:
        data: uint8[].
        at: position of the branch; not negative.
        end: end of the record, at most ``data.size``.
        null: the branch byte of null, 0 or 2; -1 without a union.

    Returns:
        The position of the value; IS_NULL; or another negative reason.
    """
    if null < 0:
        return np.int64(at)
    if at >= end:
        return np.int64(-CUT_OFF)
    branch = np.int64(data[at])
    if branch == null:
        return np.int64(IS_NULL)
    return np.int64(at + 1) if branch == 2 - null else np.int64(-BAD_BRANCH)


@helper
def _utf8_length(data: Bytes, at: Int, end: Int) -> Int:
    """Bytes of the character at ``at``, or 0 if it is not valid UTF-8 (Unicode 15, table 3-7)."""
    first = np.int64(data[at])
    if first < 0x80:
        return np.int64(1)
    if first < 0xC2 or first > 0xF4:
        return np.int64(0)
    size = 2 if first < 0xE0 else (3 if first < 0xF0 else 4)
    if size > end - at:
        return np.int64(0)
    for i in range(1, size):
        if data[at + i] & np.uint8(0xC0) != np.uint8(0x80):
            return np.int64(0)
    second = np.int64(data[at + 1])
    wrong = (
        (first == 0xE0 and second < 0xA0)  # overlong
        or (first == 0xED and second > 0x9F)  # surrogates
        or (first == 0xF0 and second < 0x90)  # overlong
        or (first == 0xF4 and second > 0x8F)  # above U+10FFFF
    )
    return np.int64(0) if wrong else np.int64(size)


@kernel("i8(ri4, ru1)")
def find_invalid_utf8(offsets: Offsets, data: Bytes) -> Int:
    """The first of n values, ``offsets`` int32[n + 1] into ``data`` uint8[], that is not valid UTF-8, or -1."""
    rows = offsets.size - 1
    at = np.int64(offsets[0])
    end = np.int64(offsets[rows])
    seen = np.uint64(0)
    while at + 8 <= end:
        seen |= load_u64(data, at)
        at += 8
    while at < end:
        seen |= np.uint64(data[at])
        at += 1
    if seen & _HIGH_BITS == np.uint64(0):
        return np.int64(-1)
    for row in range(rows):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        while at < end:
            if at + 8 <= end and load_u64(data, at) & _HIGH_BITS == np.uint64(0):
                at += 8
                continue
            size = _utf8_length(data, at, end)
            if size == 0:
                return np.int64(row)
            at += size
    return np.int64(-1)


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
        program: int64[], see above.
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
