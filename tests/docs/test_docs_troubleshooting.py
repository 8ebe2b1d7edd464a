"""docs/troubleshooting.md names every column and every kind of finding that there is."""

from __future__ import annotations

import re
from pathlib import Path

from hudi_fast.reading.inspecting.history import HISTORY_SCHEMA
from hudi_fast.services.repairing.findings import FINDING_KINDS

TEXT = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()


def first_cells(section: str) -> list[str]:
    """What stands in backticks in the first column of the table of a section."""
    part = TEXT.split(f"## {section}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall("`([^`]+)`", cell)]


def test_every_column_of_the_history_is_described():
    assert sorted(first_cells("History")) == sorted(HISTORY_SCHEMA.names)


def test_every_kind_of_finding_is_described():
    assert first_cells("Repair") == list(FINDING_KINDS)
