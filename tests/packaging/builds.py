"""Build this checkout with the standard tools, without the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CHECKOUT", "build_sdist", "build_wheel", "copy_package", "leave_few_kernels", "run"]

CHECKOUT = Path(__file__).parents[2]
FEW = """

_every_kernel = all_kernels


def all_kernels() -> list[Kernel[..., Any]]:
    return [one for one in _every_kernel() if one.function.__name__.startswith(("list_hash", "string_hash"))]
"""


def run(command: Sequence[object], folder: Path, **environment: str) -> str:
    """The standard output of a command that runs in ``folder``; fails with its error output if it fails."""
    variables = os.environ | environment
    done = subprocess.run([*map(str, command)], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def build_wheel(sources: Path, folder: Path, **environment: str) -> Path:
    """The wheel of a source tree, in ``folder``; without compiled kernels, unless the environment asks for them."""
    environment = {"HUDI_FAST_COMPILE_KERNELS": "none"} | environment
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*pip, "--wheel-dir", folder, "."], sources, **environment)
    (found,) = folder.glob("*.whl")
    return found


def build_sdist(sources: Path, folder: Path) -> Path:
    """The source distribution of a source tree, in ``folder``."""
    run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, "."], sources)
    (found,) = folder.glob("*.tar.gz")
    return found


def copy_package(folder: Path) -> Path:
    """A copy of the package without compiled kernels, in a folder for ``PYTHONPATH``; returns the folder."""
    left_out = shutil.ignore_patterns("__pycache__", "_compiled", "kernels")
    shutil.copytree(CHECKOUT / "hudi_fast", folder / "hudi_fast", ignore=left_out)
    shutil.copytree(CHECKOUT / "kernels", folder / "hudi_fast" / "kernels", ignore=left_out)
    return folder


def leave_few_kernels(kernels: Path) -> None:
    """Let a copy of the kernels' folder declare few of them. All take forty seconds to compile."""
    with open(kernels / "_kernel.py", "a") as file:
        file.write(FEW)
