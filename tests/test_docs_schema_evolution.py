"""The Python of the page on schema evolution runs as printed, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.schema import alter

PAGE = (Path(__file__).parents[1] / "docs" / "schema-evolution.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in BLOCK.findall(PAGE):
        exec(compile(code, "schema-evolution.md", "exec"), names)
        shown = capsys.readouterr().out.splitlines()
        said = SAID.findall(code)
        assert shown == said or not said, code
        assert shown
    table = names["table"]
    assert isinstance(table, hf.HudiTable)
    assert table.schema.names == ["id", "driver", "ts", "price", "city"]


def test_every_change_is_described() -> None:
    described = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    assert sorted(described) == sorted(name for name in alter.__all__ if name not in ("Change", "altered"))
