"""Rows of one batch that share a key are combined before they are written.

The rules are those for log records (:mod:`hudi_fast.merge.rules`): the row with the greatest ordering value stays, of
equals the later one, and a commit-time delete beats every row before it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import VarlenBuffers, varlen_buffers
from hudi_fast.kernels.key_table import pick_winners

__all__ = ["combine"]


def combine(
    keys: pa.Array,
    rank: npt.NDArray[np.int64],
    commit_time_deletes: npt.NDArray[np.bool_] | None,
) -> npt.NDArray[np.int64]:
    """Row numbers of the rows that stay, ascending.

    Args:
        keys: record keys, no nulls; string, n rows.
        rank: int64[n], see :func:`hudi_fast.merge.rules.ordering_rank`.
        commit_time_deletes: bool[n], deletes with the default ordering value; None for none.
    """
    buffers = varlen_buffers(keys)
    if commit_time_deletes is None or not commit_time_deletes.any():
        return pick_winners(buffers.offsets, buffers.data, rank)
    return _combine_with_deletes(buffers, keys, rank, commit_time_deletes)


def _combine_with_deletes(
    buffers: VarlenBuffers, keys: pa.Array, rank: npt.NDArray[np.int64], deletes: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Drop what stands before a key's last commit-time delete; that delete then loses to anything after it."""
    codes = keys.dictionary_encode().indices.to_numpy()
    last_delete = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    positions = np.flatnonzero(deletes)
    last_delete[codes[positions]] = positions  # ascending, so the last one stays
    rows = np.arange(len(codes), dtype=np.int64)
    after = np.flatnonzero(rows >= last_delete[codes])
    adjusted = rank.copy()
    adjusted[positions] = np.iinfo(np.int64).min
    kept = varlen_buffers(keys.take(pa.array(after)))
    winners: npt.NDArray[np.int64] = after[pick_winners(kept.offsets, kept.data, adjusted[after])]
    return winners
