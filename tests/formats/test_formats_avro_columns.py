"""Columns decoded from Avro records, one step of the plan after the other."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.columns import Rows, read_record_columns
from hudi_fast.formats.avro.encoding import measure_record, plan_columns, write_record
from hudi_fast.formats.avro.program import plan_rows
from hudi_fast.formats.avro.types import parse_record
from tests.naive import avro_rows as naive

FIELDS: list[dict[str, Any]] = [
    {"name": "a", "type": "long"},
    {"name": "skipped", "type": {"type": "map", "values": ["null", "string"]}},
    {"name": "b", "type": ["null", "string"]},
    {"name": "c", "type": {"type": "array", "items": "int"}},
    {"name": "u", "type": ["null", "int", "string"]},
]
SCHEMA = {"type": "record", "name": "r", "fields": FIELDS}
VALUES: list[dict[str, Any]] = [
    {"a": -1, "skipped": {"k": "v"}, "b": "é", "c": [1, 2], "u": {"int": None, "string": "x"}},
    {"a": 2**40, "skipped": {}, "b": None, "c": [], "u": None},
]
READER = pa.schema({"c": pa.list_(pa.int64()), "b": pa.string(), "new": pa.date32(), "a": pa.float64()})


def rows_of(records: list[bytes]) -> Rows:
    """The records in one array, followed by a whole word, as kernels need."""
    ends = np.cumsum([len(one) for one in records])
    starts = np.concatenate([[0], ends[:-1]])
    data = np.frombuffer(b"".join(records) + bytes(8), np.uint8)
    return Rows(data, starts.astype(np.int64), ends.astype(np.int64), "a.log", 100)


def read(records: list[bytes], reader: pa.Schema) -> list[list[Any]]:
    writer = parse_record(json.dumps(SCHEMA), "a.log")
    columns = read_record_columns(plan_rows(writer, reader, "a.log", None, None), rows_of(records))
    return [column.to_pylist() for column in columns]


def test_columns_have_the_order_and_the_types_of_the_reader() -> None:
    records = [naive.encode(SCHEMA, one) for one in VALUES]
    assert read(records, READER) == [[[1, 2], []], ["é", None], [None, None], [-1.0, float(2**40)]]


def test_a_branch_without_a_member_in_the_reader_is_refused() -> None:
    records = [naive.encode(SCHEMA, one) for one in VALUES]
    reader = pa.schema({"u": pa.struct({"int": pa.int32(), "member": pa.string()})})
    with pytest.raises((UnsupportedFeatureError, CorruptTableError), match="u"):
        read(records, reader)


def test_a_record_that_ends_early_is_damage_with_its_place() -> None:
    records = [naive.encode(SCHEMA, VALUES[0])[:-3]]
    with pytest.raises(CorruptTableError) as raised:
        read(records, pa.schema({"u": pa.struct({"int": pa.int32(), "string": pa.string()})}))
    assert raised.value.path == "a.log"
    assert raised.value.offset is not None
    assert 100 <= raised.value.offset <= 100 + len(records[0])


def test_encoded_columns_are_the_bytes_of_the_naive_encoder() -> None:
    fields = [field for field in FIELDS if field["name"] not in ("skipped", "u")]
    schema = {"type": "record", "name": "r", "fields": fields}
    table = pa.RecordBatch.from_pylist(
        [{name: row[name] for name in ("a", "b", "c")} for row in VALUES],
        pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int32())}),
    )
    sizes = np.zeros(2, np.int64)
    plan = plan_columns(table.schema, parse_record(json.dumps(schema), "f"), "f")
    state = measure_record(plan, table.columns, sizes)
    expected = [naive.encode(schema, {name: row[name] for name in ("a", "b", "c")}) for row in VALUES]
    assert sizes.tolist() == [len(one) for one in expected]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out = np.empty(bounds[-1], np.uint8)
    write_record(state, 0, 2, bounds[:2].copy(), bounds[1:].copy(), out)
    assert out.tobytes() == b"".join(expected)
