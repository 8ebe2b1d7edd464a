"""The recipe for conda-forge has the versions and requirements of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "conda" / "recipe.yaml").read_text())
WRITTEN = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = WRITTEN["project"]


def spaced(requirement: str) -> str:
    """A requirement as conda writes it: ``numpy >=2.0``."""
    return re.sub(r"^([\w-]+)", r"\1 ", requirement)


def test_the_recipe_installs_what_the_project_requires() -> None:
    needed = [spaced(one) for one in PROJECT["dependencies"]]
    assert RECIPE["requirements"]["run"] == [f"python {PROJECT['requires-python']}", *needed]


def test_the_recipe_builds_with_what_a_build_requires() -> None:
    needed = {spaced(one) for one in WRITTEN["build-system"]["requires"]}
    assert needed | {f"python {PROJECT['requires-python']}", "pip"} == set(RECIPE["requirements"]["host"])


def test_the_recipe_names_the_project_as_it_is() -> None:
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert RECIPE["package"]["name"] == PROJECT["name"]
    about = RECIPE["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])
    assert about["homepage"] == PROJECT["urls"]["Homepage"]
    assert (ROOT / about["license_file"]).is_file()
