"""Rollback, savepoints, restore and repair by command: what is asked before, and what is done."""

import io
import json
import os
import sys
import time

import pytest

import hudi_fast as hf
from tests.support.small_tables import listing, options, plain_rows, table_rows

SETTINGS = {**options(), "hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    for ts in range(2):
        hf.write(plain_rows(range(4), ts=ts, text=f"v{ts}"), path, SETTINGS)
    return path


@pytest.fixture
def answered(monkeypatch):
    """What somebody types when they are asked."""
    return lambda text: monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def instants(table):
    return hf.HudiTable.open(table).history()["instant"].to_pylist()


def test_rolling_a_completed_write_back_is_asked_about(run, table, answered):
    first, second = instants(table)
    before = listing(table)
    answered("n\n")
    code, out, err = run("rollback", table, second)
    assert code == 1
    assert "Affected files (2)" in out
    assert f"Undone instants: {second}." in out
    assert "Roll it back?" in err
    assert listing(table) == before
    answered("y\n")
    code, out, _ = run("rollback", table, second, "--json")
    assert (code, json.loads(out)["rolled_back"]) == (0, [second])
    assert {row[2] for row in table_rows(table).values()} == {"v00", "v01", "v02", "v03"}
    assert first in instants(table)


def test_nobody_there_to_ask_means_no(run, table, answered):
    before = listing(table)
    answered("")
    assert run("rollback", table, instants(table)[-1])[0] == 1
    assert listing(table) == before


def test_yes_goes_without_asking(run, table):
    second = instants(table)[-1]
    code, out, err = run("rollback", table, second, "--yes")
    assert (code, err) == (0, "")
    assert out.startswith("Rolled back")


def test_failed_writes_are_rolled_back_without_asking(run, table):
    failed = str(int(instants(table)[-1]) + 1)
    (table / ".hoodie/timeline" / f"{failed}.commit.requested").touch()
    code, out, _ = run("rollback", table, "--dry-run", "--json")
    assert (code, json.loads(out)["instants"]) == (0, [failed])
    assert failed in instants(table)
    code, out, err = run("rollback", table)
    assert (code, err) == (0, "")
    assert failed in out
    assert failed not in instants(table)
    assert "Nothing to roll back" in run("rollback", table)[1]


def test_a_savepoint_is_made_listed_restored_and_deleted(run, table, answered):
    second = instants(table)[-1]
    code, out, _ = run("savepoint", table, "--user", "ada", "--comment", "before the move", "--json")
    assert (code, json.loads(out)["instant"], json.loads(out)["files"]) == (0, second, 2)
    saved = json.loads(run("savepoint", table, "--list", "--json")[1])
    assert (saved["instant"], saved["user"], saved["comment"]) == (second, "ada", "before the move")
    assert "before the move" in run("savepoint", table, "--list")[1]
    rows = table_rows(table)
    hf.write(plain_rows([9]), table, SETTINGS)
    before = listing(table)
    plan = json.loads(run("restore", table, second, "--dry-run", "--json")[1])
    assert len(plan["instants"]) == len(plan["plan"]) == 1
    answered("\n")
    code, out, err = run("restore", table, second)
    assert code == 1
    assert "1 instant after" in err
    assert listing(table) == before
    code, out, _ = run("restore", table, second, "--yes", "--json")
    assert (code, json.loads(out)["savepoint"]) == (0, second)
    assert table_rows(table) == rows
    assert run("savepoint", table, second, "--delete")[0] == 0
    assert run("savepoint", table, "--list")[1] == "Savepoints (0)\n"


def test_repair_shows_asks_and_removes(run, table, answered):
    stray = table / "p0" / f".x.parquet.{'0' * 32}.tmp"
    stray.write_bytes(b"half")
    os.utime(stray, (time.time() - 9999, time.time() - 9999))
    code, out, err = run("repair", table, "--dry-run")
    assert (code, err) == (0, "")
    assert "Findings (1)" in out
    assert "1 can be repaired, 4 B." in out
    answered("n\n")
    code, out, err = run("repair", table)
    assert code == 1
    assert "temporary file" in out
    assert "Repair 1 of 1 findings?" in err
    assert stray.exists()
    code, out, _ = run("repair", table, "--yes", "--json")
    assert code == 0
    assert [one["path"] for one in json.loads(out)["repaired"]] == [f"p0/{stray.name}"]
    assert not stray.exists()
    assert run("repair", table)[1] == "Nothing to repair\n"
    assert json.loads(run("repair", table, "--dry-run", "--json")[1]) == {"repairable": 0, "bytes": 0, "plan": []}


def test_what_cannot_be_repaired_is_left_with_advice(run, table):
    lock = table / ".hoodie" / "lock"
    lock.touch()
    os.utime(lock, (time.time() - 9999, time.time() - 9999))
    code, out, err = run("repair", table)
    assert (code, err) == (0, "")
    assert "Nothing to repair" in out
    assert "Needs manual repair (1)" in out
    assert "delete it" in out
    assert lock.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["rollback", "{table}", "20200101000000000"], "not on the active timeline"),
        (["restore", "{table}", "20200101000000000", "--yes"], "no such savepoint"),
        (["savepoint", "{table}", "20200101000000000"], "20200101000000000"),
        (["savepoint", "{table}", "20200101000000000", "--delete"], "20200101000000000"),
    ],
)
def test_instants_that_are_not_there_are_named(run, table, arguments, said):
    before = listing(table)
    code, out, err = run(*(word.format(table=table) for word in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert said in err
    assert listing(table) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["rollback", "t", "yesterday"],
        ["restore", "t"],
        ["restore", "t", "-1"],
        ["restore", "t", "last"],
        ["savepoint", "t", "--delete"],
        ["savepoint", "t", "--list", "--delete"],
        ["savepoint", "t", "20200101000000000", "--list"],
        ["savepoint", "t", "20200101000000000", "--delete", "--comment", "x"],
        ["savepoint", "t", "newest"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "--help`." in err
