"""Check in the footer of a Parquet file whether each column chunk fits its column.

A footer is a ``FileMetaData`` in Thrift's compact protocol::

    FileMetaData ─ 2 schema ─ SchemaElement ─ 1 type, 2 type_length, 3 repetition_type, 5 num_children
                 └ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData
    ColumnMetaData ─ 1 type
                   ├ 12 statistics ─ 1, 2, 5, 6 bounds
                   └ 16 size_statistics ─ 1 bytes of texts, 2 and 3 histograms of repetition and definition levels

A chunk has the type of its column. A histogram has a number for each level, or is empty. Bounds of fixed-length bytes
may be truncated: arrow-rs truncates them after 64 bytes. Source: parquet.thrift of Apache Parquet format 2.11; Thrift
compact protocol of Apache Thrift 0.21.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._arrays import Bools, Bytes, Int, Int64s
from ._bytes import read_varint, unfold_sign
from ._declared import helper
from ._kernel import kernel

__all__ = ["ChunkFaults", "chunk_faults"]

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
_TYPE, _LENGTH, _REPETITION, _CHILDREN = 1, 2, 3, 5
_CRYPTO = (8, 9)
_STATISTICS, _SIZES = 12, 16
_TEXT_BYTES, _HISTOGRAMS = 1, (2, 3)

_OPTIONAL, _REPEATED = 1, 2
_BYTE_ARRAY, _FIXED = 6, 7

# Numbers per column: type, maximum repetition and definition levels, bytes of a value (0 if values differ in length).
_PARTS, _WIDTH = 4, 3

_DEPTH = 16
_MOST_LEVELS = 256
_IN_STRUCT = -1
_UNTYPED = -(2**62)
_NONE = -1
_MALFORMED = -2


@helper
def _next_field(data: Bytes, at: Int, number: Int) -> Any:
    """(number, type, position of the value) of the field after ``number``; the position is -1 if it is cut off.

    The position is also -1 if ``at`` is -1.
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
    """(number of elements, their type, position of the first element); the position is -1 if the list is cut off."""
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

    A level of the stack is two numbers: the remaining elements of a list, or -1 for a struct, and their type.
    """
    if kind <= _FALSE:  # the type of the field is its value
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
def _read_schema(data: Bytes, at: Int, columns: Int64s, stack: Int64s, levels: Int64s) -> Any:
    """(leaf columns, position after the list at ``at``); the position is -1 if it is malformed.

    Stores type, maximum repetition and definition levels, and width of each leaf. A level of ``levels`` is three
    numbers: the remaining children of a group, its repetition level and its definition level.
    """
    leaves, depth = np.int64(0), np.int64(-1)
    count, kind, at = _list_head(data, at)
    if kind != _STRUCT and count > 0:
        at = np.int64(-1)
    for element in range(count):
        number, leaf_type, repetition, children = np.int64(0), np.int64(_UNTYPED), np.int64(0), np.int64(0)
        length = np.int64(0)
        while at >= 0:
            number, kind, at = _next_field(data, at, number)
            if at < 0 or kind == _STOP:
                break
            value_at = at
            at = _after(data, at, kind, stack)
            if at >= 0 and kind == _I32:
                bits, _ = read_varint(data, value_at, data.size)
                if number == _TYPE:
                    leaf_type = unfold_sign(bits)
                elif number == _LENGTH:
                    length = unfold_sign(bits)
                elif number == _REPETITION:
                    repetition = unfold_sign(bits)
                elif number == _CHILDREN:
                    children = unfold_sign(bits)
        if at < 0:
            return leaves, np.int64(-1)
        repeats, defines = np.int64(0), np.int64(0)
        if element > 0:  # not the root
            while depth >= 0 and levels[3 * depth] == 0:
                depth -= 1
            if depth < 0:
                return leaves, np.int64(-1)
            levels[3 * depth] -= 1
            repeats = levels[3 * depth + 1] + (repetition == _REPEATED)
            defines = levels[3 * depth + 2] + (repetition == _OPTIONAL or repetition == _REPEATED)
            if children == 0 and leaf_type != _UNTYPED:
                if _WIDTH + _PARTS * leaves < columns.size:
                    at_leaf = _PARTS * leaves
                    columns[at_leaf], columns[at_leaf + 1], columns[at_leaf + 2] = leaf_type, repeats, defines
                    columns[at_leaf + _WIDTH] = length if leaf_type == _FIXED else _width(leaf_type)
                leaves += 1
        if children > 0 or element == 0:
            depth += 1
            if 3 * depth >= levels.size or children < 0:
                return leaves, np.int64(-1)
            levels[3 * depth], levels[3 * depth + 1], levels[3 * depth + 2] = children, repeats, defines
    return leaves, np.int64(at)


@helper
def _width(kind: Int) -> Any:
    """Bytes of a value of a physical type; 0 if values differ in length."""
    if kind == 0:
        return np.int64(1)
    if kind == 1 or kind == 4:
        return np.int64(4)
    if kind == 2 or kind == 5:
        return np.int64(8)
    return np.int64(12) if kind == 3 else np.int64(0)


@helper
def _fit_bounds(data: Bytes, at: Int, columns: Int64s, leaf: Int, stack: Int64s) -> Any:
    """(whether the bounds in the statistics at ``at`` are empty or whole values, position after the statistics)."""
    fit, number = True, np.int64(0)
    while at >= 0:
        number, kind, at = _next_field(data, at, number)
        if at < 0 or kind == _STOP:
            break
        if kind == _BINARY and (number == 1 or number == 2 or number == 5 or number == 6):
            size, _ = read_varint(data, at, data.size)
            if size > 0 and size < columns[_PARTS * leaf + _WIDTH]:
                fit = False
        at = _after(data, at, kind, stack)
    return fit, np.int64(at)


@helper
def _fit_sizes(data: Bytes, at: Int, columns: Int64s, leaf: Int, stack: Int64s) -> Any:
    """(whether the size statistics at ``at`` fit a column, position after the statistics)."""
    fit, number = True, np.int64(0)
    while at >= 0:
        number, kind, at = _next_field(data, at, number)
        if at < 0 or kind == _STOP:
            break
        if kind == _LIST and (number == _HISTOGRAMS[0] or number == _HISTOGRAMS[1]):
            count, _, _ = _list_head(data, at)
            if count > 0 and count != columns[_PARTS * leaf + number - 1] + 1:
                fit = False
        elif number == _TEXT_BYTES and columns[_PARTS * leaf] != _BYTE_ARRAY:
            fit = False
        at = _after(data, at, kind, stack)
    return fit, np.int64(at)


@helper
def _fits(data: Bytes, at: Int, columns: Int64s, leaf: Int, stack: Int64s, short: Bools, chunk: Int) -> Any:
    """(whether the column chunk at ``at`` fits a column, position after it); an encrypted chunk always fits.

    Sets ``short[chunk]`` if its bounds are shorter than values.
    """
    typed, fit, encrypted, number = False, True, False, np.int64(0)
    while at >= 0:
        number, kind, at = _next_field(data, at, number)
        if at < 0 or kind == _STOP:
            break
        if number != _META_DATA or kind != _STRUCT:
            encrypted = encrypted or number == _CRYPTO[0] or number == _CRYPTO[1]
            at = _after(data, at, kind, stack)
            continue
        inner = np.int64(0)
        while at >= 0:
            inner, kind, at = _next_field(data, at, inner)
            if at < 0 or kind == _STOP:
                break
            if inner == _SIZES and kind == _STRUCT:
                inside, at = _fit_sizes(data, at, columns, leaf, stack)
                fit = fit and inside
                continue
            if inner == _STATISTICS and kind == _STRUCT:
                inside, at = _fit_bounds(data, at, columns, leaf, stack)
                if not inside and chunk < short.size:
                    short[chunk] = True
                continue
            if inner == _TYPE and kind == _I32:
                bits, _ = read_varint(data, at, data.size)
                typed = True
                fit = fit and unfold_sign(bits) == columns[_PARTS * leaf]
            at = _after(data, at, kind, stack)
    return encrypted or (typed and fit), np.int64(at)


@kernel("i8(ru1, wi8, wi8, wi8, wb1)")
def _unfit_chunk(data: Bytes, columns: Int64s, stack: Int64s, levels: Int64s, short: Bools) -> Int:
    """The number of the first column chunk that is missing or does not fit; -1 for none, -2 for a malformed footer."""
    at = number = np.int64(0)
    leaves, width = np.int64(-1), np.int64(columns.size // _PARTS)
    while True:
        number, kind, at = _next_field(data, at, number)
        if at < 0:
            return np.int64(_MALFORMED)
        if kind == _STOP:
            return np.int64(_NONE)
        if number == _SCHEMA and kind == _LIST:
            leaves, at = _read_schema(data, at, columns, stack, levels)
            if leaves != width:
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
                        fit = True
                        if leaf < width:
                            fit, at = _fits(data, at, columns, leaf, stack, short, group * width + leaf)
                        else:  # no reader uses this field
                            at = _after(data, at, _STRUCT, stack)
                        if at < 0:
                            return np.int64(_MALFORMED)
                        if not fit:
                            return np.int64(group * width + leaf)
                if at < 0:
                    return np.int64(_MALFORMED)
                if found < width:
                    return np.int64(group * width + found)
        else:
            at = _after(data, at, kind, stack)
            if at < 0:
                return np.int64(_MALFORMED)


class ChunkFaults(NamedTuple):
    """Faults of column chunks.

    Attributes:
        unfit: ``row group * columns + column`` of the first chunk that is missing, has another physical type than its
            column, or has size statistics that its column cannot have. None without such a chunk.
        short: bool[row groups, columns], chunks before that chunk whose bounds are shorter than values.
    """

    unfit: int | None
    short: Bools


def chunk_faults(footer: Bytes, row_groups: int, columns: int) -> ChunkFaults:
    """Compare column chunks with their columns. Encrypted chunks are not checked.

    Args:
        footer: uint8[], a ``FileMetaData``.
        row_groups: number of row groups.
        columns: number of leaf columns.

    Raises:
        ValueError: the footer is malformed, or has another number of columns.
    """
    known, stack, levels = (np.empty(size, np.int64) for size in (_PARTS * columns, 2 * _DEPTH, 3 * _MOST_LEVELS))
    short = np.zeros(row_groups * columns, np.bool_)
    found = int(_unfit_chunk(footer, known, stack, levels, short))
    if found == _MALFORMED:
        raise ValueError(f"the footer is malformed, or has not {columns} columns")
    return ChunkFaults(None if found == _NONE else found, short.reshape(row_groups, columns))
