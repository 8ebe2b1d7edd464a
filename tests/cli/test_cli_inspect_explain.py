"""What a condition leaves out, on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_fast as hf
from hudi_fast.cli.main import main
from tests.cli.answers import lines

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.index.bloom.num_entries": "100",
}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for first in (0, 10):
        hf.write(pa.table({"id": pa.array(range(first, first + 10))}), tmp_path / "t", OPTIONS)
    return tmp_path / "t"


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    monkeypatch.setattr(sys, "argv", ["hudi-fast", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        main()
    captured = capsys.readouterr()
    assert (left.value.code, captured.err) == (0, "")
    return captured.out


def test_explain_and_files_tell_what_a_condition_reads(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lines(run(monkeypatch, capsys, "explain", table, "--where", "id > 15", "--json"))
    assert [(row["index"], row["before"], row["after"]) for row in rows] == [("column_stats", 2, 1), ("read", 1, 1)]
    assert "column_stats" in run(monkeypatch, capsys, "explain", table, "--where", "id > 15")
    assert len(lines(run(monkeypatch, capsys, "files", table, "--where", "id > 15", "--json"))) == 1


def test_info_lists_the_metadata_table(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = json.loads(run(monkeypatch, capsys, "info", table, "--json"))["stats"][0]
    assert {one["partition"]: one["usable"] for one in stats["metadata_table"]} == {"column_stats": True, "files": True}
    assert "Metadata table" in run(monkeypatch, capsys, "info", table)
