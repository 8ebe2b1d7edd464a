"""``hudi-fast schema``."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import hudi_fast as hf
from tests.cli.answers import lines
from tests.support.small_tables import options, plain_rows


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t"
    hf.write(plain_rows(range(2)), path, options())
    return path


def test_columns_and_changes_are_shown(run, path):
    code, out, err = run("schema", path)
    assert (code, err) == (0, "")
    assert "Changes" not in out
    table = hf.HudiTable.open(path)
    table.alter(hf.AddColumn("extra", pa.int32()))
    table.alter(hf.RenameColumn("extra", "more"))
    code, out, err = run("schema", path)
    assert (code, err) == (0, "")
    (renamed,) = [line for line in out.splitlines() if "renamed" in line]
    assert "extra" in renamed
    assert "more" in renamed


def test_everything_is_there_as_json(run, path):
    hf.HudiTable.open(path).alter(hf.AddColumn("extra", pa.int32()))
    _, out, _ = run("schema", path, "--json")
    found = json.loads(out)
    assert found["schema"][-1] == {"name": "extra", "type": "int32", "nullable": True}
    assert [(one["change"], one["column"], one["after"]) for one in found["changes"]] == [("added", "extra", "int")]
    _, out, _ = run("schema", path, "--ids", "--json")
    versions = lines(out)
    assert {one["version"] for one in versions} > {"0"}
    assert [one["column"] for one in versions if one["version"] != "0"][-1] == "extra"
