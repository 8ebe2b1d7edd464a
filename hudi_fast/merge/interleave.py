"""Rows from two sources into one column: the base file's rows with some replaced by incoming ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["replace_rows"]


def replace_rows(
    base: pa.Table,
    updates: pa.Table,
    positions: npt.NDArray[np.int64],
    dropped: npt.NDArray[np.int64],
) -> pa.Table:
    """``base`` with the rows at ``positions`` replaced by ``updates``, and the rows at ``dropped`` left out.

    Args:
        base: n rows.
        updates: m rows, same columns and types.
        positions: int64[m], ascending, distinct, each below n: row of ``base`` that row i of ``updates`` replaces.
        dropped: int64[d], ascending, none of them in ``positions``.
    """
    selector = np.arange(base.num_rows, dtype=np.int64)
    selector[positions] = base.num_rows + np.arange(updates.num_rows, dtype=np.int64)
    if len(dropped):
        selector = np.delete(selector, dropped)
    joined = pa.concat_tables([base, updates]).combine_chunks()
    return joined.take(pa.array(selector))
