"""Arrow arrays as the buffers that kernels use, and rows of tables by number.

Strings and binaries, fixed-width items and validity are taken apart and put together again. Rows are gathered without a
copy for consecutive numbers, and by kernels where the column's layout allows. One table is made from two: the rows of a
base file, some of them replaced by incoming rows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.errors import InvalidDataError
from hudi_fast.kernels.gather import (
    check_changes,
    gather_varlen,
    splice_fixed,
    splice_varlen,
    take_two_bits,
    take_two_fixed,
    take_two_varlen,
)
from hudi_fast.values import cached_property

__all__ = [
    "VARLEN",
    "VarlenBuffers",
    "compact",
    "fixed_items",
    "gather",
    "gather_array",
    "is_fixed_width",
    "replace_rows",
    "single_chunk",
    "string_array",
    "take_two",
    "validity_bits",
    "varlen_buffers",
]

VARLEN = frozenset({pa.string(), pa.binary()})
"""Types whose arrays have int32 offsets and bytes."""

_EMPTY = np.zeros(0, dtype=np.uint8)
_ITEMS: dict[int, type[np.generic]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64, 128: np.complex128}


class VarlenBuffers(NamedTuple):
    """Views of an array's buffers; they keep the array's memory.

    Attributes:
        offsets: int32[n+1]; need not begin at 0 (sliced arrays).
        data: uint8[at least offsets[n]].
    """

    offsets: npt.NDArray[np.int32]
    data: npt.NDArray[np.uint8]


def varlen_buffers(array: pa.Array) -> VarlenBuffers:
    """The offsets and data of a string or binary array (32-bit offsets) of n values, without a copy."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return VarlenBuffers(np.zeros(1, dtype=np.int32), _EMPTY)
    bounds = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return VarlenBuffers(bounds, _EMPTY if data is None else np.frombuffer(data, dtype=np.uint8))


def string_array(
    offsets: npt.NDArray[np.int32],
    data: npt.NDArray[np.uint8],
    kind: pa.DataType | None = None,
    validity: pa.Buffer | None = None,
    nulls: int = 0,
) -> pa.Array:
    """Wrap buffers as a string array, or an array of type ``kind``, without a copy."""
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind or pa.string(), len(offsets) - 1, buffers, nulls)


