"""Combine the rows of one batch that share a key, before the batch is written.

The rules are the same as for log records (:mod:`hudi_fast.merging.rules`): the row with the greatest ordering value is
kept, the later one of equals, and a commit-time delete beats every row before it. Where a merged row may have values of
several rows, :func:`blend_duplicates` replaces each of these rows by the merged row before :func:`combine` keeps one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.varlen import VarlenBuffers, varlen_buffers
from hudi_fast.kernels.key_table import first_equal, pick_winners
from hudi_fast.merging.fold import fold_keyed
from hudi_fast.merging.interleave import replace_rows
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.rules import MergeRules, default_ordering

__all__ = ["blend_duplicates", "combine", "commit_time_deletes"]

Flags = npt.NDArray[np.bool_]


def combine(
    keys: pa.Array,
    rank: npt.NDArray[np.int64],
    commit_time_deletes: Flags | None,
) -> npt.NDArray[np.int64]:
    """Row numbers to keep, ascending.

    Args:
        keys: record keys, no nulls; string, n rows.
        rank: int64[n], see :func:`hudi_fast.merging.rules.ordering_rank`.
        commit_time_deletes: bool[n], deletes with the default ordering value; None for none.
    """
    buffers = varlen_buffers(keys)
    if commit_time_deletes is None or not commit_time_deletes.any():
        return pick_winners(buffers.offsets, buffers.data, rank)
    return _combine_with_deletes(buffers, keys, rank, commit_time_deletes)


def commit_time_deletes(rules: MergeRules, deletes: Flags | None, ordering: Sequence[pa.Array]) -> Flags | None:
    """The rows of a batch that are deletes and win over every row before them.

    ``deletes`` is bool[n], None for none. ``ordering`` is empty when ordering values are not compared.

    Returns:
        bool[n]; None where it makes no difference.
    """
    if deletes is None or not ordering or not deletes.any():
        return None
    return deletes if rules.partial_payload else deletes & default_ordering(ordering, len(deletes))


def blend_duplicates(
    rules: MergeRules,
    keys: pa.Array,
    groups: npt.NDArray[np.int32],
    rows: pa.Table,
    deletes: Flags | None,
    ordering: Sequence[pa.Array],
) -> tuple[pa.Table, Flags | None, tuple[pa.Array, ...]]:
    """Replace each row by the merge of all rows with its key, so any one of them may be kept.

    Args:
        rules: merge rules that blend.
        keys: record keys, no nulls; string, n rows.
        groups: int32[n], the row's table partition, part of its identity.
        rows: n rows.
        deletes: bool[n]; None for none.
        ordering: ordering columns, n values each; empty when ordering values are not compared.

    Returns:
        n rows; the deletes, bool[n] or None for none; and the ordering columns, with the winner's values in all rows of
        a key.
    """
    numbers = _numbers(keys, groups)
    count = len(numbers)
    shared = np.bincount(numbers, minlength=count)[numbers] > 1
    if not shared.any():
        return rows, deletes, tuple(ordering)
    which = np.flatnonzero(shared)
    flags = np.zeros(count, dtype=np.bool_) if deletes is None else deletes
    entries = LogEntries(
        keys=keys.take(pa.array(which)),
        rows=rows,
        row=which,
        deletes=flags[which],
        default_ordering=default_ordering(ordering, count)[which],
        ordering=tuple(column.take(pa.array(which)) for column in ordering),
    )
    _, key = np.unique(numbers[which], return_inverse=True)
    winners, folded = fold_keyed(rules, entries, key.astype(np.int32))
    of_key = np.empty(len(winners), dtype=np.int64)
    of_key[key[winners]] = np.arange(len(winners))
    merged = of_key[key]
    flags = flags.copy()
    flags[which] = folded.deletes[merged]
    stays = ~folded.deletes[merged]
    made = folded.take(folded.row[merged[stays]], rows.column_names)
    rows = replace_rows(rows, made, which[stays], np.zeros(0, dtype=np.int64))
    sources = np.arange(count)
    sources[which] = which[winners[merged]]
    taken = tuple(column.take(pa.array(sources)) for column in ordering)
    return rows, flags if flags.any() else None, taken


def _numbers(keys: pa.Array, groups: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """A number per row, equal for equal keys of one group."""
    first = first_equal(*varlen_buffers(keys))
    if not groups.any():
        return first
    pairs = first.astype(np.int64) << 32 | groups
    numbers: npt.NDArray[np.int32] = np.unique(pairs, return_inverse=True)[1].astype(np.int32)
    return numbers


def _combine_with_deletes(
    buffers: VarlenBuffers, keys: pa.Array, rank: npt.NDArray[np.int64], deletes: Flags
) -> npt.NDArray[np.int64]:
    """Drop the rows before a key's last commit-time delete. That delete then loses to any later row."""
    codes = keys.dictionary_encode().indices.to_numpy()
    last_delete = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
    positions = np.flatnonzero(deletes)
    last_delete[codes[positions]] = positions  # ascending, so the last one is kept
    rows = np.arange(len(codes), dtype=np.int64)
    after = np.flatnonzero(rows >= last_delete[codes])
    adjusted = rank.copy()
    adjusted[positions] = np.iinfo(np.int64).min
    kept = varlen_buffers(keys.take(pa.array(after)))
    winners: npt.NDArray[np.int64] = after[pick_winners(kept.offsets, kept.data, adjusted[after])]
    return winners
