"""Data blocks of a log as rows of the table's schema."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, encode_block
from hudi_fast.merging.log_scan import LogRowReader, visible_blocks
from hudi_fast.storage.base import Storage
from tests.merging.log_slices import SCHEMA, data, merge_of, schema_text, slice_of

ROWS = [{"id": "a", "ts": 1, "text": "x"}, {"id": "b", "ts": None, "text": "y"}]


def blocks_of(folder: Path, *blocks: bytes) -> list[LogBlock]:
    return visible_blocks(merge_of(folder), slice_of(folder, [("200", list(blocks))]))


def reader(folder: Path, schema: pa.Schema = SCHEMA) -> LogRowReader:
    return LogRowReader(Storage(folder), schema, {})


def parquet(rows: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(rows, content)
    headers = {HeaderKey.INSTANT_TIME: "200", HeaderKey.SCHEMA: schema_text()}
    return b"".join(map(bytes, encode_block(BlockType.PARQUET_DATA, headers, content.getvalue())))


def test_avro_and_parquet_blocks_have_the_same_rows(tmp_path: Path) -> None:
    stored = pa.Table.from_pylist([{"_hoodie_record_key": row["id"], **row} for row in ROWS], SCHEMA)
    avro, columns = blocks_of(tmp_path, data("200", ROWS), parquet(stored))
    made = reader(tmp_path)
    assert made.read(avro).to_pylist() == made.read(columns).to_pylist() == stored.to_pylist()
    assert len(made.decoders) == 1


def test_missing_columns_are_null_and_narrow_types_are_widened(tmp_path: Path) -> None:
    old = data("200", [{"id": "a", "ts": 1}], schema_text(_hoodie_record_key="string", id="string", ts="int"))
    older = parquet(pa.table({"id": ["a"], "ts": pa.array([1], pa.int32())}))
    made = reader(tmp_path, pa.schema({"ts": pa.int64(), "text": pa.string()}))
    for block in blocks_of(tmp_path, old, older):
        assert made.read(block).to_pylist() == [{"ts": 1, "text": None}]


def test_a_block_without_any_requested_column_has_its_number_of_rows(tmp_path: Path) -> None:
    made = reader(tmp_path, pa.schema({"new": pa.string()}))
    for block in blocks_of(tmp_path, data("200", ROWS), parquet(pa.table({"id": ["a", "b"]}))):
        assert made.read(block).to_pylist() == [{"new": None}] * 2


def test_a_partial_block_names_its_columns(tmp_path: Path) -> None:
    partial = data("200", [{"ts": 1}], schema_text(_hoodie_record_key="string", ts="long"), is_partial="true")
    whole, part = blocks_of(tmp_path, data("200", ROWS), partial)
    assert reader(tmp_path).columns_of(whole) is None
    assert reader(tmp_path).columns_of(part) == {"_hoodie_record_key", "ts"}


def test_damaged_blocks_are_named(tmp_path: Path) -> None:
    headers = {HeaderKey.INSTANT_TIME: "200"}
    nameless = b"".join(map(bytes, encode_block(BlockType.AVRO_DATA, headers, b"\0\0\0\3\0\0\0\0")))
    wrong = b"".join(map(bytes, encode_block(BlockType.PARQUET_DATA, headers, b"PAR1 no more")))
    for block in blocks_of(tmp_path, nameless, wrong):
        with pytest.raises(CorruptTableError) as raised:
            reader(tmp_path).read(block)
        assert raised.value.path == block.path
