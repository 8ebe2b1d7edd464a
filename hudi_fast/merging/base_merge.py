"""Apply changes to the rows of a base file. Shared by reads, compaction and copy-on-write rewrites.

::

    row groups of the base file ─► conformed batches ─► replace rows, drop rows ─► tables
                 └ not read if all rows are replaced or dropped and no stored values are needed

Row groups are processed in file order, one batch at a time, so memory holds one batch of the base file. The caller
passes a :data:`Replacement` that produces new rows; :func:`entry_replacement` makes one from log entries. A
:class:`CdcObserver` receives the stored rows with the new ones; it forces reading row groups that could be skipped
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.merging.blend import blend_provided, fill_gaps, run_merger
from hudi_fast.merging.gather import gather
from hudi_fast.merging.interleave import replace_rows
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.matched_rows import BaseRowUpdates
from hudi_fast.merging.rules import MergeRules
from hudi_fast.merging.stored_columns import plan_stored

__all__ = ["BATCH_ROWS", "CdcObserver", "Replaced", "Replacement", "entry_replacement", "merged_batches"]

BATCH_ROWS = 65536
"""Default number of rows in a batch of merged rows."""

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Replaced(NamedTuple):
    """New rows for n stored rows.

    Attributes:
        rows: n rows of the requested columns.
        deleted: bool[n], rows that are deleted instead; None for none.
        kept: bool[n], rows that equal the stored rows; None for none.
    """

    rows: pa.Table
    deleted: Flags | None = None
    kept: Flags | None = None


Replacement: TypeAlias = Callable[[slice, pa.Table | None], Replaced]
"""``make(part, stored)``: the new rows for the base rows ``changes.replaced[part]``.

