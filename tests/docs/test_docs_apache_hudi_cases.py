"""The page of cases in which Apache Hudi fails: each names a test that exists, and each test of the module is on it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/apache-hudi-cases.md").read_text(encoding="utf-8")
MODULE = "tests/interop/test_interop_apache_hudi_cases.py"
CASES = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
TEST = re.compile(r"^- Test: `([\w/.]+)::(\w+)`$", re.MULTILINE)
PARTS = ("Release", "Script", "Hudi", "Right", "Test")


@cache
def names_in(module: str) -> set[str]:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_the_page_has_cases() -> None:
    assert len(CASES) > 30


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_case_says_all_and_names_a_test_that_exists(case: str) -> None:
    text = CASES[case]
    assert tuple(part for part in PARTS if f"\n- {part}: " in f"\n{text}" or f"\n- {part}:\n" in f"\n{text}") == PARTS
    ((module, name),) = TEST.findall(text)
    assert name in names_in(module)


def test_each_test_of_the_module_is_on_the_page() -> None:
    named = [name for text in CASES.values() for module, name in TEST.findall(text) if module == MODULE]
    assert len(named) == len(set(named))
    assert set(named) == names_in(MODULE)
