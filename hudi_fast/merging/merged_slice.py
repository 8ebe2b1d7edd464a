"""The merged rows of a file slice with log files.

::

    log files ─► visible blocks ─► entries, one per key ─► changes to the base file ─┬─► base file, changed, streamed
                                                                                    └─► rows of the log alone

Memory holds the keys and ordering values of the log records, and one batch of the base file. The log records have the
requested columns and the columns that merging needs; up to 128 MiB they are in memory, beyond that in a mapped local
file.

Resolve the log of a file slice against its base file.

::

    blocks ─► entries ─► folded: one per key ─► matched with base rows, by key or by position
        ─► ordering values compared with the stored ones ─► rows replaced, rows dropped, entries without a base row

The key column and the ordering columns of the base file are read once, a batch at a time. If only rows of some commits
are merged with the log, the commit times are read as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import LogBlock
from hudi_fast.formats.varlen import gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import KeyTable
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.merging.base_merge import (
    BaseRowUpdates,
    entry_replacement,
    incoming_beats_stored,
    merged_batches,
    resolve_matches,
    stored_batches,
)
from hudi_fast.merging.fold import fold
from hudi_fast.merging.log_entries import LogEntries, read_entries
from hudi_fast.merging.row_buffer import return_freed_memory
from hudi_fast.merging.rules import RECORD_KEY, SliceMerge, kept_columns, key_columns, ordering_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice

__all__ = ["ResolvedSlice", "folded_log_rows", "log_rows", "merged_rows", "resolve_slice"]

_COMMIT_TIME = "_hoodie_commit_time"

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ResolvedSlice:
    """The effect of a slice's log on its rows.

    Attributes:
        entries: entries of the log, one per key.
        changes: changes to the base file; ``sources`` are entry numbers.
        appended: int64[k], ascending: entries that add a row, since the base file lacks their key; no deletes.
        logged: number of records and deleted keys in the log before folding.
    """

    entries: LogEntries
    changes: BaseRowUpdates
    appended: Rows
    logged: int = 0


def resolve_slice(
    merge: SliceMerge,
    blocks: Sequence[LogBlock],
    schema: pa.Schema,
    reader: BaseFileReader | None,
    base_instant: str | None = None,
) -> ResolvedSlice:
    """Fold the log of a slice and resolve it against the base file.

    ``blocks`` come from :func:`hudi_fast.merging.log_scan.visible_blocks`, ``schema`` from
    :func:`hudi_fast.merging.rules.merge_schema`. Record positions are used if they refer to ``base_instant``.

    Raises:
        CorruptTableError: a file of the slice is corrupt.
    """
    logged = read_entries(merge, blocks, schema, base_instant)
    count = logged.count
    return_freed_memory(count)
    entries = fold(merge.rules, logged)
    del logged
    return_freed_memory(count)
    none = np.zeros(0, dtype=np.int64)
    if reader is None or not reader.num_rows or not entries.count:
        return ResolvedSlice(entries, BaseRowUpdates(none, none, none), np.flatnonzero(~entries.deletes), count)
    matches = _matches(merge, entries, schema, reader)
    met = np.zeros(entries.count, dtype=np.bool_)
    met[matches.entries] = True
    deletes = entries.deletes[matches.entries]
    wins = incoming_beats_stored(
        merge.rules,
        deletes,
        entries.default_ordering[matches.entries],
        [gather_array(column, matches.entries) for column in entries.ordering],
        matches.stored,
    )
    partial = entries.column_set is not None
    changes = resolve_matches(merge.rules, matches.base_rows, matches.entries, deletes, wins, partial)
    return ResolvedSlice(entries, changes, np.flatnonzero(~(met | entries.deletes)), count)


@dataclass(frozen=True)
class _Matches:
    """Rows of the base file whose keys occur in the log.

    Attributes:
        base_rows: int64[m], ascending.
        entries: int64[m], the entry of each, no entry twice.
        stored: ordering columns of these rows, m values each; empty where the rules do not compare.
    """

    base_rows: Rows
    entries: Rows
    stored: tuple[pa.Array, ...]


def _matches(merge: SliceMerge, entries: LogEntries, schema: pa.Schema, reader: BaseFileReader) -> _Matches:
    if entries.positions is not None:
        order = np.argsort(entries.positions, kind="stable")
        rows = entries.positions[order]
        if rows[0] >= 0 and rows[-1] < reader.num_rows and (np.diff(rows) > 0).all():
            return _matches_at(merge, schema, reader, rows, order)
    return _matches_by_key(merge, entries, schema, reader)


def _matches_at(merge: SliceMerge, schema: pa.Schema, reader: BaseFileReader, rows: Rows, order: Rows) -> _Matches:
    """Match by position: every entry names its row, so keys are not read."""
    roots = _ordering_roots(merge)
    wanted = _wanted(merge, [], roots, schema)
    stored: list[tuple[pa.Array, ...]] = []
    kept: list[Rows] = []
    start = 0
    for batch in stored_batches(reader, wanted) if len(wanted) else ():
        low, high = np.searchsorted(rows, (start, start + batch.num_rows))
        here = _of_merged_commits(merge, batch, rows[low:high] - start)
        kept.append(np.searchsorted(rows, here + start))
        stored.append(_ordering_at(merge, batch, here))
        start += batch.num_rows
    if kept and merge.commit_times is not None:
        chosen = np.concatenate(kept)
        rows, order = rows[chosen], order[chosen]
    return _Matches(rows, order, _joined(stored))


def _matches_by_key(merge: SliceMerge, entries: LogEntries, schema: pa.Schema, reader: BaseFileReader) -> _Matches:
    buffers = varlen_buffers(entries.keys)
    table = KeyTable.build(buffers.offsets, buffers.data)
    found_rows, found_entries, stored = [], [], []
    start = 0
    for batch in stored_batches(reader, _wanted(merge, key_columns(merge), _ordering_roots(merge), schema)):
        keys = varlen_buffers(_batch_keys(merge, batch, reader.path))
        hits = table.probe(keys.offsets, keys.data)
        here = _of_merged_commits(merge, batch, np.flatnonzero(hits >= 0))
        if len(here):
            found_rows.append(here + start)
            found_entries.append(hits[here].astype(np.int64))
            stored.append(_ordering_at(merge, batch, here))
        start += batch.num_rows
    if not found_rows:
        none = np.zeros(0, dtype=np.int64)
        return _Matches(none, none, ())
    return _without_repetitions(
        entries.count, _Matches(np.concatenate(found_rows), np.concatenate(found_entries), _joined(stored))
    )


def _without_repetitions(count: int, matches: _Matches) -> _Matches:
    """Keep the first of several base rows with one key; the others are left unchanged, as in Hudi."""
    first = np.full(count, -1, dtype=np.int64)
    first[matches.entries[::-1]] = matches.base_rows[::-1]
    kept = first[matches.entries] == matches.base_rows
    if kept.all():
        return matches
    return _Matches(
        matches.base_rows[kept],
        matches.entries[kept],
        tuple(column.filter(pa.array(kept)) for column in matches.stored),
    )


# ---- columns of the base file


def _ordering_roots(merge: SliceMerge) -> list[str]:
    if not merge.rules.compares:
        return []
    return list(dict.fromkeys(name.split(".")[0] for name in merge.rules.ordering_fields))


def _wanted(merge: SliceMerge, keys: list[str], roots: list[str], schema: pa.Schema) -> pa.Schema:
    """Key and ordering columns, and commit times if ``merge.commit_times`` is set."""
    times = [] if merge.commit_times is None else [pa.field(_COMMIT_TIME, pa.string())]
    return pa.schema([*(schema.field(name) for name in dict.fromkeys([*keys, *roots])), *times])


def _of_merged_commits(merge: SliceMerge, batch: pa.RecordBatch, rows: Rows) -> Rows:
    """The ``rows`` of the batch that are merged with the log."""
    if merge.commit_times is None or not len(rows):
        return rows
    merged = pc.is_in(batch.column(_COMMIT_TIME), pa.array(merge.commit_times, pa.string()))
    kept: npt.NDArray[np.bool_] = merged.to_numpy(zero_copy_only=False)[rows]
    return rows[kept]


def _batch_keys(merge: SliceMerge, batch: pa.RecordBatch, path: str) -> pa.Array:
    if merge.key_config is not None:
        return single_chunk(record_keys(merge.key_config, batch))
    keys = batch.column(RECORD_KEY)
    if keys.null_count:
        raise CorruptTableError(f"The base file holds {keys.null_count} rows without a record key.", path)
    return keys


def _ordering_at(merge: SliceMerge, batch: pa.RecordBatch, rows: Rows) -> tuple[pa.Array, ...]:
    if not merge.rules.compares:
        return ()
    columns = ordering_columns(merge.rules, pa.Table.from_batches([batch]))
    return tuple(gather_array(single_chunk(column), rows) for column in columns)


def _joined(parts: list[tuple[pa.Array, ...]]) -> tuple[pa.Array, ...]:
    return tuple(pa.concat_arrays(pieces) for pieces in zip(*parts, strict=True))


def merged_rows(
    merge: SliceMerge,
    slice_: FileSlice,
    blocks: list[LogBlock],
    wanted: pa.Schema,
    columns: pa.Schema,
    reader: BaseFileReader | None,
    batch_rows: int,
    ruled_out: Collection[int] = (),
) -> Iterator[pa.RecordBatch]:
    """The rows of a slice in a snapshot query, at most ``batch_rows`` at a time.

    ``blocks`` are visible log blocks, ``columns`` is :func:`hudi_fast.merging.rules.merge_schema` of ``wanted``,
    ``reader`` the slice's open base file or None. Row groups in ``ruled_out`` return only replaced rows.

    Raises:
        CorruptTableError: a file of the slice is corrupt.
    """
    base_instant = None if slice_.base_file is None else slice_.base_file.instant
    resolved = resolve_slice(merge, blocks, columns, reader, base_instant)
    # A user function receives whole rows.
    schema = wanted if merge.rules.merger is None else columns
    if reader is not None:
        kept = () if merge.config is None or merge.rules.merger is not None else kept_columns(merge.config, schema)
        make = entry_replacement(merge.rules, resolved.entries, resolved.changes, schema)
        for table in merged_batches(
            reader, schema, resolved.changes, make, batch_rows=batch_rows, replaced_only=ruled_out, kept=kept
        ):
            yield from table.select(wanted.names).to_batches()
    yield from _taken(resolved.entries, wanted, resolved.entries.row[resolved.appended], batch_rows)


def folded_log_rows(
    merge: SliceMerge, blocks: list[LogBlock], wanted: pa.Schema, columns: pa.Schema, batch_rows: int
) -> Iterator[tuple[pa.RecordBatch, Rows]]:
    """The newest row of each key in the log, and its entry number (:class:`ResolvedSlice`).

    The base file is not read, so some of the rows may lose against stored rows. Use it only where a merged row has no
    values of stored rows. ``columns`` is :func:`hudi_fast.merging.rules.merge_schema` of ``wanted``.
    """
    resolved = resolve_slice(merge, blocks, columns, None)
    start = 0
    for batch in _taken(resolved.entries, wanted, resolved.entries.row[resolved.appended], batch_rows):
        yield batch, resolved.appended[start : start + batch.num_rows]
        start += batch.num_rows


def log_rows(
    merge: SliceMerge, blocks: list[LogBlock], wanted: pa.Schema, columns: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """All rows of the log as written, without deletes, for a query that does not merge.

    ``columns`` is :func:`hudi_fast.merging.rules.merge_schema` of ``wanted``.
    """
    entries = read_entries(merge, blocks, columns)
    yield from _taken(entries, wanted, entries.row[~entries.deletes], batch_rows)


def _taken(entries: LogEntries, wanted: pa.Schema, rows: Rows, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, len(rows), batch_rows):
        yield from entries.take(rows[first : first + batch_rows], wanted.names).to_batches()
