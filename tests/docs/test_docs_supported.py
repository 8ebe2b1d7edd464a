"""The tables of what is supported: each row names tests that exist, and says why where it refuses something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "supported.md").read_text(encoding="utf-8")
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")
REASON = re.compile(r"refused(?:: [\w\[]|, as above$| until )")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for title in ("Tables", "Features")
    for line in PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0].splitlines()
    if line.startswith("| ")
]


def test_the_tables_are_found() -> None:
    assert [row[-1] for row in ROWS].count("tests") == 2
    assert len(ROWS) > 60
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("row", [row for row in ROWS if row[-1] != "tests"], ids=lambda row: row[0][:50])
def test_a_row_names_tests_that_exist(row: list[str]) -> None:
    named = LINK.findall(row[-1])
    assert named, "Name the test modules that prove the row, as in the rows around it."
    for target in named:
        module = DOCS / target
        assert module.name.startswith("test_"), target
        assert re.search(r"^def test_", module.read_text(encoding="utf-8"), re.MULTILINE), target


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" in row[1] + row[2]], ids=lambda row: row[0][:50])
def test_a_refusal_has_a_reason(row: list[str]) -> None:
    for answer in row[1:3]:
        assert "refused" not in answer or REASON.search(answer), answer
