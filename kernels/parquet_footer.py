"""Footers of Parquet files: whether each column chunk has the type of its column.

A footer is a ``FileMetaData`` in Thrift's compact protocol::

    FileMetaData ─ 2 schema ─ SchemaElement ─ 1 type, 5 num_children
                 └ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData ─ 1 type

Source: parquet.thrift of Apache Parquet format 2.11; Thrift compact protocol of Apache Thrift 0.21.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Bytes, Int, Int64s
from ._bytes import read_varint, unfold_sign
from ._kernel import helper, kernel

__all__ = ["foreign_chunk"]

# Types of the protocol.
_STOP = 0
_FALSE = 2
_BYTE = 3
_I16 = 4
_I32 = 5
_I64 = 6
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12

# Field numbers.
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA = 2, 4, 1, 3
_TYPE, _CHILDREN = 1, 5
_CRYPTO = (8, 9)

_DEPTH = 16
_UNTYPED = -(2**62)
_IN_STRUCT = -1
_NONE = -1
_MALFORMED = -2


@helper
def _next_field(data: Bytes, at: Int, number: Int) -> Any:
    """(number, type, position of the value) of the field after ``number``; the position is -1 if it is cut off.

    So it is if ``at`` is -1.
    """
    if at < 0 or at >= data.size:
        return np.int64(0), np.int64(_STOP), np.int64(-1)
    head = np.int64(data[at])
    at += 1
    if head >> 4:
        return np.int64(number + (head >> 4)), head & 15, np.int64(at)
    if head == _STOP:
        return np.int64(0), np.int64(_STOP), np.int64(at)
    bits, after = read_varint(data, at, data.size)
    return unfold_sign(bits), head & 15, after


@helper
def _list_head(data: Bytes, at: Int) -> Any:
    """(elements, their type, position of the first); the position is -1 if it is cut off."""
    if at >= data.size:
        return np.int64(0), np.int64(_STOP), np.int64(-1)
    head = np.int64(data[at])
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = read_varint(data, at, data.size)
    if count < 0 or count > data.size:
        return np.int64(0), np.int64(_STOP), np.int64(-1)
    return np.int64(count), head & 15, np.int64(at)


@helper
def _after(data: Bytes, at: Int, kind: Int, stack: Int64s) -> Any:
    """Position after the value at ``at``; -1 if it is cut off, nests deeper than ``stack``, or has an unknown type.

    A level of the stack is two numbers: the elements of a list that are left, and their type. -1 is a struct.
    """
    if kind <= _FALSE:  # a field's type is its value
        return np.int64(at)
    depth = np.int64(0)
    stack[0] = 1
    stack[1] = kind
    while depth >= 0:
        left = stack[2 * depth]
        if left == _IN_STRUCT:
            _, kind, at = _next_field(data, at, 0)
            if at < 0:
                return np.int64(-1)
            if kind == _STOP:
                depth -= 1
            if kind <= _FALSE:
                continue
        elif left == 0:
            depth -= 1
            continue
        else:
            stack[2 * depth] = left - 1
            kind = stack[2 * depth + 1]
        if kind <= _BYTE:
            at += 1
        elif kind <= _I64:
            _, at = read_varint(data, at, data.size)
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = read_varint(data, at, data.size)
            at = at + size if at >= 0 and size >= 0 and size <= data.size - at else np.int64(-1)
        elif kind == _LIST or kind == _SET or kind == _STRUCT:
            depth += 1
            if 2 * depth >= stack.size:
                return np.int64(-1)
            stack[2 * depth] = _IN_STRUCT
            if kind != _STRUCT:
                count, item, at = _list_head(data, at)
                stack[2 * depth], stack[2 * depth + 1] = count, item
        else:
            return np.int64(-1)
        if at < 0 or at > data.size:
            return np.int64(-1)
    return np.int64(at)


@helper
def _read_schema(data: Bytes, at: Int, types: Int64s, stack: Int64s) -> Any:
    """(leaf columns, position after the list at ``at``); stores the types of leaves. Position -1 if malformed."""
    leaves = np.int64(0)
    count, kind, at = _list_head(data, at)
    if kind != _STRUCT and count > 0:
        at = np.int64(-1)
    for element in range(count):
        number, leaf_type, children = np.int64(0), np.int64(_UNTYPED), np.int64(0)
        while at >= 0:
            number, kind, at = _next_field(data, at, number)
            if at < 0 or kind == _STOP:
                break
            value_at = at
            at = _after(data, at, kind, stack)
            if at >= 0 and kind == _I32 and (number == _TYPE or number == _CHILDREN):
                bits, _ = read_varint(data, value_at, data.size)
                if number == _TYPE:
                    leaf_type = unfold_sign(bits)
                else:
                    children = unfold_sign(bits)
        if at < 0:
            return leaves, np.int64(-1)
        if element > 0 and children == 0 and leaf_type != _UNTYPED:  # neither the root nor a group
            if leaves < types.size:
                types[leaves] = leaf_type
            leaves += 1
    return leaves, np.int64(at)


@helper
def _chunk_type(data: Bytes, at: Int, expected: Int, stack: Int64s) -> Any:
    """(type, position after the column chunk at ``at``); of an encrypted chunk ``expected``, without a type -2^62."""
    found, number = np.int64(_UNTYPED), np.int64(0)
    while at >= 0:
        number, kind, at = _next_field(data, at, number)
        if at < 0 or kind == _STOP:
            break
        if number == _META_DATA and kind == _STRUCT:
            inner = np.int64(0)
            while at >= 0:
                inner, kind, at = _next_field(data, at, inner)
                if at < 0 or kind == _STOP:
                    break
                if inner == _TYPE and kind == _I32:
                    bits, _ = read_varint(data, at, data.size)
                    found = unfold_sign(bits)
                at = _after(data, at, kind, stack)
        else:
            if number == _CRYPTO[0] or number == _CRYPTO[1]:
                found = np.int64(expected)
            at = _after(data, at, kind, stack)
    return found, np.int64(at)


@kernel("i8(ru1, wi8, wi8)")
def _foreign_chunk(data: Bytes, types: Int64s, stack: Int64s) -> Int:
    """The number of the first column chunk that is missing or has another type; -1 for none, -2 if malformed."""
    at = number = np.int64(0)
    leaves = np.int64(-1)
    while True:
        number, kind, at = _next_field(data, at, number)
        if at < 0:
            return np.int64(_MALFORMED)
        if kind == _STOP:
            return np.int64(_NONE)
        if number == _SCHEMA and kind == _LIST:
            leaves, at = _read_schema(data, at, types, stack)
            if leaves != types.size:
                return np.int64(_MALFORMED)
        elif number == _ROW_GROUPS and kind == _LIST:
            groups, kind, at = _list_head(data, at)
            if (kind != _STRUCT and groups > 0) or leaves < 0:
                return np.int64(_MALFORMED)
            for group in range(groups):
                inner, found = np.int64(0), np.int64(0)
                while at >= 0:
                    inner, kind, at = _next_field(data, at, inner)
                    if at < 0 or kind == _STOP:
                        break
                    if inner != _COLUMNS or kind != _LIST:
                        at = _after(data, at, kind, stack)
                        continue
                    found, kind, at = _list_head(data, at)
                    if kind != _STRUCT and found > 0:
                        return np.int64(_MALFORMED)
                    for leaf in range(found):
                        expected = types[leaf] if leaf < leaves else np.int64(_UNTYPED)
                        chunk_type, at = _chunk_type(data, at, expected, stack)
                        if at < 0:
                            return np.int64(_MALFORMED)
                        if chunk_type != expected or leaf >= leaves:
                            return np.int64(group * leaves + leaf)
                if at < 0:
                    return np.int64(_MALFORMED)
                if found != leaves:
                    return np.int64(group * leaves + found)
        else:
            at = _after(data, at, kind, stack)
            if at < 0:
                return np.int64(_MALFORMED)


def foreign_chunk(footer: Bytes, columns: int) -> int | None:
    """Find the first column chunk that is missing, or has another physical type than its column.

    Encrypted chunks are taken as right.

    Args:
        footer: uint8[], a ``FileMetaData``.
        columns: number of leaf columns.

    Returns:
        Row group times ``columns`` plus column. None if each chunk is as it ought to be.

    Raises:
        ValueError: the footer is malformed, or has another number of columns.
    """
    found = int(_foreign_chunk(footer, np.empty(columns, np.int64), np.empty(2 * _DEPTH, np.int64)))
    if found == _MALFORMED:
        raise ValueError(f"the footer is malformed, or has not {columns} columns")
    return None if found == _NONE else found
