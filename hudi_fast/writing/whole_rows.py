"""Complete incoming rows with stored values.

Completes the incoming rows of a file group with values of the stored rows that they change.

::

    partial rows, where blocks cannot hold them ─► the columns that they lack: from the stored row ─┐
    rows that come from another partition       ─► merged with the stored row, where rows blend ────┴─► whole rows

Only logs of table version 8 and later hold rows with some columns. Everywhere else (base files, logs of version 6,
tables that merge two rows into one, rows that move to another partition) a partial update writes whole rows. The stored
rows are the rows that a reader sees. They are read by number where a slice has no log, and by key where it has one.

Source: ``HoodieIndexUtils.mergeForPartitionUpdatesIfNeeded``, Hudi 1.2.0, for rows that move.

Partial updates: rows with the key, the ordering fields and only the columns to change.

In logs of table version 8 and later they become blocks whose schema lists these columns (header IS_PARTIAL); merging
the slice keeps the stored values of all other columns. Elsewhere they are completed from the stored rows
(:mod:`hudi_fast.writing.whole_rows`). Rows whose key is not stored are refused before a file is written.

Source: table format, section 6.6; ``HoodieAppendHandle``, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import OPERATION_FIELD, arrow_to_avro, record_name_of, with_meta, without_meta
from hudi_fast.formats.varlen import gather, gather_array, single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import KeyTable, first_equal
from hudi_fast.keys.key_generator import partition_paths, record_keys
from hudi_fast.merging.base_merge import stored_batches
from hudi_fast.merging.blend import fill_gaps
from hudi_fast.merging.rules import MergeRules, merge_schema
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.lookup import merge_settings
from hudi_fast.writing.write_plan import RECORD_KEY, FileGroupWork, Incoming, PartialColumns, WritePlan

__all__ = ["partial_columns", "refuse_unknown", "unknown_keys", "whole_rows"]

_OPTION = "hudi_fast.partial.update"
_FIRST_VERSION = 8
_NO_ROWS = np.zeros(0, dtype=np.int64)


def partial_columns(
    config: TableConfig,
    options: WriteOptions,
    operation: str,
    rules: MergeRules,
    known: pa.Schema | None,
    incoming: pa.Schema,
) -> PartialColumns:
    """The columns of a partial update.

    Args:
        config: the table's configuration.
        options: of the write.
        operation: of the write.
        rules: how rows merge.
        known: the table's data columns; None for a table without rows.
        incoming: columns of the rows.

    Raises:
        ConfigError: an operation other than upsert, or a table without rows.
        SchemaMismatchError: columns that the table lacks, or no column to change.
    """
    if operation != "upsert" or known is None:
        raise ConfigError(
            f"{_OPTION}=true updates stored rows: it requires upsert, into a table that has rows. The "
            f"operation is {operation}" + (", and the table has no commit yet." if known is None else ".")
        )
    given = without_meta(incoming).names
    unknown = [name for name in given if name not in known.names]
    if unknown:
        raise SchemaMismatchError(
            f"A partial update of table {config.name} has the columns {unknown}, which the table does not have; add "
            "them with an upsert of whole rows first."
        )
    schema = pa.schema([field for field in known if field.name in given])
    file_schema = with_meta(schema, options.table.operation_field)
    moves = options.index.is_global and options.index.updates_partition
    return PartialColumns(
        schema,
        file_schema,
        arrow_to_avro(file_schema, *record_name_of(config.name), meta_fields=True),
        completes=not config.is_mor or config.version < _FIRST_VERSION or moves or rules.blends,
    )


def refuse_unknown(plan: WritePlan, incoming: Incoming, works: Iterable[FileGroupWork]) -> None:
    """Fail if a partial update has rows whose key is not stored.

    Raises:
        InvalidDataError: there are such rows; names their number and an example.
    """
    if plan.partial is None:
        return
    unknown = []
    for work in works:
        known = np.concatenate([_NO_ROWS, *(origin.incoming_rows for origin in work.origins)])
        unknown.append(work.inserts[~np.isin(work.inserts, known)])
    rows = np.concatenate([_NO_ROWS, *unknown])
    if len(rows):
        raise unknown_keys(plan, incoming, rows)


def unknown_keys(plan: WritePlan, incoming: Incoming, rows: npt.NDArray[np.int64]) -> InvalidDataError:
    """The error of partial rows whose key is not stored.

    Args:
        plan: the write.
        incoming: rows of the write.
        rows: int64[n], positions of these rows, at least one.
    """
    key, partition = (column[int(rows[0])].as_py() for column in (incoming.key_array(), incoming.partitions))
    return InvalidDataError(
        f"{len(rows)} rows of the partial update have a key that {plan.storage.uri} does not hold, for example {key!r} "
        f"in partition {partition!r}. Only stored rows can be updated in part; insert whole rows for the others, "
        f"without {_OPTION}."
    )


Rows = npt.NDArray[np.int64]


def whole_rows(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> tuple[WritePlan, FileGroupWork, Incoming]:
    """The write of one file group with whole rows; unchanged where its rows need no stored ones.

    Args:
        plan: the write.
        work: the file group.
        incoming: rows of the write.

    Raises:
        InvalidDataError: a log has deleted the row that a partial row changes.
        UnsupportedFeatureError: merging a row gives it another partition path.
    """
    completes = plan.partial is not None and plan.partial.completes
    if not completes and not (plan.rules.blends and work.origins):
        return plan, work, incoming
    updates = len(work.incoming_rows)
    part = _part_of(incoming, np.concatenate([work.incoming_rows, work.inserts]))
    stored, number = _stored_rows(plan, work, part, _needed(plan), with_updates=completes)
    rows = part.rows
    if completes:
        _refuse_deleted(plan, work, part, number)
        rows = _completed(plan, rows, stored, number)
    if plan.rules.blends and work.origins:
        rows = _blended(plan, work, rows, stored, number)
    work = replace(
        work,
        incoming_rows=np.arange(updates, dtype=np.int64),
        inserts=np.arange(updates, part.count, dtype=np.int64),
        origins=(),
    )
    if completes:
        assert plan.partial is not None
        unset = frozenset(plan.schema.names).difference(plan.partial.schema.names)
        plan = replace(plan, partial=None, unset=unset)
    return plan, work, replace(part, rows=rows)


def _part_of(incoming: Incoming, chosen: Rows) -> Incoming:
    """Some of the rows, in memory."""
    return Incoming(
        rows=incoming.take(chosen),
        keys=gather_array(incoming.key_array(), chosen),
        partitions=incoming.partitions.take(pa.array(chosen)),
        deletes=None if incoming.deletes is None else incoming.deletes[chosen],
        ordering=tuple(gather_array(column, chosen) for column in incoming.ordering),
    )


def _needed(plan: WritePlan) -> pa.Schema:
    """The columns of stored rows that their changes need, in the table's order."""
    given = () if plan.partial is None or plan.rules.blends else plan.partial.schema.names
    return pa.schema([field.with_nullable(True) for field in plan.schema if field.name not in given])


