"""Every source module has a test module that its name leads to.

A test module covers a source module if it imports it, if it lies in the folder of that name and is named after it
(``writing/output_file.py``: ``tests/writing/test_writing_key_footer.py``), or if its docstring names it in full because
the tests call it through the public interface (``Modules: hudi_fast.spark.dml``).
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
COMMON = {"columns", "engine", "entry", "plan", "query", "read", "rows", "run", "table", "verbs", "values", "work"}


DEFINITION = re.compile(r"^(?:async def |def |class |@)", re.MULTILINE)
DOCSTRING = re.compile(r'\A"""(.*?)"""', re.DOTALL)
TEXT = re.compile(r'""".*?"""', re.DOTALL)
IMPORT = re.compile(r"^\s*(?:from (hudi_fast[\w.]*) import (\([^)]*\)|.*)|import (hudi_fast[\w.]*))", re.MULTILINE)


def is_reexport(path: Path) -> bool:
    """Whether a module defines nothing but aliases of types."""
    text = path.read_text(encoding="utf-8")
    if DEFINITION.search(text):
        return False
    plain = (ast.Import, ast.ImportFrom, ast.Expr)
    return all(
        isinstance(node, plain)
        or (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias")
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in ast.parse(text).body
    )


@cache
def source_modules() -> dict[str, Path]:
    """Modules of the package and of the kernels by their full names, without packages and mere aliases."""
    found = {}
    for folder, prefix in ((ROOT / "hudi_fast", "hudi_fast"), (ROOT / "kernels", "hudi_fast.kernels")):
        for path in folder.rglob("*.py"):
            if path.name != "__init__.py" and not is_reexport(path):
                found[".".join((prefix, *path.relative_to(folder).with_suffix("").parts))] = path
    return dict(sorted(found.items()))


@cache
def texts_of_tests() -> dict[Path, str]:
    """The text of each test module. Regular expressions read it, because parsing all of them takes ten seconds."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}


def docstring(text: str) -> str:
    """The docstring of a module."""
    found = DOCSTRING.match(text)
    return found[1] if found else ""


def imported(text: str) -> set[str]:
    """Modules of the package that a module imports, and names in them that may be modules.

    Imports in programs that a test holds as text do not count.
    """
    names = set()
    for source, listed, module in IMPORT.findall(TEXT.sub("", text)):
        words = re.findall(r"(\w+)(?: as \w+)?", re.sub(r"#.*", "", listed))
        names |= {source or module, *(f"{source}.{word}" for word in words)}
    return names


@cache
def covered_by_content() -> dict[str, set[str]]:
    """Source modules that test modules import or name in their docstrings, with these test modules."""
    found: dict[str, set[str]] = {}
    for path, text in texts_of_tests().items():
        names = imported(text) | set(re.findall(r"hudi_fast(?:\.\w+)+", docstring(text)))
        for name in names & source_modules().keys():
            found.setdefault(name, set()).add(path.relative_to(TESTS).as_posix())
    return found


def covered_by_name(name: str) -> set[str]:
    """Test modules in the folder of a source module, or at the top, whose name has the name of the module.

    A common name, such as ``plan``, counts behind the name of its folder.
    """
    _, *folders, stem = name.split(".")
    words = stem.strip("_")
    if words in COMMON and len(folders) > 1:
        words = f"{folders[-1]}_{words}"
    candidates = TESTS.joinpath(*folders[:1]).glob("test_*.py")
    return {path.relative_to(TESTS).as_posix() for path in candidates if f"_{words}_" in f"{path.stem}_"}


def covering(name: str) -> set[str]:
    """Test modules of a source module."""
    return covered_by_content().get(name, set()) | covered_by_name(name)


def test_modules_are_found() -> None:
    assert len(source_modules()) > 400
    assert "writing/test_writing_key_footer.py" in covering("hudi_fast.writing.output_file")
    assert covering("hudi_fast.writing.no_such_module") == set()


def test_a_module_has_a_test_module() -> None:
    assert [name for name in source_modules() if not covering(name)] == [], (
        "No test module imports these or is named after them. Add a test of their behaviour; if tests call them "
        "through the public interface alone, name the module in the docstring of theirs."
    )


def test_docstrings_name_modules_that_exist() -> None:
    wrong = []
    for path, text in texts_of_tests().items():
        for names in re.findall(r"^Modules: (.*?)(?:\.$|\Z)", docstring(text).rstrip(), re.MULTILINE | re.DOTALL):
            named = re.split(r",\s+", names.strip())
            wrong += [f"{path.relative_to(ROOT)} names {one}" for one in named if one not in source_modules()]
    assert wrong == []
