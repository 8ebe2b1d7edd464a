"""Apply changes to the rows of a base file. Shared by reads, compaction and copy-on-write rewrites.

::

    row groups of the base file ─► conformed batches ─► replace rows, drop rows ─► tables
                 └ not read if all rows are replaced or dropped and no stored values are needed

Row groups are processed in file order, one batch at a time, so memory holds one batch of the base file. The caller
passes a :data:`Replacement` that produces new rows; :func:`entry_replacement` makes one from log entries. A
:class:`CdcObserver` receives the stored rows with the new ones; it forces reading row groups that could be skipped
otherwise.

Changes of incoming rows, or folded log entries, to the base rows with their keys.

Expects rows already matched by key. :func:`incoming_beats_stored` compares ordering values where the rules require it,
and :func:`resolve_matches` applies the result. A losing row leaves the stored row unchanged, unless its columns may
fill gaps.

Columns of a base file in the table's current schema.

::

    columns that the file has ─► read ─► conformed to the current types ─┐
    columns added after the file was written ───────────────────► nulls ┴─► in the requested order and types

:func:`stored_batches` returns batches, for streaming; :func:`stored_table` a whole table, for selecting rows by number.
:func:`plan_stored` is the conversion alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.column_limits import null_array
from hudi_fast.formats.varlen import gather, replace_rows
from hudi_fast.merging.blend import blend_provided, fill_gaps, run_merger
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.rules import MergeRules, at_least, greater
from hudi_fast.schema.conform import ConformPlan, plan_conform, plan_file
from hudi_fast.values import dataclass

__all__ = [
    "BATCH_ROWS",
    "BaseRowUpdates",
    "CdcObserver",
    "Replaced",
    "Replacement",
    "entry_replacement",
    "incoming_beats_stored",
    "merged_batches",
    "plan_stored",
    "resolve_matches",
    "stored_batches",
    "stored_table",
]

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class BaseRowUpdates:
    """Changes to the rows of a base file.

    Attributes:
        replaced: int64[u], ascending rows of the base file that get new values.
        sources: int64[u], the incoming row or log entry of each.
        dropped: int64[d], ascending rows of the base file that are deleted.
        source_wins: bool[u], whether the source wins; None when each does. A losing source is listed only because its
            columns may fill gaps of the stored row.
        blended: whether new rows combine both rows, so that the stored rows have to be read.
    """

    replaced: Rows
    sources: Rows
    dropped: Rows
    source_wins: Flags | None = None
    blended: bool = False


def resolve_matches(
    rules: MergeRules, base_rows: Rows, sources: Rows, deletes: Flags, wins: Flags, partial: bool = False
) -> BaseRowUpdates:
    """Resolve pairs of a stored and an incoming row with one key.

    Args:
        rules: merge rules.
        base_rows: int64[m], ascending rows of the base file.
        sources: int64[m], the incoming row (or log entry) of each pair; passed on.
        deletes: bool[m], whether the incoming row is a delete.
        wins: bool[m], whether the incoming row wins, see :func:`incoming_beats_stored`.
        partial: whether incoming rows may lack columns (partial log blocks). They then replace stored rows in part, and
            the table's partial update mode is ignored.
    """
    fills = rules.partial_mode is not None and not partial
    blended = partial or rules.blends
    all_win = bool(wins.all())
    if all_win and not deletes.any():  # without a copy of the rows, which may be many
        return BaseRowUpdates(base_rows, sources, base_rows[:0], None, blended)
    replaced = ~deletes if all_win else ~deletes & (wins | fills)
    return BaseRowUpdates(
        base_rows[replaced],
        sources[replaced],
        base_rows[deletes & wins],
        wins[replaced] if fills and not all_win else None,
        blended,
    )


def incoming_beats_stored(
    rules: MergeRules,
    deletes: Flags,
    default_ordering: Flags,
    incoming: Sequence[pa.Array],
    stored: Sequence[pa.ChunkedArray | pa.Array],
) -> Flags:
    """bool[m], for each pair of a stored and an incoming row with one key: whether the incoming row wins.

    Args:
        rules: merge rules.
        deletes: bool[m], whether the incoming row is a delete.
        default_ordering: bool[m], whether its ordering value is Hudi's default.
        incoming: ordering columns of the incoming rows, m values each; ignored where the rules do not compare.
        stored: ordering columns of the stored rows, m values each, of the same types.
    """
    if not rules.compares or not incoming or not len(deletes):
        return np.ones(len(deletes), dtype=np.bool_)
    if rules.partial_payload:
        return deletes | ~greater(stored, incoming) | _of_unlike_kinds(incoming, stored)
    compare = at_least if rules.same_ordering_updates else greater
    return compare(incoming, stored) | (deletes & default_ordering)


def _of_unlike_kinds(incoming: Sequence[pa.Array], stored: Sequence[pa.ChunkedArray | pa.Array]) -> Flags:
    """Where one side has a value and the other is null, which means the integer 0."""
    unlike = np.zeros(len(incoming[0]), dtype=np.bool_)
    for new, old in zip(incoming, stored, strict=True):
        if not pa.types.is_int32(new.type):
            unlike |= np.asarray(new.is_null()) != np.asarray(old.is_null())
    return unlike


_BATCH_ROWS = 1 << 17


def plan_stored(reader: BaseFileReader, names: Sequence[str], columns: pa.Schema) -> ConformPlan:
    """The conversion of stored rows.

    Args:
        reader: the open file.
        names: columns of the file that are read.
        columns: columns of the result, in current types; a column that is not read has to be nullable.

    Raises:
        SchemaMismatchError: a stored type cannot be converted to the current one.
    """
    stored = pa.schema([reader.schema.field(name) for name in names])
    return plan_file(stored, columns) if reader.has_labels else plan_conform(stored, columns)


def stored_batches(
    reader: BaseFileReader,
    columns: pa.Schema,
    batch_rows: int = _BATCH_ROWS,
    row_groups: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a base file in file order.

    Args:
        reader: the open file.
        columns: columns to read, in current types; a column that the file lacks has to be nullable.
        batch_rows: maximum rows of a batch; if the file has none of the columns, a batch is a row group.
        row_groups: the row groups to read; None for all.

    Raises:
        CorruptTableError: the file cannot be read.
        SchemaMismatchError: a stored type cannot be converted to the current one.
    """
    present = _present(reader, columns)
    if not present:
        counts = reader.row_group_rows()
        for rows in counts if row_groups is None else [counts[number] for number in row_groups]:
            yield pa.RecordBatch.from_arrays([null_array(rows, field.type) for field in columns], schema=columns)
        return
    conforming = plan_stored(reader, present, columns)
    for batch in reader.batches(present, batch_rows, row_groups):
        yield conforming.apply(batch)


def stored_table(reader: BaseFileReader, columns: pa.Schema) -> pa.Table:
    """All rows of a base file, each column in one chunk; see :func:`stored_batches`."""
    present = _present(reader, columns)
    if not present:
        return pa.table([null_array(reader.num_rows, field.type) for field in columns], schema=columns)
    return plan_stored(reader, present, columns).apply(reader.read(present)).combine_chunks()


def _present(reader: BaseFileReader, columns: pa.Schema) -> list[str]:
    return [name for name in columns.names if reader.has(name)]


BATCH_ROWS = 65536
"""Default number of rows in a batch of merged rows."""


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
