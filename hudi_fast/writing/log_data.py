"""Rows and deleted keys as the content of log blocks.

::

    tables, some rows at a time ── Avro records or a Parquet file ─► data blocks of a bounded size
    keys, partition paths, ordering values ─► the entries of a delete block, in the types that one can hold
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.formats.avro_rows import AvroEncoder, block_content_head
from hudi_fast.formats.delete_block import DeleteRecords
from hudi_fast.formats.log_blocks import BlockType
from hudi_fast.formats.parquet_base import ParquetSettings
from hudi_fast.writing.plan import LogSettings

__all__ = ["DataBlock", "data_blocks", "delete_records"]


@dataclass(frozen=True, slots=True)
class DataBlock:
    """A data block to be written.

    Attributes:
        kind: of which format.
        content: buffers, one after the other.
        rows: how many it holds.
    """

    kind: BlockType
    content: Sequence[Any]
    rows: int


def data_blocks(
    tables: Iterable[pa.Table], schema: pa.Schema, avro_schema: str, log: LogSettings, parquet: ParquetSettings
) -> Iterator[DataBlock]:
    """All rows of ``tables`` in as many blocks as their size asks for, in order.

    Args:
        tables: rows in ``schema``, so many at a time that memory bears two of them beside a block.
        schema: their columns, in storable types.
        avro_schema: Avro JSON of ``schema``.
        log: format and size of blocks.
        parquet: encoding of Parquet blocks.

    Raises:
        InvalidDataError: a null where the schema has none.
    """
    if log.block_format == "parquet":
        yield from _parquet_blocks(tables, schema, avro_schema, log.max_block_size, parquet)
    else:
        yield from _avro_blocks(tables, AvroEncoder.compile(schema, avro_schema), log.max_block_size)


def delete_records(
    keys: pa.Array, partitions: pa.Array, ordering: Sequence[pa.Array], is_default: npt.NDArray[np.bool_]
) -> DeleteRecords:
    """Entries of a delete block.

    A null stands for no ordering value. Among several it goes as the lowest of its type, since Apache Hudi 1.2.0 cannot
    read a null there.

    Args:
        keys: n record keys.
        partitions: n partition paths.
        ordering: columns of n ordering values, in the types of the table's columns.
        is_default: bool[n], entries without an ordering value: they win over all that was written before.
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


def _avro_blocks(tables: Iterable[pa.Table], encoder: AvroEncoder, limit: int) -> Iterator[DataBlock]:
    parts: list[npt.NDArray[np.uint8]] = []
    size, rows = 0, 0
    for table in tables:
        for batch in table.to_batches():
            data, offsets = encoder.encode_records(batch)
            start, count = 0, len(offsets) - 1
            while start < count:
                end = int(np.searchsorted(offsets, offsets[start] + limit - size, "right")) - 1
                end = min(max(end, start if rows else start + 1), count)  # a block holds one row at least
                if end > start:
                    parts.append(data[offsets[start] : offsets[end]])
                    size, rows = size + int(offsets[end] - offsets[start]), rows + end - start
                if end < count:
                    yield DataBlock(BlockType.AVRO_DATA, [block_content_head(rows), *parts], rows)
                    parts, size, rows = [], 0, 0
                start = end
    if rows:
        yield DataBlock(BlockType.AVRO_DATA, [block_content_head(rows), *parts], rows)


def _parquet_blocks(
    tables: Iterable[pa.Table], schema: pa.Schema, avro_schema: str, limit: int, settings: ParquetSettings
) -> Iterator[DataBlock]:
    """The size of a block is taken before its columns are encoded."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if held and size + table.nbytes > limit:
            yield _parquet_block(held, schema, avro_schema, settings)
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if size:
        yield _parquet_block(held, schema, avro_schema, settings)


def _parquet_block(
    tables: Sequence[pa.Table], schema: pa.Schema, avro_schema: str, settings: ParquetSettings
) -> DataBlock:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, schema, compression=settings.codec, compression_level=settings.level, store_schema=False
    ) as writer:
        writer.write_table(pa.concat_tables(tables))
        writer.add_key_value_metadata({"parquet.avro.schema": avro_schema, "writer.model.name": "avro"})
    return DataBlock(BlockType.PARQUET_DATA, [sink.getvalue()], sum(table.num_rows for table in tables))


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
    else:  # beside numbers a null counts as 0
        lowest = Decimal(0) if pa.types.is_decimal(kind) else 0
    return pc.fill_null(column, pa.scalar(lowest, kind))
