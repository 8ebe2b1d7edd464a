"""``hudi-fast schema`` and ``hudi-fast properties``."""

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


def test_properties_are_shown_set_and_removed(run, path):
    code, out, err = run("properties", path)
    assert (code, err) == (0, "")
    assert "hoodie.table.name" in out
    code, out, _ = run("properties", path, "owner=city team", "days=30", "--json")
    assert code == 0
    assert json.loads(out)["properties"] == {"owner": "city team", "days": "30"}
    _, out, _ = run("properties", path, "--unset", "days", "--json")
    assert json.loads(out)["properties"] == {"owner": "city team"}
    for wrong, said in (("owner", "is not KEY=VALUE"), ("hoodie.table.type=x", "describes how the files")):
        code, _, err = run("properties", path, wrong)
        assert code != 0
        assert said in err
    assert hf.HudiTable.open(path).config.raw["owner"] == "city team"
