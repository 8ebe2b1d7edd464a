"""Encodes rows and deleted keys as the content of log blocks.

::

    tables, some rows at a time ── Avro records, a Parquet file or an HFile ─► data blocks of a bounded size
    keys, partition paths, ordering values ─► the entries of a delete block, in types that a delete block can hold
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.file_options import LogOptions
from hudi_fast.formats.avro.rows import AvroEncoder, block_content_head
from hudi_fast.formats.hfile.codecs import Codec
from hudi_fast.formats.hfile.writer import encode_hfile
from hudi_fast.formats.log.blocks import BlockType
from hudi_fast.formats.log.delete_block import DeleteRecords
from hudi_fast.formats.parquet.base_file import ParquetSettings, ParquetStream
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, merge_ranges, ranges_of_rows
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.writing.file_columns import RECORD_KEY

__all__ = ["DataBlock", "data_blocks", "delete_records"]

_CODECS = {"gz": Codec.GZ, "none": Codec.NONE}


@dataclass(frozen=True, slots=True)
class DataBlock:
    """An encoded data block.

    Attributes:
        kind: block type.
        content: consecutive buffers.
        rows: number of rows.
        ranges: of the requested columns.
    """

    kind: BlockType
    content: Sequence[Any]
    rows: int
    ranges: ColumnRanges = field(default_factory=dict)


def data_blocks(
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    avro_schema: str,
    log: LogOptions,
    parquet: ParquetSettings,
    stats_columns: Collection[str] = (),
) -> Iterator[DataBlock]:
    """Encode all rows of ``tables`` as blocks of bounded size, in order.

    Args:
        tables: rows in ``schema``; memory holds two of these tables and a block at a time.
        schema: their columns, in storable types.
        avro_schema: Avro JSON of ``schema``.
        log: format and size of blocks.
        parquet: encoding of Parquet blocks.
        stats_columns: columns whose ranges are returned.

    Raises:
        InvalidDataError: a null in a non-nullable column.
    """
    if log.block_format == "parquet":
        for held in _bounded_parts(tables, log.max_block_size):
            yield _parquet_block(held, schema, avro_schema, parquet, stats_columns)
    elif log.block_format == "hfile":
        encoder = AvroEncoder.compile(schema, avro_schema)
        for held in _bounded_parts(tables, log.max_block_size):
            yield _hfile_block(held, encoder, avro_schema, _CODECS[log.hfile_codec], stats_columns)
    else:
        yield from _avro_blocks(tables, AvroEncoder.compile(schema, avro_schema), log.max_block_size, stats_columns)


def delete_records(
    keys: pa.Array, partitions: pa.Array, ordering: Sequence[pa.Array], is_default: npt.NDArray[np.bool_]
) -> DeleteRecords:
    """Entries of a delete block.

    A null means no ordering value. With several ordering columns a null is written as the lowest value of its type,
    because Apache Hudi 1.2.0 cannot read a null there.

    Args:
        keys: n record keys.
        partitions: n partition paths.
        ordering: columns of n ordering values, in the types of the table's columns.
        is_default: bool[n], entries without an ordering value: they win over all earlier rows.
    """
    default = np.array(is_default, dtype=np.bool_)
    if len(ordering) == 1:
        default |= ordering[0].is_null().to_numpy(zero_copy_only=False)
    if not ordering or default.all():
        return DeleteRecords(keys, partitions, (), np.ones(len(keys), dtype=np.bool_))
    values = [one.cast(pa.binary()) if pa.types.is_fixed_size_binary(one.type) else one for one in ordering]
    if len(values) > 1:
        values = [_without_nulls(one) for one in values]
    return DeleteRecords(keys, partitions, tuple(values), default)


# ---- data


def _avro_blocks(
    tables: Iterable[pa.Table], encoder: AvroEncoder, limit: int, stats_columns: Collection[str]
) -> Iterator[DataBlock]:
    parts: list[npt.NDArray[np.uint8]] = []
    ranges: list[ColumnRanges] = []
    size, rows = 0, 0
    for table in tables:
        for batch in table.to_batches():
            data, offsets = encoder.encode_records(batch)
            start, count = 0, len(offsets) - 1
            while start < count:
                end = int(np.searchsorted(offsets, offsets[start] + limit - size, "right")) - 1
                end = min(max(end, start if rows else start + 1), count)  # a block holds at least one row
                if end > start:
                    parts.append(data[offsets[start] : offsets[end]])
                    ranges.append(ranges_of_rows(batch.slice(start, end - start), stats_columns))
                    size, rows = size + int(offsets[end] - offsets[start]), rows + end - start
                if end < count:
                    yield _avro_block(parts, rows, ranges)
                    parts, ranges, size, rows = [], [], 0, 0
                start = end
    if rows:
        yield _avro_block(parts, rows, ranges)


def _avro_block(parts: Sequence[Any], rows: int, ranges: Sequence[ColumnRanges]) -> DataBlock:
    return DataBlock(BlockType.AVRO_DATA, [block_content_head(rows), *parts], rows, merge_ranges(ranges))


def _bounded_parts(tables: Iterable[pa.Table], limit: int) -> Iterator[Sequence[pa.Table]]:
    """Split rows into blocks; block sizes are measured before encoding."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if held and size + table.nbytes > limit:
            yield held
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if size:
        yield held


def _parquet_block(
    tables: Sequence[pa.Table],
    schema: pa.Schema,
    avro_schema: str,
    settings: ParquetSettings,
    stats_columns: Collection[str],
) -> DataBlock:
    sink = pa.BufferOutputStream()
    stream = ParquetStream(sink, schema, settings)
    stream.write(pa.concat_tables(tables))
    stream.close({b"parquet.avro.schema": avro_schema.encode(), b"writer.model.name": b"avro"})
    ranges = merge_ranges(ranges_of_rows(table, stats_columns) for table in tables)
    return DataBlock(BlockType.PARQUET_DATA, [sink.getvalue()], sum(table.num_rows for table in tables), ranges)


def _hfile_block(
    tables: Sequence[pa.Table], encoder: AvroEncoder, avro_schema: str, codec: Codec, stats_columns: Collection[str]
) -> DataBlock:
    """A block with the rows, sorted by record key. The key of an entry is the row's number, as in Hudi's blocks.

    Hudi would use a column ``key``, which only the metadata table has (HFileUtils, 1.2.0).
    """
    rows = pa.concat_tables(tables).combine_chunks()
    rows = rows.take(pc.sort_indices(rows, [(RECORD_KEY, "ascending")]))
    count = rows.num_rows
    width = math.ceil(math.log(count)) + 1
    keys = pc.utf8_lpad(pc.cast(pa.array(np.arange(count)), pa.string()), width, " ")
    values = pa.chunked_array([encoder.encode_values(batch) for batch in rows.to_batches()], pa.binary())
    content = encode_hfile(keys, single_chunk(values), avro_schema, codec)
    return DataBlock(BlockType.HFILE_DATA, content, count, ranges_of_rows(rows, stats_columns))


# ---- deletes


def _without_nulls(column: pa.Array) -> pa.Array:
    kind = column.type
    if not column.null_count:
        return column
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        lowest: Any = b"" if pa.types.is_binary(kind) else ""
    elif pa.types.is_boolean(kind):
        lowest = False
    elif pa.types.is_temporal(kind):
        number = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pc.fill_null(column.view(number), np.iinfo(number.to_pandas_dtype()).min).view(kind)
    else:  # compared with numbers a null counts as 0
        lowest = Decimal(0) if pa.types.is_decimal(kind) else 0
    return pc.fill_null(column, pa.scalar(lowest, kind))
