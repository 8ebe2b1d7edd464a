"""Build one table from rows of two: a base file's rows with some replaced by incoming ones."""

from __future__ import annotations

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

__all__ = ["replace_rows", "take_two"]

Selectors = npt.NDArray[np.int32]


def replace_rows(
    base: pa.Table,
    updates: pa.Table,
    positions: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.int64],
) -> pa.Table:
    """``base`` with the rows at ``positions`` replaced by ``updates`` and the rows at ``dropped`` removed.

    Args:
        base: n rows, n below 2^31.
        updates: m rows, same columns and types.
        positions: int64[m], ascending, distinct, each below n: row of ``base`` that row i of ``updates`` replaces.
        dropped: int64[d], ascending, none of them in ``positions``.
    """
    selectors = np.arange(base.num_rows, dtype=np.int32)
    selectors[positions] = -1 - np.arange(updates.num_rows, dtype=np.int32)
    if len(dropped):
        selectors = np.delete(selectors, dropped)
    columns = [
        take_two(single_chunk(old), single_chunk(new), selectors)
        for old, new in zip(base.columns, updates.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=base.schema)


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
