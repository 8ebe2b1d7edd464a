"""The changes of a write, and which of them are told."""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.schema.evolution import SchemaChange, schema_changes

BEFORE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("n", pa.int32()),
        ("big", pa.int64()),
        ("s", pa.struct([("x", pa.int32()), ("gone", pa.string())])),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int32())),
    ]
)
AFTER = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("big", pa.float64()),
        ("s", pa.struct([("x", pa.string()), ("y", pa.date32())])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("extra", pa.string()),
    ]
)


def test_every_kind_of_change_is_listed_by_its_path() -> None:
    found = schema_changes(BEFORE, AFTER, refuses_missing=True)
    assert {(one.change, one.column, one.before, one.after) for one in found} == {
        ("nullable", "id", "false", "true"),
        ("retyped", "n", "int32", "int64"),
        ("retyped", "big", "int64", "double"),
        ("retyped", "s.x", "int32", "string"),
        ("added", "s.y", None, "date32[day]"),
        ("dropped", "s.gone", "string", None),
        ("retyped", "l.element", "int64", "string"),
        ("retyped", "m.value", "int32", "int64"),
        ("added", "extra", None, "string"),
    }
    assert {one.column for one in found if one.warning} == {"big", "s.x", "s.y", "l.element", "extra"}


def test_a_new_column_is_told_only_if_later_writes_need_it() -> None:
    found = schema_changes(BEFORE, AFTER, refuses_missing=False)
    assert {one.column for one in found if one.warning} == {"big", "s.x", "l.element"}


def test_equal_schemas_have_no_changes() -> None:
    assert schema_changes(BEFORE, BEFORE, refuses_missing=True) == ()
    assert SchemaChange("added", "a", None, "string").warning == ""
