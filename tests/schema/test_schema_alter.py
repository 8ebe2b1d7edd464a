"""Changes of a schema by name: what they make of it, and which are refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_fast.errors import ConfigError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.schema.alter import (
    AddColumn,
    Change,
    ChangeType,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SetComment,
    SetNullable,
    altered,
)
from hudi_fast.schema.cast import can_alter, can_promote, read_cast, stored_cast
from hudi_fast.schema.internal import InternalSchema, arrow_schema, internal_schema, with_path

TABLE = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("ts", pa.int64()),
        ("a", pa.int32()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.struct([("e", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("one", pa.struct([("only", pa.int32())])),
        ("t", pa.timestamp("ms")),
    ]
)
BEFORE = internal_schema(TABLE)
ROLES = {"id": "a record key field", "s.y": "an ordering field"}


def after(*changes: Change) -> InternalSchema:
    return altered(BEFORE, changes, ROLES, 7)


def columns(*changes: Change) -> pa.Schema:
    return arrow_schema(after(*changes), BEFORE, TABLE)


def ids(schema: InternalSchema) -> dict[str, int]:
    return {path: field.id for path, field in with_path(schema.record)}


def test_columns_are_added_at_the_end_or_behind_another_with_new_ids() -> None:
    made = after(
        AddColumn("n", pa.large_string(), comment="new"),
        AddColumn("b", pa.decimal128(5, 2), after="ts"),
        AddColumn("s.w", pa.list_(pa.int8()), first=True),
        AddColumn("l.element.f", pa.float16()),
    )
    assert [name for name in made.names if not name.startswith("_")] == ["id", "ts", "b", *TABLE.names[2:], "n"]
    given = {path: number for path, number in ids(made).items() if path not in ids(BEFORE)}
    highest = BEFORE.max_column_id
    assert given == {
        "n": highest + 1,
        "b": highest + 2,
        "s.w": highest + 3,
        "s.w.element": highest + 4,
        "l.element.f": highest + 5,
    }
    assert (made.version, made.max_column_id) == (7, highest + 5)
    arrow = arrow_schema(made, BEFORE, TABLE)
    assert arrow.field("s").type.field(0).type == pa.list_(pa.int32())
    assert arrow.field("l").type == pa.list_(pa.struct([("e", pa.int32()), ("f", pa.float32())]))
    assert arrow.field("n").nullable
    assert next(field.doc for field in made.record.fields if field.name == "n") == "new"


def test_what_is_not_changed_keeps_its_arrow_type() -> None:
    assert columns(RenameColumn("t", "when")).field("when").type == pa.timestamp("ms")
    assert columns(AddColumn("n", pa.int32())).remove(8) == TABLE


def test_an_id_is_never_given_out_twice() -> None:
    dropped = after(AddColumn("n", pa.int32()), DropColumn("n"))
    again = altered(dropped, [AddColumn("n", pa.int32())], {}, 8)
    assert ids(again)["n"] == BEFORE.max_column_id + 2


def test_columns_are_renamed_dropped_and_moved() -> None:
    made = columns(RenameColumn("a", "aa"), DropColumn("m"), MoveColumn("t", after="id"), RenameColumn("s.x", "xx"))
    assert made.names == ["id", "t", "ts", "aa", "s", "l", "one"]
    assert made.field("s").type == pa.struct([("xx", pa.int32()), ("y", pa.string())])
    assert columns(MoveColumn("s.y", first=True)).field("s").type.field(0).name == "y"
    assert columns(MoveColumn("ts", after="_hoodie_file_name")).names[0] == "ts"
    assert columns(RenameColumn("a", "b"), RenameColumn("b", "A")).names[2] == "A"
    assert ids(after(RenameColumn("one", "r")))["r.only"] == ids(BEFORE)["one.only"]


def test_types_nullability_and_comments_are_changed_inside_too() -> None:
    made = columns(
        ChangeType("a", pa.decimal128(12, 2)), ChangeType("l.element.e", pa.int64()), ChangeType("m.value", pa.string())
    )
    assert made.field("a").type == pa.decimal128(12, 2)
    assert made.field("l").type == pa.list_(pa.struct([("e", pa.int64())]))
    assert made.field("m").type == pa.map_(pa.string(), pa.string())
    assert columns(SetNullable("id")).field("id").nullable
    told = after(SetComment("a", "hello"))
    assert next(field.doc for field in told.record.fields if field.name == "a") == "hello"
    assert after(ChangeType("a", pa.int16())).record == BEFORE.record


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (DropColumn("id"), "'id' cannot be dropped: 'id' is a record key field"),
        (RenameColumn("s.y", "z"), "'s.y' cannot be renamed: 's.y' is an ordering field"),
        (DropColumn("s"), "'s' cannot be dropped: 's.y' is an ordering field"),
        (ChangeType("id", pa.binary()), "would no longer be found"),
        (DropColumn("nothing"), "no column 'nothing'"),
        (DropColumn("s.nothing"), "no column 's.nothing'"),
        (DropColumn("nothing.x"), "no column 'nothing'"),
        (DropColumn("one.only"), "the last one"),
        (DropColumn("m.value"), "has no fields"),
        (DropColumn("a.b"), "has no fields"),
        (DropColumn("_hoodie_commit_time"), "one of Hudi's own"),
        (AddColumn("a", pa.int32()), "the column 'a' already exists"),
        (AddColumn("TS", pa.int32()), "the column 'ts' already exists"),
        (AddColumn("n", pa.int32(), first=True), "name the column to follow"),
        (AddColumn("s.n", pa.int32(), first=True, after="x"), "cannot both be the first one"),
        (AddColumn("n", pa.int32(), after="nothing"), "its siblings are"),
        (AddColumn("n", pa.int32(), after="_hoodie_commit_time"), "cannot follow"),
        (MoveColumn("a"), "The target of column"),
        (MoveColumn("s.x", after="a"), "its siblings are"),
        (RenameColumn("a", "M"), "the column 'm' already exists"),
        (SetNullable("nothing"), "no column 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(change: Change, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        after(change)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (ChangeType("a", pa.date32()), SchemaMismatchError),
        (ChangeType("a", pa.list_(pa.int32())), SchemaMismatchError),
        (ChangeType("one", pa.string()), SchemaMismatchError),
        (ChangeType("ts", pa.int32()), SchemaMismatchError),
        (ChangeType("ts", pa.timestamp("us")), SchemaMismatchError),
        (AddColumn("a b", pa.int32()), SchemaMismatchError),
        (RenameColumn("a", "1"), SchemaMismatchError),
        (AddColumn("n", pa.duration("s")), UnsupportedFeatureError),
    ],
)
def test_types_and_names_that_cannot_be_are_refused(change: Change, error: type[Exception]) -> None:
    with pytest.raises(error):
        after(change)


def test_nothing_to_do_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing to alter"):
        after()


# ---- values of altered types

DAY = 18262
WIDER = {
    "int to decimal": (pa.array([7, None], pa.int32()), pa.decimal128(5, 2), [Decimal("7.00"), None]),
    "long to decimal, too long": (pa.array([10**9, 1]), pa.decimal128(5, 2), [None, Decimal("1.00")]),
    "float to decimal": (pa.array([1.1, None], pa.float32()), pa.decimal128(9, 4), [Decimal("1.1000"), None]),
    "double to decimal": (pa.array([2.675, float("nan")]), pa.decimal128(9, 2), [Decimal("2.68"), None]),
    "text to decimal": (pa.array([" 1.005", "x", None]), pa.decimal128(9, 2), [Decimal("1.01"), None, None]),
    "text to date": (pa.array(["2020-01-01", "x", None]), pa.date32(), [DAY, None, None]),
    "date to text": (pa.array([DAY, None], pa.int32()).cast(pa.date32()), pa.string(), ["2020-01-01", None]),
    "decimal to text": (pa.array([Decimal("1.50")], pa.decimal128(9, 2)), pa.string(), ["1.50"]),
}


@pytest.mark.parametrize(("values", "kind", "expected"), WIDER.values(), ids=WIDER)
def test_values_become_those_of_an_altered_type(values: pa.Array, kind: pa.DataType, expected: list[object]) -> None:
    assert can_alter(values.type, kind)
    assert not can_promote(values.type, kind)
    cast = read_cast(values.type, kind)
    assert cast is not None
    made = cast(values)
    assert made.type == kind
    assert (made.cast(pa.int32()) if kind == pa.date32() else made).to_pylist() == expected
    again = stored_cast(values.type, kind, "a")
    assert again is not None
    assert again(values).equals(made)


def test_types_that_no_alter_makes_are_left_to_others() -> None:
    assert read_cast(pa.int32(), pa.int64()) is None
    assert read_cast(pa.bool_(), pa.string()) is None
    assert stored_cast(pa.bool_(), pa.date32(), "a") is None
    assert not can_alter(pa.int64(), pa.timestamp("us"))
    assert not can_alter(pa.decimal128(9, 2), pa.decimal128(9, 3))
