import json

import pyarrow.parquet as pq
import pytest

import hudi_fast as hf
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    given = {**options(), "hoodie.table.cdc.enabled": "true"}
    first = hf.write(plain_rows(range(3)), path, given).instant
    second = hf.write(plain_rows([0], ts=2), path, given).instant
    return path, first, second


def test_changes_for_machines_are_a_line_each(run, table):
    path, first, second = table
    code, out, err = run("changes", path, "--begin", first, "--json")
    assert (code, err) == (0, "")
    (change,) = map(json.loads, out.splitlines())
    assert (change["op"], change["ts_ms"]) == ("u", second)
    assert [json.loads(change[image])["ts"] for image in ("before", "after")] == [1, 2]
    assert len(run("changes", path, "--end", first, "--limit", 2, "--json")[1].splitlines()) == 2


def test_changes_for_people_are_a_table_or_a_file(run, table, tmp_path):
    path, first, _ = table
    code, out, _ = run("changes", path, "--end", first)
    assert (code, out.splitlines()[0]) == (0, "Changes (3)")
    assert run("changes", path, "--limit", 1)[1].splitlines()[0] == "Changes (the first 1)"
    code, out, _ = run("changes", path, "--output", tmp_path / "c.parquet")
    assert (code, out) == (0, f"4 changes written to {tmp_path / 'c.parquet'}\n")
    assert sorted(pq.read_table(tmp_path / "c.parquet")["op"].to_pylist()) == ["i", "i", "i", "u"]


def test_a_table_that_logs_no_changes_is_one_line_of_error(run, tmp_path):
    hf.write(plain_rows([1]), tmp_path / "t", options())
    code, out, err = run("changes", tmp_path / "t")
    assert (code, out) == (1, "")
    assert "It isn't a CDC hudi table" in err


def test_what_differs_between_two_times_needs_no_change_log(run, tmp_path):
    path = tmp_path / "t"
    first = hf.write(plain_rows(range(3)), path, options()).instant
    second = hf.write(plain_rows([0, 9], ts=2), path, options()).instant
    hf.HudiTable.open(path).delete(where="id = 'k00001'")
    code, out, err = run("diff", path, first)
    assert (code, err, out.splitlines()[0]) == (0, "", "Differences (4)")
    chosen = ("diff", path, first, second, "--select", "change,id", "--where", "change <> 'update_before'", "--json")
    assert sorted(map(tuple, map(dict.values, map(json.loads, run(*chosen)[1].splitlines())))) == [
        ("insert", "k00009"),
        ("update_after", "k00000"),
    ]
    code, out, err = run("diff", path, second, first)
    assert (code, out) == (1, "")
    assert "from the earlier time to the later one" in err
