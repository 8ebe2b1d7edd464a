"""Build one table from two: the rows of a base file, some of them replaced by incoming rows."""

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
from hudi_fast.kernels.gather import take_two_bits, take_two_fixed, take_two_varlen
from hudi_fast.kernels.splice import check_changes, splice_fixed, splice_varlen

__all__ = ["replace_rows", "take_two"]

Selectors = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]

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
    """Changed rows of a base: see :mod:`hudi_fast.kernels.splice`.

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
    validity, nulls = _validity(old, new, changes.selectors) if has_nulls else (None, 0)
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
        return string_array(offsets, data, kind, *_validity(old, new, selectors))
    if is_fixed_width(kind):
        values = take_two_fixed(fixed_items(old), fixed_items(new), selectors)
        validity, nulls = _validity(old, new, selectors)
        return pa.Array.from_buffers(kind, len(selectors), [validity, pa.py_buffer(values)], nulls)
    chosen = np.where(selectors >= 0, selectors, len(old) - 1 - selectors)
    return pa.concat_arrays([old, new]).take(pa.array(chosen))


def _validity(old: pa.Array, new: pa.Array, selectors: Selectors) -> tuple[pa.Buffer | None, int]:
    if old.null_count == 0 and new.null_count == 0:
        return None, 0
    bits, valid = take_two_bits(
        validity_bits(old), old.offset, len(old), validity_bits(new), new.offset, len(new), selectors
    )
    return pa.py_buffer(bits), len(selectors) - int(valid)
