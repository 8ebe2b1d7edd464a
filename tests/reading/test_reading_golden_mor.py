"""Merge-on-read tables of Apache Hudi are read as Apache Hudi reads them, log files merged."""

from __future__ import annotations

import contextlib
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import hudi
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from hudi_fast.formats.log.blocks import BlockType, read_content, scan_log_blocks
from hudi_fast.reading.scan import ScanQuery, plan_scan, scan_table
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.formats.format_files import DATA
from tests.support.golden import Golden, golden_names
from tests.support.rows import assert_same_rows

MOR = [*golden_names("mor_"), *golden_names("h015_mor")]
HUDI_RS = [*golden_names("hudi_rs/mor"), *golden_names("hudi_rs/trips")]
WITH_LOGS = [
    "h015_mor_rollback_compacted",
    "hudi_rs/mor_parquet_v6_nonpartitioned",
    "mor_v6_mixed",
    "mor_v6_PartialUpdateAvroPayload",
    "mor_v8_alltypes",
    "mor_v9_log_compacted",
    "mor_v9_multi_order_logs",
    "mor_v9_partial_update_logs",
    "mor_v9_schema_evolved_logs",
]

Unzip = Callable[[str], Golden]


def compared(name: str, rows: pa.Table) -> pa.Table:
    """MERGE INTO put values of another column into ``part``; real Hudi's Spark reader shows those of the path."""
    return rows.drop_columns("part") if name == "mor_v9_merge_into_partial" else rows


def assert_answers(name: str, rows: pa.Table, wanted: pa.Table) -> None:
    assert sorted(rows.column_names) == sorted(wanted.column_names)
    assert_same_rows(compared(name, rows), compared(name, wanted), ignore=())


def test_there_are_tables() -> None:
    assert len(MOR) == 38
    assert len(HUDI_RS) == 12


@pytest.mark.parametrize("name", MOR)
def test_every_query_holds_the_rows_that_apache_hudi_answers(name: str, golden: Unzip) -> None:
    table = golden(name)
    opened = hf.HudiTable.open(table.table)
    wanted = table.snapshot()
    rows = opened.to_arrow()
    assert rows.num_rows == table.expected["rows"]
    assert_answers(name, rows, wanted)
    assert_answers(name, opened.to_batches().read_all(), wanted)
    assert_answers(name, opened.to_arrow(query_type="read_optimized"), table.answer("read_optimized"))
    assert_answers(name, opened.to_arrow(as_of=table.expected["as_of"]), table.answer("as_of"))


@pytest.mark.parametrize("name", HUDI_RS)
def test_a_snapshot_holds_the_rows_that_hudi_rs_reads(name: str, golden: Unzip) -> None:
    table = golden(name)
    batches = hudi.HudiTable(str(table.table)).read()
    rows = hf.HudiTable.open(table.table).to_arrow()
    if not batches:
        assert rows.num_rows == 0
        return
    wanted = pa.Table.from_batches(batches)
    key = None if "_hoodie_record_key" in wanted.column_names else ["id"]
    assert_same_rows(rows, wanted, ignore=(), key=key)


@pytest.mark.parametrize("name", WITH_LOGS)
def test_merging_by_position_answers_as_merging_by_key(name: str, golden: Unzip) -> None:
    table = golden(name)
    plan = plan_scan(load_state(Storage(table.table)), query=ScanQuery(use_positions=True))
    assert any(one.log_files for one in plan.slices)
    assert_answers(name, scan_table(plan), hf.HudiTable.open(table.table).to_arrow())


