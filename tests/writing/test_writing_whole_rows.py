"""Partial updates where blocks cannot hold them, and rows that blend across partitions: whole rows are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.support.mor_tables import blocks_of
from tests.support.small_tables import assert_tidy, options, plain_rows, table_rows

MODEL = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.datasource.write.payload.class"
KINDS = [("COPY_ON_WRITE", "6"), ("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "6")]
INDEXES: dict[str, dict[str, Any]] = {
    "SIMPLE": {},
    "BLOOM": {},
    "BUCKET": {"hoodie.bucket.index.num.buckets": 2},
    "GLOBAL_SIMPLE": {},
    "GLOBAL_RECORD_LEVEL_INDEX": {
        "hoodie.metadata.global.record.level.index.enable": True,
        "hoodie.record.index.update.partition.path": True,
    },
}


def make(path: Path, kind: str, version: str = "9", **more: Any) -> dict[str, Any]:
    """A table of ten rows with ``id``, ``part``, ``ts``, ``text``, ``more``; the options of a partial update."""
    index = more.pop("index", "SIMPLE")
    settings = {
        **options(table_version=version, index=index, ordering=more.pop("ordering", "ts")),
        **INDEXES.get(index, {}),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline": "false",
        **more,
    }
    rows = plain_rows(range(10), ts=10).append_column("more", pa.array(range(10), pa.int64()))
    hf.write(rows.append_column("_hoodie_is_deleted", pa.nulls(10, pa.bool_())), path, settings)
    return {**settings, "hudi_fast.partial.update": "true"}


def some(numbers: list[int], ts: int, parts: str | None = None, **columns: list[Any]) -> pa.Table:
    """Rows without ``text``; ``parts`` are the last letters of their partitions."""
    rows = plain_rows(numbers, ts).drop_columns(["text"])
    if parts is not None:
        rows = rows.set_column(1, "part", pa.array([f"p{letter}" for letter in parts]))
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


def seen(path: Path) -> dict[int, tuple[Any, ...]]:
    """Number of the key to ``part``, ``ts``, ``text``, ``more``; each row is in the partition that it names."""
    places = hf.HudiTable.open(path).to_arrow(columns=["part", "_hoodie_partition_path"])
    assert places["part"] == places["_hoodie_partition_path"]
    return {int(key[1:]): row[:4] for key, row in table_rows(path).items()}


@pytest.mark.slow(but="SIMPLE-COPY_ON_WRITE-9")
@pytest.mark.parametrize(("kind", "version"), KINDS)
@pytest.mark.parametrize("index", INDEXES)
def test_columns_that_are_not_sent_keep_their_values(index: str, kind: str, version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, kind, version, index=index)
    expected = seen(tmp_path)
    result = hf.write(some([1, 3, 2, 3], 20, more=[100, 1, None, 300]), tmp_path, settings)
    assert (result.inserts, result.updates) == (0, 3)
    expected |= {1: ("p1", 20, "a1", 100), 2: ("p0", 20, "a2", None), 3: ("p1", 20, "a3", 300)}
    assert seen(tmp_path) == expected
    hf.write(some([1, 5], 15, more=[7, 7]), tmp_path, settings)  # the first one is late
    expected |= {5: ("p1", 15, "a5", 7)}
    hf.write(some([3, 4], 30, text=["x", "y"], _hoodie_is_deleted=[None, True]), tmp_path, settings)
    expected |= {3: ("p1", 30, "x", 300)}
    del expected[4]
    assert seen(tmp_path) == expected
    with pytest.raises(hf.InvalidDataError, match=r"2 rows of the partial update .* for example 'k000(77|78)'"):
        hf.write(some([1, 77, 78], 40, more=[1, 2, 3]), tmp_path, settings)
    assert seen(tmp_path) == expected
    assert_tidy(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), [*KINDS, ("MERGE_ON_READ", "9")])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_rows_move_with_the_values_that_were_not_sent(index: str, kind: str, version: str, tmp_path: Path) -> None:
    settings = make(tmp_path, kind, version, index=index)
    expected = seen(tmp_path)
    hf.write(some([1, 2, 3], 20, "0n1", more=[100, 200, 300]), tmp_path, settings)
    expected |= {1: ("p0", 20, "a1", 100), 2: ("pn", 20, "a2", 200), 3: ("p1", 20, "a3", 300)}
    assert seen(tmp_path) == expected
    hf.write(some([1, 2, 4], 15, "1nn", more=[0, 0, 0]), tmp_path, settings)  # the first two are late
    expected |= {4: ("pn", 15, "a4", 0)}
    hf.write(some([2, 3], 30, "00", text=["x", "y"]), tmp_path, settings)
    expected |= {2: ("p0", 30, "x", 200), 3: ("p0", 30, "y", 300)}
    assert seen(tmp_path) == expected
    with pytest.raises(hf.InvalidDataError, match="'k00077'"):
        hf.write(some([77, 3], 40, "01", more=[1, 2]), tmp_path, settings)
    assert seen(tmp_path) == expected


def test_a_stream_larger_than_memory_moves_rows_too(tmp_path: Path) -> None:
    settings = make(tmp_path, "COPY_ON_WRITE", index="GLOBAL_SIMPLE")
    rows = some([1, 2, 3], 20, "0n1", more=[100, 200, 300])
    stream = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=1))
    result = hf.write(stream, tmp_path, {**settings, "hoodie.memory.merge.max.size": 64})
    assert "stream" in result.reason
    assert [seen(tmp_path)[number] for number in (1, 2, 3)] == [
        ("p0", 20, "a1", 100),
        ("pn", 20, "a2", 200),
        ("p1", 20, "a3", 300),
    ]


def test_a_row_that_the_log_deleted_is_not_stored(tmp_path: Path) -> None:
    settings = make(tmp_path, "MERGE_ON_READ", "6")
    hf.HudiTable.open(tmp_path).delete(plain_rows([1]))
    before = seen(tmp_path)
    with pytest.raises(hf.InvalidDataError, match="'k00001'"):
        hf.write(some([1, 3], 40, more=[1, 2]), tmp_path, settings)
    assert seen(tmp_path) == before
    hf.write(some([3], 40, more=[2]), tmp_path, settings)
    assert [row["text"] for row in blocks_of(tmp_path)[-1].rows] == ["a3"]  # a whole row, which version 6 can read


def test_a_table_that_blends_ignores_defaults_of_sent_columns(tmp_path: Path) -> None:
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = tmp_path / kind
        settings = make(path, kind, **{PAYLOAD: MODEL + "PartialUpdateAvroPayload"})
        hf.write(some([1, 2, 1], 20, more=[None, 200, None]), path, settings)
        assert [seen(path)[number] for number in (1, 2)] == [("p1", 20, "a1", 1), ("p0", 20, "a2", 200)]


def test_a_merger_receives_whole_rows(tmp_path: Path) -> None:
    def merge(older: pa.Table, newer: pa.Table) -> pa.Table:
        texts = [f"{old}+{new}" for old, new in zip(older["text"].to_pylist(), newer["text"].to_pylist(), strict=True)]
        return newer.set_column(newer.column_names.index("text"), newer.schema.field("text"), pa.array(texts))

    custom = {
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": "11111111-2222-3333-4444-555555555555",
        "hudi_fast.merger": merge,
    }
    settings = make(tmp_path, "COPY_ON_WRITE", ordering=None, **custom)
    hf.write(some([1], 20, more=[100]), tmp_path, settings)
    read = hf.HudiTable.open(tmp_path, merger=merge).to_arrow().to_pylist()
    assert [(row["text"], row["more"]) for row in read if row["id"] == "k00001"] == [("a1+a1", 100)]
    with pytest.raises(hf.InvalidDataError, match="share their key"):
        hf.write(some([1, 1], 20, more=[1, 2]), tmp_path, settings)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "GLOBAL_RECORD_LEVEL_INDEX"])
def test_rows_of_a_database_move_with_what_it_did_not_send(index: str, kind: str, tmp_path: Path) -> None:
    marker = "__debezium_unavailable_value"
    settings = {
        **options(ordering="_event_lsn", index=index),
        **INDEXES[index],
        "hoodie.datasource.write.table.type": kind,
        PAYLOAD: MODEL + "debezium.PostgresDebeziumAvroPayload",
    }

    def changes(*each: tuple[str, str, int, str, str]) -> pa.Table:
        names = ["id", "part", "_event_lsn", "_change_operation_type", "text"]
        return pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in each])

    def found() -> dict[str, tuple[Any, ...]]:
        return {row[0]: row[1:] for row in zip(*_columns(tmp_path, "id", "part", "_event_lsn", "text"), strict=True)}

    hf.write(changes(("a", "p0", 1, "c", "long"), ("b", "p0", 1, "c", "b")), tmp_path, settings)
    hf.write(changes(("a", "p1", 2, "u", marker), ("b", "p0", 2, "u", marker)), tmp_path, settings)
    assert found() == {"a": ("p1", 2, "long"), "b": ("p0", 2, "b")}
    hf.write(changes(("a", "p0", 1, "u", "late"), ("b", "p2", 3, "u", marker)), tmp_path, settings)
    assert found() == {"a": ("p1", 2, "long"), "b": ("p2", 3, "b")}
    with pytest.raises(hf.UnsupportedFeatureError, match="merging does not keep"):
        hf.write(changes(("a", marker, 5, "u", "x")), tmp_path, settings)
    batch = [("b", "p0", 4, "u", "twice"), ("b", "p1", 5, "u", marker)]  # one row, in the partition of the newer one
    hf.write(changes(*batch), tmp_path, settings)
    assert found() == {"a": ("p1", 2, "long"), "b": ("p1", 5, "twice")}
    hf.write(changes(("a", "p2", 4, "d", marker)), tmp_path, settings)
    assert found() == {"b": ("p1", 5, "twice")}


def _columns(path: Path, *names: str) -> list[list[Any]]:
    return [column.to_pylist() for column in hf.HudiTable.open(path).to_arrow(columns=list(names)).columns]


def test_a_late_row_fills_gaps_in_the_partition_of_the_stored_one(tmp_path: Path) -> None:
    settings = make(tmp_path, "COPY_ON_WRITE", index="GLOBAL_SIMPLE", **{PAYLOAD: MODEL + "PartialUpdateAvroPayload"})
    whole = {**settings, "hudi_fast.partial.update": "false"}
    hf.write(some([1], 20, "1", text=["n"], more=[5], _hoodie_is_deleted=[None]).slice(0, 0), tmp_path, whole)
    gaps = some([11], 20, "1", text=pa.array([None], pa.string()), more=[5], _hoodie_is_deleted=[False])
    hf.write(gaps, tmp_path, whole)
    hf.write(some([11], 10, "0", text=["late"], more=[6], _hoodie_is_deleted=[False]), tmp_path, whole)
    assert seen(tmp_path)[11] == ("p1", 20, "late", 5)
