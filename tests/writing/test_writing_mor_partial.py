"""Partial updates: rows that bring some of the columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from tests.support.mor_tables import blocks_of, mor_options, stats_of
from tests.support.small_tables import assert_tidy, listing, plain_rows, table_rows

PARTIAL = {"hudi_fast.partial.update": "true"}


def make(path: Path, version: str = "9", **changes: Any) -> dict[str, Any]:
    """Rows ``id``, ``part``, ``ts``, ``text``, ``more``; the options of a partial update."""
    settings = mor_options(table_version=version, **changes)
    rows = plain_rows(range(10), ts=10)
    rows = rows.append_column("more", pa.array(range(10), pa.int64()))
    rows = rows.append_column("_hoodie_is_deleted", pa.nulls(10, pa.bool_()))
    hf.write(rows, path, settings)
    return {**settings, **PARTIAL}


def some(numbers: list[int], ts: int, **columns: list[Any]) -> pa.Table:
    rows = plain_rows(numbers, ts).drop_columns(["text"])
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


def seen(path: Path) -> dict[str, tuple[Any, ...]]:
    return {key: row[1:4] for key, row in table_rows(path).items()}


@pytest.mark.slow(but="parquet-9")
@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_columns_that_are_not_brought_keep_what_they_have(version: str, form: str, tmp_path: Path) -> None:
    settings = {**make(tmp_path, version), "hoodie.logfile.data.block.format": form}
    result = hf.write(some([1, 3, 2], 20, more=[100, None, 200]), tmp_path, settings)
    assert (result.inserts, result.updates) == (0, 3)
    rows = seen(tmp_path)
    assert [rows[f"k0000{number}"] for number in (1, 2, 3)] == [(20, "a1", 100), (20, "a2", 200), (20, "a3", None)]
    hf.write(some([1, 3, 5], 30, text=["x", "y", "z"]), tmp_path, settings)
    hf.write(some([1, 5], 25, more=[7, 7], text=["late"] * 2), tmp_path, settings)
    rows = seen(tmp_path)
    assert [rows[f"k0000{number}"] for number in (1, 3)] == [(30, "x", 100), (30, "y", None)]
    assert rows["k00005"] == (30, "z", 7)  # no winner has said anything of that column yet
    assert len(rows) == 10
    assert_tidy(tmp_path)


def test_blocks_say_what_they_bring(tmp_path: Path) -> None:
    settings = make(tmp_path)
    rows = some([1, 3, 5], 20, more=[100, 300, 500], _hoodie_is_deleted=[False, True, None])
    hf.write(rows, tmp_path, settings)
    data, deletes = blocks_of(tmp_path)
    schema = json.loads(data.headers[HeaderKey.SCHEMA])
    names = [field["name"] for field in schema["fields"]]
    assert names[5:] == ["id", "part", "ts", "more", "_hoodie_is_deleted"]
    assert (schema["name"], schema["namespace"]) == ("t_record", "hoodie.t")
    assert data.headers[HeaderKey.IS_PARTIAL] == deletes.headers[HeaderKey.IS_PARTIAL] == "true"
    assert (data.kind, deletes.kind) == (BlockType.AVRO_DATA, BlockType.DELETE)
    assert (data.positions, deletes.positions) == ([0, 2], [1])
    assert deletes.deletes == [("k00003", "p1", 20)]
    assert stats_of(tmp_path)[0].num_update_writes == 2
    assert [row["_hoodie_record_key"] for row in data.rows] == ["k00001", "k00005"]
    assert "k00003" not in table_rows(tmp_path)
    fields = {field.name: field.type for field in hf.HudiTable.open(tmp_path).schema}
    assert list(fields) == ["id", "part", "ts", "text", "more", "_hoodie_is_deleted"]  # the table has all columns still


def test_partial_updates_in_commit_order(tmp_path: Path) -> None:
    settings = make(tmp_path, ordering=None)
    for text, more in ((["x"], None), (None, [5])):
        columns = {name: values for name, values in (("text", text), ("more", more)) if values is not None}
        rows = some([1], 0, **columns).drop_columns(["ts"])
        hf.write(rows, tmp_path, settings)
    assert seen(tmp_path)["k00001"] == (10, "x", 5)


def test_whole_rows_follow_partial_ones_and_deletes_end_them(tmp_path: Path) -> None:
    settings = make(tmp_path)
    hf.write(some([1], 20, more=[100]), tmp_path, settings)
    whole = some([1], 30, text=["w"], more=[1], _hoodie_is_deleted=[False])
    hf.write(whole, tmp_path, {**settings, "hudi_fast.partial.update": "false"})
    hf.write(some([1], 40, text=["p"]), tmp_path, settings)
    assert seen(tmp_path)["k00001"] == (40, "p", 1)
    hf.HudiTable.open(tmp_path).delete(plain_rows([1]))
    assert "k00001" not in table_rows(tmp_path)


def test_rows_whose_key_is_not_stored_are_refused(tmp_path: Path) -> None:
    settings = make(tmp_path)
    before = {name: size for name, size in listing(tmp_path).items() if not name.startswith(".hoodie/")}
    rows = some([1, 77, 78, 91], 20, more=[1, 2, 3, 4])
    with pytest.raises(hf.InvalidDataError, match=r"3 rows of the partial update .* for example 'k000(77|78|91)'"):
        hf.write(rows, tmp_path, settings)
    assert {name: size for name, size in listing(tmp_path).items() if not name.startswith(".hoodie/")} == before
    flagged = some([1, 77], 20, more=[1, 2], _hoodie_is_deleted=[False, True])
    hf.write(flagged, tmp_path, settings)  # a delete of an unknown key has nothing to do
    assert seen(tmp_path)["k00001"] == (20, "a1", 1)


REFUSED: dict[str, tuple[dict[str, Any], pa.Table, type[Exception], str]] = {
    "new column": ({}, some([1], 20, other=[1]), hf.SchemaMismatchError, "'other'"),
    "no ordering field": ({}, some([1], 20, more=[1]).drop_columns(["ts"]), hf.InvalidDataError, "ordering"),
    "no key": ({}, some([1], 20, more=[1]).drop_columns(["id"]), hf.InvalidDataError, "record key"),
    "no partition": ({}, some([1], 20, more=[1]).drop_columns(["part"]), hf.InvalidDataError, "partition path"),
    "wrong type": ({}, some([1], 20, more=["x"]), hf.HudiError, "more"),
    "insert": ({"hoodie.datasource.write.operation": "insert"}, some([1], 20, more=[1]), hf.ConfigError, "upsert"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_a_partial_update_cannot_do_is_refused_before_it_begins(case: str, tmp_path: Path) -> None:
    more, rows, error, text = REFUSED[case]
    settings = {**make(tmp_path), **more}
    before = listing(tmp_path)
    with pytest.raises(error, match=text):
        hf.write(rows, tmp_path, settings)
    assert listing(tmp_path) == before


def test_a_table_without_rows_has_nothing_to_update(tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match="no commit yet"):
        hf.write(some([1], 20, more=[1]), tmp_path / "new", {**mor_options(), **PARTIAL})
    assert not (tmp_path / "new").exists()
