import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_fast.cli.main import SECTIONS, cli
from hudi_fast.errors import CommitStateUnknownError
from tests.cli.answers import lines

ROWS = pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Oslo"], "fare": [9.5, 3.25, None], "ts": [1, 2, 3]})
OPTIONS = [
    "-o",
    "hoodie.table.name=trips",
    "-o",
    "hoodie.datasource.write.recordkey.field=id",
    "-o",
    "hoodie.datasource.write.partitionpath.field=city",
    "-o",
    "hoodie.datasource.write.precombine.field=ts",
]


@pytest.fixture
def table(tmp_path, run):
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    code, _, err = run("write", tmp_path / "trips", "--input", tmp_path / "rows.parquet", *OPTIONS)
    assert (code, err) == (0, "")
    return tmp_path / "trips"


def ids(out):
    return sorted(json.loads(line)["id"] for line in out.splitlines())


def test_info_tells_people_and_machines_the_same(run, table):
    code, out, _ = run("info", table, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["config"]["name"] == "trips"
    assert document["config"]["record_key_fields"] == ["id"]
    assert [column["name"] for column in document["schema"]] == ["id", "city", "fare", "ts"]
    assert document["stats"][0]["rows"] == 3
    _, shown, _ = run("info", table)
    assert all(word in shown for word in ("trips", "COPY_ON_WRITE", "EVENT_TIME_ORDERING", "double"))


def test_notes_on_an_error_are_part_of_its_line(run, table, tmp_path):
    """Such as that the write is committed, and that what failed came after it."""
    code, _, _ = run("cluster", table, "--plan-only")
    assert code == 0
    (plan,) = (table / ".hoodie" / "timeline").glob("*.clustering.requested")
    plan.write_bytes(b"Obj")
    code, _, err = run("cluster", table)
    assert (code, err.count("\n")) == (1, 1)
    assert f"[file .hoodie/timeline/{plan.name}" in err
    assert "Restore the file, or remove the instant from the timeline" in err


def test_the_exit_code_tells_whether_the_write_happened(run, table):
    for ts in range(3):
        run("delete", table, "--where", f"id = {10 + ts}", "-o", "hoodie.table.services.enabled=false")
    newest = max((table / ".hoodie" / "timeline").glob("*.commit"))
    plan = newest.with_name(f"{int(newest.name[:17]) + 1}.clean.requested")
    plan.write_bytes(b"Obj\x01 no plan")
    code, _, err = run("delete", table, "--where", "id = 1", "-o", "hoodie.clean.commits.retained=1")
    assert (code, err.count("\n")) == (3, 1)
    assert "is committed; a service after it failed. clean: " in err
    assert "Do not run the write again. Left to run: clean, archive" in err
    assert ids(run("read", table, "--json")[1]) == [2, 3]


def test_the_exit_code_tells_that_the_outcome_is_unknown(run, table, monkeypatch):
    def lost(*_):
        raise CommitStateUnknownError("no answer")

    monkeypatch.setattr("hudi_fast.table.HudiTable.delete", lost)
    assert run("delete", table, "--where", "id = 1")[0] == 4


def test_history_and_files_are_lists(run, table):
    run("delete", table, "--where", "id = 1")
    _, out, _ = run("history", table, "--json")
    assert [row["operation"] for row in lines(out)] == ["UPSERT", "DELETE"]
    _, out, _ = run("history", table, "--json", "--limit", 1)
    assert [row["operation"] for row in lines(out)] == ["DELETE"]
    _, out, _ = run("files", table, "--json")
    assert sorted(row["partition"] for row in lines(out)) == ["Oslo", "Rome"]
    _, out, _ = run("files", table, "--limit", 1)
    assert "Files (1)" in out


def test_read_prints_one_json_row_per_line(run, table):
    code, out, _ = run("read", table, "--json", "--columns", "id, fare", "--where", "city = 'Oslo'")
    assert code == 0
    assert sorted(json.loads(line)["id"] for line in out.splitlines()) == [1, 3]
    assert set(json.loads(out.splitlines()[0])) == {"id", "fare"}


def test_read_filters_by_meta_columns_too(run, table):
    _, out, _ = run("read", table, "--json", "--where", "_hoodie_partition_path = 'Rome'")
    assert ids(out) == [2]


def test_read_goes_back_in_time(run, table):
    _, out, _ = run("history", table, "--json")
    first = lines(out)[0]["instant"]
    run("delete", table, "--where", "id = 1")
    _, now, _ = run("read", table, "--json")
    _, then, _ = run("read", table, "--json", "--as-of", first)
    assert (ids(now), ids(then)) == ([2, 3], [1, 2, 3])


@pytest.mark.slow
def test_read_of_base_files_alone(run, table, tmp_path):
    more = [*OPTIONS, "-o", "hoodie.datasource.write.table.type=MERGE_ON_READ"]
    for _ in range(2):
        run("write", tmp_path / "mor", "--input", tmp_path / "rows.parquet", *more)
    run("delete", tmp_path / "mor", "--where", "id = 1")
    _, merged, _ = run("read", tmp_path / "mor", "--json")
    _, stored, _ = run("read", tmp_path / "mor", "--json", "--query", "read_optimized")
    assert (ids(merged), ids(stored)) == ([2, 3], [1, 2, 3])


def test_read_on_screen_says_when_there_are_more_rows(run, tmp_path):
    pq.write_table(pa.table({"id": range(21)}), tmp_path / "many.parquet")
    run("write", tmp_path / "t", "--input", tmp_path / "many.parquet", *OPTIONS[:4])
    _, out, _ = run("read", tmp_path / "t", "--columns", "id")
    assert "--limit shows more" in out
    _, out, _ = run("read", tmp_path / "t", "--columns", "id", "--limit", "21")
    assert "--limit shows more" not in out


def test_read_shows_meta_columns_to_machines_and_to_people_who_ask(run, table):
    _, out, _ = run("read", table)
    assert "fare" in out
    assert "_hoodie" not in out
    for asked in (["--meta"], ["--json"], ["--columns", "_hoodie_record_key"]):
        assert "_hoodie_record_key" in run("read", table, *asked)[1]


def test_read_writes_files(run, table, tmp_path):
    code, out, _ = run("read", table, "--output", tmp_path / "out.parquet", "--columns", "id", "--limit", 2)
    assert (code, out.strip()) == (0, f"2 rows written to {tmp_path / 'out.parquet'}")
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["id"]


def test_write_takes_an_operation_and_tells_what_it_did(run, table, tmp_path):
    (tmp_path / "more.csv").write_text("id,city,fare,ts\n2,Rome,4.0,9\n4,Rome,1.0,9\n")
    _, out, _ = run("write", table, "--input", tmp_path / "more.csv", "--operation", "UPSERT", "--json")
    result = json.loads(out)
    assert (result["operation"], result["inserts"], result["updates"]) == ("upsert", 1, 1)


def test_delete_takes_a_file_of_keys(run, table, tmp_path):
    (tmp_path / "keys.json").write_text('{"id": 1, "city": "Oslo"}\n{"id": 2, "city": "Rome"}\n')
    code, out, err = run("delete", table, "--keys", tmp_path / "keys.json", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["deletes"] == 2
    _, out, _ = run("read", table, "--json")
    assert ids(out) == [3]


@pytest.mark.slow(
    "arguments5-{tmp}/none.parquet does not exist", "arguments3-yyyyMMddHHmmss", "arguments0-No Hudi table at"
)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "{tmp}/none"], "No Hudi table at"),
        (["read", "{table}", "--columns", "nope"], "nope"),
        (["read", "{table}", "--where", "nope = 1"], "column 'nope' does not exist"),
        (["read", "{table}", "--as-of", "yesterday"], "yyyyMMddHHmmss"),
        (["read", "{table}", "--output", "{tmp}/x.txt"], ".parquet"),
        (["write", "{table}", "--input", "{tmp}/none.parquet"], "{tmp}/none.parquet does not exist"),
        (["write", "{tmp}/new", "--input", "{tmp}/rows.parquet"], "hoodie.table.name"),
        (["info", "{tmp}/rows.parquet"], "No Hudi table at"),
        (["read", "{table}", "--where", "city = Oslo"], "in quotes"),
        (["write", "{table}", "--input", "{tmp}/bad.parquet"], "bad.parquet"),
        (["write", "{table}", "--input", "{tmp}/rows.parquet", "-o", "hoodie.index.type=BUCKET"], "hoodie.index.type"),
        (["write", "{table}", "--input", "{tmp}/rows.parquet", "--mode", "errorifexists"], "exists"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(run, table, tmp_path, arguments, said):
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    code, out, err = run(*(word.format(tmp=tmp_path, table=table) for word in arguments))
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert said.format(tmp=tmp_path) in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["delete", "t"],
        ["delete", "t", "--where", "a = 1", "--keys", "k.csv"],
        ["write", "t"],
        ["write", "t", "--input", "x.csv", "-o", "no-separator"],
        ["write", "t", "--input", "x.csv", "--operation", "merge"],
        ["write", "t", "--input", "x.csv", "--mode", "replace"],
        ["read"],
        ["explode"],
    ],
)
def test_wrong_usage_is_exit_code_2(run, arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("Error: ")
    assert err.count("\n") == 1
    assert "--help`." in err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["explian", "t"], "Did you mean explain?"),
        (["read", "t", "--wher", "id = 1"], "Did you mean --where?"),
        (["--versoin"], "Did you mean --version?"),
    ],
)
def test_a_misspelt_command_or_option_is_answered_by_the_right_one(run, arguments, meant):
    assert meant in run(*arguments)[2]


