"""Avro records to Arrow and back, against fastavro and a codec by hand; blocks of real Hudi."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.formats.avro import rows as avro_rows
from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder, block_content_head
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, read_content, scan_log_blocks
from hudi_fast.schema.cast import leaf_cast
from hudi_fast.storage.base import Storage
from tests.formats.avro_examples import decode, encoded, record_of, tables
from tests.naive import avro_rows as naive
from tests.support.examples import examples
from tests.support.golden import golden_names


@pytest.mark.slow
@given(table=tables())
def test_records_of_any_schema_become_their_rows(table):
    avro, rows = table
    records = [naive.encode(avro, row) for row in rows]
    assert naive.decode(avro, records) == rows
    assert naive.rows_of(decode(avro, naive.block(records))) == rows


@pytest.mark.slow
@given(table=tables(), before=st.integers(0, 9), after=st.integers(0, 9))
def test_rows_become_the_records_that_they_came_from(table, before, after):
    avro, rows = table
    text = json.dumps(avro)
    records = [naive.encode(avro, row) for row in rows]
    encoder = AvroEncoder.compile(avro_to_arrow(text, "here"), text)
    # a slice of an array, with whatever stands around it
    batches = decode(avro, naive.block([*records[:before], *records, *records[:after]]))
    for batch in batches:
        skipped = len(records[:before])
        data, bounds = encoder.encode_records(batch.slice(skipped, len(rows)))
        assert block_content_head(len(rows)) + data.tobytes() == naive.block(records)
        assert bounds.tolist() == np.cumsum([0, *(len(each) + 4 for each in records)]).tolist()


@pytest.mark.slow
@given(table=tables(), data=st.data())
def test_lists_may_come_in_several_blocks(table, data):
    avro, rows = table

    def cut(items):
        places = sorted(data.draw(st.lists(st.integers(0, len(items)), max_size=3)))
        bounds = [0, *places, len(items)]
        return [(items[a:b], data.draw(st.booleans())) for a, b in pairwise(bounds)]

    records = [naive.encode(avro, row, cut) for row in rows]
    assert naive.rows_of(decode(avro, naive.block(records))) == rows


@st.composite
def evolved(draw):
    """A table, and the schema of a reader who wants some of its columns, and others besides."""
    avro, rows = draw(tables())
    full = avro_to_arrow(json.dumps(avro), "here")
    kept = draw(st.permutations(list(full)).flatmap(lambda each: st.integers(0, len(each)).map(lambda n: each[:n])))
    added = [pa.field(f"new{i}", draw(st.sampled_from(ADDED))) for i in range(draw(st.integers(0, 2)))]
    return avro, rows, pa.schema([thinned(draw, each) for each in draw(st.permutations([*kept, *added]))])


ADDED = [pa.int64(), pa.string(), pa.list_(pa.int32()), pa.struct([pa.field("a", pa.decimal128(5, 2))])]


def thinned(draw, field):
    """The field with fewer fields in its records, in another order."""
    if not pa.types.is_struct(field.type) or field.name.startswith("new"):
        return field
    inner = draw(st.permutations([field.type.field(i) for i in range(field.type.num_fields)]))
    inner = [thinned(draw, each) for each in inner[: draw(st.integers(1, len(inner)))]]
    return field.with_type(pa.struct([*inner, pa.field("newer", pa.int64())]))


def projected(row, wanted):
    if row is None:
        return None
    made = {}
    for field in wanted:
        value = row.get(field.name)
        kind = field.type
        if pa.types.is_struct(kind) and value is not None:
            value = projected(value, [kind.field(i) for i in range(kind.num_fields)])
        made[field.name] = value
    return made


@pytest.mark.slow
@given(case=evolved())
def test_readers_may_want_fewer_other_and_reordered_columns(case):
    avro, rows, reader = case
    batches = decode(avro, encoded(avro, rows), reader)
    assert sum(batch.num_rows for batch in batches) == len(rows)
    assert naive.rows_of(batches) == [projected(row, reader) for row in rows]


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(table=tables(), batch_bytes=st.integers(1, 200), batch_rows=st.integers(1, 4))
def test_rows_are_the_same_however_batches_are_cut(table, batch_bytes, batch_rows):
    avro, rows = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_rows, "BATCH_BYTES", batch_bytes)
        patch.setattr(avro_rows, "BATCH_ROWS", batch_rows)
        batches = decode(avro, encoded(avro, rows))
        assert all(batch.num_rows <= batch_rows for batch in batches)
        assert naive.rows_of(batches) == rows
        text = json.dumps(avro)
        encoder = AvroEncoder.compile(avro_to_arrow(text, "here"), text)
        parts = [encoder.encode_records(batch)[0].tobytes() for batch in batches]
        assert block_content_head(len(rows)) + b"".join(parts) == encoded(avro, rows)


def test_records_anywhere_in_a_buffer_become_one_batch():
    avro = record_of(("a", "int"), ("b", "string"))
    decoder = AvroDecoder.compile(json.dumps(avro), pa.schema([("b", pa.string())]), "here")
    data = np.frombuffer(b"??\x02\x02x!\x04\x04yz", np.uint8)
    batch = decoder.decode_records(data, np.array([6, 2]), np.array([10, 5]))
    assert batch.to_pydict() == {"b": ["yz", "x"]}
    short = np.frombuffer(b"\x02\x04abc", np.uint8)
    assert decoder.decode_records(short, np.array([0]), np.array([4])).to_pydict() == {"b": ["ab"]}
    assert decoder.decode_records(data, np.zeros(0, np.int64), np.zeros(0, np.int64)).num_rows == 0
    for starts, ends in [([0], [11]), ([-1], [3]), ([3], [2])]:
        with pytest.raises(ValueError, match="within 10 bytes"):
            decoder.decode_records(data, np.array(starts), np.array(ends))


def test_columns_behind_the_last_wanted_one_are_not_read():
    avro = record_of(("a", "int"), ("b", "string"))
    reader = pa.schema([("a", pa.int32())])
    assert naive.rows_of(decode(avro, naive.block([b"\x02" + b"\x08xx"]), reader)) == [{"a": 1}]


@settings(max_examples=examples(10))
@given(table=tables())
def test_compiled_codecs_can_be_pickled(table):
    avro, rows = table
    text = json.dumps(avro)
    reader = avro_to_arrow(text, "here")
    decoder = pickle.loads(pickle.dumps(AvroDecoder.compile(text, reader, "here", promote=leaf_cast)))
    encoder = pickle.loads(pickle.dumps(AvroEncoder.compile(reader, text)))
    for batch in decoder.decode_block(pa.py_buffer(encoded(avro, rows)), None, 0):
        assert naive.rows_of([batch]) == rows
        assert encoder.encode_records(batch)[0].tobytes() == encoded(avro, rows)[8:]


LOGS = golden_names("mor_") + golden_names("h015_mor")


def data_blocks(table):
    """Schema, content and what messages need, of each Avro data block below a table's partitions."""
    storage = Storage(str(table))
    for log in sorted(table.rglob(".*.log.*")):
        path = str(log.relative_to(table))
        if path.startswith(".hoodie") or path.endswith(".crc"):
            continue
        for block in scan_log_blocks(storage, path):
            if block.kind is BlockType.AVRO_DATA:
                yield block.headers[HeaderKey.SCHEMA], read_content(storage, block), path, block.content_start


def records_in(content):
    at = 8
    while at < len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        yield content[at + 4 : at + 4 + size]
        at += 4 + size


@pytest.mark.parametrize("name", LOGS)
def test_data_blocks_of_real_hudi(name, golden):
    for text, content, path, offset in data_blocks(golden(name).table):
        reader = avro_to_arrow(text, path)
        batches = list(AvroDecoder.compile(text, reader, path).decode_block(content, path, offset))
        raw = content.to_pybytes()
        assert naive.rows_of(batches) == naive.decode(json.loads(text), list(records_in(raw)))
        encoder = AvroEncoder.compile(reader, text)
        again = b"".join(encoder.encode_records(batch)[0].tobytes() for batch in batches)
        assert again == raw[8:]
