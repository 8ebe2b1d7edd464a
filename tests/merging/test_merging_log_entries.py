"""What log blocks say: rows, deletes, ordering values, positions."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, encode_block
from hudi_fast.formats.log.delete_block import encode_positions
from hudi_fast.formats.parquet.base_file import open_base_file
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merging.log_entries import LogEntries, read_entries
from hudi_fast.merging.log_scan import visible_blocks
from hudi_fast.merging.merged_slice import resolve_slice
from hudi_fast.merging.rules import COMMIT_TIME, CUSTOM, EVENT_TIME, MergeRules, SliceMerge, merge_schema
from hudi_fast.storage.base import Storage
from tests.merging.log_slices import SCHEMA, Log, base_of, data, deletes, merge_of, schema_text, slice_of


def entries_of(folder: Path, merge: SliceMerge, logs: list[Log], schema: pa.Schema = SCHEMA) -> LogEntries:
    return read_entries(merge, visible_blocks(merge, slice_of(folder, logs)), schema)


def rows(*each: tuple[str, int | None, str]) -> list[dict[str, Any]]:
    return [{"id": key, "ts": ts, "text": text} for key, ts, text in each]


def test_records_and_deleted_keys_are_entries_in_order(tmp_path: Path) -> None:
    logs = [
        ("200", [data("200", rows(("a", 1, "x"), ("b", None, "y"))), deletes("200", ["c", "d"], pa.array([7, 8]))]),
        ("300", [deletes("300", ["a"]), data("300", rows(("e", 3, "z")))]),
    ]
    found = entries_of(tmp_path, merge_of(tmp_path), logs)
    assert found.keys.to_pylist() == ["a", "b", "c", "d", "a", "e"]
    assert found.row.tolist() == [0, 1, -1, -1, -1, 2]
    assert found.deletes.tolist() == [False, False, True, True, True, False]
    assert found.default_ordering.tolist() == [False, True, False, False, True, False]
    assert found.ordering[0].to_pylist() == [1, None, 7, 8, None, 3]
    assert found.ordering[0].type == pa.int64()
    assert found.rows.column("text").to_pylist() == ["x", "y", "z"]
    assert found.mismatched is None
    assert found.positions is None
    assert found.column_set is None


def test_a_log_of_deletes_alone_has_no_rows(tmp_path: Path) -> None:
    found = entries_of(tmp_path, merge_of(tmp_path), [("200", [deletes("200", ["a", "b"])])])
    assert (found.keys.to_pylist(), found.rows.num_rows, found.rows.schema) == (["a", "b"], 0, SCHEMA)


def test_columns_that_are_not_asked_for_are_not_there(tmp_path: Path) -> None:
    logs = [("200", [data("200", rows(("a", 1, "x"))), deletes("200", ["b"])])]
    found = entries_of(tmp_path, merge_of(tmp_path), logs, pa.schema([SCHEMA.field(0)]))
    assert found.keys.to_pylist() == ["a", "b"]
    assert found.rows.column_names == ["_hoodie_record_key"]
    assert found.ordering == ()


def test_an_older_block_is_brought_to_the_columns_of_today(tmp_path: Path) -> None:
    old = schema_text(_hoodie_record_key="string", id="string", ts="int")
    logs = [("200", [data("200", [{"id": "a", "ts": 5}], old), data("200", rows(("b", 6, "x")))])]
    found = entries_of(tmp_path, merge_of(tmp_path), logs)
    assert found.rows.column("ts").to_pylist() == [5, 6]
    assert found.rows.column("text").to_pylist() == [None, "x"]


@pytest.mark.parametrize(
    ("flag", "deleted"),
    [
        ({"_hoodie_is_deleted": "boolean"}, {"_hoodie_is_deleted": True}),
        ({"_hoodie_operation": "string"}, {"_hoodie_operation": "D"}),
        ({"_hoodie_operation": "string"}, {"_hoodie_operation": "-U"}),
        ({"Op": "string"}, {"Op": "D"}),
    ],
)
def test_rows_may_be_deletes(tmp_path: Path, flag: dict[str, str], deleted: dict[str, Any]) -> None:
    text = schema_text(_hoodie_record_key="string", id="string", ts="long", text="string", **flag)
    logs = [("200", [data("200", [{"id": "a", "ts": 1}, {"id": "b", "ts": None, **deleted}], text)])]
    rules = MergeRules(EVENT_TIME, ("ts",), "Op", "D")
    schema = SCHEMA if "_hoodie_operation" in flag else SCHEMA.append(pa.field(next(iter(flag)), pa.bool_()))
    if "Op" in flag:
        schema = SCHEMA.append(pa.field("Op", pa.string()))
    found = entries_of(tmp_path, merge_of(tmp_path, rules=rules), logs, schema)
    assert found.deletes.tolist() == [False, True]
    assert found.commit_time_deletes.tolist() == [False, True]
    assert found.rows.schema == schema


@pytest.mark.parametrize(
    ("kind", "stored", "shown"),
    [
        ("string", pa.array(["q"]), "q"),
        ("double", pa.array([1.5]), 1.5),
        ({"type": "int", "logicalType": "date"}, pa.array([3], pa.int32()), datetime.date(1970, 1, 4)),
        ({"type": "int", "logicalType": "date"}, pa.array([datetime.date(1970, 1, 4)]), datetime.date(1970, 1, 4)),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            pa.array([7], pa.int64()),
            datetime.datetime(1970, 1, 1, 0, 0, 0, 7, datetime.UTC),
        ),
    ],
)
def test_ordering_values_of_deletes_take_the_type_of_the_column(
    tmp_path: Path, kind: Any, stored: pa.Array, shown: Any
) -> None:
    from hudi_fast.formats.avro.schema import avro_to_arrow

    text = schema_text(_hoodie_record_key="string", id="string", ts=kind)
    schema = avro_to_arrow(text, "test")
    logs = [("200", [data("200", [{"id": "a", "ts": None}], text), deletes("200", ["b"], stored)])]
    found = entries_of(tmp_path, merge_of(tmp_path), logs, schema)
    assert found.ordering[0].to_pylist() == [None, shown]
    assert found.mismatched is None


def test_an_ordering_value_of_another_class_does_not_compare(tmp_path: Path) -> None:
    """As in Hudi, where an Integer is not compared with a Long."""
    logs = [("200", [data("200", rows(("a", 9, "x"))), deletes("200", ["a"], pa.array([1], pa.int32()))])]
    merge = merge_of(tmp_path)
    found = entries_of(tmp_path, merge, logs)
    assert found.mismatched is not None
    assert found.mismatched.tolist() == [False, True]
    assert found.ordering[0].to_pylist() == [9, None]
    assert resolve_slice(merge, visible_blocks(merge, slice_of(tmp_path, logs)), SCHEMA, None).appended.tolist() == []


def test_partial_blocks_say_which_columns_they_bring(tmp_path: Path) -> None:
    part = schema_text(_hoodie_record_key="string", ts="long", text="string")
    logs = [
        ("200", [data("200", rows(("a", 1, "x")))]),
        ("300", [data("300", [{"_hoodie_record_key": "a", "ts": 2, "text": "y"}], part, is_partial="true")]),
        ("400", [deletes("400", ["b"], is_partial="true")]),
    ]
    found = entries_of(tmp_path, merge_of(tmp_path), logs)
    assert found.column_set is not None
    assert found.column_set.tolist() == [-1, 0, -1]
    assert found.column_sets == (frozenset({"_hoodie_record_key", "ts", "text"}),)


def test_records_without_a_key_are_an_error_with_their_place(tmp_path: Path) -> None:
    logs = [("200", [data("200", rows(("a", 1, "x"))), data("200", rows((None, 2, "y")))])]  # type: ignore[arg-type]
    with pytest.raises(CorruptTableError, match=r"without a record key.*log\.1_0-0-0, byte [1-9]"):
        entries_of(tmp_path, merge_of(tmp_path), logs)


def test_a_block_without_schema_is_an_error(tmp_path: Path) -> None:
    parts = encode_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "200"}, b"\0\0\0\3\0\0\0\0")
    with pytest.raises(CorruptTableError, match="no schema"):
        entries_of(tmp_path, merge_of(tmp_path), [("200", [b"".join(bytes(part) for part in parts)])])


def test_keys_follow_from_columns_where_rows_carry_none(tmp_path: Path) -> None:
    keys = KeyConfig("COMPLEX", ("id", "text"), ())
    logs = [("200", [data("200", rows(("a", 1, "x"))), deletes("200", ["id:a,text:y"])])]
    merge = merge_of(tmp_path, key_config=keys)
    schema = merge_schema(merge, pa.schema([SCHEMA.field("ts")]), SCHEMA.remove(0))
    assert schema.names == ["ts", "id", "text"]
    assert entries_of(tmp_path, merge, logs, schema).keys.to_pylist() == ["id:a,text:x", "id:a,text:y"]


def test_merging_needs_keys_ordering_values_and_flags() -> None:
    full = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    wanted = pa.schema([pa.field("text", pa.string(), nullable=False)])
    folder = Path("/nowhere")
    schema = merge_schema(merge_of(folder), wanted, full)
    assert schema.names == ["text", "_hoodie_record_key", "ts", "_hoodie_is_deleted"]
    assert all(field.nullable for field in schema)
    latest = merge_schema(merge_of(folder, rules=MergeRules(COMMIT_TIME, ("ts",))), wanted, full)
    assert latest.names == ["text", "_hoodie_record_key", "_hoodie_is_deleted"]
    own = MergeRules(CUSTOM, (), merger=lambda older, newer: newer)
    assert set(merge_schema(merge_of(folder, rules=own), wanted, full).names) == set(full.names)


# ---- against a base file


def base_rows(*each: tuple[str, int | None, str]) -> pa.Table:
    table = pa.Table.from_pylist(rows(*each), SCHEMA.remove(0))
    return table.add_column(0, "_hoodie_record_key", table.column("id"))


BASE = [("a", 5, "a"), ("b", 5, "b"), ("c", 5, "c"), ("d", 5, "d"), ("e", 5, "e"), ("f", None, "f")]


def test_the_log_is_settled_against_the_base_file(tmp_path: Path) -> None:
    base = base_of(tmp_path, base_rows(*BASE))
    logs = [
        ("200", [data("200", rows(("f", 0, "new"), ("b", 4, "late"), ("c", 5, "tie"), ("n", 1, "new"), ("m", 1, "")))]),
        ("300", [deletes("300", ["d", "e", "m"], pa.array([4, 6, 1])), deletes("300", ["a"])]),
    ]
    merge = merge_of(tmp_path)
    with open_base_file(Storage(tmp_path), base.path) as reader:
        found = resolve_slice(merge, visible_blocks(merge, slice_of(tmp_path, logs, base)), SCHEMA, reader)
    keys = found.entries.keys.to_pylist()
    assert found.changes.replaced.tolist() == [2, 5]
    assert [keys[one] for one in found.changes.sources] == ["c", "f"]
    assert found.changes.dropped.tolist() == [0, 4]
    assert [keys[one] for one in found.appended] == ["n"]


def test_of_base_rows_with_one_key_the_first_is_changed(tmp_path: Path) -> None:
    base = base_of(tmp_path, base_rows(("a", 1, "x"), ("b", 1, "y"), ("a", 1, "z")))
    logs = [("200", [data("200", rows(("a", 2, "new")))])]
    merge = merge_of(tmp_path)
    with open_base_file(Storage(tmp_path), base.path) as reader:
        found = resolve_slice(merge, visible_blocks(merge, slice_of(tmp_path, logs, base)), SCHEMA, reader)
    assert found.changes.replaced.tolist() == [0]
    assert found.appended.tolist() == []


def test_positions_count_when_they_are_about_this_base_file(tmp_path: Path) -> None:
    """The keys here are wrong on purpose: nobody looks at them."""
    base = base_of(tmp_path, base_rows(*BASE))
    about = {
        "record_positions": encode_positions(np.array([1, 3], dtype=np.int64)),
        "base_file_instant_time_of_record_positions": "100",
    }
    blocks = [data("200", rows(("x", 9, "new"), ("y", 4, "late")), **about)]
    slice_ = slice_of(tmp_path, [("200", blocks)], base)
    for use, instant, replaced in ((True, "100", [1]), (False, "100", []), (True, "150", [])):
        merge = merge_of(tmp_path, use_positions=use)
        with open_base_file(Storage(tmp_path), base.path) as reader:
            found = resolve_slice(merge, visible_blocks(merge, slice_), SCHEMA, reader, instant)
        assert found.changes.replaced.tolist() == replaced
        assert len(found.appended) == (0 if replaced else 2)


def test_positions_that_do_not_fit_the_block_or_the_file_are_not_used(tmp_path: Path) -> None:
    base = base_of(tmp_path, base_rows(*BASE))
    merge = merge_of(tmp_path, use_positions=True)
    for positions in ([1], [1, 6], [1, 2, 3]):
        about = {
            "record_positions": encode_positions(np.array(positions, dtype=np.int64)),
            "base_file_instant_time_of_record_positions": "100",
        }
        slice_ = slice_of(tmp_path, [("200", [data("200", rows(("b", 9, "new"), ("c", 4, "late")), **about)])], base)
        with open_base_file(Storage(tmp_path), base.path) as reader:
            found = resolve_slice(merge, visible_blocks(merge, slice_), SCHEMA, reader, "100")
        assert found.changes.replaced.tolist() == [1]


def test_positions_of_a_block_that_changes_a_row_twice_are_not_used(tmp_path: Path) -> None:
    """They are stored as a set: the keys a, a, b have the positions 0 and 1."""
    base = base_of(tmp_path, base_rows(*BASE))
    about = {
        "record_positions": encode_positions(np.array([0, 1], dtype=np.int64)),
        "base_file_instant_time_of_record_positions": "100",
    }
    twice = data("200", rows(("a", 7, "older"), ("a", 9, "newer"), ("b", 8, "once")), **about)
    gone = deletes("200", ["a", "a", "b"], pa.array([7, 9, 3]), **about)
    merge = merge_of(tmp_path, use_positions=True)
    for block, replaced, dropped in ((twice, {0: "newer", 1: "once"}, []), (gone, {}, [0])):
        slice_ = slice_of(tmp_path, [("200", [block])], base)
        with open_base_file(Storage(tmp_path), base.path) as reader:
            found = resolve_slice(merge, visible_blocks(merge, slice_), SCHEMA, reader, "100")
        texts = found.entries.rows.column("text").to_pylist()
        sources = [texts[found.entries.row[one]] for one in found.changes.sources]
        assert dict(zip(found.changes.replaced.tolist(), sources, strict=True)) == replaced
        assert found.changes.dropped.tolist() == dropped
        assert found.appended.tolist() == []


def test_a_base_file_older_than_the_ordering_column_loses(tmp_path: Path) -> None:
    base = base_of(tmp_path, base_rows(*BASE).drop_columns("ts"))
    logs = [("200", [data("200", rows(("a", 1, "new"), ("b", -1, "below the default"), ("c", None, "tie")))])]
    merge = merge_of(tmp_path)
    with open_base_file(Storage(tmp_path), base.path) as reader:
        found = resolve_slice(merge, visible_blocks(merge, slice_of(tmp_path, logs, base)), SCHEMA, reader)
    assert found.changes.replaced.tolist() == [0, 2]
