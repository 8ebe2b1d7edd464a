"""Changes of a log file: its records, replayed on the slice that it was written to.

::

    log file ─────► entries, one per key ──┬─► matched ─┬─ a row, and a delete ─────────────► d
    slice before ─► rows of these keys ────┘            ├─ a row with a lower ordering value ► u: both merged
                                                        └─ no row, and no delete ───────────► i

As in Hudi, a delete removes its row at any ordering value, where a snapshot would keep a newer row. Memory holds the
log file's records and the rows that they change.

Source: ``CDCFileGroupIterator#loadNextLogRecord`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.log.cdc_records import DELETE, INSERT, UPDATE
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.merging.base_merge import Replaced, entry_replacement
from hudi_fast.merging.fold import fold
from hudi_fast.merging.gather import gather, gather_array
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.log_scan import filter_visible_blocks, log_blocks
from hudi_fast.merging.matched_rows import BaseRowUpdates, incoming_beats_stored, resolve_matches
from hudi_fast.merging.read_entries import read_entries
from hudi_fast.merging.rules import MergeRules, ordering_columns
from hudi_fast.reading.incremental.cdc_images import CdcScan, change_batch, images, rows_of_keys
from hudi_fast.reading.incremental.cdc_units import CdcUnit

__all__ = ["replayed_changes"]

Rows = npt.NDArray[np.int64]

_BATCH_ROWS = 1 << 14


def replayed_changes(scan: CdcScan, unit: CdcUnit) -> Iterator[pa.RecordBatch]:
    """The changes of a unit whose commit wrote a log file.

    Raises:
        CorruptTableError: a file is corrupt.
    """
    assert scan.rows.merge is not None
    assert scan.rows.merge_columns is not None
    merge, columns, shown = replace(scan.rows.merge, as_of=unit.instant), scan.rows.merge_columns, scan.rows.output
    logged = (block for log in unit.logs for block in log_blocks(merge.storage, log, merge.timeline))
    blocks = filter_visible_blocks(merge, logged)
    entries = fold(merge.rules, read_entries(merge, blocks, columns))
    if not entries.count:
        return
    before, places = _rows_before(
        replace(scan, rows=replace(scan.rows, merge=merge, schema=columns, output=columns)), unit, entries
    )
    changes = _resolved(merge.rules, entries, before, places)
    yield from _updates(merge.rules, unit, entries, before, changes, shown)
    for image in images(gather(before, changes.dropped).select(shown.names)):
        yield change_batch(unit.instant, DELETE, image, None)
    unmatched = ~entries.deletes
    unmatched[places] = False
    for image in images(entries.take(entries.row[unmatched], shown.names)):
        yield change_batch(unit.instant, INSERT, None, image)


def _rows_before(scan: CdcScan, unit: CdcUnit, entries: LogEntries) -> tuple[pa.Table, Rows]:
    """The stored rows of the entries, in columns of one chunk, and the entry of each."""
    assert unit.before is not None
    found = list(rows_of_keys(scan, unit.before, entries.keys))
    schema = scan.rows.output
    columns = pa.Table.from_batches([rows for rows, _ in found], schema).columns
    rows = pa.Table.from_arrays([single_chunk(column) for column in columns], schema=schema)
    return rows, np.concatenate([np.zeros(0, dtype=np.int64), *(places for _, places in found)])


def _resolved(rules: MergeRules, entries: LogEntries, before: pa.Table, places: Rows) -> BaseRowUpdates:
    deletes = entries.deletes[places]
    wins = deletes | incoming_beats_stored(
        rules,
        deletes,
        entries.default_ordering[places],
        [gather_array(column, places) for column in entries.ordering],
        ordering_columns(rules, before) if rules.compares else (),
    )
    return resolve_matches(rules, np.arange(before.num_rows), places, deletes, wins, entries.column_set is not None)


def _updates(
    rules: MergeRules, unit: CdcUnit, entries: LogEntries, before: pa.Table, changes: BaseRowUpdates, shown: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Updated rows; a row that the user function deletes becomes a delete."""
    make = entry_replacement(rules, entries, changes, before.schema)
    for start in range(0, len(changes.replaced), _BATCH_ROWS):
        part = slice(start, min(start + _BATCH_ROWS, len(changes.replaced)))
        old = gather(before, changes.replaced[part])
        made = make(part, old if changes.blended else None)
        yield _updated(unit, _images(old.select(shown.names)), _images(made.rows.select(shown.names)), made)


def _updated(unit: CdcUnit, before: pa.StringArray, after: pa.StringArray, made: Replaced) -> pa.RecordBatch:
    ops = pa.repeat(pa.scalar(UPDATE), len(before))
    if made.deleted is not None:
        deleted = pa.array(made.deleted)
        ops = pc.if_else(deleted, DELETE, ops)
        after = pc.if_else(deleted, pa.scalar(None, pa.string()), after)
    batch = change_batch(unit.instant, ops, before, after)
    return batch if made.kept is None else batch.filter(pa.array(~made.kept))


def _images(rows: pa.Table) -> pa.StringArray:
    return pa.concat_arrays(list(images(rows)))