def is_fixed_width(kind: pa.DataType) -> bool:
    """Whether values of the type are items of 1, 2, 4, 8 or 16 bytes."""
    return (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and kind.bit_width in _ITEMS


def fixed_items(array: pa.Array) -> npt.NDArray[np.generic]:
    """The values of a fixed-width array as opaque items, without a copy; undefined for nulls."""
    dtype = _ITEMS[array.type.bit_width]
    values = array.buffers()[1]
    if values is None or len(array) == 0:
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(values, dtype=dtype)[array.offset : array.offset + len(array)]


def validity_bits(array: pa.Array) -> npt.NDArray[np.uint8] | None:
    """The validity bitmap, least significant bit first, from bit ``array.offset`` on; None without nulls."""
    bits = array.buffers()[0]
    return None if bits is None or array.null_count == 0 else np.frombuffer(bits, dtype=np.uint8)


def single_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one array.

    Raises:
        InvalidDataError: the column is too large for one array (2 GiB).
    """
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        if joined.num_chunks > 1:
            raise InvalidDataError(
                f"A column of {column.nbytes} bytes does not fit one Arrow array (2 GiB); write fewer rows at once."
            )
        return joined.chunk(0) if joined.num_chunks else pa.array([], column.type)
    return joined


def compact(values: pa.Array) -> pa.Array:
    """The values in arrays without slice offsets, for writers that misread the offsets of nested arrays.

    Arrow's ORC writer would misread the validity of parts of a struct, and pylance would panic.
    """
    return values.take(pa.array(np.arange(len(values)))) if _has_offset(values) else values


def _has_offset(values: pa.Array) -> bool:
    kind = values.type
    if values.offset or not pa.types.is_nested(kind):
        return bool(values.offset)
    if pa.types.is_struct(kind):
        return any(_has_offset(values.field(number)) for number in range(kind.num_fields))
    parts = (values.keys, values.items) if pa.types.is_map(kind) else (values.values,)
    return any(_has_offset(one) for one in parts)


Rows = npt.NDArray[np.int64]


def gather(table: pa.Table, rows: Rows) -> pa.Table:
    """Rows of ``table`` by number: int64[n], any order. Single-chunk columns are several times faster."""
    start = _run_start(rows)
    if start is not None:
        return table.slice(start, len(rows))
    columns = [_take(column, rows) for column in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def gather_array(array: pa.Array, rows: Rows) -> pa.Array:
    """Values of ``array`` by number: int64[n], any order."""
    start = _run_start(rows)
    return _take_array(array, rows) if start is None else array.slice(start, len(rows))


def _take(column: pa.ChunkedArray, rows: Rows) -> pa.ChunkedArray | pa.Array:
    return _take_array(column.chunk(0), rows) if column.num_chunks == 1 else column.take(pa.array(rows))


def _take_array(array: pa.Array, rows: Rows) -> pa.Array:
    kind = array.type
    if kind in VARLEN:
        buffers = varlen_buffers(array)
        return string_array(*gather_varlen(buffers.offsets, buffers.data, rows), kind, *_validity(array, rows))
    if is_fixed_width(kind) and len(array):
        validity, nulls = _validity(array, rows)
        return pa.Array.from_buffers(kind, len(rows), [validity, pa.py_buffer(fixed_items(array)[rows])], nulls)
    return array.take(pa.array(rows))


def _validity(array: pa.Array, rows: Rows) -> tuple[pa.Buffer | None, int]:
    bits = validity_bits(array)
    if bits is None:
        return None, 0
    taken, valid = take_two_bits(bits, array.offset, len(array), None, 0, 0, rows.astype(np.int32))
    return pa.py_buffer(taken), len(rows) - valid


def _run_start(rows: Rows) -> int | None:
    """The first row when ``rows`` counts up by one, else None."""
    if len(rows) == 0:
        return 0
    if rows[-1] - rows[0] != len(rows) - 1 or not (np.diff(rows) == 1).all():
        return None
    return int(rows[0])


Selectors = npt.NDArray[np.int32]

_FEW = 6
"""Runs between changed rows are copied as a whole if at most one row in this many changes."""


def replace_rows(
    base: pa.Table,
    updates: pa.Table,
    positions: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.int64],
    kept: Collection[str] = (),
) -> pa.Table:
    """``base`` with the rows at ``positions`` replaced by ``updates`` and the rows at ``dropped`` removed.

    Args:
        base: n rows, n below 2^31.
        updates: m rows, same columns and types.
        positions: int64[m], ascending, distinct, each below n: row of ``base`` that row i of ``updates`` replaces.
        dropped: int64[d], ascending, none of them in ``positions``.
        kept: columns in which each row of ``updates`` has the value of the row that it replaces.
    """
    changes = _Changes(base.num_rows, positions, dropped)
    check_changes(changes.rows, changes.sources, base.num_rows, updates.num_rows)
    columns = [
        old if name in kept and not len(dropped) else _changed(single_chunk(old), single_chunk(new), changes)
        for name, old, new in zip(base.column_names, base.columns, updates.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=base.schema)


class _Changes:
    """Changed rows of a base: see :mod:`hudi_fast.kernels.gather`.

    Args:
        count: rows of the base.
        positions: row i of the updates replaces the row at ``positions[i]``.
        dropped: the rows at these positions are removed.
    """

    def __init__(self, count: int, positions: Rows, dropped: Rows) -> None:
        self.count = count
        self.rows, self.sources = positions, np.arange(len(positions), dtype=np.int64)
        if len(dropped):
            rows = np.concatenate([positions, dropped])
            order = np.argsort(rows)
            self.rows = rows[order]
            self.sources = np.concatenate([self.sources, np.full(len(dropped), -1)])[order]

    @property
    def are_few(self) -> bool:
        """Whether most rows stay, so that runs of unchanged rows are long enough to be copied as a whole."""
        return len(self.rows) * _FEW <= self.count

    @cached_property
    def selectors(self) -> Selectors:
        """The changes as selectors for :func:`take_two`."""
        found = np.arange(self.count, dtype=np.int32)
        found[self.rows] = -1 - self.sources
        return np.delete(found, self.rows[self.sources < 0])


def _changed(old: pa.Array, new: pa.Array, changes: _Changes) -> pa.Array:
    kind = old.type
    if not changes.are_few or not (kind in VARLEN or is_fixed_width(kind)):
        return take_two(old, new, changes.selectors)
    has_nulls = bool(old.null_count or new.null_count)
    validity, nulls = _two_validities(old, new, changes.selectors) if has_nulls else (None, 0)
    if kind in VARLEN:
        a, b = varlen_buffers(old), varlen_buffers(new)
        offsets, data = splice_varlen(a.offsets, a.data, b.offsets, b.data, changes.rows, changes.sources)
        return string_array(offsets, data, kind, validity, nulls)
    values = splice_fixed(fixed_items(old), fixed_items(new), changes.rows, changes.sources)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)], nulls)


def take_two(old: pa.Array, new: pa.Array, selectors: Selectors) -> pa.Array:
    """Values of ``old`` where the selector is i >= 0, of ``new`` (at -1 - i) where it is negative.

    ``old`` and ``new`` have the same type; ``selectors`` is int32[k].
    """
    kind = old.type
    if kind in VARLEN:
        a, b = varlen_buffers(old), varlen_buffers(new)
        offsets, data = take_two_varlen(a.offsets, a.data, b.offsets, b.data, selectors)
        return string_array(offsets, data, kind, *_two_validities(old, new, selectors))
    if is_fixed_width(kind):
        values = take_two_fixed(fixed_items(old), fixed_items(new), selectors)
        validity, nulls = _two_validities(old, new, selectors)
        return pa.Array.from_buffers(kind, len(selectors), [validity, pa.py_buffer(values)], nulls)
    chosen = np.where(selectors >= 0, selectors, len(old) - 1 - selectors)
    return pa.concat_arrays([old, new]).take(pa.array(chosen))


def _two_validities(old: pa.Array, new: pa.Array, selectors: Selectors) -> tuple[pa.Buffer | None, int]:
    if old.null_count == 0 and new.null_count == 0:
        return None, 0
    bits, valid = take_two_bits(
        validity_bits(old), old.offset, len(old), validity_bits(new), new.offset, len(new), selectors
    )
    return pa.py_buffer(bits), len(selectors) - int(valid)
