"""The log blocks of a file slice as columns: one entry per log record or deleted key, in order.

::

    log blocks ── read_entries ─► LogEntries ── fold ─► LogEntries, one entry per key
                                                               │
                                       base file ── resolve_slice ─► BaseRowUpdates

An entry is a log row or a delete. A delete has a row if it is a data row marked as deleted, and no row if it is a key
of a delete block. Rows of partial blocks provide some columns only; few distinct sets of columns exist, so an entry
stores the number of its set.

Read log blocks into entries: decoded records and deleted keys.

::

    data blocks ─── log_rows ─► batches ─┬─► rows, in memory or in a local file ──┐
                                         └─► keys, ordering values, delete flags ─┤
    delete blocks ─ decode ─► keys, ordering values in the columns' types ────────┴─► LogEntries, in block order
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content
from hudi_fast.formats.log.delete_block import DeleteRecords, decode_delete_block, decode_positions
from hudi_fast.formats.varlen import gather_array, single_chunk
from hudi_fast.keys.key_generator import record_keys
from hudi_fast.merging.log_scan import LogRowReader
from hudi_fast.merging.row_buffer import LOG_BUDGET, BatchedRows, CollectedRows, RowBuffer, read_failure, take_rows
from hudi_fast.merging.rules import (
    OPERATION,
    RECORD_KEY,
    SliceMerge,
    default_ordering,
    delete_mask,
    key_columns,
    merging_columns,
    ordering_columns,
)
from hudi_fast.values import dataclass

__all__ = ["DeleteOrdering", "LogEntries", "convert_delete_ordering", "read_entries", "select_entries"]


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


_UNUSED_POSITIONS = 1 << 20
"""A block may have at most this many positions if it has fewer entries: they are decoded, though not used, and a text
of few bytes can hold 2^31.
"""

_NEVER = sys.maxsize

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Part:
    """The contents of one block.

    Attributes:
        deletes: entries of a delete block; None for a data block.
        columns: column names of a partial data block; None for all.
    """

    block: LogBlock
    count: int
    deletes: DeleteRecords | None = None
    columns: frozenset[str] | None = None


def read_entries(
    merge: SliceMerge, blocks: Sequence[LogBlock], schema: pa.Schema, base_instant: str | None = None
) -> LogEntries:
    """One entry per log record and deleted key, in order.

    Args:
        merge: how the slice merges.
        blocks: blocks from :func:`hudi_fast.merging.log_scan.visible_blocks`.
        schema: columns of the entries' rows: :func:`hudi_fast.merging.rules.merge_schema`, or only the key
            columns. Without ordering columns, entries have no ordering values.
        base_instant: instant of the slice's base file; record positions are used when they refer to it.

    Raises:
        CorruptTableError: a block is corrupt, or has records without key.
        UnsupportedFeatureError: a block holds values that hudi_fast does not read, or exceeds the size of one array.
    """
    reader = LogRowReader(merge.storage, _decoded_schema(schema, blocks), {}, merge.history)
    parts, known, collected = _read(merge, reader, blocks)
    rows = collected.table.select(schema.names)
    row = _row_numbers(parts)
    deletes = row < 0
    flags = delete_mask(merge.rules, known)
    if flags is not None:
        deletes[~deletes] = flags
    default, ordering, mismatched = _ordering(merge, parts, known)
    sets, numbers = _column_sets(parts)
    return LogEntries(
        keys=_keys(merge, parts, known),
        rows=rows,
        row=row,
        deletes=deletes,
        default_ordering=default,
        ordering=ordering,
        positions=_positions(merge, parts, base_instant),
        mismatched=mismatched,
        column_sets=sets,
        column_set=numbers,
        batched=None if collected.release is None else BatchedRows(rows, collected.release),
    )


def _decoded_schema(schema: pa.Schema, blocks: Sequence[LogBlock]) -> pa.Schema:
    """The columns to decode: with Hudi's sixth meta column, which marks deletes and is not a column of the table."""
    fields = [field.with_nullable(True) for field in schema]
    if OPERATION not in schema.names and any(
        f'"{OPERATION}"' in block.headers.get(HeaderKey.SCHEMA, "") for block in blocks
    ):
        fields.append(pa.field(OPERATION, pa.string()))
    return pa.schema(fields)


