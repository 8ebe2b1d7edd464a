"""Pages run in environments that have the installs of the page alone, and these installs cover what the pages import.

:mod:`tests.docs.fresh_pages` makes the environments, and :mod:`tests.docs.pages` runs a page.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.docs.fresh_pages import CACHE, PAGES, requirements_of, run_fresh, wheel_of_checkout
from tests.docs.pages import blocks_of, commands_of, difference, installs_of, run_page
from tests.packaging.builds import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
WITH_SPARK = re.compile(r"hudi-fast\[.*\bspark\b.*\]")


def distribution(requirement: str) -> str:
    """The name that a requirement begins with, as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def extras_of(requirement: str) -> list[str]:
    return re.findall(r"[\w-]+", requirement.partition("[")[2].partition("]")[0])


def distributions(requirements: Iterable[str]) -> set[str]:
    """What requirements install by their names: the project brings its dependencies and those of its extras."""
    found = set()
    for requirement in requirements:
        found.add(distribution(requirement))
        if distribution(requirement) == "hudi-fast":
            found |= distributions(PROJECT["dependencies"])
            for extra in extras_of(requirement):
                found |= distributions(EXTRAS[extra])
    return found


def imported(text: str) -> set[str]:
    """The packages that the Python of a page imports, without Python's own."""
    found = set()
    for block in blocks_of(text):
        for node in ast.walk(ast.parse(block.code)) if block.language == "python" else ():
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names


@cache
def owners() -> dict[str, set[str]]:
    """The distributions that have a package, for each package of this environment."""
    return {name: set(map(distribution, own)) for name, own in packages_distributions().items()} | {
        "hudi_fast": {"hudi-fast"}
    }


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_installs_of_a_page_cover_what_it_imports(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    installs = installs_of(text)
    assert any(distribution(one) == "hudi-fast" for one in installs), "The page needs a line `pip install hudi-fast`."
    assert {extra for one in installs for extra in extras_of(one) if distribution(one) == "hudi-fast"} <= {*EXTRAS}
    installed = distributions(installs)
    assert {name for name in imported(text) if not owners().get(name, set()) & installed} == set()


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=name, marks=[pytest.mark.jvm] * bool(WITH_SPARK.search(path.read_text(encoding="utf-8"))))
        for name, path in PAGES.items()
    ],
)
def test_a_page_runs_where_only_its_installs_are(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("jvm"):
        request.getfixturevalue("java")
    assert run_fresh(page, tmp_path, wheel_of_checkout(CACHE), CACHE) == ""


# ---- the runner


def test_installs_are_those_of_commands_and_python_is_none() -> None:
    text = """
```sh
pip install 'hudi-fast[s3,sql]' polars   # remarks are left out
mkdir a
```
```
python -m pip install '.[spark]'
```
```python
pip = "pip install duckdb"
```
```sh title="Dockerfile"
pip install pandas
```
"""
    assert installs_of(text) == ("hudi-fast[s3,sql]", "polars", "hudi-fast[spark]")
    assert [(one.language, commands_of(one), one.line) for one in blocks_of(text)] == [
        ("sh", "mkdir a", 3),
        ("python", 'pip = "pip install duckdb"', 10),
    ]


def test_the_wheel_takes_the_place_of_the_project() -> None:
    wheel = Path("/wheels/hudi_fast-1.whl")
    own = "hudi-fast[s3,spark,sql] @ file:///wheels/hudi_fast-1.whl"
    assert requirements_of(("hudi-fast[sql,s3]", "polars", "hudi-fast[spark]"), wheel) == [own, "polars"]
    assert requirements_of(("hudi-fast",), wheel) == ["hudi-fast @ file:///wheels/hudi_fast-1.whl"]
    assert requirements_of((), wheel) == []


def test_printed_lines_are_compared_with_comments() -> None:
    code = "print(1)  # 1\nframe.show()\nprint('# 2')          # # 2\n"
    assert difference(code, "1\n+--+\n| a|\n+--+\n\n# 2\n") == ""
    assert difference(code, "1\n# 3\n") == "The page says ['1', '# 2'], and the block printed ['1', '# 3']."
    assert difference("print(1)\n", "1\n") == ""


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (
            "```python\nprint(count + 1)  # 4\n```",
            r"page\.md:9: The page says \['4'\], and the block printed \['3'\]\.",
        ),
        ("```python\nimport no_such_package\n```", r'page\.md", line 9(.|\n)+ModuleNotFoundError'),
        ("```sh\ntest -f there\nhudi-fast-not\necho late\n```", r"page\.md:9: exit code 127\n.*not found"),
        ("```py\n1 / 0\n```", "^$"),
        ("```python spark\nprint(count)  # 2\n```", "^$"),
    ],
)
def test_a_page_runs_up_to_the_block_that_fails(
    block: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"```sh\npip install x\ntouch there\n```\n```python\ncount = 2\n```\n{block}\n")
    assert re.search(reason, run_page(page))
