import json

import pytest

import hudi_fast as hf
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(6)), path, {**options(), "hoodie.metadata.index.bloom.filter.enable": True})
    return path


def test_a_table_that_is_as_it_should_be(run, table):
    code, out, err = run("validate", table, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["ok"]
    assert found["differences"] == []
    assert {row["partition"] for row in found["summary"]} == {
        "bloom_filters",
        "column_stats",
        "files",
        "partition_stats",
    }
    code, out, _ = run("validate", table, "--partition", "files")
    assert code == 0
    assert "Metadata table" in out
    assert "column_stats" not in out
    assert "Differences" not in out


def test_differences_are_listed_and_make_the_exit_code(run, table):
    (gone,) = (table / "p1").glob("*.parquet")
    gone.rename(gone.with_name("moved.parquet.bak"))
    code, out, _ = run("validate", table, "--partition", "files", "--json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    assert [(row["what"], row["key"]) for row in found["differences"]] == [("no such file", f"p1/{gone.name}")]
    code, out, _ = run("validate", table, "--partition", "files")
    assert code == 1
    assert "Differences (1)" in out
    assert gone.name in out
    code, out, _ = run("validate", table, "--partition", "files", "--limit", 0, "--json")
    assert (code, json.loads(out)["differences"]) == (1, [])


def test_a_table_without_metadata_table_has_nothing_to_compare(run, tmp_path):
    hf.write(plain_rows(range(3)), tmp_path / "plain", {**options(), "hoodie.metadata.enable": False})
    code, out, err = run("validate", tmp_path / "plain")
    assert (code, err) == (0, "")
    assert "The table has no metadata table" in out


def test_an_unknown_partition_is_an_error_in_one_line(run, table):
    code, out, err = run("validate", table, "--partition", "nothing")
    assert (code, out) == (1, "")
    assert "has no partition 'nothing'" in err
    assert err.count("\n") == 1
