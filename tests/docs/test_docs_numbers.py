"""Numbers and lists on pages are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from hudi_fast.storage.option_names import TIMEOUT
from hudi_fast.writing.backend import Backend
from tests.test_layering import MAX_LINES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
WORDS = {4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine"}
FOR_DEVELOPERS = {"all", "demo", "docs", "dev"}


def page(name: str) -> str:
    return " ".join((ROOT / name).read_text().split())


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    return found


def test_the_verbs_of_a_backend_are_counted_and_named() -> None:
    verbs = [name for name, one in vars(Backend).items() if callable(one) and name[0] != "_"]
    text = page("docs/architecture.md")
    assert f"with the same {WORDS[len(verbs)]} verbs" in text
    assert " · ".join(verbs) in text
    part = text[text.index("**`Backend`**") : text.index("**`write_with_services`**")]
    assert [name for name in verbs if f"`{name}`" not in part] == []


def test_the_longest_module_is_that_of_the_rule() -> None:
    assert f"Modules are small: {MAX_LINES} lines at most" in page("CONTRIBUTING.md")


def test_the_extra_all_has_every_extra_for_users() -> None:
    (whole,) = extras()["all"]
    assert set(whole.removeprefix("hudi-fast[").removesuffix("]").split(",")) == extras().keys() - FOR_DEVELOPERS


def test_pages_name_extras_that_exist() -> None:
    named = {}
    for one in PAGES:
        text = one.read_text()
        lists = re.findall(r"hudi-fast\[([\w,-]+)\]", text) + re.findall(r"\bextra `([\w-]+)`", text)
        named[one.name] = {name for found in lists for name in found.split(",")} - extras().keys()
    assert {name: found for name, found in named.items() if found} == {}


def test_the_timeout_of_stores_is_that_of_the_code() -> None:
    assert f"`timeout` (seconds, {TIMEOUT:g})" in page("docs/object-stores.md")
    assert f"to wait for the first answer of a NameNode, {TIMEOUT:g} |" in page("docs/hdfs.md")
    assert f"`timeout` ({TIMEOUT:g} seconds)" in page("docs/errors.md")
