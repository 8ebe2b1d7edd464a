"""Batches to Avro records: what is refused, and arrays of every layout."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest

from hudi_fast.errors import InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroEncoder
from tests.formats.avro_examples import record_of


def encode_one(values, kind, **more):
    array = values if isinstance(values, pa.Array) else pa.array(values)
    batch = pa.record_batch({"c": array})
    data, bounds = AvroEncoder.compile(batch.schema, json.dumps(record_of(("c", kind))), **more).encode_records(batch)
    return [data[a + 4 : b].tobytes() for a, b in pairwise(bounds)]


def test_dictionaries_are_written_as_their_values():
    values = pa.array(["a", None, "b", "a"]).dictionary_encode()
    assert encode_one(values, ["string", "null"]) == [b"\x00\x02a", b"\x02", b"\x00\x02b", b"\x00\x02a"]
    nested = pa.array([["x"], ["y", "x"]], pa.list_(pa.dictionary(pa.int32(), pa.string())))
    assert encode_one(nested, {"type": "array", "items": "string"}) == [b"\x02\x02x\x00", b"\x04\x02y\x02x\x00"]


def test_nulls_of_columns_without_null_are_refused_by_name():
    with pytest.raises(InvalidDataError, match=r"Column 'c' holds a null \(row 1\)"):
        encode_one([1, None], "long")
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "long"}]}
    values = pa.array([{"x": 1}, None, {"x": None}])
    with pytest.raises(InvalidDataError, match=r"Column 'c.x' holds a null"):
        encode_one(values, ["null", inner])
    assert encode_one(values.slice(0, 2), ["null", inner]) == [b"\x02\x02", b"\x00"]


def test_items_below_a_null_list_are_not_written():
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()), pa.array([1, 2, 3, 4]), mask=pa.array([False, True, False])
    )
    array = {"type": "array", "items": "long"}
    assert encode_one(hidden, ["null", array]) == [b"\x02\x02\x02\x00", b"\x00", b"\x02\x02\x08\x00"]


def test_values_that_do_not_fit_are_refused_by_name():
    enum = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
    with pytest.raises(InvalidDataError, match=r"Column 'c' holds 'C' \(row 2\)"):
        encode_one(["A", "B", "C"], enum)
    assert encode_one(["B", None], [enum, "null"]) == [b"\x00\x02", b"\x02"]
    narrow = {"type": "fixed", "name": "f", "size": 1, "logicalType": "decimal", "precision": 4, "scale": 0}
    values = pa.array([Decimal(127), Decimal(-128), Decimal(128)], pa.decimal128(4, 0))
    with pytest.raises(InvalidDataError, match=r"Column 'c' holds 128 \(row 2\)"):
        encode_one(values, narrow)
    assert encode_one(values.slice(0, 2), narrow) == [b"\x7f", b"\x80"]


def test_columns_and_schema_must_fit():
    text = json.dumps(record_of(("a", "int"), ("b", ["null", "string"]), ("c", "long")))
    with pytest.raises(SchemaMismatchError, match=r"(?s)3 problem.*'x' is not in.*'a' is int64.*'c' is absent"):
        AvroEncoder.compile(pa.schema([("a", pa.int64()), ("x", pa.int32())]), text)
    schema = pa.schema([("c", pa.int64()), ("a", pa.int32())])
    encoder = AvroEncoder.compile(schema, text)
    batch = pa.record_batch({"c": pa.array([3]), "a": pa.array([1], pa.int32())})
    assert encoder.encode_records(batch)[0].tobytes() == b"\0\0\0\3\x02\x00\x06"
    with pytest.raises(SchemaMismatchError, match="expects rows with the schema"):
        encoder.encode_records(batch.select(["a", "c"]))
    with pytest.raises(SchemaMismatchError, match="'a' is int32, but the Avro schema has a union of int, string"):
        AvroEncoder.compile(schema, json.dumps(record_of(("a", ["int", "string"]), ("c", "long"))))
    with pytest.raises(UnsupportedFeatureError, match="union of null"):
        AvroEncoder.compile(schema, json.dumps(record_of(("a", ["null"]), ("c", "long"))))


def test_values_are_records_without_their_lengths():
    batch = pa.record_batch({"c": pa.array(["a", None, "bcd"])})
    encoder = AvroEncoder.compile(batch.schema, json.dumps(record_of(("c", ["null", "string"]))))
    values = encoder.encode_values(batch)
    values.validate(full=True)
    assert values.to_pylist() == encode_one(batch.column(0), ["null", "string"])
    assert values.type == pa.binary()
    assert encoder.encode_values(batch.slice(0, 0)).to_pylist() == []


def test_columns_that_rows_lack_are_null_in_either_order():
    inner = {"type": "record", "name": "i", "fields": [{"name": "x", "type": "long"}]}
    lacking = [("a", ["null", "int"]), ("b", [inner, "null"]), ("d", ["int", "string", "null"])]
    lacking.append(("e", ["null", {"type": "array", "items": "int"}]))
    avro = record_of(("c", "int"), *lacking, ("z", "int"))
    batch = pa.record_batch({name: pa.array([1, 2], pa.int32()) for name in "cz"})
    values = AvroEncoder.compile(batch.schema, json.dumps(avro)).encode_values(batch)
    assert values.to_pylist() == [b"\x02\x00\x02\x04\x00\x02", b"\x04\x00\x02\x04\x00\x04"]
