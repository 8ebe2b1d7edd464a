"""Print the lowest versions that pyproject.toml allows, as requirements for pip: ``>=17`` becomes ``==17.*``.

Usage: ``python .github/lowest_versions.py [EXTRA ...]``; without an extra the core's dependencies alone.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
BOUND = re.compile(r"^(?P<name>[\w.-]+(?:\[[\w,.-]+\])?)>=(?P<version>[\d.]+)")


def lowest_versions(extras: list[str]) -> list[str]:
    """Requirements of the core and of those extras, each at its lower bound."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    found = [BOUND.match(requirement) for requirement in wanted]
    missing = [requirement for requirement, match in zip(wanted, found, strict=True) if match is None]
    if missing:
        raise SystemExit(f"No lower bound in {PROJECT.name}: {', '.join(missing)}")
    return [f"{match['name']}=={match['version']}.*" for match in found if match is not None]


if __name__ == "__main__":
    print(" ".join(lowest_versions(sys.argv[1:])))
