"""docs/change-feed.md: its programs run as printed, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "change-feed.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_programs_print_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = BLOCK.findall(TEXT)
    assert blocks
    for code in blocks:
        exec(compile(code, "change-feed.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code


def test_every_option_that_the_page_names_is_listed():
    listed = (DOCS / "options.md").read_text(encoding="utf-8")
    for key in re.findall(r"`(hoodie\.[a-z_.]+[a-z])(?:=[^`]*)?`", TEXT):
        assert f"`{key}`" in listed, key
