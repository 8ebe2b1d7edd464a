"""What is asked about the files of a table: file groups, partitions, the whole."""

from __future__ import annotations

import pytest

import hudi_fast as hf
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows


def make(path, *more):
    for rows in (plain_rows(range(8)), *more):
        hf.write(rows, path, mor_options())
    return hf.HudiTable.open(path)


def test_files_tell_base_and_log_bytes_apart(tmp_path):
    table = make(tmp_path / "t", plain_rows([0, 2], ts=2))
    logged, plain = sorted(table.files().to_pylist(), key=lambda row: row["partition"])
    assert (logged["partition"], logged["log_files"], plain["log_files"]) == ("p0", 1, 0)
    assert logged["bytes"] == logged["base_bytes"] + logged["log_bytes"]
    assert logged["log_ratio"] == logged["log_bytes"] / logged["base_bytes"] > 0
    assert (plain["log_bytes"], plain["log_ratio"], plain["pending"]) == (0, 0.0, None)


def test_files_name_the_planned_compaction_that_holds_them(tmp_path):
    table = make(tmp_path / "t", plain_rows([0, 2], ts=2))
    planned = table.services.schedule_compact()
    held = {row["partition"]: row["pending"] for row in table.files().to_pylist()}
    assert held == {"p0": f"compaction {planned.instant}", "p1": None}


def test_partitions_sum_up_their_files(tmp_path):
    table = make(tmp_path / "t", plain_rows([0, 2], ts=2))
    files = {row["partition"]: row for row in table.files().to_pylist()}
    for row in table.partitions().to_pylist():
        file = files[row["partition"]]
        assert {name: row[name] for name in ("rows", "bytes", "base_bytes", "log_files", "log_bytes")} == {
            name: file[name] for name in ("rows", "bytes", "base_bytes", "log_files", "log_bytes")
        }
        assert (row["files"], row["small_files"]) == (1, 1)


def test_stats_tell_what_no_query_reads_any_more(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(8)), path, options())
    old = {file: file.stat().st_size for file in path.glob("p*/*.parquet")}
    (before,) = hf.HudiTable.open(path).stats().to_pylist()
    assert (before["unread_files"], before["unread_bytes"]) == (0, 0)
    hf.write(plain_rows(range(8), ts=2), path, options())
    (after,) = hf.HudiTable.open(path).stats().to_pylist()
    assert (after["unread_files"], after["unread_bytes"]) == (2, sum(old.values()))
    assert (after["files"], after["rows"], after["small_files"]) == (2, 8, 2)


@pytest.mark.slow
def test_stats_tell_what_waits_and_when_each_service_ran_last(tmp_path):
    table = make(tmp_path / "t", plain_rows([0, 2], ts=2))
    (fresh,) = table.stats().to_pylist()
    assert (fresh["pending"], fresh["last_compaction"], fresh["last_clean"]) == ([], None, None)
    done = table.services.compact()
    hf.write(plain_rows([0, 2], ts=3), tmp_path / "t", mor_options())
    planned = table.services.schedule_compact()
    (stats,) = table.stats().to_pylist()
    assert stats["last_compaction"] == done.instant
    assert stats["pending"] == [f"{planned.instant} compaction requested"]
    assert stats["log_files"] == 1
    assert stats["bytes"] == stats["base_bytes"] + stats["log_bytes"]


def test_stats_of_real_tables_name_their_last_services(golden):
    (clustered,) = hf.HudiTable.open(golden("cow_v9_clustered").table).stats().to_pylist()
    table = hf.HudiTable.open(golden("cow_v9_archived").table)
    history = table.history().to_pylist()
    (archived,) = table.stats().to_pylist()
    assert clustered["last_clustering"]
    assert archived["last_archive"]
    assert archived["last_clean"] == [row["instant"] for row in history if row["action"] == "clean"][-1]