def _refuse_deleted(plan: WritePlan, work: FileGroupWork, part: Incoming, number: Rows) -> None:
    needless = np.zeros(part.count, dtype=np.bool_) if part.deletes is None else part.deletes.copy()
    if work.moved is not None:
        needless[: len(work.incoming_rows)] |= work.moved
    unknown = np.flatnonzero((number < 0) & ~needless)
    if len(unknown):
        raise unknown_keys(plan, part, unknown)


def _completed(plan: WritePlan, rows: pa.Table, stored: pa.Table, number: Rows) -> pa.Table:
    """Whole rows: the columns of ``rows``, and the missing columns from row ``number`` of ``stored``."""
    where = pa.array(number, mask=number < 0)
    schema = replace(plan, partial=None).row_schema
    columns = [
        rows.column(field.name) if field.name in rows.column_names else stored.column(field.name).take(where)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _blended(plan: WritePlan, work: FileGroupWork, rows: pa.Table, stored: pa.Table, number: Rows) -> pa.Table:
    """The rows; rows from other partitions are merged with their stored rows, over which they win."""
    arrived = np.arange(len(number)) >= len(work.incoming_rows)
    here = np.flatnonzero(arrived & (number >= 0))
    newer = gather(rows, here)
    own = [name for name in rows.column_names if name != OPERATION_FIELD]  # the newer row's, like the meta columns
    older = gather(stored.select(own), number[here])
    blended, _ = fill_gaps(plan.rules, older.cast(newer.select(own).schema), newer.select(own), None)
    made = dict(zip(own, blended.columns, strict=True))
    columns = [made.get(name, newer.column(name)) for name in rows.column_names]
    merged = pa.Table.from_arrays(columns, schema=rows.schema)
    paths = single_chunk(partition_paths(plan.key_config, merged)).dictionary.to_pylist()
    others = [path for path in paths if path != work.partition]
    if others:
        raise UnsupportedFeatureError(
            f"Rows of the write move to partition {work.partition!r} of {plan.storage.uri} by a value that merging "
            f"does not keep: merged with the stored rows they belong to {others[:3]}. This is not supported with the "
            f"global index {plan.index.kind}. Give the partition columns {list(plan.key_config.partition_fields)} "
            "their values in the rows, or switch off update.partition.path of that index."
        )
    order = np.arange(len(number))
    order[here] = len(number) + np.arange(len(here))
    return gather(pa.concat_tables([rows, merged]).combine_chunks(), order)


# ---- stored rows


def _stored_rows(
    plan: WritePlan, work: FileGroupWork, part: Incoming, columns: pa.Schema, *, with_updates: bool
) -> tuple[pa.Table, Rows]:
    """The stored rows that rows of a file group change, and for each of its rows the number of its stored row, or -1.

    Args:
        plan: the write.
        work: the file group.
        part: its rows: updates, then inserts.
        columns: of the stored rows.
        with_updates: whether the stored rows of updates are needed.
    """
    updates = len(work.incoming_rows)
    wanted: list[tuple[FileSlice, Rows, Rows]] = []
    if with_updates and updates:
        assert work.slice is not None
        wanted.append((work.slice, work.base_rows, np.arange(updates, dtype=np.int64)))
    place = np.argsort(work.inserts, kind="stable")
    for origin in work.origins:
        rows = updates + place[np.searchsorted(work.inserts[place], origin.incoming_rows)]
        wanted.append((origin.slice, origin.base_rows, rows))
    tables, number, count = [columns.empty_table()], np.full(part.count, -1, dtype=np.int64), 0
    for slice_, base_rows, rows in wanted:
        if slice_.log_files or (base_rows < 0).any():
            table, found = _by_key(plan, slice_, gather_array(part.key_array(), rows), columns)
        else:
            table, found = _by_number(plan, slice_, base_rows, columns), np.arange(len(rows), dtype=np.int64)
        number[rows] = np.where(found < 0, number[rows], found + count)
        tables.append(table)
        count += table.num_rows
    return pa.concat_tables(tables).combine_chunks(), number


def _by_number(plan: WritePlan, slice_: FileSlice, base_rows: Rows, columns: pa.Schema) -> pa.Table:
    """Rows of a base file, by ascending row numbers."""
    assert slice_.base_file is not None
    parts = [columns.empty_table()]
    with open_base(plan.storage, slice_.base_file) as reader:
        end = 0
        for group, rows in enumerate(reader.row_group_rows()):
            start, end = end, end + rows
            if np.searchsorted(base_rows, start) == np.searchsorted(base_rows, end):
                continue
            for batch in stored_batches(reader, columns, row_groups=[group]):
                part = slice(*np.searchsorted(base_rows, (start, start + batch.num_rows)))
                parts.append(gather(pa.Table.from_batches([batch]), base_rows[part] - start))
                start += batch.num_rows
    return pa.concat_tables(parts)


def _by_key(plan: WritePlan, slice_: FileSlice, keys: pa.Array, columns: pa.Schema) -> tuple[pa.Table, Rows]:
    """The rows of a slice with ``keys`` as a reader sees them, and for each key the number of its row, or -1."""
    buffers = varlen_buffers(keys)
    table = KeyTable.build(buffers.offsets, buffers.data, mostly_absent=True)
    found, count = np.full(len(keys), -1, dtype=np.int64), 0
    parts = [columns.empty_table()]
    for batch in read_slice(_scan(plan, columns), slice_):
        rows = pa.Table.from_batches([batch])
        stored = varlen_buffers(_keys_of(plan, rows))
        hits = table.probe(stored.offsets, stored.data)
        there = np.flatnonzero(hits >= 0)
        found[hits[there]] = count + np.arange(len(there))
        parts.append(gather(rows.select(columns.names), there).cast(columns))
        count += len(there)
    return pa.concat_tables(parts), found[first_equal(buffers.offsets, buffers.data)]


def _scan(plan: WritePlan, columns: pa.Schema) -> SliceScan:
    """A scan of ``columns`` and of the key columns."""
    names = [RECORD_KEY] if plan.stored_key_config is None else plan.stored_key_config.record_key_fields
    more = dict.fromkeys(name.split(".")[0] for name in names)
    known = {field.name: field for field in plan.file_schema}
    others = [known[name].with_nullable(True) for name in more if name not in columns.names]
    wanted, merge = pa.schema([*columns, *others]), merge_settings(plan)
    return SliceScan(
        plan.storage,
        plan.config,
        wanted,
        wanted,
        None,
        merge=merge,
        merge_columns=merge_schema(merge, wanted, plan.file_schema),
    )


def _keys_of(plan: WritePlan, rows: pa.Table) -> pa.Array:
    if plan.stored_key_config is None:
        return single_chunk(rows.column(RECORD_KEY))
    return single_chunk(record_keys(plan.stored_key_config, rows))
