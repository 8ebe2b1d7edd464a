"""Defaults of Avro fields as Arrow values."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.types import arrow_type, default_array, parse_record

POINT = {
    "type": "record",
    "name": "p",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int", "default": 7}],
}


def default_of(avro: Any, default: Any) -> pa.Array | None:
    """The default of a field of this type."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": avro}]}
    field = parse_record(json.dumps(schema), "here").fields[0].type
    return default_array(field, default, arrow_type(field, "c", "here"), "c")


@pytest.mark.parametrize(
    ("avro", "default", "expected"),
    [
        ("int", 3, 3),
        ("double", 1, 1.0),
        ("string", "x", "x"),
        (["int", "null"], 3, 3),
        ("bytes", "\u00ff\u0001", b"\xff\x01"),
        ({"type": "fixed", "name": "f", "size": 2}, "ab", b"ab"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u00ff\u0085", Decimal("-1.23")),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"a": 1}, [("a", 1)]),
        (POINT, {"x": 1}, {"x": 1, "y": 7}),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
    ],
)
def test_a_default_has_the_type_of_its_field(avro: Any, default: Any, expected: Any) -> None:
    made = default_of(avro, default)
    assert made is not None
    assert made.to_pylist() == [expected]


def test_a_default_of_a_union_belongs_to_its_first_branch() -> None:
    made = default_of(["string", "int"], "x")
    assert made is not None
    assert made.to_pylist() == [{"string": "x", "int": None}]


def test_a_default_of_null_is_none() -> None:
    assert default_of(["null", "int"], None) is None


@pytest.mark.parametrize(
    ("avro", "default"), [("int", "x"), ("bytes", 3), (POINT, []), ({"type": "array", "items": "int"}, 3)]
)
def test_a_default_of_another_type_is_refused(avro: Any, default: Any) -> None:
    with pytest.raises(CorruptTableError, match="column c does not have its type"):
        default_of(avro, default)
