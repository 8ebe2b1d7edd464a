"""Run a program of this folder in a process of its own, with a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.jvm import java_options

__all__ = ["PROJECT", "environment_of", "run_program"]

PROJECT = Path(__file__).parents[2]


def environment_of(python: str | os.PathLike[str] = sys.executable) -> dict[str, str]:
    """The environment of such a process; the interpreter is that of Spark's workers, too."""
    return {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": str(python),
        "PYTHONWARNINGS": "ignore",
        "SPARK_SUBMIT_OPTS": java_options(768),
    }


def run_program(
    name: str,
    *arguments: object,
    python: str | os.PathLike[str] = sys.executable,
    workers: str | os.PathLike[str] | None = None,
    seconds: float = 300,
) -> list[str]:
    """The lines that the program printed; fails with its error output if it fails.

    Args:
        name: of a module in this folder.
        arguments: of the program.
        python: the interpreter.
        workers: the interpreter of Spark's workers; None for the same.
        seconds: how long it may take.
    """
    command = [str(python), "-m", f"tests.spark.{name}", *map(str, arguments)]
    done = subprocess.run(
        command, env=environment_of(workers or python), capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout.splitlines()