``stored`` holds these base rows when the changes are blended, else None.
"""


class CdcObserver(Protocol):
    """Receives the changed rows of a base file, a batch at a time, in file order."""

    @property
    def wants_stored(self) -> bool:
        """Whether :meth:`updated` needs the stored rows."""

    def updated(self, stored: pa.Table | None, rows: pa.Table) -> None:
        """Row i of ``rows`` replaces row i of ``stored`` (None unless :attr:`wants_stored`)."""

    def deleted(self, stored: pa.Table) -> None:
        """The rows of ``stored`` are deleted."""


def merged_batches(
    reader: BaseFileReader,
    schema: pa.Schema,
    changes: BaseRowUpdates,
    replacement: Replacement,
    *,
    batch_rows: int = BATCH_ROWS,
    replaced_only: Collection[int] = (),
    row_groups: Collection[int] | None = None,
    kept: Collection[str] = (),
    observer: CdcObserver | None = None,
) -> Iterator[pa.Table]:
    """The rows of a base file after its changes, in file order, in ``schema``; no table is empty.

    Args:
        reader: the base file.
        schema: requested columns, in the table's types; columns that the file lacks are null.
        changes: rows to replace and to drop.
        replacement: produces the new rows.
        batch_rows: maximum rows of a table.
        replaced_only: row groups whose unchanged rows are not returned.
        row_groups: the row groups whose rows are returned; None for all.
        kept: columns in which new rows have the values of the rows that they replace.
        observer: receives each replaced or dropped row.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: its columns do not fit ``schema``.
    """
    columns = [name for name in schema.names if reader.has(name)]
    conforming = plan_stored(reader, columns, schema)
    walk = _Walk(changes, replacement, batch_rows, frozenset(kept), observer)
    start = 0
    for group, rows in enumerate(reader.row_group_rows()):
        if row_groups is None or group in row_groups:
            replaced = _range_of(changes.replaced, start, start + rows)
            dropped = _range_of(changes.dropped, start, start + rows)
            alone = group in replaced_only
            if (alone or _length(replaced) + _length(dropped) == rows) and not walk.needs_stored(replaced, dropped):
                yield from walk.replaced_alone(replaced)
            else:
                at = start
                for batch in reader.batches(columns, batch_rows, [group]):
                    yield from walk.batch(conforming.apply(batch), at, alone)
                    at += batch.num_rows
        start += rows


@dataclass(frozen=True, slots=True)
class _Walk:
    changes: BaseRowUpdates
    replacement: Replacement
    batch_rows: int
    kept: frozenset[str] = frozenset()
    observer: CdcObserver | None = None

    @property
    def pairs(self) -> bool:
        """Whether the stored rows are needed in addition to their replacements."""
        return self.changes.blended or (self.observer is not None and self.observer.wants_stored)

    def needs_stored(self, replaced: slice, dropped: slice) -> bool:
        """Whether the stored rows have to be read although no stored row is kept."""
        return bool(_length(replaced) and self.pairs) or bool(_length(dropped) and self.observer is not None)

    def replaced_alone(self, replaced: slice) -> Iterator[pa.Table]:
        """The replacements of stored rows that are not read."""
        for low in range(replaced.start, replaced.stop, self.batch_rows):
            made = self.replacement(slice(low, min(low + self.batch_rows, replaced.stop)), None)
            rows = made.rows if made.deleted is None else gather(made.rows, np.flatnonzero(~made.deleted))
            if self.observer is not None:
                self.observer.updated(None, rows)
            yield from _filled(rows)

    def batch(self, stored: pa.RecordBatch, start: int, alone: bool) -> Iterator[pa.Table]:
        """One batch of the base file after its changes; its first row has number ``start``."""
        changes, end = self.changes, start + stored.num_rows
        replaced, dropped = _range_of(changes.replaced, start, end), _range_of(changes.dropped, start, end)
        table = pa.Table.from_batches([stored])
        if not _length(replaced):
            self._observe_deleted(table, changes.dropped[dropped] - start)
            if alone:
                return
            kept = gather(table, _all_but(stored.num_rows, changes.dropped[dropped] - start))
            yield from _filled(kept if _length(dropped) else table)
            return
        positions, deleted_rows = changes.replaced[replaced] - start, changes.dropped[dropped] - start
        older = gather(table, positions) if self.pairs else None
        made = self.replacement(replaced, older if changes.blended else None)
        self._observe_updated(older, made)
        rows = made.rows
        if made.deleted is not None:
            deleted_rows = np.union1d(deleted_rows, positions[made.deleted])
            rows, positions = gather(rows, np.flatnonzero(~made.deleted)), positions[~made.deleted]
        self._observe_deleted(table, deleted_rows)
        yield from _filled(rows if alone else replace_rows(table, rows, positions, deleted_rows, self.kept))

    def _observe_updated(self, older: pa.Table | None, made: Replaced) -> None:
        if self.observer is None:
            return
        rows, unchanged = made.rows, [flags for flags in (made.deleted, made.kept) if flags is not None]
        if unchanged:
            changed = np.flatnonzero(~np.logical_or.reduce(unchanged))
            rows, older = gather(rows, changed), None if older is None else gather(older, changed)
        self.observer.updated(older, rows)

    def _observe_deleted(self, table: pa.Table, rows: Rows) -> None:
        if self.observer is not None and len(rows):
            self.observer.deleted(gather(table, rows))


def entry_replacement(
    rules: MergeRules, entries: LogEntries, changes: BaseRowUpdates, schema: pa.Schema
) -> Replacement:
    """Make replacements from folded log entries.

    ``changes.sources`` are entry numbers; ``entries.rows`` has the columns of ``schema`` in the same types.
    """

    def make(part: slice, stored: pa.Table | None) -> Replaced:
        sources = changes.sources[part]
        found = entries.take(entries.row[sources], schema.names).columns
        newer = pa.Table.from_arrays(
            found, schema=schema
        )  # no cast: partial rows have nulls in columns that are not nullable
        if stored is None:
            return Replaced(newer)
        if rules.merger is not None:
            return Replaced(*run_merger(rules.merger, stored, newer))
        if entries.column_set is not None:
            return Replaced(blend_provided(stored, newer, entries.column_sets, entries.column_set[sources]))
        wins = None if changes.source_wins is None else changes.source_wins[part]
        merged, filled = fill_gaps(rules, stored, newer, wins)
        return Replaced(merged, kept=None if wins is None else ~wins & ~filled)

    return make


def _filled(table: pa.Table) -> Iterator[pa.Table]:
    if table.num_rows:
        yield table


def _all_but(count: int, rows: Rows) -> Rows:
    kept = np.ones(count, dtype=np.bool_)
    kept[rows] = False
    return np.flatnonzero(kept)


def _range_of(rows: Rows, start: int, end: int) -> slice:
    low, high = np.searchsorted(rows, (start, end))
    return slice(int(low), int(high))


def _length(part: slice) -> int:
    return int(part.stop - part.start)
