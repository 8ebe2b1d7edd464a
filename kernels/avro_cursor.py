"""Avro binary under a cursor: varints, lengths, and walking over values that nobody wants.

Shared by ``avro_decode``. A *cursor* is a byte position per record (or per list item); a *fault* is what is wrong with
the bytes under one. Every step checks against the end of its own record, so no bytes, however damaged, lead outside.

A *skip program* is a flat int64 array that says how the values of one type follow each other: ``VARINT``, ``BYTES``,
``FIXED n``, ``NULLABLE null-byte after``, ``UNION count target...``, ``JUMP target``, ``LIST next`` (of the ``NEXT`` at
the end of the items' own program), ``NEXT first-of-items``, ``END``. Items take one byte or more: who makes programs
sees to that. Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s
from ._bytes import load_u64
from ._jit import helper

__all__ = ["IS_NULL", "MOST_ITEMS", "enter_value", "fault", "read_length", "read_varint", "skip_value"]

# What is wrong with bytes; the numbers leave kernels in faults, see `fault`.
CUT_OFF = 1
BAD_VARINT = 2
BAD_LENGTH = 3
BAD_BRANCH = 4
BAD_BOOLEAN = 5
BAD_NUMBER = 6
BAD_BLOCK = 7
BAD_DECIMAL = 8
TOO_LARGE = 9

IS_NULL = -16  # no reason of a fault, so that one number says both

MOST_ITEMS = 2**31 - 1  # that 32-bit Arrow offsets can count

VARINT = 0
BYTES = 1
FIXED = 2
NULLABLE = 3
UNION = 4
JUMP = 5
LIST = 6
NEXT = 7
END = 8

_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_LOW_BITS = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)


@helper
def fault(row: Int, reason: Int) -> Int:
    """What a kernel returns that stops at ``row`` for ``reason`` (1 to 15): a negative number that holds both."""
    return -(np.int64(row) * 16 + reason)


@helper
def _read_slowly(data: Bytes, at: Int, end: Int) -> tuple[Int, Int]:
    raw = np.uint64(0)
    for i in range(10):
        if at + i >= end:
            return np.int64(0), np.int64(-CUT_OFF)
        byte = np.uint64(data[at + i])
        if i == 9 and byte > _ONE:
            break
        raw |= (byte & np.uint64(0x7F)) << np.uint64(7 * i)
        if byte < np.uint64(0x80):
            return np.int64(raw >> _ONE) ^ -np.int64(raw & _ONE), np.int64(at + i + 1)
    return np.int64(0), np.int64(-BAD_VARINT)


@helper
def read_varint(data: Bytes, at: Int, end: Int) -> tuple[Int, Int]:
    """A zig-zag number of up to ten bytes.

    Args:
        data: uint8[].
        at: where it begins; not negative.
        end: of the record, at most ``data.size``.

    Returns:
        The number, and where the next value begins, or a negative reason.
    """
    if at + 8 > data.size:
        return _read_slowly(data, at, end)
    word = load_u64(data, at)
    if word & np.uint64(0x80) == np.uint64(0):
        raw = word & np.uint64(0x7F)
        after = np.int64(at + 1)
    else:
        stops = ~word & _HIGH_BITS
        if stops == np.uint64(0):
            return _read_slowly(data, at, end)
        # all bits up to the top one of the first byte without a continuation bit
        own = stops ^ (stops - _ONE)
        after = np.int64(at) + np.int64(((own & _LOW_BITS) * _LOW_BITS) >> np.uint64(56))
        raw = word & own & _LOW_SEVEN
        raw = (raw & np.uint64(0x007F007F007F007F)) | ((raw & np.uint64(0x7F007F007F007F00)) >> _ONE)
        raw = (raw & np.uint64(0x00003FFF00003FFF)) | ((raw & np.uint64(0x3FFF00003FFF0000)) >> np.uint64(2))
        raw = (raw & np.uint64(0x000000000FFFFFFF)) | ((raw & np.uint64(0x0FFFFFFF00000000)) >> np.uint64(4))
    if after > end:
        return np.int64(0), np.int64(-CUT_OFF)
    return np.int64(raw >> _ONE) ^ -np.int64(raw & _ONE), after


@helper
def read_length(data: Bytes, at: Int, end: Int) -> tuple[Int, Int]:
    """The length in front of a string or of bytes.

    Args:
        data: uint8[].
        at: where it begins; not negative.
        end: of the record, at most ``data.size``.

    Returns:
        The length and where the bytes begin; all of them lie before ``end``. Or anything and a negative reason.
    """
    length, after = read_varint(data, at, end)
    if after >= 0 and (length < 0 or length > end - after):
        return np.int64(0), np.int64(-BAD_LENGTH)
    return length, after


@helper
def enter_value(data: Bytes, at: Int, end: Int, null: Int) -> Int:
    """The branch of a union of null and one type.

    Args:
        data: uint8[].
        at: where the branch is; not negative.
        end: of the record, at most ``data.size``.
        null: the byte that stands for null, 0 or 2; -1 when there is no union.

    Returns:
        Where the value begins; IS_NULL; or another negative reason.
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
def skip_value(data: Bytes, at: Int, end: Int, program: Int64s, stack: Int64s) -> Int:
    """Walk over one value.

    Args:
        data: uint8[].
        at: where it begins; not negative.
        end: of the record, at most ``data.size``.
        program: int64[], see the module docstring.
        stack: int64[depth of lists within lists + 1], scratch.

    Returns:
        Where the next value begins, or a negative reason.
    """
    step: Any = np.int64(0)
    depth: Any = np.int64(-1)
    while True:
        op = program[step]
        if op == VARINT:
            _, at = read_varint(data, at, end)
            step += 1
        elif op == BYTES:
            length, at = read_length(data, at, end)
            at += length
            step += 1
        elif op == FIXED:
            if program[step + 1] > end - at:
                return np.int64(-CUT_OFF)
            at = np.int64(at + program[step + 1])
            step += 2
        elif op == NULLABLE:
            if at >= end:
                return np.int64(-CUT_OFF)
            branch = np.int64(data[at])
            at += 1
            if branch == program[step + 1]:
                step = program[step + 2]
            elif branch == 2 - program[step + 1]:
                step += 3
            else:
                return np.int64(-BAD_BRANCH)
        elif op == LIST:
            depth += 1
            stack[depth] = 0
            step = program[step + 1]
        elif op == NEXT:
            stack[depth] -= 1
            if stack[depth] > 0:
                step = program[step + 1]
            else:
                count, at = read_varint(data, at, end)
                if at >= 0:
                    stack[depth] = max(count, 0)
                    if count == 0:
                        depth -= 1
                        step += 2
                    elif count < 0:
                        size, at = read_length(data, at, end)
                        at += size
                    elif count > end - at:
                        return np.int64(-BAD_LENGTH)
                    else:
                        step = program[step + 1]
        elif op == UNION:
            number, at = read_varint(data, at, end)
            if at >= 0:
                if number < 0 or number >= program[step + 1]:
                    return np.int64(-BAD_BRANCH)
                step = program[step + 2 + number]
        elif op == JUMP:
            step = program[step + 1]
        else:
            return np.int64(at)
        if at < 0:
            return np.int64(at)
