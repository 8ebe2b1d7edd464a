"""The page on bootstraps: its program runs as printed, and the options that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "bootstrap.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_program_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = BLOCK.findall(TEXT)
    assert len(blocks) == 3
    for code in blocks:
        exec(compile(code, "bootstrap.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code


def test_every_option_that_the_page_names_is_listed() -> None:
    listed = (DOCS / "options.md").read_text(encoding="utf-8")
    for key in re.findall(r"`(hoodie\.[a-z_.]+[a-z])(?:=[^`]*)?`", TEXT):
        assert f"`{key}`" in listed or key == "hoodie.properties", key
