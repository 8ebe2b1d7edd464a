import json

import pytest

import hudi_fast as hf
from tests.support.mor_tables import log_files, mor_options
from tests.support.small_tables import options, plain_rows, table_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, mor_options())
    hf.write(plain_rows([1, 2], ts=2, text="b"), path, mor_options())
    return path


@pytest.mark.slow
def test_compact_tells_people_and_machines_what_it_did(run, table):
    rows = table_rows(table)
    code, out, err = run("compact", table, "--json")
    assert (code, err) == (0, "")
    done = json.loads(out)
    assert done["instant"]
    assert (done["file_groups"], done["log_files"], done["rows"], done["updates"]) == (2, 2, 6, 2)
    assert (done["inserts"], done["deletes"], done["files_written"]) == (0, 0, 2)
    assert done["bytes_written"] > 0
    assert table_rows(table) == rows
    code, out, _ = run("compact", table)
    assert code == 0
    assert "Nothing to compact" in out


def test_a_plan_waits_until_it_is_carried_out(run, table):
    code, out, _ = run("compact", table, "--plan-only", "--json")
    planned = json.loads(out)
    assert code == 0
    assert {key: planned[key] for key in ("file_groups", "log_files")} == {"file_groups": 2, "log_files": 2}
    assert len(log_files(table)) == 2
    code, out, _ = run("compact", table, "--plan-only", "--json")
    assert json.loads(out) == {"instant": "", "file_groups": 0, "log_files": 0}
    code, out, _ = run("compact", table, "--run-pending")
    assert code == 0
    assert "Compacted" in out
    assert planned["instant"] in out
    code, out, _ = run("compact", table, "--run-pending", "--json")
    assert json.loads(out)["instant"] == ""


def test_options_say_when_compaction_is_due(run, table):
    code, out, _ = run("compact", table, "-o", "hoodie.compact.inline.max.delta.commits=3", "--json")
    assert (code, json.loads(out)["file_groups"]) == (0, 0)


def test_contradicting_flags_are_wrong_usage(run, table):
    code, _, err = run("compact", table, "--plan-only", "--run-pending")
    assert code == 2
    assert "--plan-only and --run-pending" in err


def test_a_copy_on_write_table_is_an_error_in_one_line(run, tmp_path):
    hf.write(plain_rows(range(3)), tmp_path / "cow", options())
    code, out, err = run("compact", tmp_path / "cow")
    assert (code, out) == (1, "")
    assert err.startswith("Error: Can only compact table of type MERGE_ON_READ")
    assert err.count("\n") == 1
