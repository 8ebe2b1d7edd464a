"""Snapshots of merge-on-read tables: what filters, columns, partition paths and the user's merger make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.config.table_config import TableConfig
from hudi_fast.expressions.arrow_filters import RowFilter
from hudi_fast.formats.log.blocks import HeaderKey
from hudi_fast.merging.rules import CUSTOM, MergeRules, SliceMerge, merge_schema
from hudi_fast.reading.scan import ScanQuery, plan_scan, scan_table
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.storage.base import Storage
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import load_state
from tests.merging.log_slices import SCHEMA, base_of, data, deletes, merge_of, slice_of
from tests.support.mor_tables import blocks_of, log_files, mor_options
from tests.support.rows import assert_same_rows
from tests.support.small_tables import plain_rows, rows_of

CONFIG = TableConfig.from_properties(
    {"hoodie.table.name": "t", "hoodie.table.version": "9", "hoodie.table.type": "MERGE_ON_READ"}, "t"
)


def scan_of(
    folder: Path, merge: SliceMerge, filter_: pc.Expression | None = None, columns: list[str] | None = None
) -> SliceScan:
    output = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    read = SCHEMA if filter_ is not None else output
    row_filter = None if filter_ is None else RowFilter.of(filter_, SCHEMA)
    return SliceScan(
        Storage(folder), CONFIG, read, output, row_filter, merge=merge, merge_columns=merge_schema(merge, read, SCHEMA)
    )


def read(scan: SliceScan, slice_: FileSlice) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(read_slice(scan, slice_), scan.output)
    table.validate(full=True)
    return table.sort_by([(name, "ascending") for name in table.column_names]).to_pylist()


def row(key: str, ts: int, text: str) -> dict[str, Any]:
    return {"_hoodie_record_key": key, "id": key, "ts": ts, "text": text}


@pytest.fixture
def sliced(tmp_path: Path) -> FileSlice:
    """Base rows k00 to k15 in four row groups by ``ts``; k01 moves out of its group, k13 into none, k02 goes."""
    stored = pa.Table.from_pylist([row(f"k{n:02}", n, "base") for n in range(16)], SCHEMA)
    base = base_of(tmp_path, stored)
    changed = [row("k01", 14, "log"), row("k13", 99, "log"), row("k30", 1, "log"), row("k31", 50, "log")]
    logs = [("200", [data("200", changed), deletes("200", ["k02"])])]
    return slice_of(tmp_path, logs, base)


def test_a_filter_sees_merged_rows_whatever_row_groups_it_rules_out(tmp_path: Path, sliced: FileSlice) -> None:
    merge = merge_of(tmp_path)
    whole = read(scan_of(tmp_path, merge), sliced)
    assert len(whole) == 17
    for filter_, wanted in (
        (pc.field("ts") >= 12, ["k01", "k12", "k13", "k14", "k15", "k31"]),
        (pc.field("ts") < 3, ["k00", "k30"]),
        (pc.field("ts") == 99, ["k13"]),
        (pc.field("text") == "log", ["k01", "k13", "k30", "k31"]),
        (pc.field("ts") > 1000, []),
    ):
        found = read(scan_of(tmp_path, merge, filter_, ["id"]), sliced)
        assert [one["id"] for one in found] == wanted


def test_columns_that_merging_needs_are_not_handed_out(tmp_path: Path, sliced: FileSlice) -> None:
    found = read(scan_of(tmp_path, merge_of(tmp_path), columns=["text"]), sliced)
    assert found == [{"text": "base"}] * 13 + [{"text": "log"}] * 4
    assert all(not batch.num_columns for batch in read_slice(scan_of(tmp_path, merge_of(tmp_path), columns=[]), sliced))


def test_batches_hold_no_more_rows_than_asked_for(tmp_path: Path, sliced: FileSlice) -> None:
    scan = scan_of(tmp_path, merge_of(tmp_path))
    small = SliceScan(**{**{name: getattr(scan, name) for name in scan.__dataclass_fields__}, "batch_rows": 3})
    batches = list(read_slice(small, sliced))
    assert max(batch.num_rows for batch in batches) <= 3
    assert_same_rows(pa.Table.from_batches(batches), pa.Table.from_pylist(read(scan, sliced), SCHEMA), key=["id"])


def test_a_slice_of_log_files_alone(tmp_path: Path) -> None:
    logs = [("200", [data("200", [row("a", 1, "x"), row("b", 1, "y")])]), ("300", [deletes("300", ["b"])])]
    slice_ = slice_of(tmp_path, logs)
    assert read(scan_of(tmp_path, merge_of(tmp_path)), slice_) == [row("a", 1, "x")]
    assert read(scan_of(tmp_path, merge_of(tmp_path), pc.field("ts") > 1), slice_) == []


def test_a_log_without_blocks_that_count_changes_nothing(tmp_path: Path, sliced: FileSlice) -> None:
    merge = merge_of(tmp_path, as_of="150")
    assert [one["id"] for one in read(scan_of(tmp_path, merge), sliced)] == [f"k{n:02}" for n in range(16)]


def test_the_merger_of_the_user_sees_all_data_columns(tmp_path: Path, sliced: FileSlice) -> None:
    asked: list[list[str]] = []

    def add_up(older: pa.Table, newer: pa.Table) -> pa.Table:
        asked.append(older.column_names)
        total = pc.add(older["ts"], newer["ts"])
        at = newer.column_names.index("ts")
        merged = newer.set_column(at, newer.schema.field("ts"), total)
        return merged.append_column("_hoodie_is_deleted", pc.equal(total, 112))

    merge = merge_of(tmp_path, rules=MergeRules(CUSTOM, (), merger=add_up))
    found = {one["id"]: one["ts"] for one in read(scan_of(tmp_path, merge, columns=["id", "ts"]), sliced)}
    assert asked
    assert all(names == ["id", "ts", "text"] for names in asked)
    assert "k13" not in found  # 13 + 99
    assert (found["k01"], found["k30"], found["k00"]) == (15, 1, 0)


# ---- whole tables


def test_tables_that_store_no_meta_columns(tmp_path: Path) -> None:
    options = mor_options({"hoodie.populate.meta.fields": "false"})
    hf.write(plain_rows(range(10)), tmp_path / "t", options)
    hf.write(plain_rows(range(4), ts=2, text="b"), tmp_path / "t", options)
    hf.write(
        plain_rows(range(2)), tmp_path / "t", mor_options({"hoodie.populate.meta.fields": "false"}, operation="delete")
    )
    assert log_files(tmp_path / "t")
    found = hf.HudiTable.open(tmp_path / "t").to_arrow(["id", "text"]).sort_by("id")
    texts = dict(zip(found["id"].to_pylist(), found["text"].to_pylist(), strict=True))
    assert list(texts) == [f"k{n:05d}" for n in range(2, 10)]
    assert (texts["k00002"], texts["k00003"], texts["k00004"]) == ("b2", "b3", "a4")


def test_partition_columns_that_paths_alone_hold(tmp_path: Path) -> None:
    more = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    hf.write(plain_rows(range(10)), tmp_path / "t", mor_options(more))
    hf.write(plain_rows(range(4), ts=2, text="b"), tmp_path / "t", mor_options(more))
    assert log_files(tmp_path / "t")
    table = hf.HudiTable.open(tmp_path / "t")
    found = table.to_arrow(["id", "part", "text"]).sort_by("id")
    assert found["part"].to_pylist() == [f"p{n % 2}" for n in range(10)]
    assert found["text"].to_pylist() == [f"{'b' if n < 4 else 'a'}{n}" for n in range(10)]
    assert table.to_arrow(["text"], pc.field("part") == "p1").num_rows == 5


def test_a_merger_is_for_tables_that_ask_for_one(tmp_path: Path) -> None:
    hf.write(plain_rows(range(3)), tmp_path / "t", mor_options())
    with pytest.raises(hf.ConfigError, match="merger"):
        hf.HudiTable.open(tmp_path / "t", merger=lambda older, newer: newer).to_arrow()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_pending_compaction_changes_nothing_that_a_query_sees(tmp_path: Path, version: str) -> None:
    def texts(**query: Any) -> list[str]:
        return list(table.to_arrow(["id", "text"], **query).sort_by("id")["text"].to_pylist())

    options = mor_options(table_version=version)
    hf.write(plain_rows(range(6)), tmp_path / "t", options)
    second = hf.write(plain_rows([0], ts=2, text="b"), tmp_path / "t", options).instant
    table = hf.HudiTable.open(tmp_path / "t")
    assert table.services.schedule_compact() is not None
    assert texts() == ["b0", "a1", "a2", "a3", "a4", "a5"]
    hf.write(plain_rows([2], ts=3, text="c"), tmp_path / "t", options)
    hf.write(plain_rows([4], ts=3), tmp_path / "t", mor_options(operation="delete", table_version=version))
    seen = ["b0", "a1", "c2", "a3", "a5"]
    assert texts() == seen
    assert texts(as_of=second) == ["b0", "a1", "a2", "a3", "a4", "a5"]
    assert texts(query_type="read_optimized") == [f"a{n}" for n in range(6)]
    table.services.compact()
    assert texts() == seen
    assert texts(query_type="read_optimized") == seen


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_log_block_that_changes_a_row_twice_changes_no_other_row(tmp_path: Path, version: str) -> None:
    """Its positions are a set with fewer members than the block has rows."""
    more = {"hoodie.metadata.enable": "false", "hoodie.logfile.data.block.format": "avro"}
    settings = mor_options(more, table_version=version)
    hf.write(plain_rows(range(4), partitions=1), tmp_path, settings)
    hf.write(plain_rows(range(2), ts=5, text="new", partitions=1), tmp_path, settings)
    (log,), (block,) = log_files(tmp_path), blocks_of(tmp_path)
    assert block.positions == [0, 1]
    older = {**block.rows[0], "ts": 3, "text": "older"}
    headers = {key.name.lower(): text for key, text in block.headers.items()}
    del headers["instant_time"], headers["schema"]
    instant, schema = block.headers[HeaderKey.INSTANT_TIME], block.headers[HeaderKey.SCHEMA]
    (tmp_path / log.path).write_bytes(data(instant, [older, *block.rows], schema, **headers))
    assert [one.positions for one in blocks_of(tmp_path)] == [[0, 1]]
    texts = {"k00000": "new0", "k00001": "new1", "k00002": "a2", "k00003": "a3"}
    for query in (ScanQuery(), ScanQuery(use_positions=True)):
        rows = scan_table(plan_scan(load_state(Storage(tmp_path)), query=query))
        assert {key: row[2] for key, row in rows_of(rows).items()} == texts


def test_files_and_stats_count_log_files(tmp_path: Path) -> None:
    hf.write(plain_rows(range(10)), tmp_path / "t", mor_options())
    hf.write(plain_rows(range(3), ts=2), tmp_path / "t", mor_options())
    table = hf.HudiTable.open(tmp_path / "t")
    logs = log_files(tmp_path / "t")
    files = table.files()
    assert sum(files["log_files"].to_pylist()) == len(logs) == 2
    sizes = sum(path.stat().st_size for path in (tmp_path / "t").glob("p*/*.parquet") if path.name[0] != ".")
    assert table.stats()["bytes"].to_pylist() == [sizes + sum(log.size for log in logs)]
    assert table.stats()["rows"].to_pylist() == [10]
