"""Fold entries by a user function, in rounds: round i merges the i-th row of every key.

A round merges the next entry of each remaining key into the key's state. Complete keys are removed from the state, so
all rounds together touch each row once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.merging.blend import run_merger
from hudi_fast.merging.gather import gather
from hudi_fast.merging.log_entries import LogEntries, select_entries
from hudi_fast.merging.rules import Merger

__all__ = ["fold_by_merger"]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def fold_by_merger(merger: Merger, entries: LogEntries, numbers: npt.NDArray[np.int32]) -> tuple[Rows, LogEntries]:
    """One entry per key.

    ``numbers`` is int32[n], a number per entry, equal for equal keys.

    Returns:
        int64[k], ascending: the last entry of each key; and the folded entries in their order.

    Raises:
        InvalidDataError: the merger does not return a table of the rows that it received.
    """
    order = np.lexsort((np.arange(entries.count), numbers))
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    counts = np.diff(starts, append=entries.count)
    by_count = np.argsort(-counts, kind="stable")  # remaining keys stay a prefix
    starts, counts = starts[by_count], counts[by_count]
    first = order[starts]
    state, deleted = _rows_of(entries, first), entries.deletes[first]
    done: list[tuple[pa.Table, Flags]] = []
    for nth in range(1, int(counts[0]) if len(counts) else 0):
        remaining = int(np.searchsorted(-counts, -nth))  # keys with more than nth entries
        done.append((state.slice(remaining), deleted[remaining:]))
        state, deleted = _merged(
            merger, entries, state.slice(0, remaining), deleted[:remaining], order[starts[:remaining] + nth]
        )
    done.append((state, deleted))
    last = order[starts + counts - 1]
    back = np.argsort(last)
    rows = pa.concat_tables([table for table, _ in reversed(done)]).combine_chunks()
    deleted = np.concatenate([flags for _, flags in reversed(done)])[back]
    folded = select_entries(entries, last[back])
    return last[back], replace(
        folded,
        rows=rows,
        row=np.where(deleted, -1, back),
        deletes=deleted,
        default_ordering=folded.default_ordering | deleted,
        column_sets=(),
        column_set=None,
        spooled=None,
        blended=None,
    )


def _rows_of(entries: LogEntries, which: Rows) -> pa.Table:
    """Rows of entries; a key without a row gets an arbitrary row, which is not used."""
    if not entries.rows.num_rows:
        nothing = [pa.nulls(len(which), field.type) for field in entries.rows.schema]
        return pa.Table.from_arrays(nothing, schema=entries.rows.schema)
    return entries.take(np.maximum(entries.row[which], 0), entries.rows.column_names)


def _merged(
    merger: Merger, entries: LogEntries, state: pa.Table, deleted: Flags, which: Rows
) -> tuple[pa.Table, Flags]:
    """The state after merging one more entry of each key."""
    new, deletes = _rows_of(entries, which), entries.deletes[which]
    both = np.flatnonzero(~deleted & ~deletes)
    merged, removed = run_merger(merger, gather(state, both), gather(new, both))
    after = deletes.copy()
    if removed is not None:
        after[both] |= removed
    sources = np.arange(len(which), dtype=np.int64)
    sources[both] = len(which) + np.arange(len(both))
    return gather(pa.concat_tables([new, merged]).combine_chunks(), sources), after
