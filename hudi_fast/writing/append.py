"""Changes to a file slice of a MERGE_ON_READ table become log blocks (``HoodieAppendHandle``, Hudi 1.2.0).

::

    rows that change a stored one ─► with meta columns, some rows at a time  ─► data blocks
    rows that delete it           ─► key, partition path, ordering value     ─► one delete block, the last

Rows are not compared with stored rows; readers of the slice do that. Memory holds one block. Blocks follow the order of
the base file's rows, so their headers can list row positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.avro.schema import OPERATION_FIELD
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.formats.log.delete_block import DeleteRecords
from hudi_fast.formats.log.kryo_delete_writing import delete_block_of
from hudi_fast.formats.log.record_positions import encode_positions
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.merging.gather import gather_array
from hudi_fast.merging.rules import DELETE_OPERATIONS
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.file_columns import new_meta_columns
from hudi_fast.writing.log_data import data_blocks, delete_records
from hudi_fast.writing.log_file import BlockCounts, LogOutput, LogTarget
from hudi_fast.writing.output_file import Rows
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, Incoming, WritePlan

__all__ = ["append_log"]

Flags = npt.NDArray[np.bool_]

_META_BYTES = 150
"""Approximate size of a row's meta columns."""

_MANY_DELETE_VALUES = 9
"""Readers of tables before this version support only one ordering value per delete entry."""


def append_log(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Log the changes of one file group; one stat per log file.

    Args:
        plan: the write.
        work: rows of an existing slice, none to insert.
        incoming: rows of the write.
    """
    if work.slice is None or len(work.inserts):
        raise ValueError("a log takes changes to an existing slice alone")
    dropped, buried = _deletes(plan, work, incoming)
    kept = ~dropped
    target = LogTarget(
        plan.storage,
        plan.config.layout_version,
        plan.instant,
        work.slice,
        str(work.token),
        plan.files.log.max_file_size,
        bool(plan.files.stats_columns),
        plan.table.cdc is not None,
    )
    with LogOutput(target) as output:
        rows, sources, buried = work.base_rows[kept], work.incoming_rows[kept], buried[kept]
        start = 0
        tables = _log_rows(plan, work, incoming, sources)
        blocks = data_blocks(
            tables, _schema(plan), _avro_schema(plan), plan.files.log, plan.files.parquet, plan.files.stats_columns
        )
        for block in blocks:
            part = slice(start, start + block.rows)
            deletes = int(buried[part].sum())
            counts = BlockCounts(updates=block.rows - deletes, deletes=deletes, ranges=block.ranges)
            output.append(block.kind, _headers(plan, work.slice, rows[part]), block.content, counts)
            start += block.rows
            del block  # before the next one is collected
        if dropped.any():
            content = delete_block_of(plan.config.version, _delete_entries(work, incoming, dropped))
            headers = _headers(plan, work.slice, work.base_rows[dropped])
            output.append(BlockType.DELETE, headers, [content], BlockCounts(deletes=int(dropped.sum())))
    known = bool((work.base_rows >= 0).all())
    return [replace(stat, inserts_last=known) for stat in output.stats]


def _deletes(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> tuple[Flags, Flags]:
    """Split deletes into entries of the delete block and marked data rows.

    Rows are marked in tables whose readers do not support the entry, and in tables that store the operation of a row
    (``hoodie.allow.operation.metadata.field``, ``HoodieAppendHandle``, Hudi 1.2.0).
    """
    none = np.zeros(len(work.incoming_rows), dtype=np.bool_)
    marked = none if incoming.deletes is None else incoming.deletes[work.incoming_rows]
    dropped = marked if work.moved is None else marked | work.moved
    if len(incoming.ordering) >= 2 and plan.config.version < _MANY_DELETE_VALUES:
        return none if work.moved is None else work.moved, marked
    if not plan.table.stores_operations or OPERATION_FIELD not in incoming.rows.column_names or not marked.any():
        return dropped, none
    operations = gather_array(single_chunk(incoming.rows.column(OPERATION_FIELD)), work.incoming_rows)
    buried = marked & np.asarray(pc.is_in(operations, DELETE_OPERATIONS))
    return dropped & ~buried, buried


def _log_rows(plan: WritePlan, work: FileGroupWork, incoming: Incoming, sources: Rows) -> Iterator[pa.Table]:
    """Incoming rows with new meta columns; ``_hoodie_file_name`` holds the file id in a log."""
    first = work.first_sequence
    for part in incoming.parts(sources, _rows_at_once(plan, incoming)):
        keys = gather_array(incoming.key_array(), part)
        meta = new_meta_columns(plan, keys, work.partition, work.file_id, work.token.task, first)
        data = incoming.take(part)
        columns = [_plain(one) for one in meta] + [data.column(field.name) for field in list(_schema(plan))[5:]]
        yield pa.Table.from_arrays(columns, schema=_schema(plan))
        first += len(part)


def _schema(plan: WritePlan) -> pa.Schema:
    return plan.file_schema if plan.partial is None else plan.partial.file_schema


def _avro_schema(plan: WritePlan) -> str:
    return plan.avro_schema if plan.partial is None else plan.partial.avro_schema


def _rows_at_once(plan: WritePlan, incoming: Incoming) -> int:
    """Rows of a small part of a block; Parquet blocks end at such a boundary."""
    return int(min(max(plan.files.log.max_block_size / 16 / (incoming.row_bytes + _META_BYTES), 1), PART_ROWS))


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _delete_entries(work: FileGroupWork, incoming: Incoming, dropped: Flags) -> DeleteRecords:
    sources = work.incoming_rows[dropped]
    keys = gather_array(incoming.key_array(), sources)
    partitions = pa.repeat(pa.scalar(work.partition, pa.string()), len(sources))
    ordering = [gather_array(column, sources) for column in incoming.ordering]
    # A moved row is deleted at any ordering value: lookup has already compared it.
    default = np.zeros(len(sources), dtype=np.bool_) if work.moved is None else work.moved[dropped]
    return delete_records(keys, partitions, ordering, default)


def _headers(plan: WritePlan, slice_: FileSlice, base_rows: Rows) -> dict[HeaderKey, str]:
    headers = {HeaderKey.INSTANT_TIME: plan.instant, HeaderKey.SCHEMA: _avro_schema(plan)}
    if plan.partial is not None:
        headers[HeaderKey.IS_PARTIAL] = "true"
    if plan.files.log.record_positions and slice_.base_file is not None and (base_rows >= 0).all():
        headers[HeaderKey.RECORD_POSITIONS] = encode_positions(base_rows)
        headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = slice_.base_file.instant
    return headers
