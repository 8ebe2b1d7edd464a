"""Values and record keys that the entries of a table's indexes cannot hold are refused before anything is written.

Modules: hudi_fast.metadata_table.keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.support.small_tables import assert_tidy, listing

LIMIT = 32767
W = "hoodie.datasource.write."
INDEX = {"hoodie.metadata.global.record.level.index.enable": "true", "hoodie.metadata.index.secondary.column": "v"}
ENTRIES = {"y": 1, "ü": 2, "$": 2, "\\": 2, "\0": 2, "😀": 4}
"""Letters, and their bytes in an entry."""


def options(kind: str = "COPY_ON_WRITE", **more: str) -> dict[str, str]:
    named = {f"{W}{name}": value for name, value in more.items()}
    return {"hoodie.table.name": "t", f"{W}recordkey.field": "id", f"{W}table.type": kind, **named}


def row(key: str, value: Any, n: int = 1) -> dict[str, Any]:
    return {"id": key, "v": value, "n": n}


def cases() -> list[tuple[str, str, int]]:
    """Record keys, values and the bytes of their entries, around the limit."""
    found = []
    for number, (letter, size) in enumerate(ENTRIES.items()):
        for other, key_size in ENTRIES.items():
            for bytes_ in range(LIMIT - 1, LIMIT + 2):
                key = f"{number}{bytes_}" + other * (3 * number)
                taken = len(f"{number}{bytes_}") + key_size * 3 * number + 1
                count, rest = divmod(bytes_ - taken, size)
                found.append((key, "x" * rest + letter * count, bytes_))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "8")])
def test_values_are_taken_up_to_the_last_byte_that_a_secondary_index_holds(
    tmp_path: Path, kind: str, version: str
) -> None:
    given = {**options(kind), "hoodie.write.table.version": version}
    path = tmp_path / "t"
    hf.write([row("a", "x")], path, {**given, **INDEX})
    before = listing(path)
    fits = {"a": "x"}
    for key, value, size in cases():
        if size <= LIMIT:
            fits[key] = value
            continue
        with pytest.raises(hf.InvalidDataError, match=r"'v' .*secondary_index_v.* row 1\b"):
            hf.write([row("b", "x"), row(key, value)], path, given)
    assert listing(path) == before
    hf.write([row(key, value, 2) for key, value in fits.items()], path, given)
    table = hf.HudiTable.open(path)
    stored = {one["id"]: one["v"] for one in table.to_arrow(columns=["id", "v"]).to_pylist()}
    assert stored == fits
    key, value = max(fits.items(), key=lambda one: len(one[1]))
    assert table.to_arrow(columns=["id"], filter=f"v = '{value}'").to_pylist() == [{"id": key}]


DOORS = {
    "upsert": lambda t, v, o: hf.write([row("a", v)], t.path, o),
    "insert": lambda t, v, o: hf.write([row("b", v)], t.path, {**o, f"{W}operation": "insert"}),
    "bulk_insert": lambda t, v, o: hf.write([row("b", v)], t.path, {**o, f"{W}operation": "bulk_insert"}),
    "insert_overwrite": lambda t, v, o: hf.write([row("b", v)], t.path, {**o, f"{W}operation": "insert_overwrite"}),
    "batches": lambda t, v, o: hf.write(pa.table({"id": ["b"], "v": [v], "n": [1]}).to_reader(), t.path, o),
    "partial": lambda t, v, o: hf.write(
        pa.table({"id": ["a"], "v": [v]}), t.path, {**o, "hudi_fast.partial.update": "true"}
    ),
    "update": lambda t, v, o: t.update("id = 'a'", {"v": f"concat(v, '{v}')"}),
    "merge": lambda t, v, o: (
        t.merge(pa.table({"id": ["a"], "v": [v], "n": [1]})).on("id").when_matched_update().execute()
    ),
    "sql": lambda t, v, o: hf.sql(f"INSERT INTO t VALUES ('b', '{v}', 1)", {"t": t.path}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_door_refuses_a_value_that_the_index_cannot_hold(tmp_path: Path, kind: str) -> None:
    path, given = tmp_path / "t", options(kind)
    hf.write([row("a", "x")], path, {**given, **INDEX})
    before = listing(path)
    for name, write in DOORS.items():
        with pytest.raises(hf.InvalidDataError, match=r"'v' .*secondary_index_v.* 32767 bytes"):
            write(hf.HudiTable.open(path), "y" * LIMIT, given)
        assert listing(path) == before, name


def joined(older: pa.Table, newer: pa.Table) -> pa.Table:
    """A merge function that makes values longer."""
    values = pc.binary_join_element_wise(older["v"], newer["v"], "")
    return newer.set_column(newer.column_names.index("v"), "v", values)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "9"), ("MERGE_ON_READ", "8")])
def test_a_value_that_a_merge_function_makes_too_long_leaves_the_table_as_it_was(
    tmp_path: Path, kind: str, version: str
) -> None:
    """The value is known when the index is updated, and the files of the write are deleted again."""
    strategy = "0f0f0f0f-1234-4321-8888-123456789abc"
    given: dict[str, Any] = {
        **options(kind),
        "hoodie.write.table.version": version,
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": strategy,
        "hudi_fast.merger": joined,
    }
    path, half = tmp_path / "t", "y" * (LIMIT // 2)
    hf.write([row("a", half), row("b", "x")], path, {**given, **INDEX})
    table = hf.HudiTable.open(path, merger=joined)
    rows, before = table.to_arrow(), {name for name in listing(path) if not name.startswith(".hoodie")}
    with pytest.raises(hf.InvalidDataError, match=r"'v' of table t .*secondary_index_v.* 32767 bytes"):
        hf.write([row("c", "x", 2), row("a", half + "yyy", 2)], path, given)
    assert {name for name in listing(path) if not name.startswith(".hoodie")} == before
    assert table.to_arrow().equals(rows)
    assert_tidy(path)
    hf.write([row("a", "z", 3)], path, given)
    stored = {one["id"]: one["v"] for one in table.to_arrow(columns=["id", "v"]).to_pylist()}
    assert stored == {"a": f"{half}z", "b": "x"}
    assert table.services.validate().ok


def test_rows_that_delete_have_no_entry(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options()
    long = {"id": "a", "v": "y" * 40000, "_hoodie_is_deleted": True}
    hf.write([{**row("a", "x"), "_hoodie_is_deleted": False}], path, {**given, **INDEX})
    hf.write([{**long, "n": 2}], path, given)
    assert hf.HudiTable.open(path).count() == 0


def test_a_number_shares_the_entry_with_a_long_key(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options()
    hf.write([row("a", 1)], path, {**given, **INDEX})
    hf.write([row("k" * (LIMIT - 4), 123)], path, given)
    with pytest.raises(hf.InvalidDataError, match=r"secondary_index_v.* 32768 bytes"):
        hf.write([row("k" * (LIMIT - 4), -123)], path, given)
    assert sorted(hf.HudiTable.open(path).to_arrow().column("v").to_pylist()) == [1, 123]


def test_a_field_of_a_struct_is_judged_like_a_column(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options()
    hf.write([row("a", {"x": "y"})], path, {**given, **INDEX, "hoodie.metadata.index.secondary.column": "v.x"})
    before = listing(path)
    with pytest.raises(hf.InvalidDataError, match=r"'v\.x' .*secondary_index_v_x"):
        hf.write([row("b", None), row("a", {"x": "y" * LIMIT})], path, given)
    assert listing(path) == before
    hf.write([row("b", None), row("a", {"x": None})], path, given)


def test_a_write_that_drops_the_index_takes_any_value(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options()
    hf.write([row("a", "x")], path, {**given, **INDEX})
    for more in (INDEX, {}):
        with pytest.raises(hf.InvalidDataError, match=r"hoodie\.metadata\.index\.drop=secondary_index_v"):
            hf.write([row("a", "y" * LIMIT)], path, {**given, **more})
    hf.write([row("a", "y" * LIMIT)], path, {**given, "hoodie.metadata.index.drop": "secondary_index_v"})
    assert hf.HudiTable.open(path).to_arrow().column("v").to_pylist() == ["y" * LIMIT]


def test_an_index_is_not_built_over_a_value_that_it_cannot_hold(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options()
    hf.write([row("a", "y" * LIMIT)], path, given)
    with pytest.raises(hf.InvalidDataError, match=r"'v' of table t .*secondary_index_v.* 32767 bytes"):
        hf.write([row("b", "x")], path, {**given, **INDEX})
    table = hf.HudiTable.open(path)
    assert table.count() == 1
    hf.write([row("b", "x")], path, given)
    assert table.count() == 2


def test_hfile_blocks_hold_keys_up_to_the_same_length(tmp_path: Path) -> None:
    path, given = tmp_path / "t", options("MERGE_ON_READ")
    given["hoodie.logfile.data.block.format"] = "hfile"
    hf.write([row("a", "x"), row("k" * LIMIT, "x")], path, given)
    before = listing(path)
    with pytest.raises(hf.InvalidDataError, match=r"32768 bytes.*HFile log blocks"):
        hf.write([row("k" * (LIMIT + 1), "x")], path, given)
    assert listing(path) == before
    hf.write([row("k" * LIMIT, "y")], path, given)
