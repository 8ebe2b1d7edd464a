"""Check the files of a release before they are published.

- The tag is ``v`` and the version of pyproject.toml.
- CHANGELOG.md has a dated section for the version.
- The wheel holds every file of the package that git tracks.

Usage: ``python .github/check_release.py TAG DIST``, in a checkout.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOVED = {"kernels/": "hudi_fast/kernels/"}
"""Folders of the repository that the wheel holds under another name."""


def problems(tag: str, dist: Path) -> list[str]:
    """What is wrong, one line each; empty if nothing is."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = []
    if tag != f"v{version}":
        found.append(f"The tag is {tag}; pyproject.toml says version {version}: expected the tag v{version}.")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}$"
    if not re.search(heading, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'.")
    wheels, sources = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) > 1:
        found.append(f"Expected one wheel and at most one source archive in {dist}, found {[*wheels, *sources]}.")
        return found
    missing = expected_files() - set(zipfile.ZipFile(wheels[0]).namelist())
    found += [f"{wheels[0].name} lacks {name}." for name in sorted(missing)]
    return found


def expected_files() -> set[str]:
    """Paths in the wheel of all files of the package that git tracks."""
    command = ["git", "ls-files", "hudi_fast", "kernels"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    names = set()
    for name in filter(None, tracked):
        moved = next((to + name.removeprefix(old) for old, to in MOVED.items() if name.startswith(old)), name)
        names.add(moved)
    return names


if __name__ == "__main__":
    lines = problems(sys.argv[1], Path(sys.argv[2]))
    print("\n".join(lines) or "The release is complete.")
    sys.exit(bool(lines))
