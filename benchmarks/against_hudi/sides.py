"""Runs the script of a side in a process of its own, under the interpreter that has what the side needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["SIDES", "run_side"]

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
PYTHONS = {"hudi": PROJECT / ".venv-hudi" / "bin" / "python"}
SCRIPTS = {
    "hudi": "hudi_side.py",
    "hudi_rs": "hudi_rs_side.py",
    "local": "our_side.py",
    "spark": "our_side.py",
    "spark_rows": "our_side.py",
}
SIDES = tuple(SCRIPTS)
ALLOCATOR = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"}
"""As docs/without-spark.md advises, and as the command and Spark's workers have it by themselves."""


def run_side(side: str, arguments: dict[str, Any], scratch: Path, version: str = "1.2.0") -> dict[str, Any]:
    """The JSON that the script of a side prints.

    Args:
        side: one of :data:`SIDES`.
        arguments: of the command line, without dashes; those that are None are left out.
        scratch: folder in which the script runs; its standard error is kept there.
        version: Apache Hudi's release.
    """
    command = [str(PYTHONS.get(side, sys.executable)), str(HERE / SCRIPTS[side])]
    for name, value in arguments.items():
        if value is not None:
            command += [f"--{name}", str(value)]
    command += ["--version", version] if side == "hudi" else ["--engine", side]
    Path(arguments["out"]).parent.mkdir(parents=True, exist_ok=True)
    log = scratch / f"{side}.log"
    environment = {**ALLOCATOR, **os.environ} if side == "local" else None
    with open(log, "wb") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, cwd=scratch, env=environment, check=False)
    if done.returncode:
        tail = log.read_bytes()[-4000:].decode(errors="replace")
        raise SystemExit(f"{' '.join(command)}\nexited with {done.returncode}; last lines of {log}:\n{tail}")
    return dict(json.loads(done.stdout))
