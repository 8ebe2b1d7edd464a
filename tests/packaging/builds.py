"""Build this checkout with the standard tools, without the network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CHECKOUT", "build_sdist", "build_wheel", "run"]

CHECKOUT = Path(__file__).parents[2]


def run(command: Sequence[object], folder: Path, **environment: str) -> str:
    """The standard output of a command that runs in ``folder``; fails with its error output if it fails."""
    variables = os.environ | environment
    done = subprocess.run([*map(str, command)], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build_wheel(sources: Path, folder: Path, **environment: str) -> Path:
    """The wheel of a source tree, in ``folder``."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*pip, "--wheel-dir", folder, "."], sources, **environment)
    (found,) = folder.glob("*.whl")
    return found


def build_sdist(sources: Path, folder: Path) -> Path:
    """The source distribution of a source tree, in ``folder``."""
    run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, "."], sources)
    (found,) = folder.glob("*.tar.gz")
    return found
