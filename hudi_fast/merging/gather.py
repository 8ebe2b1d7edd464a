"""Rows by number: of one table, or of two.

Select rows by number: without a copy for consecutive numbers, by kernels where the column's layout allows.

Build one table from two: the rows of a base file, some of them replaced by incoming rows.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import (
    VARLEN,
    fixed_items,
    is_fixed_width,
    single_chunk,
    string_array,
    validity_bits,
    varlen_buffers,
)
from hudi_fast.kernels.gather import (
    check_changes,
    gather_varlen,
    splice_fixed,
    splice_varlen,
    take_two_bits,
    take_two_fixed,
    take_two_varlen,
)

__all__ = ["gather", "gather_array", "replace_rows", "take_two"]

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
