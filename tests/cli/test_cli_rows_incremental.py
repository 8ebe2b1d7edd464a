"""``hudi-fast read --incremental``: what was written after a time, up to another."""

import json

import hudi_fast as hf
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state
from tests.support.small_tables import options, plain_rows


def ids(out):
    return sorted(json.loads(line)["id"] for line in out.splitlines())


def test_rows_of_a_range_of_commits_are_read(run, tmp_path):
    for numbers in (range(4), [1], [2]):
        hf.write(plain_rows(numbers), tmp_path / "t", options())
    first, second, _ = sorted(str(one.completion) for one in load_state(Storage(tmp_path / "t")).timeline.writes())
    code, out, _ = run("read", tmp_path / "t", "--json", "--incremental", first)
    assert (code, ids(out)) == (0, ["k00001", "k00002"])
    _, out, _ = run("read", tmp_path / "t", "--json", "--incremental", f"{first}..{second}")
    assert ids(out) == ["k00001"]
    _, out, _ = run("read", tmp_path / "t", "--json", "--incremental", f"{first}..", "--where", "id = 'k00002'")
    assert ids(out) == ["k00002"]
    _, out, _ = run("read", tmp_path / "t", "--json", "--columns", "id", "--incremental", "earliest")
    assert ids(out) == ["k00000", "k00001", "k00002", "k00003"]


def test_a_range_goes_with_no_other_time(run, tmp_path):
    hf.write(plain_rows([1]), tmp_path / "t", options())
    for more in (["--as-of", "2024-01-31"], ["--query", "read_optimized"]):
        code, _, told = run("read", tmp_path / "t", "--incremental", "earliest", *more)
        assert code == 2
        assert "--incremental cannot be combined with --as-of or --query" in " ".join(told.split())
    code, _, told = run("read", tmp_path / "t", "--incremental", "yesterday")
    assert code == 1
    assert "Unsupported query instant time format" in told
