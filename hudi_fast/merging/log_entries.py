"""The log blocks of a file slice as columns: one entry per log record or deleted key, in order.

::

    log blocks ── read_entries ─► LogEntries ── fold ─► LogEntries, one entry per key
                                                               │
                                       base file ── resolve_slice ─► BaseRowUpdates

An entry is a log row or a delete. A delete has a row if it is a data row marked as deleted, and no row if it is a key
of a delete block. Rows of partial blocks provide some columns only; few distinct sets of columns exist, so an entry
stores the number of its set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.merging.batched_rows import BatchedRows, take_rows
from hudi_fast.merging.gather import gather_array

__all__ = ["LogEntries", "select_entries"]


@dataclass(frozen=True)
class LogEntries:
    """Entries of the log of one file slice, in order of application.

    Attributes:
        keys: record keys; string[n], one chunk, no nulls.
        rows: m rows of the merge schema, columns of one chunk; in a mapped file, columns of one chunk per batch.
        row: int64[n], the number of an entry's row for :meth:`take`, or -1 for a key of a delete block.
        deletes: bool[n], entries that delete their key.
        default_ordering: bool[n], entries whose ordering value is Hudi's default (Integer 0: absent, null, or a delete
            by key). A delete among them is a commit-time delete.
        ordering: ordering columns, n values each, in the types of the table's columns; null or zero at an entry with
            ``default_ordering``. Empty when ordering values are not compared.
        positions: int64[n], row of the base file, -1 where unknown; None when positions may not be used.
        mismatched: bool[n], delete entries whose ordering value has another type than the column and does not compare;
            their ``ordering`` is null. None for none.
        column_sets: distinct sets of column names that rows of partial blocks provide; meta columns may be absent.
        column_set: int32[n], the number of an entry's set in ``column_sets``, -1 for all columns; None when all entries
            have all columns.
        batched: ``rows`` if they stay in batches; None for rows in one chunk.
        blended: for b rows that are blended from several: by column, int[b], the rows of ``rows`` that provide it.
            Columns with the same providers share an array. None: the rows are ``rows``.
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
    batched: BatchedRows | None = None
    blended: dict[str, npt.NDArray[np.integer[Any]]] | None = None

    def take(self, rows: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Rows by the numbers in :attr:`row`: int64[k], in any order, without -1."""
        if self.blended is None:
            return take_rows(self.rows, self.batched, rows, columns)
        names_of: dict[int, list[str]] = {}
        for name in columns:
            names_of.setdefault(id(self.blended[name]), []).append(name)
        found: dict[str, pa.ChunkedArray] = {}
        for names in names_of.values():
            stored = self.blended[names[0]][rows].astype(np.int64)
            found |= zip(names, take_rows(self.rows, self.batched, stored, names).columns, strict=True)
        schema = pa.schema([self.rows.schema.field(name) for name in columns])
        return pa.Table.from_arrays([found[name] for name in columns], schema=schema)

    @property
    def count(self) -> int:
        """Number of entries."""
        return len(self.keys)

    @property
    def commit_time_deletes(self) -> npt.NDArray[np.bool_]:
        """bool[n], deletes that win over any ordering value."""
        return self.deletes & self.default_ordering


def select_entries(entries: LogEntries, which: npt.NDArray[np.int64]) -> LogEntries:
    """The entries ``which``, int64[k]; ``rows`` is unchanged."""
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
        batched=entries.batched,
        blended=entries.blended,
    )
