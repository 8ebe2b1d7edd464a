"""The Python of the pages on tasks runs as printed, and prints what it says."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", ["without-spark", "point-lookups"])
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    blocks = BLOCK.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 3
    for code in blocks:
        exec(compile(code, f"{page}.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code
