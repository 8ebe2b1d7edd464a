"""Plans that write the columns of batches as Avro."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.avro.encoding import WriteItems, WriteLeaf, WriteRecord, WriteUnion, plan_columns
from hudi_fast.formats.avro.types import parse_record


def plan(schema: pa.Schema, *fields: dict[str, Any]) -> WriteRecord:
    """The plan for a record with these fields."""
    return plan_columns(schema, parse_record(json.dumps({"type": "record", "name": "r", "fields": fields}), "f"), "f")


def test_fields_have_the_order_of_the_writer_and_columns_are_found_by_name() -> None:
    schema = pa.schema({"b": pa.string(), "a": pa.int32()})
    made = plan(schema, {"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]})
    assert made.sources == (1, 0)
    assert made.fields == (WriteLeaf("a", "int", -1, pa.int32()), WriteLeaf("b", "bytes", 0, pa.string()))


def test_absent_columns_are_null_or_have_their_default() -> None:
    made = plan(pa.schema([]), {"name": "a", "type": ["int", "null"]}, {"name": "b", "type": "int", "default": 7})
    first, second = made.sources
    assert first is None
    assert isinstance(second, pa.Array)
    assert second.to_pylist() == [7]
    assert [field.null for field in made.fields if isinstance(field, WriteLeaf)] == [2, -1]


def test_nested_types_have_plans_of_their_own() -> None:
    schema = pa.schema(
        {
            "l": pa.list_(pa.float64()),
            "m": pa.map_(pa.string(), pa.int64()),
            "u": pa.struct({"int": pa.int32(), "string": pa.string()}),
            "d": pa.dictionary(pa.int32(), pa.string()),
        }
    )
    items, entries, union, encoded = plan(
        schema,
        {"name": "l", "type": {"type": "array", "items": "double"}},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "u", "type": ["string", "null", "int"]},
        {"name": "d", "type": "string"},
    ).fields
    assert isinstance(items, WriteItems)
    assert items.item == WriteLeaf("l.element", "fixed", -1, pa.float64(), 8)
    assert isinstance(entries, WriteItems)
    assert isinstance(entries.item, WriteRecord)
    assert isinstance(union, WriteUnion)
    assert (union.null, union.branches) == (1, (2, 0))
    assert encoded == WriteLeaf("d", "bytes", -1, pa.string())


def test_all_problems_are_listed_at_once() -> None:
    schema = pa.schema({"a": pa.string(), "extra": pa.int32()})
    with pytest.raises(SchemaMismatchError, match=r"3 problem") as raised:
        plan(schema, {"name": "a", "type": "int"}, {"name": "b", "type": "int"})
    for said in ("'extra'", "'a' is string", "'b' is absent"):
        assert said in str(raised.value)
