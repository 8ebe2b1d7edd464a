"""README.md: its Python runs as printed, it stays short, and its links and those of the other pages lead to files."""

import re
from pathlib import Path

import pytest

import hudi_fast
from tests.docs.pages import blocks_of, said_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = [block for block in blocks_of(README) if block.language == "python"]
LOCAL = [block.code for block in PYTHON if not block.spark]
SPARK = [block.code for block in PYTHON if block.spark]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
MAX_LINES = 200


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
        assert capsys.readouterr().out.splitlines() == said_of(code)


def test_the_blocks_for_spark_run(scratch, spark, capsys):
    for code in SPARK:
        run(code, spark=spark)
    hudi_fast.accelerate(spark, False)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:1] not in ("+", "|", "")] == said_of("".join(SPARK)) == ["2 driver", "2"]
    assert [line for line in lines if line.startswith("|")] == ["| id|fare|", "|  1|10.5|"]


def test_there_are_blocks_of_both_kinds():
    assert (len(LOCAL), len(SPARK)) == (1, 1)
    assert said_of(LOCAL[0]) == ["1 1", "2", "4 4"]


def test_the_page_is_short():
    assert len(README.splitlines()) <= MAX_LINES


def test_it_begins_with_the_two_commands():
    assert re.findall(r"^make (\w+) ", README.split("\n## ")[0], re.MULTILINE) == ["demo", "test"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
