"""The table object: what it tells, how it reads, what it passes on.

Modules: hudi_fast.table.hudi_table, hudi_fast.table.inspection.
"""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf
from hudi_fast.reading.scan import plan_scan, scan_batches
from hudi_fast.view.table_state import load_state
from tests.support.instrumented_storage import RecordingStorage
from tests.support.small_tables import OPTIONS, listing, options, plain_rows, table_rows

META = [f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")]


@pytest.fixture
def table(tmp_path: Path) -> hf.HudiTable:
    hf.write(plain_rows(range(10)), tmp_path / "t", options())
    hf.write(plain_rows([1, 3, 20, 22], ts=2, text="b"), tmp_path / "t", options())
    return hf.HudiTable.open(tmp_path / "t")


def test_it_says_what_it_is(table: hf.HudiTable) -> None:
    assert (table.table_type, table.version, table.config.name) == ("COPY_ON_WRITE", 9, "t")
    assert table.schema == plain_rows([]).schema
    assert repr(table) == f"HudiTable({table.path!r})"


def test_meta_columns_come_first_and_columns_in_the_order_asked_for(table: hf.HudiTable) -> None:
    assert table.to_arrow().column_names == [*META, "id", "part", "ts", "text"]
    assert table.to_arrow(columns=["text", "_hoodie_record_key", "id"]).column_names == [
        "text",
        "_hoodie_record_key",
        "id",
    ]
    nothing = table.to_arrow(columns=[])
    assert (nothing.num_rows, nothing.num_columns) == (12, 0)


def test_an_empty_result_has_all_columns(table: hf.HudiTable) -> None:
    found = table.to_arrow(filter=pc.field("id") == "none")
    assert (found.num_rows, found.column_names[5:]) == (0, ["id", "part", "ts", "text"])
    assert table.to_batches(filter=pc.field("id") == "none").read_all().schema == found.schema


def test_snapshot_and_read_optimized_are_the_same_without_logs(table: hf.HudiTable) -> None:
    assert table.to_arrow(query_type="read_optimized").equals(table.to_arrow())


def test_the_past_can_be_named_in_every_form(table: hf.HudiTable) -> None:
    first, second = table.history()["instant"].to_pylist()
    assert table.to_arrow(as_of=first).num_rows == 10
    assert table.to_arrow(as_of=second).num_rows == 12
    assert table.to_arrow(as_of="2100-01-01").num_rows == 12
    assert table.to_arrow(as_of="2100-01-01 00:00:00").num_rows == 12
    written_out = f"{first[:4]}-{first[4:6]}-{first[6:8]} {first[8:10]}:{first[10:12]}:{first[12:14]}.{first[14:]}"
    assert table.to_arrow(as_of=written_out).num_rows == 10
    assert table.to_arrow(as_of="2000-01-01 00:00:00").num_rows == 0


def test_history_has_a_row_for_each_instant(table: hf.HudiTable) -> None:
    first, second = table.history().to_pylist()
    assert (first["action"], first["state"], first["operation"]) == ("commit", "COMPLETED", "UPSERT")
    assert (first["inserts"], first["updates"], first["deletes"], first["files"]) == (10, 0, 0, 2)
    assert (second["inserts"], second["updates"]) == (2, 2)
    assert first["instant"] < first["completion"] < second["instant"]
    assert first["bytes"] > 0


def test_files_partitions_and_stats_agree(table: hf.HudiTable) -> None:
    files = table.files()
    assert sum(files["rows"].to_pylist()) == 12
    for row in files.to_pylist():
        path = Path(table.path) / row["partition"] / row["base_file"]
        assert path.stat().st_size == row["bytes"]
        assert row["base_file"].startswith(row["file_id"])
        assert row["log_files"] == 0
    assert table.partitions().select(["partition", "files", "rows", "bytes"]).to_pydict() == {
        "partition": ["p0", "p1"],
        "files": [1, 1],
        "rows": [7, 5],
        "bytes": [row["bytes"] for row in sorted(files.to_pylist(), key=lambda row: row["partition"])],
    }
    (stats,) = table.stats().to_pylist()
    assert (stats["partitions"], stats["files"], stats["rows"], stats["instants"]) == (2, 2, 12, 2)
    assert stats["last_write"] == table.history()["instant"][-1].as_py()


def test_a_created_table_is_empty_and_takes_rows(tmp_path: Path) -> None:
    schema = plain_rows([]).schema.append(pa.field("extra", pa.decimal128(9, 2)))
    table = hf.HudiTable.create(tmp_path / "t", schema, options())
    assert table.schema == schema
    assert (table.to_arrow().num_rows, table.to_batches().read_all().num_rows) == (0, 0)
    assert table.files().num_rows == table.partitions().num_rows == table.history().num_rows == 0
    assert table.stats()["rows"].to_pylist() == [0]
    rows = plain_rows(range(3)).append_column("extra", pa.nulls(3, pa.decimal128(9, 2)))
    assert table.upsert(rows).inserts == 3
    assert table.version == 9


@pytest.mark.parametrize(
    "name", ["hoodie.datasource.write.recordkey.field", "hoodie.datasource.write.precombine.field"]
)
def test_a_table_with_columns_that_its_schema_lacks_is_not_created(name: str, tmp_path: Path) -> None:
    with pytest.raises(hf.ConfigError, match=r"\['nope'\]"):
        hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, {**options(), name: "nope"})
    assert listing(tmp_path) == {}


