"""The walk over a base file that reads, compaction and copy-on-write rewrites share.

::

    row groups of the base file ─► conformed batches ─► rows replaced, rows dropped ─► tables
                 └ replaced or dropped whole, nothing of the stored rows wanted: not even read

Row groups are walked in file order and batches pass through one at a time, so memory holds one batch of the base file.
What takes the place of a row is the caller's :data:`Replacement`; :func:`entry_replacement` makes it of log entries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.parquet_base import BaseFileReader
from hudi_fast.merge.blend import blend_provided, fill_gaps, run_merger
from hudi_fast.merge.gather import gather
from hudi_fast.merge.interleave import replace_rows
from hudi_fast.merge.log_entries import LogEntries
from hudi_fast.merge.rules import MergeRules
from hudi_fast.merge.settle import BaseChanges
from hudi_fast.schema.conform import plan_conform

__all__ = ["BATCH_ROWS", "Replacement", "entry_replacement", "merged_batches"]

BATCH_ROWS = 65536

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Replacement: TypeAlias = Callable[[slice, pa.Table | None], tuple[pa.Table, Flags | None]]
"""``make(part, stored)``: the rows that take the place of the base rows ``changes.replaced[part]``.

``stored`` are these base rows when the changes are blended, else None. Gives a table of as many rows, of the asked-for
columns, and which of them go after all (None for none).
"""


def merged_batches(
    reader: BaseFileReader,
    schema: pa.Schema,
    changes: BaseChanges,
    replacement: Replacement,
    *,
    batch_rows: int = BATCH_ROWS,
    replaced_only: Collection[int] = (),
) -> Iterator[pa.Table]:
    """The rows of a base file after its changes, in file order, in ``schema``; no table is empty.

    Args:
        reader: the base file.
        schema: columns wanted, in the table's types; those that the file lacks are null.
        changes: what happens to its rows.
        replacement: makes the rows that take the place of others.
        batch_rows: most rows in a table.
        replaced_only: row groups whose stored rows are not wanted: only what replaces some of them comes out.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: its columns do not fit ``schema``.
    """
    columns = [name for name in schema.names if name in reader.schema.names]
    conforming = plan_conform(pa.schema([reader.schema.field(name) for name in columns]), schema)
    walk = _Walk(changes, replacement, batch_rows)
    start = 0
    for group, rows in enumerate(reader.row_group_rows()):
        replaced, dropped = (
            _within(changes.replaced, start, start + rows),
            _within(changes.dropped, start, start + rows),
        )
        alone = group in replaced_only
        if (alone or _length(replaced) + _length(dropped) == rows) and (not changes.blended or not _length(replaced)):
            yield from walk.replaced_alone(replaced)
        else:
            at = start
            for batch in reader.batches(columns, batch_rows, [group]):
                yield from walk.batch(conforming.apply(batch), at, alone)
                at += batch.num_rows
        start += rows


@dataclass(frozen=True, slots=True)
class _Walk:
    changes: BaseChanges
    replacement: Replacement
    batch_rows: int

    def replaced_alone(self, replaced: slice) -> Iterator[pa.Table]:
        """What replaces rows that are not looked at."""
        for low in range(replaced.start, replaced.stop, self.batch_rows):
            rows, gone = self.replacement(slice(low, min(low + self.batch_rows, replaced.stop)), None)
            yield from _filled(rows if gone is None else gather(rows, np.flatnonzero(~gone)))

    def batch(self, stored: pa.RecordBatch, start: int, alone: bool) -> Iterator[pa.Table]:
        """One batch of the base file, whose first row is ``start``, after its changes."""
        changes, end = self.changes, start + stored.num_rows
        replaced, dropped = _within(changes.replaced, start, end), _within(changes.dropped, start, end)
        table = pa.Table.from_batches([stored])
        if not _length(replaced):
            if alone:
                return
            kept = gather(table, _others(stored.num_rows, changes.dropped[dropped] - start))
            yield from _filled(kept if _length(dropped) else table)
            return
        positions, gone_rows = changes.replaced[replaced] - start, changes.dropped[dropped] - start
        rows, gone = self.replacement(replaced, gather(table, positions) if changes.blended else None)
        if gone is not None:
            gone_rows = np.union1d(gone_rows, positions[gone])
            rows, positions = gather(rows, np.flatnonzero(~gone)), positions[~gone]
        yield from _filled(rows if alone else replace_rows(table, rows, positions, gone_rows))


def entry_replacement(rules: MergeRules, entries: LogEntries, changes: BaseChanges, schema: pa.Schema) -> Replacement:
    """How folded log entries replace rows of the base file that they belong to.

    Args:
        rules: how rows merge.
        entries: the folded entries.
        changes: what they do to the base file; their sources are numbers of entries.
        schema: columns wanted, all of them columns of ``entries.rows`` in the same types.
    """
    rows = entries.rows.select(schema.names)

    def make(part: slice, stored: pa.Table | None) -> tuple[pa.Table, Flags | None]:
        sources = changes.sources[part]
        found = gather(rows, entries.row[sources]).columns
        newer = pa.Table.from_arrays(found, schema=schema)  # not a cast: partial rows are null where the table is not
        if stored is None:
            return newer, None
        if rules.merger is not None:
            return run_merger(rules.merger, stored, newer)
        if entries.column_set is not None:
            return blend_provided(stored, newer, entries.column_sets, entries.column_set[sources]), None
        wins = None if changes.source_wins is None else changes.source_wins[part]
        return fill_gaps(rules, stored, newer, wins)[0], None

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
