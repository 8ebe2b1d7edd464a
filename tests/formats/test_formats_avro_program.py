"""Plans that read Avro records as the columns of another schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.errors import SchemaMismatchError
from hudi_fast.formats.avro.program import Fill, Items, Leaf, Record, Skip, Union, plan_rows
from hudi_fast.formats.avro.types import AvroType, parse_record

WRITER = (
    {"name": "a", "type": "long"},
    {"name": "b", "type": "string"},
    {"name": "c", "type": {"type": "array", "items": "int"}},
    {"name": "d", "type": ["null", "double"]},
    {"name": "e", "type": "boolean"},
)


def record(*fields: dict[str, Any]) -> AvroType:
    return parse_record(json.dumps({"type": "record", "name": "r", "fields": fields}), "f")


def plan(reader: pa.Schema, own: AvroType | None = None) -> Record:
    return plan_rows(record(*WRITER), reader, "f", own, None)


def test_steps_have_the_order_of_the_writer_and_places_that_of_the_reader() -> None:
    made = plan(pa.schema({"d": pa.float64(), "a": pa.float64(), "x": pa.string()}))
    a, skip, d = made.steps
    assert isinstance(a, Leaf)
    assert (a.path, a.code, a.kind, a.convert is None) == ("a", "long", pa.int64(), False)
    assert isinstance(skip, Skip)
    assert isinstance(d, Leaf)
    assert (d.path, d.null, d.convert) == ("d", 0, None)
    assert made.places == (2, 0, Fill(pa.string(), None))
    assert made.whole is False


def test_all_columns_are_read_to_the_end_of_the_record() -> None:
    reader = pa.schema(
        {"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int64()), "d": pa.float64(), "e": pa.bool_()}
    )
    made = plan(reader)
    assert made.whole is True
    assert made.places == (0, 1, 2, 3, 4)
    items = made.steps[2]
    assert isinstance(items, Items)
    assert isinstance(items.item, Leaf)
    assert items.item.convert is not None


def test_defaults_and_aliases_are_those_of_the_reader() -> None:
    own = record({"name": "new", "type": "int", "default": 7}, {"name": "z", "type": "long", "aliases": ["a"]})
    made = plan(pa.schema({"new": pa.int32(), "z": pa.int64()}), own)
    fill, place = made.places
    assert isinstance(fill, Fill)
    assert fill.value is not None
    assert fill.value.to_pylist() == [7]
    assert place == 0


def test_a_union_is_read_by_the_names_of_its_branches() -> None:
    writer = record({"name": "u", "type": ["null", "int", "string"]})
    kind = pa.struct({"string": pa.string(), "boolean": pa.bool_()})
    (union,) = plan_rows(writer, pa.schema({"u": kind}), "f", None, None).steps
    assert isinstance(union, Union)
    assert union.names == ("null", "int", "string")
    assert union.places == (2, -1)
    assert [member is None for member in union.members] == [True, True, False]


def test_all_columns_that_cannot_be_converted_are_listed() -> None:
    with pytest.raises(SchemaMismatchError, match=r"2 problem") as raised:
        plan(pa.schema({"a": pa.int32(), "c": pa.string()}))
    assert "a" in str(raised.value)
