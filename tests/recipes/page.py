"""The files that ``docs/recipes.md`` prints: blocks with a title, which is the name of the file."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_docs import PAGES

__all__ = ["files_of_the_page", "put_file"]

FILE = re.compile(r'^```(?P<language>\w+) title="(?P<name>[\w.]+)"\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)


def files_of_the_page() -> dict[str, str]:
    """Text of each file by its name."""
    return {match["name"]: match["text"] for match in FILE.finditer(PAGES["recipes"])}


def put_file(name: str, folder: Path) -> Path:
    """Write a file of the page into a folder; returns its path."""
    path = folder / name
    path.write_text(files_of_the_page()[name], encoding="utf-8")
    return path
