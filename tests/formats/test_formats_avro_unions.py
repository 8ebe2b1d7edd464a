"""Unions of several types as structs: read, written, and told when they are wrong."""

from __future__ import annotations

import io
import json
import pickle

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.avro.types import arrow_type, parse_record
from tests.formats.avro_examples import decode, record_of, unions, with_names
from tests.naive import avro_rows as naive

WRAPPED = [
    "null",
    "int",
    {"type": "record", "name": "space.Text", "fields": [{"name": "value", "type": "string"}]},
    {"type": "record", "name": "space.Items", "fields": [{"name": "items", "type": {"type": "array", "items": "int"}}]},
]
ROWS = [
    {"a": 1, "u": {"int": 7, "Text": None, "Items": None}},
    {"a": 2, "u": None},
    {"a": 3, "u": {"int": None, "Text": {"value": "é"}, "Items": None}},
    {"a": 4, "u": {"int": None, "Text": None, "Items": {"items": [5, 6]}}},
]


def natural(avro):
    kind = arrow_type(parse_record(json.dumps(avro), "here"), "", "here")
    return pa.schema([kind.field(i) for i in range(kind.num_fields)])


def encode(avro, batch):
    return AvroEncoder.compile(batch.schema, json.dumps(avro)).encode_records(batch)[0].tobytes()


@pytest.mark.slow
@given(data=st.data(), kind=unions(), within=st.sampled_from(("column", "array", "map", "record")))
def test_unions_of_any_types_become_structs_and_come_back(data, kind, within):
    avro, values = kind
    if within == "array":
        avro, values = {"type": "array", "items": avro}, st.lists(values, max_size=4)
    elif within == "map":
        avro, values = {"type": "map", "values": avro}, st.dictionaries(st.text(max_size=3), values, max_size=3)
    elif within == "record":
        inner = {"type": "record", "name": "?", "fields": [{"name": "x", "type": avro}]}
        avro, values = ["null", inner], st.none() | st.fixed_dictionaries({"x": values})
    table = with_names(record_of(("a", "int"), ("u", avro), ("b", "string")))
    rows = [{"a": 1, "u": each, "b": "z"} for each in data.draw(st.lists(values, max_size=12))]
    content = naive.block([naive.encode(table, row) for row in rows])
    batches = decode(table, content, natural(table))
    assert naive.rows_of(batches) == rows
    for batch in batches:
        assert encode(table, batch) == content[8:]


def test_records_in_unions_are_those_of_fastavro():
    avro = record_of(("a", "int"), ("u", WRAPPED))
    parsed = fastavro.parse_schema(avro)
    records = []
    for value in (7, None, ("space.Text", {"value": "é"}), ("space.Items", {"items": [5, 6]})):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"a": len(records) + 1, "u": value})
        records.append(out.getvalue())
    (batch,) = decode(avro, naive.block(records), natural(avro))
    assert naive.rows_of([batch]) == ROWS
    assert encode(avro, batch) == naive.block(records)[8:]


def test_members_come_in_any_order_and_absent_ones_are_null():
    avro = record_of(("a", "int"), ("u", WRAPPED))
    content = naive.block([naive.encode(avro, row) for row in ROWS])
    kind = natural(avro).field("u").type
    wanted = pa.struct([pa.field("other", pa.date32()), kind.field("Items"), kind.field("int"), kind.field("Text")])
    (batch,) = decode(avro, content, pa.schema([pa.field("u", wanted)]))
    absent = [None if row["u"] is None else {**row["u"], "other": None} for row in ROWS]
    assert naive.values_of(batch.column(0)) == absent
    without = batch.column(0).type
    members = pa.struct([without.field(name) for name in ("Text", "int", "Items")])
    struct = pa.StructArray.from_arrays(
        [batch.column(0).field(name) for name in ("Text", "int", "Items")],
        fields=list(members),
        mask=batch.column(0).is_null(),
    )
    again = pa.record_batch(
        [pa.array([1, 2, 3, 4], pa.int32()), struct], schema=pa.schema([("a", pa.int32()), ("u", members)])
    )
    assert encode(avro, again) == content[8:]


def test_numbers_within_branches_are_promoted():
    avro = record_of(("u", ["int", "string"]))
    kind = pa.struct([("string", pa.binary()), ("int", pa.int64())])
    (batch,) = decode(
        avro, naive.block([naive.encode(avro, {"u": {"int": 7, "string": None}})]), pa.schema([("u", kind)])
    )
    assert batch.column(0).to_pylist() == [{"string": None, "int": 7}]


@pytest.mark.parametrize("order", [["null", "int", "string"], ["string", "int", "null"], ["string", "int"]])
def test_columns_of_tables_number_their_members(order):
    avro = record_of(("u", order))
    names = [name for name in order if name != "null"]
    values = [{"int": 7, "string": None}, {"int": None, "string": "x"}, *([None] if "null" in order else [])]
    content = naive.block([naive.encode(avro, {"u": each}) for each in values])
    (batch,) = decode(avro, content)
    numbered = [each and {f"member{i}": each[name] for i, name in enumerate(names)} for each in values]
    assert batch.column(0).to_pylist() == numbered
    assert encode(avro, batch) == content[8:]
    fields = [{"name": "z", "type": ["int", "string"], "default": 9}, *avro["fields"]]
    grown = {**avro, "fields": fields}
    read = decode(avro, content, avro_to_arrow(grown, "here"), reader_avro=json.dumps(grown))
    assert read[0].column(0).to_pylist() == [{"member0": 9, "member1": None}] * len(values)


