"""docs/streaming.md: its programs run as printed, and the options that it names are there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hudi_fast.config.options import find_option
from hudi_fast.spark.streaming.checkpoints import CHECKPOINT_KEY

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "streaming.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_programs_print_what_the_page_says(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rides = [{"id": f"r{number}", "city": "Oslo", "ts": number, "fare": 10.0 + number} for number in range(1, 4)]
    (tmp_path / "rides").mkdir()
    (tmp_path / "rides" / "1.json").write_text("\n".join(map(json.dumps, rides)))
    names = {"spark": spark}
    blocks = BLOCK.findall(TEXT)
    assert len(blocks) == 3
    for code in blocks:
        placed = re.sub(r'"(tables/\w+|checkpoints/\w|rides)"', lambda found: f'"{tmp_path}/{found[1]}"', code)
        exec(compile(placed, "streaming.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code


def test_the_options_that_the_page_names_are_options():
    named = re.findall(r"`((?:hoodie|hudi_fast)\.[a-zA-Z_.]+)`", TEXT)
    assert len(named) > 10
    assert [key for key in named if find_option(key) is None] == []
    assert CHECKPOINT_KEY in TEXT
