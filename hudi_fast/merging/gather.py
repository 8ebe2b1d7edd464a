"""Select rows by number: without a copy for consecutive numbers, by kernels where the column's layout allows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import VARLEN, fixed_items, is_fixed_width, string_array, validity_bits, varlen_buffers
from hudi_fast.kernels.gather import gather_varlen, take_two_bits

__all__ = ["gather", "gather_array"]

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
