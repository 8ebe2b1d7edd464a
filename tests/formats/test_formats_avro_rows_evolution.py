"""Records of one schema read with another: promotions, defaults, aliases, refusals."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder, block_content_head
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.schema.cast import leaf_cast
from tests.formats.avro_examples import column, decode, encoded, record_of
from tests.naive import avro_rows as naive


@pytest.mark.parametrize(
    ("writer", "values", "target", "expected"),
    [
        ("int", [-(2**31), 7], pa.int64(), [-(2**31), 7]),
        ("int", [16777217], pa.float32(), [16777216.0]),
        ("int", [2**31 - 1], pa.float64(), [2147483647.0]),
        ("long", [2**53 + 1], pa.float64(), [2.0**53]),
        ("long", [2**63 - 1], pa.float32(), [2.0**63]),
        ("float", [1.100000023841858, -0.0, float("inf")], pa.float64(), [1.1, -0.0, float("inf")]),
        ("string", ["ä"], pa.binary(), ["ä".encode()]),
        ("bytes", ["ä".encode()], pa.string(), ["ä"]),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["B"], pa.binary(), [b"B"]),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            [-1234],
            pa.decimal128(20, 5),
            [Decimal("-12.34000")],
        ),
    ],
)
def test_types_are_promoted(writer, values, target, expected):
    assert column(writer, values, target).to_pylist() == expected
    assert column(["null", writer], [None, *values], target).to_pylist() == [None, *expected]


def test_longs_become_the_timestamps_of_that_number():
    found = column("long", [17], pa.timestamp("us", tz="UTC"))
    assert found.cast(pa.int64()).to_pylist() == [17]


def test_timestamps_of_another_unit_must_fit():
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    micros = pa.timestamp("us", tz="UTC")
    assert column(millis, [5], micros).cast(pa.int64()).to_pylist() == [5000]
    with pytest.raises(InvalidDataError, match="'c' holds a value that does not fit"):
        column(millis, [2**62], micros)


def test_other_promotions_come_from_the_caller():
    with pytest.raises(SchemaMismatchError, match="column 'c' is int32 in the records, requested as string"):
        column("int", [5], pa.string())
    assert column("int", [5], pa.string(), promote=leaf_cast).to_pylist() == ["5"]
    assert column(["double", "null"], [1e10, None], pa.string(), promote=leaf_cast).to_pylist() == ["1.0E10", None]


def test_narrower_types_and_other_shapes_are_refused_by_name():
    avro = record_of(("a", "long"), ("b", {"type": "array", "items": "int"}), ("c", "string"))
    reader = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.int32()))])
    with pytest.raises(SchemaMismatchError, match=r"(?s)3 problem.*'a' is int64.*'b' is an array.*'c' is a string"):
        AvroDecoder.compile(json.dumps(avro), reader, "here")


def test_absent_columns_take_the_readers_default():
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "int", "default": 4}]}
    own = record_of()
    own["fields"] = [
        {"name": "a", "type": "long", "default": 9},
        {"name": "b", "type": ["string", "null"], "default": "x"},
        {"name": "c", "type": "bytes", "default": "\u00ff"},
        {"name": "d", "type": decimal, "default": "\u0004\u00d2"},
        {"name": "e", "type": {"type": "array", "items": "int"}, "default": [1, 2]},
        {"name": "f", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
        {"name": "g", "type": inner, "default": {}},
        {"name": "h", "type": {"type": "int", "logicalType": "date"}, "default": 3},
        {"name": "i", "type": ["null", "int"], "default": None},
    ]
    text = json.dumps(own)
    [batch] = decode(
        record_of(("k", "int")),
        encoded(record_of(("k", "int")), [{"k": 1}] * 2),
        avro_to_arrow(text, "here"),
        reader_avro=text,
    )
    expected = {"a": 9, "b": "x", "c": b"\xff", "d": 1234, "e": [1, 2], "f": {"k": 1}, "g": {"x": 4}, "h": 3, "i": None}
    assert naive.rows_of([batch]) == [expected] * 2


def test_a_default_of_another_type_is_refused():
    own = record_of()
    own["fields"] = [{"name": "a", "type": "long", "default": "many"}]
    with pytest.raises(CorruptTableError, match="default 'many' of column a"):
        decode(
            record_of(("k", "int")), block_content_head(0), pa.schema([("a", pa.int64())]), reader_avro=json.dumps(own)
        )


def test_absent_columns_without_null_or_default_are_refused():
    with pytest.raises(SchemaMismatchError, match=r"'a' .* is absent"):
        decode(record_of(("k", "int")), block_content_head(0), pa.schema([pa.field("a", pa.int64(), nullable=False)]))


def test_the_readers_aliases_find_renamed_columns():
    own = record_of()
    own["fields"] = [{"name": "b", "type": "int", "aliases": ["other", "a"]}]
    reader = pa.schema([pa.field("b", pa.int32(), nullable=False)])
    [batch] = decode(
        record_of(("a", "int")), encoded(record_of(("a", "int")), [{"a": 5}]), reader, reader_avro=json.dumps(own)
    )
    assert batch.to_pydict() == {"b": [5]}


def test_nulls_where_the_reader_takes_none_are_refused():
    avro = record_of(("a", ["null", "int"]))
    reader = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    assert decode(avro, encoded(avro, [{"a": 1}]), reader)[0].to_pydict() == {"a": [1]}
    with pytest.raises(InvalidDataError, match=r"'a' holds a null \(row 1\)"):
        decode(avro, encoded(avro, [{"a": 1}, {"a": None}]), reader)


def test_general_unions_are_refused_as_plain_columns_and_skipped_elsewhere():
    union = ["null", "string", {"type": "record", "name": "w", "fields": [{"name": "v", "type": "long"}]}]
    avro = record_of(("a", "int"), ("u", union), ("b", "int"))
    wide = pa.schema([("a", pa.int32()), ("u", pa.string())])
    with pytest.raises(SchemaMismatchError, match="'u' is a union of string, w in the records, requested as string"):
        AvroDecoder.compile(json.dumps(avro), wide, "here")
    values = [naive.varint(0), naive.varint(1) + naive.encode("string", "xyz"), naive.varint(2) + naive.varint(99)]
    content = naive.block([naive.varint(1) + value + naive.varint(2) for value in values])
    reader = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    assert naive.rows_of(decode(avro, content, reader)) == [{"a": 1, "b": 2}] * 3
    with pytest.raises(CorruptTableError, match="a branch of the union"):
        decode(avro, naive.block([naive.varint(1) + naive.varint(3) + naive.varint(2)]), reader)


def test_schemas_that_cannot_be_read_are_refused():
    reader = pa.schema([("a", pa.int32())])
    for avro, error in [
        (
            record_of(("a", "int"), ("x", {"type": "array", "items": record_of()}), ("b", "int")),
            UnsupportedFeatureError,
        ),
        (record_of(("a", "integer")), CorruptTableError),
        (record_of(("a", [])), CorruptTableError),
        ({"type": "array", "items": "int"}, CorruptTableError),
    ]:
        with pytest.raises(error):
            AvroDecoder.compile(json.dumps(avro), pa.schema([*reader, ("b", pa.int32())]), "here")
    with pytest.raises(CorruptTableError, match="not JSON"):
        AvroDecoder.compile("{", reader, "here")


def test_a_type_may_be_used_by_its_name():
    point = {"type": "record", "name": "p", "namespace": "n", "fields": [{"name": "x", "type": "int"}]}
    avro = record_of(("a", point), ("b", ["null", "n.p"]), ("c", {"type": "array", "items": "n.p"}))
    content = naive.block([naive.varint(1) + naive.varint(1) + naive.varint(2) + b"\x02\x06\x00"])
    assert naive.rows_of(decode(avro, content)) == [{"a": {"x": 1}, "b": {"x": 2}, "c": [{"x": 3}]}]
