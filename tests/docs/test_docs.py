"""The Python of every page in docs/ runs as printed and prints what it says; what pages name is there."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf
from hudi_fast.config.options import find_option
from hudi_fast.streamer.settings import STREAM_KEYS
from tests.docs.pages import FENCE, blocks_of, difference

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}
COLUMN, LONG_WORD = 104, 40
"""Characters that fit on a desktop (``docs/stylesheets/pages.css``), and of a name that a line cannot be broken in."""
WITH_SPARK = ("migrate", "streaming")
"""Pages of which every block needs a session."""
NO_OPTIONS = {
    *("hoodie.keygen", "hoodie.metadata", "hoodie.streamer", "hoodie.deltastreamer"),
    *(f"hoodie.properties{each}" for each in ("", ".backup", ".updated")),
}


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A page configures logging for its readers."""
    root, own = logging.getLogger(), logging.getLogger("hudi_fast")
    before = list(root.handlers), root.level, own.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    own.setLevel(before[2])


def blocks(page: str, spark: bool) -> list[str]:
    """The blocks of a page that need no session; with ``spark`` all blocks, if one of them needs a session."""
    found = [block for block in blocks_of(PAGES[page]) if block.language == "python"]
    without = [block for block in found if not block.spark and page not in WITH_SPARK]
    chosen = without if not spark else found if len(without) < len(found) else []
    return [block.code for block in chosen]


def run(page: str, codes: list[str], names: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    for code in codes:
        program = compile(code, f"{page}.md", "exec")
        for left in (2, 1, 0):
            try:
                exec(program, names)
                break
            except Exception as error:  # a busy machine takes longer than Spark gives a Python source to start
                if left == 0 or "failed to connect back" not in str(error):
                    raise
                capsys.readouterr()
        assert difference(code, capsys.readouterr().out) == "", code


def is_of_the_streamer(key: str) -> bool:
    if key.removeprefix("hoodie.errortable.") in ("base.path", "target.table.name"):
        return True
    name = key.removeprefix("hoodie.streamer.")
    return name != key and (name in STREAM_KEYS or name.startswith(("csv.", "transformer.sql.")))


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(page for page in PAGES if blocks(page, spark=False)))
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run(page, blocks(page, spark=False), {"__name__": "page"}, capsys)


@pytest.mark.parametrize("page", sorted(page for page in PAGES if blocks(page, spark=True)))
def test_the_blocks_for_spark_run(page, spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The working folder of a JVM is the one that it began in.
    placed = [
        re.sub(r'"(tables/\w+|checkpoints/\w|incoming)"', rf'"{tmp_path}/\1"', code) for code in blocks(page, True)
    ]
    spark.createDataFrame([(0,)], "number int")  # Spark looks for sources in the session that a thread used last
    run(page, placed, {"spark": spark}, capsys)
    hf.accelerate(spark, False)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_code_fits_the_column_of_a_desktop(page):
    codes = [code for language, code in FENCE.findall(PAGES[page]) if language != "json"]
    lines = [line for code in codes for line in code.split("\n")]
    assert [one for one in lines if len(one) > COLUMN and all(len(word) < LONG_WORD for word in one.split())] == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_option_that_a_page_names_is_one(page):
    named = {key.rstrip(".") for key in re.findall(r"`((?:hoodie|hudi_fast)\.[a-zA-Z_.]+)(?:=[^`]*)?`", PAGES[page])}
    options = {key for key in named if key.startswith("hoodie.")} - NO_OPTIONS
    assert [key for key in sorted(options) if find_option(key) is None and not is_of_the_streamer(key)] == []
