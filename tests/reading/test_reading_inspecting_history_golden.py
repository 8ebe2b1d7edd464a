"""The history of tables that real Apache Hudi clustered, archived, restored and rolled back, against what it says."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hudi_fast as hf

WRITES = ("commit", "deltacommit", "replacecommit")
SERVED = [
    "cow_v9_archived",
    "cow_v9_clustered",
    "cow_v9_overwrites",
    "cow_v9_restored",
    "cow_v9_savepoint_rollback",
    "h015_cow_archived",
    "h015_mor_rollback_compacted",
    "mor_v9_delete_flag_and_rollback",
]


def opened(table):
    found = hf.HudiTable.open(table.table)
    return found, found.history(archived=True).to_pylist()


def times(rows):
    return set(pc.unique(rows["_hoodie_commit_time"]).to_pylist())


@pytest.mark.parametrize("name", SERVED)
def test_complete_writes_are_those_that_apache_hudi_lists(golden, name):
    table = golden(name)
    _, history = opened(table)
    active = [row for row in history if not row["archived"] and row["action"] in WRITES]
    assert {row["state"] for row in active} == {"COMPLETED"}
    wanted = table.expected["completed"]
    both = "_" in wanted[0]  # from table version 8 on names hold completion times, too
    assert [f"{row['instant']}_{row['completion']}" if both else row["instant"] for row in active] == wanted
    assert [row["note"] for row in history if row["note"]] == []


@pytest.mark.parametrize("name", SERVED)
def test_every_row_is_of_a_complete_write_of_the_history(golden, name):
    table = golden(name)
    _, history = opened(table)
    known = {row["instant"] for row in history if row["action"] in WRITES}
    undone = {time for row in history for time in row["rolled_back"] or ()}
    for query in ("snapshot", "read_optimized", "as_of", "incremental"):
        if table.has(query):
            assert times(table.answer(query)) <= known - undone


@pytest.mark.parametrize("name", SERVED)
def test_what_came_after_an_instant_is_what_an_incremental_query_finds(golden, name):
    """Apache Hudi's answer to it, against the history and our snapshot: the times of rows tell them apart."""
    table = golden(name)
    found, history = opened(table)
    after = table.expected["incremental_after"]
    layout_2 = "_" in table.expected["completed"][0]
    later = {
        row["instant"]
        for row in history
        if row["action"] in WRITES and (row["completion"] if layout_2 else row["instant"]) > after
    }
    rows = found.to_arrow()
    newer = rows.filter(pc.is_in(rows["_hoodie_commit_time"], pa.array(sorted(later), pa.string())))
    wanted = table.answer("incremental")
    assert sorted(newer["_hoodie_record_key"].to_pylist()) == sorted(wanted["_hoodie_record_key"].to_pylist())


@pytest.mark.parametrize("name", ["cow_v9_archived", "h015_cow_archived"])
def test_archived_and_active_instants_together_account_for_every_row(golden, name):
    table = golden(name)
    _, history = opened(table)
    assert {row["archived"] for row in history} == {True, False}
    writes = [row for row in history if row["action"] in WRITES]
    assert sum(row["inserts"] - row["deletes"] for row in writes) == table.expected["rows"]
    assert [row["archived"] for row in writes] == sorted((row["archived"] for row in writes), reverse=True)


@pytest.mark.parametrize(
    ("name", "undoing", "undone"),
    [
        ("cow_v9_restored", "restore", 2),
        ("cow_v9_savepoint_rollback", "rollback", 1),
        ("mor_v9_delete_flag_and_rollback", "rollback", 1),
        ("h015_mor_rollback_compacted", "rollback", 1),
    ],
)
def test_what_was_undone_is_named_and_gone(golden, name, undoing, undone):
    table = golden(name)
    found, history = opened(table)
    named = {time for row in history if row["action"] == undoing for time in row["rolled_back"]}
    assert len(named) == undone
    assert named.isdisjoint({row["instant"] for row in history if row["state"] == "COMPLETED"})
    assert named.isdisjoint(times(found.to_arrow()))


@pytest.mark.parametrize("name", SERVED)
def test_histories_in_parts_are_the_history(golden, name):
    found, history = opened(golden(name))
    middle = history[len(history) // 2]["instant"]
    before = [row for row in found.history(end=middle, archived=True).to_pylist() if row["instant"] != middle]
    assert before + found.history(begin=middle, archived=True).to_pylist() == history