def test_members_are_numbered_whatever_records_are_called():
    record = {"type": "record", "name": "member0", "fields": [{"name": "x", "type": "int"}]}
    avro = record_of(("u", ["string", record]))
    content = naive.block([naive.encode(avro, {"u": {"string": "s", "member0": None}})])
    kind = pa.struct([("member0", pa.string()), ("member1", pa.struct([("x", pa.int32())])), ("member2", pa.int64())])
    (batch,) = decode(avro, content, pa.schema([("u", kind)]))
    assert batch.column(0).to_pylist() == [{"member0": "s", "member1": None, "member2": None}]


def test_a_branch_that_is_not_wanted_is_refused_where_it_is_met():
    avro = record_of(("u", WRAPPED))
    kind = natural(avro).field("u").type
    reader = pa.schema([pa.field("u", pa.struct([kind.field("int")]))])
    rows = [{"u": row["u"]} for row in ROWS]
    content = naive.block([naive.encode(avro, row) for row in rows])
    with pytest.raises(UnsupportedFeatureError, match=r"'u' holds a Text \(row 2\).*some.log"):
        decode(avro, content, reader)
    (batch,) = decode(avro, naive.block([naive.encode(avro, row) for row in rows[:2]]), reader)
    assert batch.column(0).to_pylist() == [{"int": 7}, None]


def test_plain_columns_are_no_unions():
    avro = record_of(("u", ["int", "string"]))
    for kind in (pa.int32(), pa.struct([("x", pa.int32())])):
        with pytest.raises(SchemaMismatchError, match="'u' is a union of int, string in the records"):
            AvroDecoder.compile(json.dumps(avro), pa.schema([("u", kind)]), "here")
        with pytest.raises(SchemaMismatchError, match="the Avro schema has a union of int, string"):
            AvroEncoder.compile(pa.schema([("u", kind)]), json.dumps(avro))


@pytest.mark.parametrize("raw", [naive.varint(4), naive.varint(-1), b"\x80", b"", naive.varint(2**40)])
def test_wrong_branches_are_told_with_their_place(raw):
    avro = record_of(("a", "int"), ("u", WRAPPED))
    with pytest.raises(CorruptTableError, match=r"column u.*some.log, byte 113") as found:
        decode(avro, naive.block([naive.varint(1) + raw]), natural(avro))
    assert found.value.offset == 113


def test_nulls_where_none_are_taken_are_refused():
    avro = record_of(("u", ["null", "int", "string"]))
    kind = pa.struct([("int", pa.int32()), ("string", pa.string())])
    content = naive.block([naive.encode(avro, {"u": {"int": 1, "string": None}}), naive.encode(avro, {"u": None})])
    with pytest.raises(InvalidDataError, match=r"'u' holds a null \(row 1\)"):
        decode(avro, content, pa.schema([pa.field("u", kind, nullable=False)]))


def test_a_union_holds_one_value():
    kind = pa.struct([("int", pa.int32()), ("string", pa.string())])
    batch = pa.record_batch({"u": pa.array([{"int": 1}, {"int": 1, "string": "x"}], kind)})
    with pytest.raises(InvalidDataError, match=r"'u' has 2 values \(row 1\); a union holds one, or none"):
        encode(record_of(("u", ["null", "int", "string"])), batch)
    empty = pa.record_batch({"u": pa.array([{"int": 1}, {}, None], kind)})
    with pytest.raises(InvalidDataError, match=r"'u' has 0 values \(row 1\).*allows no null"):
        encode(record_of(("u", ["int", "string"])), empty)
    null_last = record_of(("u", ["int", "string", "null"]))
    assert encode(null_last, empty) == naive.block([b"\x00\x02", b"\x04", b"\x04"])[8:]


def test_members_below_a_null_struct_are_not_written():
    kind = pa.struct([("int", pa.int32()), ("string", pa.string())])
    members = [pa.array([1, 2], pa.int32()), pa.array([None, None], pa.string())]
    hidden = pa.StructArray.from_arrays(members, fields=list(kind), mask=pa.array([False, True]))
    content = encode(record_of(("u", ["null", "int", "string"])), pa.record_batch({"u": hidden}))
    assert content == naive.block([b"\x02\x02", b"\x00"])[8:]


def test_columns_that_rows_lack_become_the_default_of_the_first_branch():
    fields = [{"name": "a", "type": "int"}, {"name": "u", "type": ["int", "string"], "default": 9}]
    fields.append({"name": "v", "type": ["null", "int", "string"], "default": None})
    avro = {"type": "record", "name": "r", "fields": fields}
    content = encode(avro, pa.record_batch({"a": pa.array([1], pa.int32())}))
    assert content == naive.block([b"\x02\x00\x12\x00"])[8:]
    old = record_of(("a", "int"))
    read = decode(old, naive.block([b"\x02"]), natural(avro), reader_avro=json.dumps(avro))
    assert read[0].to_pylist() == [{"a": 1, "u": {"int": 9, "string": None}, "v": None}]


def test_branches_of_one_name_are_told_apart_by_namespace():
    one = {"type": "record", "name": "x.W", "fields": [{"name": "value", "type": "int"}]}
    two = {"type": "record", "name": "y.W", "fields": [{"name": "value", "type": "string"}]}
    kind = natural(record_of(("u", [one, two, "long"]))).field("u").type
    assert [kind.field(i).name for i in range(3)] == ["x.W", "y.W", "long"]


def test_plans_with_unions_can_be_pickled():
    avro = record_of(("a", "int"), ("u", WRAPPED))
    content = naive.block([naive.encode(avro, row) for row in ROWS])
    decoder = pickle.loads(pickle.dumps(AvroDecoder.compile(json.dumps(avro), natural(avro), "here")))
    (batch,) = decoder.decode_block(content, None, 0)
    encoder = pickle.loads(pickle.dumps(AvroEncoder.compile(batch.schema, json.dumps(avro))))
    assert encoder.encode_records(batch)[0].tobytes() == content[8:]