def _read(
    merge: SliceMerge, reader: LogRowReader, blocks: Sequence[LogBlock]
) -> tuple[list[_Part], pa.Table, CollectedRows]:
    """The blocks; the columns of all rows that merging needs, in memory and in one chunk; and all rows."""
    schema = reader.schema
    merging = merging_columns(merge.rules, schema.names)
    names = None if merging is None else list(dict.fromkeys([*key_columns(merge), *merging]))
    parts: list[_Part] = []
    known: list[pa.RecordBatch] = []
    with RowBuffer(partial(read_failure, merge.storage.uri), budget=_NEVER if names is None else LOG_BUDGET) as buffer:
        for block in blocks:
            if block.kind is BlockType.DELETE:
                deletes = decode_delete_block(read_content(merge.storage, block), block.path, block.content_start)
                parts.append(_Part(block, len(deletes.keys), deletes=deletes))
                continue
            count = 0
            for batch in reader.batches(block):
                count += batch.num_rows
                if names is not None:
                    known.append(batch.select(names))
                buffer.add(batch)
            parts.append(_Part(block, count, columns=reader.columns_of(block)))
        collected = buffer.take() or CollectedRows(schema.empty_table())
    if collected.release is None:
        rows = _in_one_chunk(merge, collected.table)
        return parts, rows, CollectedRows(rows)
    assert names is not None, "rows are spooled only if merging needs some of their columns"
    return parts, _in_one_chunk(merge, pa.Table.from_batches(known)), collected


def _in_one_chunk(merge: SliceMerge, rows: pa.Table) -> pa.Table:
    """Each column in one chunk."""
    try:
        return pa.Table.from_arrays([single_chunk(column) for column in rows.columns], schema=rows.schema)
    except InvalidDataError as error:
        raise UnsupportedFeatureError(
            f"Table {merge.storage.uri}: the log of one file slice holds more than 2 GiB in one column. Compact it "
            "with Apache Hudi, or read fewer columns."
        ) from error


# ---- per entry


def _each(
    parts: Sequence[_Part],
    rows: pa.Array,
    of_deletes: Callable[[DeleteRecords, int], pa.Array],
) -> pa.Array:
    """Values of all entries: from ``rows``, in order, for data blocks, and from ``of_deletes`` for delete blocks."""
    pieces: list[pa.Array] = []
    start = first = 0
    for number, part in enumerate(parts):
        if part.deletes is None:
            start += part.count
            continue
        if start > first:
            pieces.append(rows.slice(first, start - first))
        first = start
        pieces.append(of_deletes(part.deletes, number))
    if not pieces:
        return rows
    if len(rows) > first:
        pieces.append(rows.slice(first))
    return pa.concat_arrays(pieces)


def _row_numbers(parts: Sequence[_Part]) -> Rows:
    total = sum(part.count for part in parts)
    row = np.full(total, -1, dtype=np.int64)
    entry = start = 0
    for part in parts:
        if part.deletes is None:
            row[entry : entry + part.count] = np.arange(start, start + part.count)
            start += part.count
        entry += part.count
    return row


def _keys(merge: SliceMerge, parts: Sequence[_Part], rows: pa.Table) -> pa.Array:
    if merge.key_config is not None:
        stored = single_chunk(record_keys(merge.key_config, rows)) if rows.num_rows else pa.array([], pa.string())
    else:
        stored = rows.column(RECORD_KEY).chunk(0)
    keys = _each(parts, stored, lambda deletes, _: deletes.keys)
    if keys.null_count:
        missing = keys.is_null().to_numpy(zero_copy_only=False)
        ends = np.cumsum([part.count for part in parts])
        block = parts[int(np.searchsorted(ends, int(np.argmax(missing)), side="right"))].block
        raise CorruptTableError("A log block has entries without a record key.", block.path, block.offset)
    return keys


def _ordering(
    merge: SliceMerge, parts: Sequence[_Part], rows: pa.Table
) -> tuple[Flags, tuple[pa.Array, ...], Flags | None]:
    """The entries with the default ordering value, the ordering columns, and the deletes that do not compare."""
    columns = _row_ordering(merge, rows)
    row_default = default_ordering(columns, rows.num_rows)
    kinds = tuple(column.type for column in columns)
    converted: dict[int, DeleteOrdering] = {
        number: convert_delete_ordering(part.deletes, kinds)
        for number, part in enumerate(parts)
        if part.deletes is not None
    }
    default = _each(parts, pa.array(row_default), lambda _, number: pa.array(converted[number].default))
    ordering = tuple(
        _each(parts, column, lambda _, number, at=at: converted[number].columns[at])  # type: ignore[misc]
        for at, column in enumerate(columns)
    )
    mismatched = None
    if any(one.mismatched.any() for one in converted.values()):
        compares = pa.array(np.zeros(rows.num_rows, np.bool_))
        found = _each(parts, compares, lambda _, number: pa.array(converted[number].mismatched))
        mismatched = np.array(found.to_numpy(zero_copy_only=False))
    return np.array(default.to_numpy(zero_copy_only=False)), ordering, mismatched


