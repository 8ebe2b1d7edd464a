"""docs/migrate.md: its program runs as printed."""

import re
from pathlib import Path

import hudi_fast as hf

TEXT = (Path(__file__).parents[2] / "docs" / "migrate.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def test_the_program_prints_what_the_page_says(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark.newSession()}
    blocks = BLOCK.findall(TEXT)
    assert len(blocks) == 3
    for code in blocks:
        exec(compile(code, "migrate.md", "exec"), names)
        assert capsys.readouterr().out.splitlines() == SAID.findall(code), code


def test_every_name_of_the_page_is_there():
    names = set(re.findall(r"`hf\.([a-z_]+)", TEXT)) | set(re.findall(r"`hudi_fast\.(accelerate)`", TEXT))
    assert {"accelerate", "merge", "sink"} <= names
    assert [name for name in names if not hasattr(hf, name)] == []