def test_options_of_every_command_stand_before_or_after_its_name(run, table):
    wrong = ("--storage-option", "colour=scarlet")
    said = run("info", table, *wrong)
    assert said == run(*wrong, "info", table)
    assert (said[0], "colour" in said[2]) == (1, True)
    for arguments in (("--traceback", "info", table, *wrong), ("info", table, *wrong, "--traceback")):
        assert "Traceback" in run(*arguments)[2]


def test_help_lists_every_command_once_by_task(run):
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(cli.commands)
    _, out, _ = run("--help")
    assert [line[2:].split()[0] for line in out.splitlines() if line[2:].split(" ")[0] in cli.commands] == listed
    assert max(map(len, out.splitlines())) <= 80


def test_a_warning_is_one_line_on_standard_error(run, table, tmp_path, recwarn):
    code, _, err = run("write", table, "--input", tmp_path / "rows.parquet", "-o", "hoodie.parquet.max.file.sizes=1")
    assert code == 0
    assert err == (
        "Warning: Unknown option hoodie.parquet.max.file.sizes is ignored. Did you mean hoodie.parquet.max.file.size?\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], {"pyarrow", "numpy", "rich", "sqlglot"}),
        (["info", "{table}"], {"hudi_fast.config.options", "sqlglot", "duckdb", "polars"}),
        (["read", "{table}", "--json"], {"hudi_fast.config.options", "sqlglot", "duckdb", "polars"}),
    ],
    ids=["help", "info", "read"],
)
def test_a_command_loads_no_more_than_it_needs(table, arguments, heavy):
    code = (
        "import sys\n"
        "from hudi_fast.cli.main import program\n"
        "try:\n    program()\nexcept SystemExit as left:\n    assert not left.code\n"
        f"print({ {'pandas', 'pyspark', *heavy} } & sys.modules.keys(), file=sys.stderr)\n"
    )
    words = [word.format(table=table) for word in arguments]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "set()\n")


def test_version_and_help_need_no_table(run):
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "hudi-fast,")
    _, out, _ = run("--help")
    assert all(command in out for command in ("info", "history", "files", "read", "write", "delete"))
