import json

import pytest

import hudi_fast as hf
from tests.cli.answers import answers
from tests.support.mor_tables import mor_options
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, mor_options())
    hf.write(plain_rows([0, 2], ts=2), path, mor_options())
    return path


def history(run, *arguments):
    return answers(run, "history", *arguments)


def test_history_tells_people_what_each_instant_did(run, table):
    planned = hf.HudiTable.open(table).services.schedule_compact()
    code, out, err = run("history", table)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "History (3)"
    (insert, update, plan) = [line for line in lines if "deltacommit" in line or "compaction" in line]
    assert "+6" in insert
    assert "~2" in update
    assert "ms" in update or " s " in update
    assert planned.instant in plan
    assert "REQUESTED; 1 file group" in plan


def test_history_can_be_bounded(run, table):
    first, second = (row["instant"] for row in history(run, table))
    assert [row["instant"] for row in history(run, table, "--begin", second)] == [second]
    assert [row["instant"] for row in history(run, table, "--end", first)] == [first]
    assert history(run, table, "--begin", "2100-01-01") == []
    assert run("history", table, "--begin", "2100-01-01")[1] == "History (0)\n"


@pytest.mark.parametrize("version", ["h015_cow_archived", "cow_v9_archived"])
def test_history_of_archived_instants_is_there_for_those_who_ask(run, golden, version):
    path = golden(version).table
    active, everything = history(run, path), history(run, path, "--archived")
    assert [row for row in everything if not row["archived"]] == active
    assert len(everything) > len(active)
    assert history(run, path, "--archived", "--limit", 1) == active[-1:]
    assert "archived" in run("history", path, "--archived")[1]
    assert "archived" not in run("history", path)[1].replace(str(path), "")


def test_history_names_what_was_undone_and_kept(run, golden):
    _, out, _ = run("history", golden("cow_v9_savepoint_rollback").table)
    assert "3 files deleted; rolled back 2" in out
    assert "savepoint" in out


def test_files_are_listed_one_by_one_or_by_partition(run, table):
    hf.HudiTable.open(table).services.schedule_compact()
    _, out, _ = run("files", table)
    assert "Files (2)" in out
    assert "compaction 2" in out
    assert "KiB" in out
    rows = answers(run, "files", table, "--by-partition")
    assert [row["partition"] for row in rows] == ["p0", "p1"]
    assert [row["log_files"] for row in rows] == [1, 0]
    assert "Partitions (1)" in run("files", table, "--by-partition", "--limit", 1)[1]


@pytest.mark.slow
def test_info_tells_when_the_table_was_last_served(run, table):
    done = hf.HudiTable.open(table).services.compact()
    code, out, _ = run("info", table)
    assert code == 0
    assert ["last_compaction", done.instant] in [line.split() for line in out.splitlines()]
    stats = json.loads(run("info", table, "--json")[1])["stats"][0]
    assert (stats["last_compaction"], stats["pending"], stats["small_files"]) == (done.instant, [], 2)


@pytest.mark.slow("arguments0-time format: begin='yesterday'", "arguments2-No Hudi table at")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["history", "{table}", "--begin", "yesterday"], "time format: begin='yesterday'"),
        (["history", "{table}", "--end", "2024-13-01"], "time format: end='2024-13-01'"),
        (["history", "{table}/p0"], "No Hudi table at"),
        (["history", "{table}", "--plot", "x.jpg"], ".png, .svg, .pdf"),
        (["files", "{table}", "--where", "nope = 1"], "column 'nope' does not exist"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(run, table, arguments, said):
    code, out, err = run(*(word.format(table=table) for word in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["files", "t", "--where", "a = 1", "--by-partition"],
        ["history", "t", "--limit", "-1"],
        ["history", "t", "--limit", "few"],
        ["history"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "--help`." in err


def test_a_copy_on_write_table_without_rows_can_be_looked_at(run, tmp_path):
    hf.HudiTable.create(tmp_path / "t", plain_rows([]).schema, options())
    for command in ("info", "history", "files"):
        code, out, err = run(command, tmp_path / "t")
        assert (code, err) == (0, "")
        assert out
