"""The walk over a base file that reads, compaction and copy-on-write rewrites share.

::

    row groups of the base file ─► conformed batches ─► rows replaced, rows dropped ─► tables
                 └ replaced or dropped whole, nothing of the stored rows wanted: not even read

Row groups are walked in file order and batches pass through one at a time, so memory holds one batch of the base file.
What takes the place of a row is the caller's :data:`Replacement`; :func:`entry_replacement` makes it of log entries.
Who keeps a log of changes is a :class:`CdcObserver`: it is handed the stored rows beside the new ones, so row groups
are read that need not be otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.parquet.base_file import BaseFileReader
from hudi_fast.merging.blend import blend_provided, fill_gaps, run_merger
from hudi_fast.merging.gather import gather
from hudi_fast.merging.interleave import replace_rows
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.matched_rows import BaseRowUpdates
from hudi_fast.merging.rules import MergeRules
from hudi_fast.schema.conform import plan_conform

__all__ = ["BATCH_ROWS", "CdcObserver", "Replaced", "Replacement", "entry_replacement", "merged_batches"]

BATCH_ROWS = 65536

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Replaced(NamedTuple):
    """What takes the place of n stored rows.

    Attributes:
        rows: n rows of the asked-for columns.
        gone: bool[n], rows that go after all; None for none.
        kept: bool[n], rows that are the stored ones, unchanged; None for none.
    """

    rows: pa.Table
    gone: Flags | None = None
    kept: Flags | None = None


Replacement: TypeAlias = Callable[[slice, pa.Table | None], Replaced]
"""``make(part, stored)``: what takes the place of the base rows ``changes.replaced[part]``.

