"""Run a program of this folder in a process of its own, with a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run_program"]

HERE = Path(__file__).parent


def run_program(
    name: str, *arguments: object, python: str | os.PathLike[str] = sys.executable, seconds: float = 300
) -> list[str]:
    """The lines that the program printed; fails with its error output if it fails.

    Args:
        name: of a file in this folder, without its suffix.
        arguments: of the program.
        python: the interpreter, of Spark's workers too.
        seconds: how long it may take.
    """
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": str(python), "PYTHONWARNINGS": "ignore"}
    command = [str(python), str(HERE / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout.splitlines()
