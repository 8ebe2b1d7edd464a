"""Rows and deleted keys as the content of log blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.config.file_options import LogOptions
from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.formats.hfile.reader import read_hfile
from hudi_fast.formats.log.blocks import BlockType
from hudi_fast.formats.parquet.base_file import ParquetSettings
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.writing.log_file import DataBlock, data_blocks, delete_records

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())])
AVRO = arrow_to_avro(SCHEMA, "row", "", meta_fields=False)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": [f"k{number:05d}" for number in numbers], "n": list(numbers)}, schema=SCHEMA)


def blocks(tables: list[pa.Table], block_format: str, size: int) -> list[DataBlock]:
    log = LogOptions(block_format=block_format, max_block_size=size)
    return list(data_blocks(tables, SCHEMA, AVRO, log, ParquetSettings(), ["n"]))


def stored(block: DataBlock) -> list[dict[str, Any]]:
    content = b"".join(bytes(part) for part in block.content)
    if block.kind is BlockType.PARQUET_DATA:
        return pq.read_table(pa.BufferReader(content)).to_pylist()
    decoder = AvroDecoder.compile(AVRO, SCHEMA, "here")
    return [row for batch in decoder.decode_block(pa.py_buffer(content), "here", 0) for row in batch.to_pylist()]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_all_rows_are_in_blocks_of_a_bounded_size(block_format: str) -> None:
    tables = [rows(*range(first, first + 50)) for first in range(0, 200, 50)]
    (whole,) = blocks(tables, block_format, 1 << 20)
    assert stored(whole) == rows(*range(200)).to_pylist()
    assert whole.rows == 200
    assert (whole.ranges["n"].low, whole.ranges["n"].high) == (pa.scalar(0), pa.scalar(199))
    parts = blocks(tables, block_format, 1000)
    assert len(parts) >= 3
    assert [row for part in parts for row in stored(part)] == stored(whole)
    assert all(part.rows == len(stored(part)) for part in parts)


@pytest.mark.parametrize("count", [1, 2, 20, 1200])
def test_rows_of_hfile_blocks_are_in_the_order_of_their_keys_under_numbers(count: int) -> None:
    schema = pa.schema([pa.field("_hoodie_record_key", pa.string()), pa.field("n", pa.int64())])
    avro = arrow_to_avro(schema, "row", "", meta_fields=False)
    keys = [f"k{number * 7919 % count:05d}" for number in range(count)]
    table = pa.table({"_hoodie_record_key": keys, "n": range(count)}, schema=schema)
    later = pa.table({"_hoodie_record_key": keys[:1], "n": [-1]}, schema=schema)
    log = LogOptions(block_format="hfile", hfile_codec="none")
    (block,) = data_blocks([table, later], schema, avro, log, ParquetSettings(), ["n"])
    assert (block.kind, block.rows) == (BlockType.HFILE_DATA, count + 1)
    assert (block.ranges["n"].low, block.ranges["n"].high) == (pa.scalar(-1), pa.scalar(count - 1))
    numbers, values = read_hfile(pa.py_buffer(b"".join(bytes(part) for part in block.content)))
    width = math.ceil(math.log(count + 1)) + 1
    assert numbers.to_pylist() == [f"{number:{width}d}".encode() for number in range(count + 1)]
    decoder = AvroDecoder.compile(avro, schema, "here")
    buffers = varlen_buffers(values)
    bounds = buffers.offsets.astype(np.int64)
    found = decoder.decode_records(buffers.data, bounds[:-1], bounds[1:], "here", 0).to_pylist()
    rows = [*table.to_pylist(), *later.to_pylist()]
    assert found == sorted(rows, key=lambda row: row["_hoodie_record_key"])  # stable: the later row stays behind


def test_a_row_larger_than_a_block_has_a_block_of_its_own() -> None:
    assert [block.rows for block in blocks([rows(1, 2, 3)], "avro", 1)] == [1, 1, 1]
    assert blocks([rows()], "avro", 1) == []


def test_a_null_in_a_required_column_is_refused() -> None:
    wrong = pa.table({"id": pa.array([None], pa.string()), "n": [1]}).cast(
        pa.schema({"id": pa.string(), "n": pa.int64()})
    )
    with pytest.raises(InvalidDataError, match="'id'"):
        blocks([pa.Table.from_arrays(wrong.columns, schema=SCHEMA)], "avro", 1000)


def test_deletes_have_ordering_values_or_the_default() -> None:
    keys, partitions = pa.array(["a", "b"]), pa.array(["p", "p"])
    none = delete_records(keys, partitions, [], np.zeros(2, np.bool_))
    assert (none.ordering, none.is_default.tolist()) == ((), [True, True])
    one = delete_records(keys, partitions, [pa.array([None, 7])], np.zeros(2, np.bool_))
    assert (one.ordering[0].to_pylist(), one.is_default.tolist()) == ([None, 7], [True, False])


def test_a_null_among_several_ordering_values_is_the_lowest_one() -> None:
    columns = [pa.array([1, None], pa.int64()), pa.array([None, "x"])]
    made = delete_records(pa.array(["a", "b"]), pa.array(["p", "p"]), columns, np.zeros(2, np.bool_))
    assert [column.to_pylist() for column in made.ordering] == [[1, 0], ["", "x"]]
