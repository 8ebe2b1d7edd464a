"""The Python of the page on schema evolution runs as printed, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

from hudi_fast.schema import alter

PAGE = (Path(__file__).parents[2] / "docs" / "schema-evolution.md").read_text(encoding="utf-8")


def test_every_change_is_described() -> None:
    described = re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)
    assert sorted(described) == sorted(name for name in alter.__all__ if name not in ("Change", "altered"))
