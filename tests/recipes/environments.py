"""Virtual environments with the tools of the recipes, beside hudi_fast of this checkout.

They are kept in ``artifacts/recipes``: a second run of the tests installs nothing.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ROOT", "make_environment"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "artifacts" / "recipes"


def make_environment(name: str, packages: Sequence[str]) -> Path:
    """An environment with some packages and all that hudi_fast needs, in versions that agree.

    Args:
        name: of its folder. The folder is made again where it was made for other packages.
        packages: requirements, as for pip.

    Returns:
        Its Python.

    Raises:
        subprocess.CalledProcessError: the packages cannot be installed together.
    """
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wanted = "\n".join([*packages, *own])
    folder = FOLDER / name
    python, stamp = folder / "bin" / "python", folder / "made-for.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        _install(python, [*packages, *own])
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "hudi_fast.pth").write_text(f"{ROOT}\n", encoding="utf-8")
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _install(python: Path, requirements: Sequence[str]) -> None:
    """uv needs a third of the time of pip. pip does it where uv cannot, as in the Makefile."""
    with_uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *requirements]
    if subprocess.run(with_uv, check=False).returncode != 0:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
