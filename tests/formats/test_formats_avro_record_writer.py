"""Records are written as fastavro writes them, byte for byte."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_fast.formats.avro.container import compile_writer
from hudi_fast.timeline import avro_models
from tests.support.examples import examples

SCHEMAS = {
    name: schema
    for name, schema in vars(avro_models).items()
    if name[0] != "_" and isinstance(schema, dict) and schema.get("type") == "record"
}
NAMED: dict[str, Any] = {
    schema["name"]: schema
    for schema in vars(avro_models).values()
    if isinstance(schema, dict) and schema.get("type") == "record"
}
LONG = st.integers(-(2**63), 2**63 - 1)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONG,
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=9),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
}


def values(schema: Any) -> st.SearchStrategy[Any]:
    if isinstance(schema, list):
        return st.one_of([values(branch) for branch in schema])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    if isinstance(schema, str):
        return values(NAMED[schema])
    if isinstance(kind, dict | list):
        return values(kind)
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=2)
    if kind == "map":
        return st.dictionaries(PRIMITIVES["string"], values(schema["values"]), max_size=2)
    return st.fixed_dictionaries(
        {one["name"]: values(one["type"]) for one in schema["fields"] if "default" not in one},
        optional={one["name"]: values(one["type"]) for one in schema["fields"] if "default" in one},
    )


def by_fastavro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=examples(30))
@given(data=st.data())
def test_bodies_of_instants_equal_those_of_fastavro(name: str, data: st.DataObject) -> None:
    schema = SCHEMAS[name]
    write = compile_writer(schema)
    assert write is not None
    value = data.draw(values(schema))
    assert write(value) == by_fastavro(schema, value)


@settings(max_examples=examples(200))
@given(st.data())
def test_every_primitive_type_is_written(data: st.DataObject) -> None:
    kinds = [*PRIMITIVES, {"type": "string", "avro.java.string": "String"}, ["long", "null"]]
    schema = {"type": "record", "name": "R", "fields": [{"name": f"f{at}", "type": k} for at, k in enumerate(kinds)]}
    write = compile_writer(schema)
    assert write is not None
    value = data.draw(values(schema))
    assert write(value) == by_fastavro(schema, value)


def test_a_type_is_used_again_by_its_name() -> None:
    inner = {"type": "record", "name": "In", "namespace": "a.b", "fields": [{"name": "x", "type": "long"}]}
    fields = [{"name": "one", "type": inner}, {"name": "two", "type": {"type": "array", "items": "a.b.In"}}]
    schema = {"type": "record", "name": "Out", "fields": fields}
    write = compile_writer(schema)
    assert write is not None
    value = {"one": {"x": 1}, "two": [{"x": -1}, {"x": 2**40}]}
    assert write(value) == by_fastavro(schema, value)


@pytest.mark.parametrize(
    "schema",
    [
        ["null", "long", "string"],
        {"type": "enum", "name": "E", "symbols": ["A"]},
        {"type": "fixed", "name": "F", "size": 2},
        {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["long", "string"]}]},
    ],
)
def test_other_schemas_are_left_to_fastavro(schema: Any) -> None:
    assert compile_writer(schema) is None


@pytest.mark.parametrize(
    ("kind", "value"), [("long", "1"), ("string", 1), ("long", None), ("long", 2**63), ("null", 1)]
)
def test_values_of_another_type_are_refused(kind: str, value: object) -> None:
    write = compile_writer({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]})
    assert write is not None
    with pytest.raises((TypeError, ValueError, AttributeError)):
        write({"x": value})
