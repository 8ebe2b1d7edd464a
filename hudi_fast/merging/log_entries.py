"""What the log blocks of a file slice say, as columns: one entry per log record or deleted key, in order.

::

    log blocks ── read_entries ─► LogEntries ── fold ─► LogEntries, one entry per key
                                                               │
                                        base file ── match_base, settle ─► BaseRowUpdates

An entry is a row of the log, or a delete, which may have a row (a data row that is marked as deleted) or none (a key in
a delete block). Rows of partial blocks bring some columns only; which ones is kept as the number of a set of columns,
of which there are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.merging.gather import gather_array

__all__ = ["LogEntries", "select_entries"]


@dataclass(frozen=True)
class LogEntries:
    """Entries of the log of one file slice, in the order in which they apply.

    Attributes:
        keys: record keys; string[n], one chunk, no nulls.
        rows: m rows of the merge schema, columns of one chunk.
        row: int64[n], the row of ``rows``, or -1 for a key of a delete block.
        deletes: bool[n], entries that delete their key.
        default_ordering: bool[n], entries whose ordering value is Hudi's default (Integer 0: absent, null, or a delete
            by key). A delete among them is a commit-time delete.
        ordering: ordering columns, n values each, in the types of the table's columns; empty when ordering values
            decide nothing. At an entry with ``default_ordering`` stands null, or zero.
        positions: int64[n], row of the base file, -1 where unknown; None when positions may not be used.
        mismatched: bool[n], delete entries whose ordering value is of another type than the column, so that it does not
            compare; their ``ordering`` is null. None for none.
        column_sets: names of the columns that rows of partial blocks bring; each set once. Meta columns need not be in.
        column_set: int32[n], the number in ``column_sets`` of an entry's set, -1 for an entry that brings all columns;
            None when all bring all.
    """

    keys: pa.Array
    rows: pa.Table
    row: npt.NDArray[np.int64]
    deletes: npt.NDArray[np.bool_]
    default_ordering: npt.NDArray[np.bool_]
    ordering: tuple[pa.Array, ...]
    positions: npt.NDArray[np.int64] | None = None
    mismatched: npt.NDArray[np.bool_] | None = None
    column_sets: tuple[frozenset[str], ...] = ()
    column_set: npt.NDArray[np.int32] | None = None

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self.keys)

    @property
    def commit_time_deletes(self) -> npt.NDArray[np.bool_]:
        """bool[n], deletes that win whatever ordering value they meet."""
        return self.deletes & self.default_ordering


def select_entries(entries: LogEntries, which: npt.NDArray[np.int64]) -> LogEntries:
    """The entries ``which``, int64[k]; the table of rows stays as it is."""
    return LogEntries(
        keys=gather_array(entries.keys, which),
        rows=entries.rows,
        row=entries.row[which],
        deletes=entries.deletes[which],
        default_ordering=entries.default_ordering[which],
        ordering=tuple(gather_array(column, which) for column in entries.ordering),
        positions=None if entries.positions is None else entries.positions[which],
        mismatched=None if entries.mismatched is None else entries.mismatched[which],
        column_sets=entries.column_sets,
        column_set=None if entries.column_set is None else entries.column_set[which],
    )
