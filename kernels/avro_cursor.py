"""Avro binary under a cursor: varints, lengths, union branches, and programs that skip values.

Shared by ``avro_decode`` and ``avro_structure``. A *cursor* is a byte position per record (or per list item). A *fault*
is the reason why the bytes under a cursor are invalid. Every step checks the end of its own record, so damaged bytes
cannot lead outside.

A *walk program* is a flat int64 array that describes how the values of a type follow each other. Its steps are
``VARINT``, ``BYTES``, ``FIXED n``, ``NULLABLE null-byte after``, ``UNION count target...``, ``JUMP target``,
``LIST next`` (the position of the ``NEXT`` that ends the items' steps), ``NEXT first-of-items marked``, ``CALL target``
(the steps of a record that contains itself, up to ``RETURN``), and ``END``. With ``ITEM`` before the items' steps and
``marked`` 1, the positions of the items are recorded; a program may mark only one list, which must not be nested. Items
take at least one byte; the code that builds programs ensures this. Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int
from ._bytes import load_u64
from ._declared import helper

__all__ = [
    "IS_NULL",
    "MAX_CALLS",
    "MAX_ITEMS",
    "enter_value",
    "fault",
    "swapped",
    "varint_size",
    "varint_value",
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
