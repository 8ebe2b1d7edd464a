"""What the history of a table says, of tables of real Hudi and of small ones of every action."""

from __future__ import annotations

import os

import pytest

import hudi_fast as hf
from hudi_fast.reading.inspecting.history import HISTORY_SCHEMA
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows

CLASSIC = ["instant", "completion", "action", "state", "operation", "inserts", "updates", "deletes", "files", "bytes"]


def rows_of(table, **words):
    return table.history(**words).to_pylist()


def test_columns_of_before_are_still_there(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path / "t", options())
    history = hf.HudiTable.open(tmp_path / "t").history()
    assert history.schema == HISTORY_SCHEMA
    assert set(CLASSIC) <= set(history.column_names)


def test_a_write_says_how_long_it_took_and_what_it_touched(tmp_path):
    result = hf.write(plain_rows(range(4)), tmp_path / "t", options())
    (row,) = rows_of(hf.HudiTable.open(tmp_path / "t"))
    assert (row["instant"], row["inserts"], row["partitions"], row["archived"]) == (result.instant, 4, 2, False)
    assert 0 < row["duration_ms"] <= result.seconds * 1000 + 1000
    assert row["groups_read"] is row["files_deleted"] is row["rolled_back"] is row["note"] is None


def test_before_layout_2_files_say_how_long_it_took(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path / "t", options(table_version="6"))
    for number, ending in enumerate((".commit.requested", ".inflight", ".commit")):
        (file,) = [one for one in (tmp_path / "t/.hoodie").iterdir() if one.name[17:] == ending]
        os.utime(file, (1_000_000 + number * 2.5, 1_000_000 + number * 2.5))
    (row,) = rows_of(hf.HudiTable.open(tmp_path / "t"))
    assert row["duration_ms"] == 5000


def test_begin_and_end_are_both_included(tmp_path):
    for ts in (1, 2, 3):
        hf.write(plain_rows(range(2), ts=ts), tmp_path / "t", options())
    table = hf.HudiTable.open(tmp_path / "t")
    first, second, third = table.history()["instant"].to_pylist()
    assert [row["instant"] for row in rows_of(table, begin=second)] == [second, third]
    assert [row["instant"] for row in rows_of(table, end=second)] == [first, second]
    assert [row["instant"] for row in rows_of(table, begin=second, end=second)] == [second]
    assert rows_of(table, begin="2100-01-01") == []
    with pytest.raises(hf.ConfigError, match="time format: begin='yesterday'"):
        table.history(begin="yesterday")


def test_compactions_name_the_file_groups_that_they_read_and_wrote(golden):
    rows = rows_of(hf.HudiTable.open(golden("mor_v9_compacted").table))
    compactions = [row for row in rows if row["operation"] == "COMPACT"]
    assert [(row["groups_read"], row["groups_written"]) for row in compactions] == [(3, 3)] * 3
    assert all(row["groups_read"] is None for row in rows if row["operation"] != "COMPACT")


def test_clusterings_name_the_file_groups_that_they_read_and_wrote(golden):
    rows = rows_of(hf.HudiTable.open(golden("cow_v9_clustered").table))
    clusterings = [row for row in rows if row["operation"] == "CLUSTER"]
    assert [(row["groups_read"], row["groups_written"]) for row in clusterings] == [(6, 3), (9, 3)]


def test_rollbacks_name_what_they_undid(golden):
    rows = rows_of(hf.HudiTable.open(golden("cow_v9_savepoint_rollback").table))
    (rollback,) = [row for row in rows if row["action"] == "rollback"]
    (saved,) = [row for row in rows if row["action"] == "savepoint"]
    assert len(rollback["rolled_back"]) == 1
    assert rollback["rolled_back"][0] not in [row["instant"] for row in rows]
    assert (rollback["files_deleted"], rollback["partitions"]) == (3, 3)
    assert (saved["partitions"], saved["comment"]) == (3, "")
    # It has the time of its commit, which says nothing about when it was asked for.
    assert saved["instant"] in [row["instant"] for row in rows if row["action"] == "commit"]
    assert saved["completion"] is not None
    assert saved["duration_ms"] is None


def test_restores_name_all_that_they_undid(golden):
    rows = rows_of(hf.HudiTable.open(golden("cow_v9_restored").table))
    (restore,) = [row for row in rows if row["action"] == "restore"]
    assert restore["rolled_back"] == sorted(restore["rolled_back"], reverse=True)
    assert not set(restore["rolled_back"]) & {row["instant"] for row in rows}
    assert restore["files_deleted"] > 0


def test_cleans_count_the_files_that_they_deleted(golden):
    table = hf.HudiTable.open(golden("cow_v9_archived").table)
    cleans = [row for row in rows_of(table) if row["action"] == "clean"]
    assert cleans
    assert all(row["files_deleted"] > 0 and row["partitions"] > 0 for row in cleans)


def test_a_pending_compaction_says_how_many_file_groups_it_is_about(tmp_path):
    hf.write(plain_rows(range(4)), tmp_path / "t", mor_options())
    hf.write(plain_rows(range(4), ts=2), tmp_path / "t", mor_options())
    table = hf.HudiTable.open(tmp_path / "t")
    planned = table.services.schedule_compact()
    (row,) = [row for row in rows_of(table) if row["state"] == "REQUESTED"]
    assert (row["instant"], row["action"], row["groups_read"]) == (planned.instant, "compaction", 2)
    assert row["duration_ms"] is row["completion"] is None


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_body_that_is_cut_off_costs_its_row_the_details_alone(tmp_path, version):
    for ts in (1, 2):
        hf.write(plain_rows(range(2), ts=ts), tmp_path / "t", options(table_version=version))
    folder = tmp_path / "t/.hoodie" / ("timeline" if version == "9" else "")
    first = sorted(one for one in folder.iterdir() if one.suffix == ".commit")[0]
    first.write_bytes(first.read_bytes()[:-40])
    before, after = rows_of(hf.HudiTable.open(tmp_path / "t"))
    assert (before["state"], before["inserts"]) == ("COMPLETED", None)
    assert first.name in before["note"]
    assert (after["updates"], after["note"]) == (2, None)