@pytest.mark.slow("h015_mor_rollback_compacted", "mor_v6_PartialUpdateAvroPayload", "mor_v9_schema_evolved_logs")
@pytest.mark.parametrize("name", WITH_LOGS)
def test_columns_and_filters_see_the_merged_rows(name: str, golden: Unzip) -> None:
    opened = hf.HudiTable.open(golden(name).table)
    whole = opened.to_arrow()
    column = next(field.name for field in whole.schema if pa.types.is_integer(field.type))
    text = [field.name for field in whole.schema if not field.name.startswith("_hoodie")][-1]
    values = pc.drop_null(whole[column]).to_pylist()
    for limit in (min(values), sorted(values)[len(values) // 2], max(values), max(values) + 1):
        filter_ = pc.field(column) >= limit
        assert_same_rows(
            opened.to_arrow(["_hoodie_record_key", text], filter_),
            whole.filter(filter_).select(["_hoodie_record_key", text]),
            key=["_hoodie_record_key"],
        )
    assert opened.to_arrow([text]).column_names == [text]
    assert opened.to_arrow([]).num_rows == whole.num_rows


def test_unmerged_rows_are_those_of_the_base_files_and_of_the_log(golden: Unzip) -> None:
    table = golden("mor_v9_mixed")
    rows = scan_table(plan_scan(load_state(Storage(table.table)), query=ScanQuery(unmerged=True)))
    stored = pc.ends_with(rows["_hoodie_file_name"], ".parquet")
    assert_answers(table.name, rows.filter(stored), table.answer("read_optimized"))
    logged = rows.filter(pc.invert(stored))["_hoodie_commit_seqno"].to_pylist()
    merged = table.snapshot()
    survivors = merged.filter(pc.invert(pc.ends_with(merged["_hoodie_file_name"], ".parquet")))
    assert set(survivors["_hoodie_commit_seqno"].to_pylist()) < set(logged)


def log_files(table: Path) -> list[Path]:
    return sorted(path for path in table.rglob(".*.log.*") if ".hoodie" not in path.relative_to(table).parts[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_LOGS)
def test_a_damaged_log_is_an_error_or_a_skipped_block_and_never_a_crash(name: str, golden: Unzip) -> None:
    table = golden(name, own=True)
    opened = hf.HudiTable.open(table.table)
    dice = random.Random(name)
    files = [path for path in log_files(table.table) if path.suffix != ".crc"]
    assert files
    for _ in range(25):
        target = dice.choice(files)
        sound = target.read_bytes()
        damaged = bytearray(sound)
        if dice.random() < 0.2:
            del damaged[dice.randrange(len(damaged)) :]
        else:
            for _ in range(dice.choice((1, 1, 4))):
                damaged[dice.randrange(len(damaged))] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        target.write_bytes(damaged)
        with contextlib.suppress(hf.HudiError):
            opened.to_arrow().validate(full=True)
        target.write_bytes(sound)


def test_bytes_that_are_no_log_are_named_with_their_place(golden: Unzip) -> None:
    table = golden("mor_v9_mixed", own=True)
    target = log_files(table.table)[0]
    target.write_bytes(b"#HUDX#" + target.read_bytes()[6:])
    with pytest.raises(hf.CorruptTableError, match=rf"{target.name}, byte 0\]"):
        hf.HudiTable.open(table.table).to_arrow()


def test_a_log_whose_base_file_is_gone_shows_its_own_rows(golden: Unzip) -> None:
    """As Apache Hudi does: the slice is then one of log files alone."""
    table = golden("mor_v6_mixed")
    whole = hf.HudiTable.open(table.table).to_arrow()
    logged = whole.filter(pc.invert(pc.ends_with(whole["_hoodie_file_name"], ".parquet")))
    for path in table.table.rglob("*.parquet"):
        if ".hoodie" not in path.parts and not path.name.startswith("."):
            path.unlink()
    with pytest.raises(hf.CorruptTableError, match="no longer exists"):  # the metadata table still lists them
        hf.HudiTable.open(table.table).to_arrow()
    rows = scan_table(plan_scan(load_state(Storage(table.table))))
    assert set(logged["_hoodie_commit_seqno"].to_pylist()) <= set(rows["_hoodie_commit_seqno"].to_pylist())
    assert not any(pc.ends_with(rows["_hoodie_file_name"], ".parquet").to_pylist())


@pytest.mark.parametrize("kind", ["long", "string"])
def test_deletes_that_hudi_0_12_serialised_with_kryo_are_merged(kind: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / f"mor_kryo_{kind}.zip") as archive:
        archive.extractall(tmp_path)
    path = tmp_path / "table"
    storage = Storage(str(path))
    logs = [str(log.relative_to(path)) for log in log_files(path)]
    deletes = [block for log in logs for block in scan_log_blocks(storage, log) if block.kind is BlockType.DELETE]
    assert [read_content(storage, block).to_pybytes()[:4] for block in deletes] == [b"\0\0\0\2"] * 4
    rows = hf.HudiTable.open(path).to_arrow()
    # k0, k5 and k6, k7 are deleted; k3 and the row after k5 are late; k4 came back; 0.15 wrote k8.
    assert sorted(rows["id"].to_pylist()) == ["k1", "k2", "k3", "k4", "k8", "k9"]
    texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
    assert (texts["k1"], texts["k3"], texts["k4"], texts["k8"]) == ("a1", "a3", "back", "by 0.15")
    if kind == "long":  # the releases since 0.13 cannot read texts that 0.12 wrote here
        wanted = pq.read_table(tmp_path / "expected/snapshot.parquet", partitioning=None)
        assert_same_rows(rows, wanted.replace_schema_metadata(None), ignore=())
