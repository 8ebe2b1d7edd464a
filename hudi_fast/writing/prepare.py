"""Step 1 of a write: converts incoming columns to rows of the table, with record keys and partition paths.

All checks of rows happen here, before anything is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.column_limits import joined_chunks
from hudi_fast.formats.varlen import single_chunk, varlen_buffers
from hudi_fast.kernels.key_table import pick_winners_grouped
from hudi_fast.keys.key_generator import KeyConfig, partition_paths, record_keys, refuse_stand_ins
from hudi_fast.merging.fold import blend_duplicates
from hudi_fast.merging.row_buffer import BatchedRows
from hudi_fast.merging.rules import delete_mask, ordering_columns
from hudi_fast.schema.conform import conform
from hudi_fast.writing.dml_rows import DML_COLUMNS, prepare_dml_rows
from hudi_fast.writing.indexed_keys import refuse_long_entries
from hudi_fast.writing.write_plan import Incoming, WritePlan

__all__ = ["check_rows", "columns_for", "prepare_rows", "spooled_form", "with_auto_keys"]

_PATHS = pa.dictionary(pa.int32(), pa.string())
_MANY_BYTES = 32 << 20
"""Fewer bytes of rows become one chunk for each column: a copy costs little."""
_RUN_ROWS = 4096
"""Chunks are kept if each has so many rows of a partition, on average."""


def prepare_rows(plan: WritePlan, table: pa.Table, release: Callable[[], None] | None = None) -> Incoming:
    """Cast rows to the table's schema, and compute their keys and partition paths.

    Args:
        plan: the write; its instant is not needed yet.
        table: input columns.
        release: for rows in a mapped file (:func:`spooled_form`): removes the file's pages from memory. The rows then
            stay in the file; keys, partition paths, ordering values and deletes are in memory. None for rows in memory.

    Raises:
        InvalidDataError: null or empty keys, keys that two rows would share, nulls in non-nullable columns, no ordering
            field.
        SchemaMismatchError: a column cannot be cast.
    """
    if plan.is_dml:
        return prepare_dml_rows(plan, table, release)
    if plan.operation == "delete_partition":
        return _prepare_partitions(plan, table)
    keeps_chunks = release is not None or (_in_order(plan) and table.nbytes >= _MANY_BYTES)
    incoming = check_rows(plan, table, joins_chunks=not keeps_chunks)
    if plan.operation == "delete":
        return incoming
    if plan.rules.blends and plan.combines:
        incoming = _blended(plan, incoming)
    if not keeps_chunks:
        return incoming
    if release is None and not _in_long_runs(incoming):
        return replace(incoming, rows=joined_chunks(incoming.rows))
    return replace(incoming, batched=BatchedRows(incoming.rows, release))


def _in_order(plan: WritePlan) -> bool:
    """Whether each file takes its rows in their input order, and no row is merged with another one."""
    sorts = plan.sort_columns or plan.sort_mode != "NONE"
    return plan.operation == "bulk_insert" and not (plan.combines or sorts or plan.index.bucket is not None)


def _in_long_runs(incoming: Incoming) -> bool:
    """Whether chunks have many rows of a partition each: rows are then gathered about as fast as from one chunk."""
    bounds = np.cumsum([0, *(batch.num_rows for batch in incoming.rows.to_batches())])
    codes, partitions = np.asarray(incoming.partitions.indices), len(incoming.partitions.dictionary)
    if (len(bounds) - 1) * partitions > incoming.count:
        return False
    runs = (int(np.count_nonzero(np.bincount(codes[start:end]))) for start, end in itertools.pairwise(bounds))
    return incoming.count >= _RUN_ROWS * int(sum(runs))


def check_rows(plan: WritePlan, table: pa.Table, first_row: int = 0, joins_chunks: bool = True) -> Incoming:
    """Like :func:`prepare_rows`, for some rows of a write: rows with one key are not merged.

    Args:
        plan: the write, not of DML rows or of partitions to delete.
        table: input columns.
        first_row: number of the first row, for messages.
        joins_chunks: whether each column becomes one chunk: gathering rows from it is several times faster.

    Raises:
        InvalidDataError: as for :func:`prepare_rows`.
        SchemaMismatchError: a column cannot be cast.
    """
    if plan.operation == "delete":
        return _prepare_deletes(plan, table, first_row)
    rows = conform(table, plan.row_schema, first_row, plan.rounds)
    if joins_chunks:
        rows = joined_chunks(rows)
    placed = _stored_places(plan, table) if plan.takes_stored_keys else rows
    fields = plan.key_config.record_key_fields
    refuse_stand_ins(plan.key_config, placed, first_row)
    incoming = Incoming(
        rows=rows,
        keys=single_chunk(record_keys(plan.key_config, placed, first_row=first_row)) if fields else None,
        partitions=_partition_array(plan.key_config, placed, first_row),
        deletes=delete_mask(plan.rules, rows),
        ordering=tuple(single_chunk(column) for column in ordering_columns(plan.rules, rows)),
    )
    refuse_long_entries(plan, incoming, first_row)
    return incoming


def spooled_form(plan: WritePlan, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The form of a batch in a local file: columns of the table in the table's types, other columns unchanged.

    Then :func:`prepare_rows` need not convert all rows at once. It still checks for nulls.

    Args:
        plan: the write.
        batch: input columns.

    Raises:
        InvalidDataError: a value does not fit.
        SchemaMismatchError: a column cannot be cast.
    """
    given = [field.with_nullable(True) for field in plan.input_schema if field.name in batch.schema.names]
    made = conform(batch.select([field.name for field in given]), pa.schema(given), rounds=plan.rounds)
    converted = dict(zip(made.schema.names, made.columns, strict=True))
    columns = [converted.get(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _stored_places(plan: WritePlan, table: pa.Table) -> pa.Table:
    """Keys and partition paths of rows that were read from the table, from their meta columns."""
    return conform(table, pa.schema([plan.input_schema.field(name) for name in _key_columns(plan)]))


def _blended(plan: WritePlan, incoming: Incoming) -> Incoming:
    """The rows, with rows that share a key merged into one; refuses such rows of a partial update with a merger."""
    if incoming.keys is None:
        return incoming
    codes = np.asarray(incoming.partitions.indices, dtype=np.int32)
    if plan.partial is not None and plan.rules.merger is not None:
        _refuse_shared_keys(incoming, codes)
        return incoming
    if plan.index.is_global:  # a key has one row in the whole table
        codes = np.zeros_like(codes)
    rows, deletes, ordering = blend_duplicates(
        plan.rules, incoming.keys, codes, incoming.rows, incoming.deletes, incoming.ordering
    )
    partitions = _partition_array(plan.key_config, rows) if plan.index.is_global else incoming.partitions
    return replace(incoming, rows=rows, partitions=partitions, deletes=deletes, ordering=ordering)


def _refuse_shared_keys(incoming: Incoming, codes: npt.NDArray[np.int32]) -> None:
    """Refuse rows that share a key: the user's merger needs whole rows, which are only known after the key lookup."""
    buffers = varlen_buffers(incoming.key_array())
    last = pick_winners_grouped(buffers.offsets, buffers.data, codes, np.zeros(incoming.count, dtype=np.int64))
    repeated = np.delete(np.arange(incoming.count), last)
    if len(repeated):
        key = incoming.key_array()[int(repeated[0])].as_py()
        raise InvalidDataError(
            f"{len(repeated)} rows of the partial update share their key with another row, for example {key!r}, and "
            "hudi_fast.merger merges whole rows only. Keep one row of each key, or write whole rows."
        )


def columns_for(plan: WritePlan, columns: Sequence[str]) -> list[str]:
    """The incoming columns that the write uses, in their order.

    A delete needs key and partition columns; everything else needs the table's columns.
    """
    if plan.operation in ("delete", "delete_partition"):
        wanted = {name.split(".")[0] for name in _key_columns(plan)}
    else:
        wanted = set(plan.input_schema.names)
    if plan.is_dml:
        wanted |= {*plan.input_schema.names, *DML_COLUMNS}
    return [name for name in columns if name in wanted]


def with_auto_keys(plan: WritePlan, incoming: Incoming, task: int, first_row: int = 0) -> Incoming:
    """Generate record keys ``<instant>_<task>_<row>`` where the table has no key fields."""
    if incoming.keys is not None and not (plan.is_dml and incoming.keys.null_count):
        return incoming
    keys = record_keys(plan.key_config, incoming.rows, auto_prefix=f"{plan.instant}_{task}", first_row=first_row)
    if incoming.keys is not None:  # keys of stored rows
        keys = pc.coalesce(incoming.keys, keys)
    return replace(incoming, keys=single_chunk(keys))


def _prepare_deletes(plan: WritePlan, table: pa.Table, first_row: int) -> Incoming:
    """A delete by key needs key and partition columns only."""
    missing = [name for name in _key_columns(plan) if name.split(".")[0] not in table.column_names]
    if missing:
        raise InvalidDataError(
            f"A delete needs the record key and partition columns; {missing} are missing from {table.column_names}."
        )
    needed = [field for field in plan.input_schema if field.name in table.column_names]
    keyed = conform(table.select([field.name for field in needed]), pa.schema(needed), first_row, plan.rounds)
    refuse_stand_ins(plan.key_config, keyed, first_row)
    return Incoming(
        rows=keyed.select([]),
        keys=single_chunk(record_keys(plan.key_config, keyed, first_row=first_row)),
        partitions=_partition_array(plan.key_config, keyed, first_row),
        deletes=np.ones(table.num_rows, dtype=np.bool_),
        ordering=(),
    )


def _prepare_partitions(plan: WritePlan, table: pa.Table) -> Incoming:
    """Rows that only name partitions to delete."""
    needed = pa.schema([field for field in plan.schema if field.name in table.column_names])
    keyed = conform(table.select(needed.names), needed, rounds=plan.rounds)
    paths = _partition_array(plan.key_config, keyed) if table.num_columns else pa.array([], _PATHS)
    return Incoming(keyed.select([]), pa.nulls(keyed.num_rows, pa.string()), paths, None, ())


def _key_columns(plan: WritePlan) -> tuple[str, ...]:
    return (*plan.key_config.record_key_fields, *_partition_fields(plan))


def _partition_fields(plan: WritePlan) -> tuple[str, ...]:
    return () if plan.key_config.kind in ("NON_PARTITION", "GLOBAL_DELETE") else plan.key_config.partition_fields


def _partition_array(key_config: KeyConfig, rows: pa.Table, first_row: int = 0) -> pa.DictionaryArray:
    return single_chunk(partition_paths(key_config, rows, first_row))