def _row_ordering(merge: SliceMerge, rows: pa.Table) -> tuple[pa.Array, ...]:
    if any(name.split(".")[0] not in rows.column_names for name in merge.rules.ordering_fields):
        return ()
    return tuple(single_chunk(column) for column in ordering_columns(merge.rules, rows))


def _positions(merge: SliceMerge, parts: Sequence[_Part], base_instant: str | None) -> Rows | None:
    if not merge.use_positions or base_instant is None:
        return None
    positions = np.full(sum(part.count for part in parts), -1, dtype=np.int64)
    start, known = 0, False
    for part in parts:
        headers = part.block.headers
        text = headers.get(HeaderKey.RECORD_POSITIONS)
        if part.block.kind is BlockType.HFILE_DATA:  # rows are in the order of keys, not of positions
            text = None
        if text and headers.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) == base_instant:
            limit = max(part.count, _UNUSED_POSITIONS)
            found = decode_positions(text, limit, part.block.path, part.block.offset)
            if len(found) == part.count:  # repeated positions are stored once and cannot be assigned to entries
                positions[start : start + part.count] = found
                known = True
        start += part.count
    return positions if known else None


def _column_sets(parts: Sequence[_Part]) -> tuple[tuple[frozenset[str], ...], npt.NDArray[np.int32] | None]:
    sets = tuple(dict.fromkeys(part.columns for part in parts if part.columns is not None))
    if not sets:
        return (), None
    numbers = [
        np.full(part.count, -1 if part.columns is None else sets.index(part.columns), np.int32) for part in parts
    ]
    return sets, np.concatenate(numbers)


# ---- ordering values of deleted keys: each has its own type, where rows have typed columns
#
# Hudi compares a delete's ordering value with a row's only if both have the same Java class; otherwise the delete
# wins (``BufferedRecordMergerFactory``, 1.2.0). Dates and times of day compare by their integer value, since engines
# pass different classes to the writer.


@dataclass(frozen=True)
class DeleteOrdering:
    """Ordering values of n deleted keys in the types of the table's columns.

    Attributes:
        columns: n values each; null where ``default`` or ``mismatched``.
        default: bool[n], entries with Hudi's default.
        mismatched: bool[n], entries whose value has another type than the column.
    """

    columns: tuple[pa.Array, ...]
    default: Flags
    mismatched: Flags


def convert_delete_ordering(records: DeleteRecords, kinds: tuple[pa.DataType, ...]) -> DeleteOrdering:
    """Convert ordering values of a delete block to the types of the ordering columns."""
    count = len(records.keys)
    default = np.asarray(records.is_default, dtype=np.bool_)
    if not kinds:
        return DeleteOrdering((), default, np.zeros(count, np.bool_))
    absent = tuple(pa.nulls(count, kind) for kind in kinds)
    if default.all():
        return DeleteOrdering(absent, default, np.zeros(count, np.bool_))
    if len(records.ordering) != len(kinds):
        return DeleteOrdering(absent, default, ~default)
    columns, mismatched = [], np.zeros(count, np.bool_)
    for stored, kind in zip(records.ordering, kinds, strict=True):
        column = _as_kind(stored, kind)
        if column is None:
            column = pa.nulls(count, kind)
            mismatched |= ~default & stored.is_valid().to_numpy(zero_copy_only=False)
        columns.append(column)
    blank = default | mismatched
    if blank.any():
        columns = [_blanked(column, blank) for column in columns]
    return DeleteOrdering(tuple(columns), default, mismatched)


def _blanked(column: pa.Array, mask: Flags) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)


def _as_kind(stored: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """The values in the column's type if Hudi compares them with the column's values, else None."""
    if stored.type == kind:
        return stored
    if pa.types.is_null(stored.type):
        return pa.nulls(len(stored), kind)
    if not _comparable(stored.type, kind):
        return None
    try:
        if pa.types.is_temporal(kind) and pa.types.is_integer(stored.type):
            width = pa.int32() if kind.bit_width == 32 else pa.int64()
            return stored.cast(width).view(kind)
        return stored.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _comparable(stored: pa.DataType, kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        (types.is_timestamp(kind) and (types.is_timestamp(stored) or stored == pa.int64()))
        or (types.is_time(kind) and (types.is_time(stored) or types.is_integer(stored)))
        or (types.is_date(kind) and stored == pa.int32())
        or (types.is_decimal(kind) and types.is_decimal(stored))
        or (types.is_fixed_size_binary(kind) and stored == pa.binary())
    )
