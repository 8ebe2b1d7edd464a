"""The README's Python runs as printed; blocks that need Spark say so on their first line."""

import re
from pathlib import Path

import pytest

import hudi_fast

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python(?P<spark> spark)?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LOCAL = [match["code"] for match in BLOCK.finditer(README) if match["spark"] is None]
SPARK = [match["code"] for match in BLOCK.finditer(README) if match["spark"] is not None]


def run(code, **names):
    exec(compile(code, "README.md", "exec"), names)
    return names


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_without_spark_runs_in_the_order_of_the_page(scratch, capsys):
    for code in LOCAL:
        run(code)
    shown = capsys.readouterr().out
    assert shown.startswith("1 1\n")
    assert "\n2 2\n" in shown
    assert "\n1\n3\n['u', 'i', 'u']\n['cog']\n[(2,)]\n" in shown
    assert f"No Hudi table at {scratch}/no-such-table" in shown


def test_the_blocks_for_spark_run(scratch, spark, capsys):
    for code in SPARK:
        run(code, spark=spark)
    hudi_fast.accelerate(spark, False)
    assert capsys.readouterr().out.startswith("2 driver\n")


def test_there_are_blocks_of_both_kinds():
    assert (len(LOCAL), len(SPARK)) == (8, 2)


def test_links_to_files_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
