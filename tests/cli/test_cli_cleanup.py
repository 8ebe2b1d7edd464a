"""The commands `clean`, `archive` and `ttl`, and usage that all commands of table services refuse."""

import pytest

import hudi_fast as hf
from tests.cli.answers import QUIET, SMALL, answer, answers
from tests.support.old_tables import write_days_ago
from tests.support.small_tables import listing, options, plain_rows, table_rows

KEEP_ONE = ["-o", "hoodie.clean.commits.retained=1"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    for ts in range(4):
        hf.write(plain_rows(range(4), ts=ts), path, {**options(), **QUIET, "hoodie.metadata.enable": "false"})
    return path


def test_a_dry_run_of_cleaning_shows_the_files_and_deletes_none(run, table):
    before = listing(table)
    code, out, _ = run("clean", table, "--dry-run", *KEEP_ONE, *SMALL)
    assert code == 0
    assert "Would be deleted (" in out
    assert ".parquet" in out
    plan = answer(run, "clean", table, "--dry-run", *KEEP_ONE, *SMALL)
    assert plan["files"] == len(plan["plan"]) > 0
    assert plan["bytes"] == sum(row["bytes"] for row in plan["plan"])
    assert listing(table) == before


def test_cleaning_tells_what_it_deleted(run, table):
    rows, plan = table_rows(table), answer(run, "clean", table, "--dry-run", *KEEP_ONE, *SMALL)
    done = answer(run, "clean", table, *KEEP_ONE, *SMALL)
    assert done["instant"]
    assert (done["files_deleted"], done["bytes_deleted"]) == (plan["files"], plan["bytes"])
    assert table_rows(table) == rows
    assert "Nothing to clean" in run("clean", table, *KEEP_ONE, *SMALL)[1]


def test_a_planned_clean_waits_until_it_is_carried_out(run, table):
    planned = answer(run, "clean", table, "--plan-only", *KEEP_ONE, *SMALL)
    (waiting,) = answers(run, "services", table)
    assert (waiting["instant"], waiting["service"], waiting["state"]) == (planned["instant"], "clean", "REQUESTED")
    assert "Pending services (1)" in run("services", table)[1]
    done = answer(run, "clean", table, "--run-pending", *SMALL)
    assert (done["instant"], done["files_deleted"]) == (planned["instant"], planned["files"])
    assert answers(run, "services", table) == []


def test_archiving_moves_what_a_dry_run_showed(run, table):
    few = ["-o", "hoodie.keep.min.commits=2", "-o", "hoodie.keep.max.commits=3", *KEEP_ONE, *SMALL]
    before = listing(table)
    plan = answer(run, "archive", table, "--dry-run", *few)
    assert "Would be archived (" in run("archive", table, "--dry-run", *few)[1]
    assert listing(table) == before
    done = answer(run, "archive", table, *few)
    assert len(done["instants"]) == len(plan["plan"]) > 0
    left = [row["instant"] for row in answers(run, "history", table)]
    assert not {row["instant"] for row in plan["plan"]} & set(left)
    assert len(answers(run, "history", table, "--archived")) > len(left)
    assert "Nothing to archive" in run("archive", table, *few)[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["clean", "t", "--dry-run", "--plan-only"],
        ["clean", "t", "--plan-only", "--run-pending"],
        ["cluster", "t", "--dry-run", "--run-pending"],
        ["compact", "t", "--logs", "--run-pending"],
        ["clean"],
        ["clean", "t", "-o", "no-separator"],
        ["upgrade", "t"],
        ["upgrade", "t", "nine"],
        ["upgrade", "t", "0"],
        ["archive", "t", "--plan-only"],
        ["services", "t", "--dry-run"],
        ["repair", "t", "now"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert "--help`." in err


@pytest.mark.parametrize("command", ["clean", "archive", "cluster", "repair", "services", "rollback", "compact"])
def test_a_table_that_is_not_there_is_one_line_and_exit_code_1(run, tmp_path, command):
    code, out, err = run(command, tmp_path / "none")
    assert (code, out) == (1, "")
    assert err.startswith("Error: No Hudi table at")
    assert err.count("\n") == 1


@pytest.mark.slow("arguments1-hoodie.keep.min.commits")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["clean", "{table}", "-o", "hoodie.clean.policy=KEEP_ALL"], "hoodie.clean.policy"),
        (["archive", "{table}", "-o", "hoodie.keep.min.commits=many"], "hoodie.keep.min.commits"),
        (["upgrade", "{table}", "7"], "supported: 5, 6, 8, 9"),
        (["cluster", "{table}", "-o", "hoodie.clustering.plan.strategy.class=com.example.Mine"], "com.example.Mine"),
    ],
)
def test_wrong_options_are_named(run, table, arguments, said):
    before = listing(table)
    code, out, err = run(*(word.format(table=table) for word in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert said in err
    assert listing(table) == before


def test_expired_partitions_are_shown_and_deleted(run, tmp_path):
    path = tmp_path / "old"
    write_days_ago(plain_rows([0]), path, options(), 40)
    hf.write(plain_rows([1]), path, options())
    before = listing(path)
    plan = answer(run, "ttl", path, "--days", "30", "--dry-run")["plan"]
    assert [row["partition"] for row in plan] == ["p0"]
    assert "Expired partitions (1)" in run("ttl", path, "--days", "30", "--dry-run")[1]
    assert "No partition has expired" in run("ttl", path, "--days", "50")[1]
    code, _, said = run("ttl", path)
    assert (code, "days.retain" in said) == (1, True)
    assert listing(path) == before
    done = answer(run, "ttl", path, "--days", "30")
    assert done["partitions"] == ["p0"]
    assert set(table_rows(path)) == {"k00001"}
