"""Schemas with ids: as real Hudi wrote them, and what has become of stored columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro
from hudi_fast.schema.history import (
    Rename,
    Renames,
    SchemaHistory,
    altered_columns,
    renamed_avro,
    renamed_plan,
    renames_at,
    schema_at,
    stored_name,
)
from hudi_fast.schema.internal import (
    ArrayType,
    Field,
    InternalSchema,
    MapType,
    RecordType,
    arrow_schema,
    evolved_ids,
    internal_schema,
    parse_schema,
    parse_versions,
    plain_arrow_type,
    same_type,
    schema_json,
    versions_json,
    with_path,
)
from hudi_fast.storage.base import Storage
from hudi_fast.table import HudiTable
from hudi_fast.view.schema_history import schema_commits
from hudi_fast.view.table_state import commits_newest_first, load_state, table_schema
from tests.support.altered_tables import ALTERED, rows_of, unzip_altered

NESTED = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("s", pa.struct([("x", pa.int32()), ("in", pa.struct([("p", pa.decimal128(8, 2))]))])),
        ("l", pa.list_(pa.struct([("e", pa.date32())]))),
        ("m", pa.map_(pa.string(), pa.struct([("g", pa.binary(4))]))),
        ("t", pa.timestamp("ms")),
    ]
)


# ---- tables of real Hudi


@pytest.mark.slow("cow_v9_altered")
@pytest.mark.parametrize("name", ALTERED)
def test_a_table_that_hudi_altered_is_read_as_hudi_reads_it(name: str, tmp_path: Path) -> None:
    one = unzip_altered(name, tmp_path)
    table = HudiTable.open(one.table)
    last = list(one.as_of)[-1]
    assert rows_of(table.to_arrow()) == one.snapshot(last)
    for step, instant in one.as_of.items():
        assert rows_of(table.to_arrow(as_of=instant)) == one.snapshot(step), step


@pytest.mark.parametrize("name", ALTERED)
def test_schemas_are_written_as_hudi_writes_them(name: str, tmp_path: Path) -> None:
    storage = Storage(unzip_altered(name, tmp_path).table)
    state = load_state(storage)
    commits = schema_commits(storage, state.config.layout_version)
    assert len(commits) > 10
    for _, path in commits:
        text = storage.read_bytes(path).decode()
        assert versions_json(parse_versions(text, path)) == text
    latest = next(commits_newest_first(state))[1].extra_metadata["latest_schema"]
    assert schema_json(parse_schema(latest, "a commit")) == latest


@pytest.mark.parametrize("name", ALTERED)
def test_ids_of_a_new_history_are_those_that_hudi_gives_out(name: str, tmp_path: Path) -> None:
    one = unzip_altered(name, tmp_path)
    state = load_state(Storage(one.table))
    assert state.view.history is not None
    first = state.view.history.versions[0]
    assert first.version == 0
    before = load_state(Storage(one.table), as_of=one.as_of["1_insert"])
    made = internal_schema(table_schema(before))
    assert [(path, field.id) for path, field in with_path(made.record)] == [
        (path, field.id) for path, field in with_path(first.record)
    ]
    assert made.max_column_id == first.max_column_id


def test_a_schema_commit_of_a_write_that_came_to_nothing_does_not_count(tmp_path: Path) -> None:
    one = unzip_altered("cow_v9_altered", tmp_path)
    storage = Storage(one.table)
    before = load_state(storage).view.history
    storage.write_bytes(".hoodie/.schema/29991231235959999_29991231235959999.schemacommit", b"{")
    assert load_state(storage).view.history == before


def test_a_history_that_cannot_be_understood_is_named(tmp_path: Path) -> None:
    one = unzip_altered("cow_v9_altered", tmp_path)
    storage = Storage(one.table)
    _, path = schema_commits(storage, 2)[-1]
    for text in ("", "[]", '{"schemas":[{"type":"record"}]}', '{"schemas":["int"]}'):
        storage.write_bytes(path, text.encode())
        with pytest.raises(CorruptTableError, match=r"\.schema"):
            load_state(storage)


# ---- names


def history(*records: RecordType) -> SchemaHistory:
    return SchemaHistory(tuple(InternalSchema(number * 10, 99, one) for number, one in enumerate(records)))


def record(*fields: Field) -> RecordType:
    return RecordType(fields)


def field(number: int, name: str, kind: object = "int") -> Field:
    return Field(number, name, True, kind)  # type: ignore[arg-type]


def test_a_file_has_the_newest_schema_that_is_not_newer_than_it() -> None:
    one = history(record(field(1, "a")), record(field(1, "b")), record(field(1, "c")))
    assert [schema_at(one, text).record.fields[0].name for text in ("5", "10", "19", "20", "99")] == list("abbcc")  # type: ignore[union-attr]
    assert schema_at(SchemaHistory(one.versions[1:]), "9") is None
    assert renames_at(SchemaHistory(one.versions[1:]), "9") is None
    assert renames_at(one, "25") is None
    assert renames_at(one, "15") == Renames((Rename("b", "c"),))
    assert renames_at(SchemaHistory(one.versions, as_of="12"), "5") == Renames((Rename("a", "b"),))


def test_a_column_that_was_dropped_and_added_again_is_another_one() -> None:
    one = history(record(field(1, "a"), field(2, "b")), record(field(2, "b")), record(field(2, "b"), field(3, "a")))
    names = renames_at(one, "5")
    assert names == Renames((Rename("a", None),))
    assert stored_name(names, "a") is None
    assert stored_name(names, "b") == "b"
    stored = pa.record_batch({"a": [1], "b": [2]})
    assert renamed_plan(stored.schema, names).apply(stored).to_pydict() == {"b": [2]}
    assert altered_columns(one, "5") == {"a"}
    assert altered_columns(one, "25") == frozenset()
    assert altered_columns(None) == frozenset()


def test_two_columns_that_swapped_names_are_told_apart() -> None:
    one = history(record(field(1, "a"), field(2, "b")), record(field(1, "b"), field(2, "a")))
    names = renames_at(one, "5")
    assert names is not None
    stored = pa.record_batch({"a": [1], "b": [2]})
    assert renamed_plan(stored.schema, names).apply(stored).to_pydict() == {"b": [1], "a": [2]}
    assert (stored_name(names, "a"), stored_name(names, "b")) == ("b", "a")


def test_nested_fields_are_renamed_dropped_and_retyped() -> None:
    before = record(
        field(1, "s", record(field(2, "x"), field(3, "gone"))),
        field(4, "l", ArrayType(field(5, "element", record(field(6, "e", "date"))))),
        field(7, "m", MapType(Field(8, "key", False, "string"), field(9, "value", record(field(10, "g"))))),
    )
    after = record(
        field(1, "t", record(field(2, "xx"), field(11, "gone"))),
        field(4, "l", ArrayType(field(5, "element", record(field(6, "ee", "string"))))),
        field(7, "m", MapType(Field(8, "key", False, "string"), field(9, "value", record(field(10, "gg"))))),
    )
    names = renames_at(history(before, after), "5")
    assert names is not None
    kind = pa.struct([("x", pa.int32()), ("gone", pa.int32())])
    rows = pa.table(
        {
            "s": pa.array([{"x": 1, "gone": 2}, None, {"x": None, "gone": 3}], kind),
            "l": pa.array([[{"e": 18262}], [], None], pa.list_(pa.struct([("e", pa.int32())]))).cast(
                pa.list_(pa.struct([("e", pa.date32())]))
            ),
            "m": pa.array([[("k", {"g": 1})], None, []], pa.map_(pa.string(), pa.struct([("g", pa.int32())]))),
        }
    )
    assert renamed_plan(rows.schema, names).apply(rows.slice(0, 3)).to_pydict() == {
        "t": [{"xx": 1}, None, {"xx": None}],
        "l": [[{"ee": "2020-01-01"}], [], None],
        "m": [[("k", {"gg": 1})], None, []],
    }
    text = json.loads(renamed_avro(arrow_to_avro(rows.schema, "r", ""), names, "a block"))
    assert [one["name"] for one in text["fields"]] == ["t", "l", "m"]
    inside = text["fields"][0]["type"][1]["fields"]
    assert inside[0]["name"] == "xx"
    assert inside[1]["name"] not in ("gone", "x", "xx")
    assert text["fields"][1]["type"][1]["items"][1]["fields"][0]["name"] == "ee"
    assert text["fields"][2]["type"][1]["values"][1]["fields"][0]["name"] == "gg"


def test_a_schema_of_a_log_block_that_is_none_is_named() -> None:
    with pytest.raises(CorruptTableError, match="log block"):
        renamed_avro("[1]", Renames((Rename("a", "b"),)), "x.log")


# ---- ids and types


def test_arrow_types_come_back_from_a_schema_and_the_one_before() -> None:
    before = internal_schema(NESTED)
    assert arrow_schema(before, before, NESTED) == NESTED
    assert parse_schema(schema_json(before), "here") == before


def test_types_of_all_releases_are_known() -> None:
    assert plain_arrow_type("decimal_fixed(8, 2)[4]") == pa.decimal128(8, 2)
    assert plain_arrow_type("decimal_bytes(8, 2)") == pa.decimal128(8, 2)
    assert plain_arrow_type("fixed[16]") == pa.binary(16)
    assert plain_arrow_type("local-timestamp-millis") == pa.timestamp("ms")
    assert same_type("decimal(8, 2)", "decimal_fixed(8, 2)[4]")
    assert not same_type("decimal(8, 2)", "decimal(9, 2)")
    assert not same_type("int", "long")
    with pytest.raises(UnsupportedFeatureError, match="vector"):
        plain_arrow_type("vector(3)")


def test_keys_with_either_spelling_are_read() -> None:
    text = '{"max-column-id":3,"version-id":7,"type":"record","fields":[{"id":1,"name":"l","optional":true,"type":'
    text += '{"type":"array","element-id":3,"element":"int","element-optional":true}}]}'
    assert parse_schema(text, "here") == InternalSchema(7, 3, record(field(1, "l", ArrayType(field(3, "element")))))


def test_a_write_gives_new_columns_new_ids_and_keeps_the_others() -> None:
    before = internal_schema(NESTED)
    wider = NESTED.append(pa.field("n", pa.struct([("a", pa.int32())])))
    wider = wider.set(1, pa.field("s", pa.struct([*NESTED.field("s").type, ("y", pa.int64())])))
    after = evolved_ids(before, wider, 7)
    old, new = ({path: one.id for path, one in with_path(schema.record)} for schema in (before, after))
    assert old.items() <= new.items()
    highest = before.max_column_id
    assert {path: new[path] for path in new.keys() - old.keys()} == {
        "s.y": highest + 1,
        "n": highest + 2,
        "n.a": highest + 3,
    }
    assert (after.version, after.max_column_id) == (7, highest + 3)
    assert evolved_ids(before, NESTED, 7) is before
    assert evolved_ids(before, NESTED.remove(4), 7) is before  # in the path only


names_of_fields = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=6)


@given(names_of_fields, names_of_fields, st.permutations(range(6)), st.permutations(range(6)))
def test_columns_are_followed_by_their_ids(
    old: list[str], new: list[str], old_ids: list[int], new_ids: list[int]
) -> None:
    """The obvious way: a dictionary from id to value."""
    before = record(*(field(number, name) for name, number in zip(old, old_ids, strict=False)))
    after = record(*(field(number, name) for name, number in zip(new, new_ids, strict=False)))
    one = history(before, after)
    names = renames_at(one, "5")
    stored = pa.record_batch({name: pa.array([number], pa.int32()) for name, number in zip(old, old_ids, strict=False)})
    read = stored if names is None else renamed_plan(stored.schema, names).apply(stored)
    by_id = dict(zip(old_ids, old_ids[: len(old)], strict=False))
    expected = {name: [by_id[number]] for name, number in zip(new, new_ids, strict=False) if number in by_id}
    got = {name: column for name, column in read.to_pydict().items() if name in new}
    assert got == expected
    for name in new:
        assert (stored_name(names, name) in old) == (name in expected)
