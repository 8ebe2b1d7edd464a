"""Rows on the screen, and in files and pipes: ``read``, ``head``, ``sql``.

Module: hudi_fast.cli.queries.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.cli.answers import lines


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = pa.table({"id": range(30), "city": ["Oslo", "Rome", "Bonn"] * 10, "fare": [n / 2 for n in range(30)]})
    hf.write(rows, tmp_path / "trips", key="id")
    return tmp_path / "trips"


def test_head_shows_ten_rows_or_as_many_as_asked(run, table):
    code, out, _ = run("head", table, "--json")
    assert (code, len(lines(out))) == (0, 10)
    assert len(lines(run("head", table, "-n", 3, "--json")[1])) == 3
    shown = run("head", table, "-n", 2, "--select", "id,city", "--where", "city = 'Rome'")[1]
    assert (shown.count("Rome"), "fare" in shown, "--limit" in shown) == (2, False, False)


def test_rows_go_to_a_pipe_in_every_format(run, table):
    chosen = ("read", table, "--select", "id", "--where", "id < 3")
    ids = [{"id": n} for n in range(3)]
    assert sorted(lines(run(*chosen, "--format", "jsonl")[1]), key=str) == ids
    assert sorted(lines(run(*chosen, "--output", "-")[1]), key=str) == ids
    assert sorted(run(*chosen, "--format", "csv")[1].split()) == ['"id"', "0", "1", "2"]


@pytest.mark.slow(but="parquet")
@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv", "jsonl"])
def test_a_table_goes_through_a_pipe_into_another(table, tmp_path, kind):
    from click.testing import CliRunner

    from hudi_fast.cli.main import cli

    read = CliRunner().invoke(cli, ["read", str(table), "--select", "id,city,fare", "--format", kind])
    copied = CliRunner().invoke(
        cli, ["write", str(tmp_path / "copy"), "--input", "-", "--key", "id"], input=read.stdout_bytes
    )
    assert (read.exit_code, copied.exit_code) == (0, 0), copied.output
    columns = ["id", "city", "fare"]
    rows = [hf.read(path, columns=columns).sort_by("id").to_pylist() for path in (table, tmp_path / "copy")]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "csv", "--json"], "--json cannot be combined with --format csv"),
        (["--format", "table", "--output", "x.csv"], "for the screen"),
        (["--format", "xlsx"], "'parquet'"),
        (["--limit", "-1"], "-1"),
    ],
)
def test_formats_that_contradict_each_other_are_wrong_usage(run, table, arguments, said):
    code, out, err = run("read", table, *arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_a_format_is_named_where_the_ending_does_not_tell_it(run, table, tmp_path):
    assert run("read", table, "--output", tmp_path / "rows.txt", "--format", "csv", "--limit", 2)[0] == 0
    assert len((tmp_path / "rows.txt").read_text().splitlines()) == 3


def test_a_select_computes_on_the_table_of_its_folder(run, table):
    code, out, err = run("sql", "SELECT city, count(*) AS n FROM trips WHERE id < 9 GROUP BY city ORDER BY city", table)
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines() if line[:1] == "│"] == [
        ["│", city, "│", "3", "│"] for city in ("Bonn", "Oslo", "Rome")
    ]
    code, out, _ = run("sql", "SELECT max(fare) AS most FROM trips", f"{table}/", "--json")
    assert (code, json.loads(out)) == (0, {"most": 14.5})


def test_tables_of_a_statement_may_be_named(run, table):
    joined = "SELECT count(*) AS n FROM a JOIN b USING (id)"
    assert lines(run("sql", joined, f"a={table}", f"b={table}", "--json")[1]) == [{"n": 30}]
    code, _, err = run("sql", joined, table, table)
    assert (code, "Two tables have the name trips" in err) == (2, True)


def test_a_star_shows_meta_columns_to_those_who_ask(run, table):
    everything = ("sql", "SELECT * FROM trips LIMIT 1", table)
    assert "_hoodie" not in run(*everything)[1]
    assert "_hoodie_record_key" in run(*everything, "--meta")[1]
    assert "_hoodie_record_key" in run("sql", "SELECT _hoodie_record_key FROM trips LIMIT 1", table)[1]


def test_a_statement_may_change_rows(run, table):
    changed = lines(run("sql", "DELETE FROM trips WHERE city = 'Oslo'", table, "--json")[1])
    assert changed == [{"inserts": 0, "updates": 0, "deletes": 10}]


def test_a_statement_may_come_from_a_pipe(run, table, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT count(*) AS n FROM trips"))
    assert lines(run("sql", "-", table, "--json")[1]) == [{"n": 30}]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT * FROM tripz", "There is no table tripz. Known are trips."),
        ("SELECT nope FROM trips", "nope"),
        ("SELEC id FROM trips", "SELEC"),
    ],
)
def test_a_statement_that_cannot_run_is_one_line(run, table, statement, said):
    code, out, err = run("sql", statement, table)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err


def test_a_path_before_the_statement_is_wrong_usage(run, table):
    code, _, err = run("sql", table, "SELECT 1 FROM trips")
    assert (code, "The statement comes first" in err) == (2, True)


def test_the_columns_on_the_screen_are_those_of_the_time(run, table):
    first = hf.HudiTable(table).history()["instant"][0].as_py()
    hf.HudiTable(table).alter(hf.AddColumn("tip", pa.float64()))
    assert "tip" in run("head", table)[1]
    for command in ("head", "read"):
        code, out, err = run(command, table, "--as-of", first)
        assert (code, err, "fare" in out, "tip" in out) == (0, "", True, False)
        assert run(command, table, "--as-of", "1999-01-01")[1] == "Rows (0)\n"