``stored`` are these base rows when the changes are blended, else None.
"""


class CdcObserver(Protocol):
    """Is told what happens to the rows of a base file, a batch at a time, in file order."""

    @property
    def wants_stored(self) -> bool:
        """Whether :meth:`updated` is to be given the stored rows, too."""

    def updated(self, stored: pa.Table | None, rows: pa.Table) -> None:
        """Row i of ``rows`` takes the place of row i of ``stored`` (None if those are not wanted)."""

    def deleted(self, stored: pa.Table) -> None:
        """These rows go."""


def merged_batches(
    reader: BaseFileReader,
    schema: pa.Schema,
    changes: BaseRowUpdates,
    replacement: Replacement,
    *,
    batch_rows: int = BATCH_ROWS,
    replaced_only: Collection[int] = (),
    watch: CdcObserver | None = None,
) -> Iterator[pa.Table]:
    """The rows of a base file after its changes, in file order, in ``schema``; no table is empty.

    Args:
        reader: the base file.
        schema: columns wanted, in the table's types; those that the file lacks are null.
        changes: what happens to its rows.
        replacement: makes the rows that take the place of others.
        batch_rows: most rows in a table.
        replaced_only: row groups whose stored rows are not wanted: only what replaces some of them comes out.
        watch: is told of each row that is replaced or dropped; None: nobody is.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: its columns do not fit ``schema``.
    """
    columns = [name for name in schema.names if name in reader.schema.names]
    conforming = plan_conform(pa.schema([reader.schema.field(name) for name in columns]), schema)
    walk = _Walk(changes, replacement, batch_rows, watch)
    start = 0
    for group, rows in enumerate(reader.row_group_rows()):
        replaced, dropped = (
            _within(changes.replaced, start, start + rows),
            _within(changes.dropped, start, start + rows),
        )
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
    watch: CdcObserver | None = None

    @property
    def pairs(self) -> bool:
        """Whether stored rows are wanted beside those that take their place."""
        return self.changes.blended or (self.watch is not None and self.watch.wants_stored)

    def needs_stored(self, replaced: slice, dropped: slice) -> bool:
        """Whether the stored rows have to be read though none of them stays."""
        return bool(_length(replaced) and self.pairs) or bool(_length(dropped) and self.watch is not None)

    def replaced_alone(self, replaced: slice) -> Iterator[pa.Table]:
        """What replaces rows that are not looked at."""
        for low in range(replaced.start, replaced.stop, self.batch_rows):
            made = self.replacement(slice(low, min(low + self.batch_rows, replaced.stop)), None)
            rows = made.rows if made.gone is None else gather(made.rows, np.flatnonzero(~made.gone))
            if self.watch is not None:
                self.watch.updated(None, rows)
            yield from _filled(rows)

    def batch(self, stored: pa.RecordBatch, start: int, alone: bool) -> Iterator[pa.Table]:
        """One batch of the base file, whose first row is ``start``, after its changes."""
        changes, end = self.changes, start + stored.num_rows
        replaced, dropped = _within(changes.replaced, start, end), _within(changes.dropped, start, end)
        table = pa.Table.from_batches([stored])
        if not _length(replaced):
            self._tell_deleted(table, changes.dropped[dropped] - start)
            if alone:
                return
            kept = gather(table, _others(stored.num_rows, changes.dropped[dropped] - start))
            yield from _filled(kept if _length(dropped) else table)
            return
        positions, gone_rows = changes.replaced[replaced] - start, changes.dropped[dropped] - start
        older = gather(table, positions) if self.pairs else None
        made = self.replacement(replaced, older if changes.blended else None)
        self._tell_updated(older, made)
        rows = made.rows
        if made.gone is not None:
            gone_rows = np.union1d(gone_rows, positions[made.gone])
            rows, positions = gather(rows, np.flatnonzero(~made.gone)), positions[~made.gone]
        self._tell_deleted(table, gone_rows)
        yield from _filled(rows if alone else replace_rows(table, rows, positions, gone_rows))

    def _tell_updated(self, older: pa.Table | None, made: Replaced) -> None:
        if self.watch is None:
            return
        rows, idle = made.rows, [flags for flags in (made.gone, made.kept) if flags is not None]
        if idle:
            changed = np.flatnonzero(~np.logical_or.reduce(idle))
            rows, older = gather(rows, changed), None if older is None else gather(older, changed)
        self.watch.updated(older, rows)

    def _tell_deleted(self, table: pa.Table, rows: Rows) -> None:
        if self.watch is not None and len(rows):
            self.watch.deleted(gather(table, rows))


def entry_replacement(
    rules: MergeRules, entries: LogEntries, changes: BaseRowUpdates, schema: pa.Schema
) -> Replacement:
    """How folded log entries replace rows of the base file that they belong to.

    Args:
        rules: how rows merge.
        entries: the folded entries.
        changes: what they do to the base file; their sources are numbers of entries.
        schema: columns wanted, all of them columns of ``entries.rows`` in the same types.
    """
    rows = entries.rows.select(schema.names)

    def make(part: slice, stored: pa.Table | None) -> Replaced:
        sources = changes.sources[part]
        found = gather(rows, entries.row[sources]).columns
        newer = pa.Table.from_arrays(found, schema=schema)  # not a cast: partial rows are null where the table is not
        if stored is None:
            return Replaced(newer)
        if rules.merger is not None:
            return Replaced(*run_merger(rules.merger, stored, newer))
        if entries.column_set is not None:
            return Replaced(blend_provided(stored, newer, entries.column_sets, entries.column_set[sources]))
        wins = None if changes.source_wins is None else changes.source_wins[part]
        merged, gave_way = fill_gaps(rules, stored, newer, wins)
        return Replaced(merged, kept=None if wins is None else ~wins & ~gave_way)

    return make


def _filled(table: pa.Table) -> Iterator[pa.Table]:
    if table.num_rows:
        yield table


def _others(count: int, rows: Rows) -> Rows:
    kept = np.ones(count, dtype=np.bool_)
    kept[rows] = False
    return np.flatnonzero(kept)


def _within(rows: Rows, start: int, end: int) -> slice:
    low, high = np.searchsorted(rows, (start, end))
    return slice(int(low), int(high))


def _length(part: slice) -> int:
    return int(part.stop - part.start)
