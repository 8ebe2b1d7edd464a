"""The documentation site builds without warnings, and the paths and names that pages and docstrings mention exist."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hudi_fast as hf

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / ".github").rglob("*.md")]
SOURCES = [
    path for name in ("hudi_fast", "kernels", "tests", "benchmarks", "demo") for path in (ROOT / name).rglob("*.py")
]
TOP = ("hudi_fast", "kernels", "docs", "tests", "benchmarks", "demo", "typings", ".github")
"""Folders of the repository: what begins with one of them and a slash is a path."""
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
LOOKS_LIKE_A_PATH = re.compile(
    rf"(?:(?:{'|'.join(map(re.escape, TOP))})/[\w./*-]*|[\w./-]+/[\w.-]+\.(?:py|md))(?:::\w+)?"
)
NAMED_IN_TEXT = re.compile(rf"(?<![\w/.`-])(?:{'|'.join(map(re.escape, TOP))})/[\w./-]+\.(?:py|md|json|toml|yml)\b")
BETWEEN_LITERALS = re.compile(r"""["']\s*\n\s*[frb]*["']""")
"""Between two literals that Python joins to one text."""
HISTORY = ("CHANGELOG.md",)
"""Pages that may name what was there once."""


@functools.cache
def exists(name: str) -> bool:
    """Whether a path is in the repository; pages on the architecture leave out the package's own folder."""
    name = name.partition("::")[0].rstrip("/")
    if "*" in name:
        return any(ROOT.glob(name))
    return (ROOT / name).exists() or (name.endswith(".py") and (ROOT / "hudi_fast" / name).exists())


def docstrings(path: Path) -> Iterator[str]:
    """Every docstring of a module, those below attributes included; of the package also the texts of its messages."""
    with_messages = path.is_relative_to(ROOT / "hudi_fast")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found = node.value if isinstance(node, ast.Expr) else node if with_messages else None
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            yield found.value


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site" / "reference" / "table" / "index.html").read_text(encoding="utf-8")
    assert 'id="hudi_fast.HudiTable.to_arrow"' in page
    assert 'id="hudi_fast.HudiTable.merge"' in page
    assert "Usage: hudi-fast info" in (tmp_path / "site" / "reference" / "cli" / "index.html").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "site" / "pictures" / "timeline.svg").exists()
    listed = (tmp_path / "site" / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith("- [") for line in listed) == len(list(DOCS.rglob("*.md")))
    assert any(line.startswith("- [Cleaning](https://") and ": " in line.partition(")")[2] for line in listed)
    assert "## Faster workers" in (tmp_path / "site" / "llms-full.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_a_page_names_exist(page: Path) -> None:
    if page.name in HISTORY:
        return
    named = IN_BACKTICKS.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if LOOKS_LIKE_A_PATH.fullmatch(name) and not exists(name)] == []


def test_paths_that_docstrings_name_exist() -> None:
    missing = []
    for path in SOURCES:
        if missing_paths(BETWEEN_LITERALS.sub("", path.read_text(encoding="utf-8"))):  # to parse all takes seconds
            missing += [(path, name) for text in docstrings(path) for name in missing_paths(text)]
    assert missing == []


def missing_paths(text: str) -> list[str]:
    """Paths that a text names and that do not exist."""
    named = [name for name in IN_BACKTICKS.findall(text) if LOOKS_LIKE_A_PATH.fullmatch(name)]
    return [name for name in [*named, *NAMED_IN_TEXT.findall(text)] if not exists(name)]


def test_the_patterns_find_paths() -> None:
    for name in (
        "hudi_fast/writing/flow.py",
        "docs/errors.md",
        "tests/naive",
        "timeline/heartbeat.py",
        "tests/x.py::test",
    ):
        assert LOOKS_LIKE_A_PATH.fullmatch(name), name
    for name in ("tables/trips", ".hoodie/timeline", "s3://lake/trips", "hoodie.table.name", "text/plain", "hf.write"):
        assert not LOOKS_LIKE_A_PATH.fullmatch(name), name
    assert NAMED_IN_TEXT.findall("see docs/errors.md, or tests/naive/merge.py.") == [
        "docs/errors.md",
        "tests/naive/merge.py",
    ]
    assert not exists("docs/nothing.md")
    assert missing_paths(BETWEEN_LITERALS.sub("", 'f("see docs/no"\n    f"thing.md")')) == ["docs/nothing.md"]
    assert exists("tests/docs/test_docs_site.py::test_the_patterns_find_paths")


def test_every_public_name_is_in_the_reference() -> None:
    described = [
        name
        for page in REFERENCE.glob("*.md")
        for name in re.findall(r"^::: hudi_fast\.(\w+)$", page.read_text(), re.M)
    ]
    assert sorted(described) == sorted(hf.__all__)


def test_every_command_is_in_the_reference() -> None:
    from hudi_fast.cli.main import cli

    rows = re.findall(r"^\| `([\w-]+)` \|", (REFERENCE / "cli.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(cli.commands)
    for command, option in re.findall(
        r"^hudi-fast (\w+) .*?(--[a-z-]+)", (REFERENCE / "cli.md").read_text(), re.MULTILINE
    ):
        options = {name for parameter in cli.commands[command].params for name in parameter.opts}
        assert option in options, (command, option)


def test_pictures_are_readable_in_light_and_dark() -> None:
    pictures = sorted(path.name for path in (DOCS / "pictures").glob("*.svg"))
    shown = {name for page in DOCS.glob("*.md") for name in re.findall(r"\(pictures/([\w-]+\.svg)\)", page.read_text())}
    assert pictures == sorted(shown)
    for name in pictures:
        text = (DOCS / "pictures" / name).read_text(encoding="utf-8")
        assert "prefers-color-scheme: dark" in text, name
        assert "<title" in text, name
        assert "<desc" in text, name
