import json

import pytest

import hudi_fast as hf
from hudi_fast.cli.maintenance import index
from hudi_fast.config.option_names import INDEX_KINDS
from tests.cli.answers import lines
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, {**options(), "hoodie.metadata.enable": False})
    return path


def names(out):
    return {row["partition"]: row["state"] for row in lines(out)}


def test_an_index_is_built_listed_and_dropped(run, table):
    code, out, err = run("index", table, "--json")
    assert (code, err, out) == (0, "", "")
    code, out, err = run("index", table, "record_index", "--json")
    built = json.loads(out)
    assert (code, err) == (0, "")
    assert (built["partition"], built["partitions"], built["records"]) == ("record_index", ["record_index"], 6)
    assert built["instant"]
    assert names(run("index", table, "--json")[1]) == {"files": "ready", "record_index": "ready"}
    code, out, _ = run("index", table)
    assert code == 0
    assert "Indexes (2)" in out
    assert "record_index" in out
    assert json.loads(run("index", table, "--drop", "record_index", "--json")[1]) == {"dropped": ["record_index"]}
    assert names(run("index", table, "--json")[1]) == {"files": "ready"}


def test_words_describe_secondary_and_expression_indexes(run, table):
    code, out, _ = run("index", table, "secondary_index", "--columns", "text", "--name", "words")
    assert code == 0
    assert "Built" in out
    assert "secondary_index_words" in out
    more = ("--columns", "text", "--name", "part_of", "--function", "substring", "--argument", "pos=1")
    code, out, err = run("index", table, "expr_index", *more, "--argument", "len=1", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["partition"] == "expr_index_part_of"
    listed = {row["partition"]: row for row in lines(run("index", table, "--json")[1])}
    assert listed["expr_index_part_of"]["function"] == "substring"
    assert listed["secondary_index_words"]["columns"] == ["text"]
    code, out, _ = run("index", table, "--drop", "words")
    assert code == 0
    assert "secondary_index_words" in out


def test_a_plan_waits_until_it_is_carried_out(run, table):
    run("index", table, "files")
    code, out, _ = run("index", table, "column_stats", "--columns", "ts", "--plan-only", "--json")
    planned = json.loads(out)
    assert (code, planned["partitions"]) == (0, ["column_stats"])
    assert names(run("index", table, "--json")[1]) == {"column_stats": "planned", "files": "ready"}
    code, out, _ = run("index", table, "--run-pending", "--json")
    assert (code, json.loads(out)["instant"]) == (0, planned["instant"])
    code, out, _ = run("index", table, "--run-pending")
    assert code == 0
    assert "No pending index" in " ".join(out.split())
    code, out, _ = run("index", table, "column_stats")
    assert code == 0
    assert "The index exists" in " ".join(out.split())


@pytest.mark.parametrize(
    "arguments",
    [["--plan-only"], ["record_index", "--drop", "x"], ["--drop", "x", "--run-pending"], ["no_such_kind"]],
)
def test_contradicting_flags_are_wrong_usage(run, table, arguments):
    code, _, err = run("index", table, *arguments)
    assert code == 2
    assert "Error" in err


def test_what_cannot_be_is_an_error_in_one_line(run, table):
    code, out, err = run("index", table, "--drop", "nothing")
    assert (code, out) == (1, "")
    assert err.startswith("Error: There is no index 'nothing'")
    assert err.count("\n") == 1


def test_all_kinds_can_be_asked_for():
    (kind,) = [one for one in index.params if one.name == "kind"]
    assert tuple(kind.type.choices) == INDEX_KINDS
