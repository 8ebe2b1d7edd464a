"""Rows of columns by number, without a copy where the numbers are a run."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["gather", "gather_array"]


def gather(table: pa.Table, rows: npt.NDArray[np.int64]) -> pa.Table:
    """Rows of ``table``: ``rows`` is int64[n], any order."""
    start = _run_start(rows)
    return table.take(pa.array(rows)) if start is None else table.slice(start, len(rows))


def gather_array(array: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Values of ``array``: ``rows`` is int64[n], any order."""
    start = _run_start(rows)
    return array.take(pa.array(rows)) if start is None else array.slice(start, len(rows))


def _run_start(rows: npt.NDArray[np.int64]) -> int | None:
    """The first row when ``rows`` counts up by one; None otherwise."""
    if len(rows) == 0:
        return 0
    if rows[-1] - rows[0] != len(rows) - 1 or not (np.diff(rows) == 1).all():
        return None
    return int(rows[0])
