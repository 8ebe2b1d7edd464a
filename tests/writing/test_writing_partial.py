"""Copy-on-write tables whose merged rows are made of two: partial updates and payload classes of old tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from tests.naive.merge import NaiveRules, Version, naive_fold, naive_slice
from tests.support.small_tables import options

MODEL = "org.apache.hudi.common.model."
SCHEMA = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("l", pa.list_(pa.string()))]
)
FIRST = [("a", 5, 1, ["x"]), ("b", 5, None, ["y"]), ("c", 5, 3, None), ("d", None, None, None), ("e", 7, 1, ["z"])]
BATCHES: list[list[tuple[str, int | None, int | None, list[str] | None]]] = [
    [("a", 6, None, None), ("b", 4, 9, ["late"]), ("c", 4, 8, None), ("new", 1, None, ["w"])],
    [("a", 6, 2, None), ("a", 7, None, ["last"]), ("a", 5, 7, ["lost"]), ("d", 1, 1, None), ("e", 6, None, ["lost"])],
]
PARTIAL = {
    "PartialUpdateAvroPayload": NaiveRules(compares=True, orders=True, partial_mode="IGNORE_DEFAULTS"),
    "OverwriteNonDefaultsWithLatestAvroPayload": NaiveRules(partial_mode="IGNORE_DEFAULTS"),
}


def table_of(rows: list[tuple[str, int | None, int | None, list[str] | None]], part: str = "p") -> pa.Table:
    return pa.Table.from_pylist([{"id": k, "part": part, "ts": t, "n": n, "l": v} for k, t, n, v in rows], SCHEMA)


def versions_of(table: pa.Table) -> list[Version]:
    return [
        {
            "key": row["id"],
            "row": row,
            "ordering": (row["ts"],),
            "default": row["ts"] is None,
            "bare": False,
            "columns": None,
        }
        for row in table.to_pylist()
    ]


def stored(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in hf.HudiTable.open(path).to_arrow().to_pylist()}


@pytest.mark.slow(but="PartialUpdateAvroPayload-9")
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("payload", PARTIAL)
def test_upserts_fill_gaps_as_record_by_record(tmp_path: Path, payload: str, version: str) -> None:
    rules = replace(PARTIAL[payload], partial_payload=payload.startswith("Partial") and version != "9")
    settings = options(table_version=version) | {"hoodie.datasource.write.payload.class": MODEL + payload}
    hf.write(table_of(FIRST), tmp_path / "t", settings)
    expected = versions_of(table_of(FIRST))
    for batch in BATCHES:
        result = hf.write(table_of(batch), tmp_path / "t", settings)
        folded = naive_fold(rules, versions_of(table_of(batch)))
        rows = naive_slice(rules, expected, folded.values())
        expected = versions_of(pa.Table.from_pylist(rows, SCHEMA))
        found = stored(tmp_path / "t")
        assert {k: {n: row[n] for n in SCHEMA.names} for k, row in found.items()} == {row["id"]: row for row in rows}
        assert found["e"]["_hoodie_file_name"].endswith(f"_{result.instant}.parquet")


def test_rows_that_a_late_update_fills_are_new_and_those_that_it_does_not_keep_their_commit(tmp_path: Path) -> None:
    settings = options() | {"hoodie.datasource.write.payload.class": MODEL + "PartialUpdateAvroPayload"}
    first = hf.write(table_of([("full", 5, 1, ["x"]), ("gaps", 5, None, ["y"])]), tmp_path / "t", settings)
    second = hf.write(table_of([("full", 4, 2, ["late"]), ("gaps", 4, 2, ["late"])]), tmp_path / "t", settings)
    found = stored(tmp_path / "t")
    assert (found["full"]["n"], found["full"]["_hoodie_commit_time"]) == (1, first.instant)
    assert (found["gaps"]["n"], found["gaps"]["l"], found["gaps"]["ts"]) == (2, ["y"], 5)
    assert found["gaps"]["_hoodie_commit_time"] == second.instant
    assert second.updates == 1


def test_what_was_not_sent_comes_from_the_stored_row(tmp_path: Path) -> None:
    marker = "__debezium_unavailable_value"
    settings = options(ordering="_event_lsn") | {
        "hoodie.datasource.write.payload.class": MODEL + "debezium.PostgresDebeziumAvroPayload"
    }

    def change(lsn: int, operation: str, text: str | None, blob: bytes | None) -> pa.Table:
        row = {"id": "k", "part": "p", "_event_lsn": lsn, "_change_operation_type": operation, "text": text, "b": blob}
        return pa.Table.from_pylist([row])

    hf.write(change(1, "c", "long", b"bytes"), tmp_path / "t", settings)
    hf.write(change(2, "u", marker, None), tmp_path / "t", settings)
    assert [stored(tmp_path / "t")["k"][name] for name in ("text", "b", "_event_lsn")] == ["long", None, 2]
    hf.write(change(3, "u", "short", marker.encode()), tmp_path / "t", settings)
    assert [stored(tmp_path / "t")["k"][name] for name in ("text", "b", "_event_lsn")] == ["short", None, 3]
    hf.write(change(4, "d", marker, marker.encode()), tmp_path / "t", settings)
    assert stored(tmp_path / "t") == {}


def test_changes_of_a_database_delete_by_their_operation(tmp_path: Path) -> None:
    settings = options() | {"hoodie.datasource.write.payload.class": MODEL + "AWSDmsAvroPayload"}
    rows = table_of(FIRST).append_column("Op", pa.array(["I"] * 5))
    hf.write(rows, tmp_path / "t", settings)
    hf.write(rows.slice(0, 2).set_column(5, "Op", pa.array(["D", "U"])), tmp_path / "t", settings)
    assert sorted(stored(tmp_path / "t")) == ["b", "c", "d", "e"]


def test_a_global_index_that_moves_rows_does_not_serve_a_merger(tmp_path: Path) -> None:
    settings = custom(**{"hoodie.index.type": "GLOBAL_SIMPLE", "hudi_fast.merger": add_up})
    with pytest.raises(hf.UnsupportedFeatureError, match="global index GLOBAL_SIMPLE"):
        hf.write(table_of(FIRST), tmp_path / "t", settings)
    assert not (tmp_path / "t").exists()


def add_up(older: pa.Table, newer: pa.Table) -> pa.Table:
    """Adds up ``n``; a sum of zero makes the row go."""
    total = pc.add(pc.fill_null(older["n"], 0), pc.fill_null(newer["n"], 0))
    merged = newer.set_column(newer.column_names.index("n"), newer.schema.field("n"), total)
    return merged.append_column("_hoodie_is_deleted", pc.equal(total, 0))


def custom(**more: Any) -> dict[str, Any]:
    strategy = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
    }
    return options() | strategy | more


@pytest.mark.slow("8")
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_function_of_the_user_merges_rows(tmp_path: Path, version: str) -> None:
    settings = custom(**{"hudi_fast.merger": add_up, "hoodie.write.table.version": version})
    hf.write(table_of(FIRST), tmp_path / "t", settings)
    changes = [("a", 1, 2, None), ("a", 1, 3, None), ("c", 1, -3, None), ("d", 1, None, None), ("new", 1, 4, None)]
    result = hf.write(table_of(changes), tmp_path / "t", settings)
    found = {row["id"]: row["n"] for row in hf.HudiTable.open(tmp_path / "t", merger=add_up).to_arrow().to_pylist()}
    assert found == {"a": 6, "b": None, "e": 1, "new": 4}
    assert (result.inserts, result.updates, result.deletes) == (1, 1, 2)


def test_what_a_function_of_the_user_may_not_return_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    hf.write(table_of(FIRST), tmp_path / "t", custom(**{"hudi_fast.merger": add_up}))
    with pytest.raises(hf.InvalidDataError, match="it returned 0 rows"):
        hf.write(table_of(BATCHES[0]), tmp_path / "t", custom(**{"hudi_fast.merger": lambda old, new: new.slice(0, 0)}))
    found = hf.HudiTable.open(tmp_path / "t", merger=add_up).to_arrow()
    assert sorted(found["id"].to_pylist()) == ["a", "b", "c", "d", "e"]


def test_without_the_function_the_table_is_refused_by_its_strategy(tmp_path: Path) -> None:
    hf.write(table_of(FIRST), tmp_path / "t", custom(**{"hudi_fast.merger": add_up}))
    with pytest.raises(hf.UnsupportedFeatureError, match="merge strategy 11111111"):
        hf.write(table_of(BATCHES[0]), tmp_path / "t", custom())