@pytest.mark.slow
def test_verbs_pass_options_on(table: hf.HudiTable) -> None:
    result = table.insert(plain_rows([1, 50]), {"hoodie.datasource.insert.dup.policy": "drop"})
    assert (result.operation, result.inserts) == ("insert", 1)
    assert table.bulk_insert(plain_rows([60])).operation == "bulk_insert"
    assert table.delete(pc.field("ts") == 2).deletes == 4
    assert table.insert_overwrite(plain_rows([0])).operation == "insert_overwrite"
    assert table.delete_partitions(["p1"]).operation == "delete_partition"
    assert set(table_rows(table.path)) == {"k00000"}


def test_a_write_to_a_table_that_went_away_does_not_make_a_new_one(table: hf.HudiTable, tmp_path: Path) -> None:
    (tmp_path / "t").rename(tmp_path / "gone")
    for call in (table.upsert, table.insert, table.delete):
        with pytest.raises(hf.TableNotFoundError):
            call(plain_rows([1]))
    with pytest.raises(hf.TableNotFoundError):
        table.to_arrow()
    assert not (tmp_path / "t").exists()


def test_a_table_that_logs_no_changes_has_no_answer_to_a_change_query(table: hf.HudiTable) -> None:
    with pytest.raises(hf.ConfigError, match="It isn't a CDC hudi table"):
        table.cdc("20240101000000000")
    with pytest.raises(hf.ConfigError, match=r"use HudiTable\.cdc"):
        table.incremental("earliest", options={"hoodie.datasource.query.incremental.format": "cdc"})


# ---- streams


@pytest.fixture
def many_files(tmp_path: Path) -> hf.HudiTable:
    settings = {**options(), "hoodie.parquet.max.file.size": "20000", "hoodie.parquet.small.file.limit": "0"}
    hf.write(plain_rows(range(400), partitions=20), tmp_path / "t", settings)
    return hf.HudiTable.open(tmp_path / "t")


def test_a_stream_gives_every_row_once(many_files: hf.HudiTable) -> None:
    assert len(many_files.files()) > 10
    ids = [value for batch in many_files.to_batches(columns=["id"]) for value in batch.column(0).to_pylist()]
    assert sorted(ids) == [f"k{number:05d}" for number in range(400)]


@pytest.mark.slow
def test_a_stream_that_is_given_up_ends_its_threads(many_files: hf.HudiTable) -> None:
    before = threading.active_count()
    stream = many_files.to_batches()
    stream.read_next_batch()
    del stream
    gc.collect()
    assert threading.active_count() <= before


@pytest.mark.slow
def test_a_stream_that_is_given_up_opens_no_more_files(many_files: hf.HudiTable) -> None:
    storage = RecordingStorage(many_files.path)
    stream = scan_batches(plan_scan(load_state(storage), threads=2))
    stream.read_next_batch()
    del stream
    gc.collect()
    opened = sum(call.name == "open_input" for call in storage.calls)
    assert 0 < opened < len(many_files.files())


def test_a_stream_passes_errors_on(many_files: hf.HudiTable) -> None:
    (row, *_) = many_files.files().to_pylist()
    (Path(many_files.path) / row["partition"] / row["base_file"]).write_bytes(b"no parquet")
    with pytest.raises(hf.CorruptTableError, match=r"\.parquet"):
        for _ in many_files.to_batches():
            pass


def test_streams_can_be_read_in_turns(many_files: hf.HudiTable) -> None:
    streams = [many_files.to_batches(columns=["id"]) for _ in range(3)]
    rows = sum(stream.read_next_batch().num_rows for stream in streams)
    assert rows + sum(stream.read_all().num_rows for stream in streams) == 1200


def test_rows_can_be_deleted_by_what_was_read(table: hf.HudiTable) -> None:
    gone = table.to_arrow(filter=pc.field("text") == "b1")
    assert table.delete(gone, OPTIONS).deletes == 1
