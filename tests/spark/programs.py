"""Run a program of this folder in a process of its own, with a Spark session of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.jvm import java_options, pyspark_jars

__all__ = ["PROJECT", "environment_of", "run_program"]

PROJECT = Path(__file__).parents[2]


def environment_of(
    python: str | os.PathLike[str] = sys.executable, workers: str | os.PathLike[str] | None = None
) -> dict[str, str]:
    """The environment of such a process.

    Args:
        python: its interpreter.
        workers: the interpreter of Spark's workers; None for the same.
    """
    jars = pyspark_jars() if str(python) == sys.executable else None
    return {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "PYSPARK_PYTHON": str(workers or python),
        "PYTHONWARNINGS": "ignore",
        "SPARK_SUBMIT_OPTS": java_options(768, jars),
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
        command, env=environment_of(python, workers), capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return done.stdout.splitlines()
