"""The pages on incremental queries and on time travel: their programs print what they say."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize(("page", "count"), [("incremental", 3), ("time-travel", 3)])
def test_the_programs_of_a_page_print_what_it_says(page, count, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) == count
    for code in blocks:
        exec(compile(code, f"{page}.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code


@pytest.mark.parametrize("page", ["incremental", "time-travel"])
def test_options_that_a_page_names_are_listed(page):
    listed = (DOCS / "options.md").read_text(encoding="utf-8")
    named = re.findall(r"`(hoodie\.[a-z_.]+[a-z])(?:=[^`]*)?`", (DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert [key for key in named if f"`{key}`" not in listed] == []
