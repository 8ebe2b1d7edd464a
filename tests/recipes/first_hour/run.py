"""Five tasks of a newcomer, measured: how many commands and lines each takes, and how many seconds.

::

    a folder with CSV files ─► install.sh, first_rows.sh, daily_csv.sh ... ─► commands, lines, seconds, answer

Sides are hudi_fast, deltalake (delta-rs) and Apache Hudi's jar on Spark. A command is one of the ``.sh`` file of a
task, a line one of its Python file that is neither empty nor a comment. The last line that a task prints is its answer;
all sides must give the same.

Usage::

    .venv/bin/python -m tests.recipes.first_hour.run --scratch FOLDER [--wheel FILE] [--sides hudi_fast,deltalake]

Without ``--wheel`` the wheel of this checkout is built first, with compiled kernels, which takes a minute.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

import hudi_fast as hf
from tests.packaging.builds import CHECKOUT, build_wheel

__all__ = ["SIDES", "Measured", "build_own_wheel", "measure", "measure_move", "table_of", "tasks_of"]

HERE = Path(__file__).parent
SIDES = ("hudi_fast", "deltalake", "hudi_jar")
TASKS = {
    "install": "install",
    "first_rows": "first rows: create, upsert, read",
    "daily_csv": "upsert a CSV file of 12 000 rows into 100 000",
    "move_install": "move a Spark job: install",
    "move_job": "move a Spark job: check it, and run it for a day",
    "slow_read": "find why a read is slow, and make it fast",
    "undo": "undo a bad write",
}
ON_SPARK = ("move_install", "move_job")
"""Tasks of hudi_fast in an environment with PySpark, on the table of the same job with Hudi's jar."""
DAYS = ("1", "2", "bad")
ROWS, UPDATED, NEW = 100_000, 10_000, 2_000


class Measured(NamedTuple):
    """A task of a side.

    Attributes:
        task: its name.
        side: which.
        commands: how many.
        lines: of Python.
        seconds: of all commands, by the clock.
        work: of the processor, for all processes of the commands, in seconds.
        answer: the last line that they print.
    """

    task: str
    side: str
    commands: int
    lines: int
    seconds: float
    work: float
    answer: str


def make_files(folder: Path) -> None:
    """CSV files of two days, and one with wrong fares."""
    folder.mkdir(parents=True)
    for day, ids, factor in zip(
        DAYS, (range(ROWS), range(ROWS - UPDATED, ROWS + NEW), range(1000)), (1, 2, 400), strict=True
    ):
        keys = np.array(ids)
        columns = {"id": keys, "fare": (keys % 250) * 0.25 * factor, "ts": np.full(len(keys), DAYS.index(day))}
        pyarrow.csv.write_csv(pa.table(columns), folder / f"{day}.csv")


def make_slow_table(folder: Path) -> None:
    """A table of twenty files, each with fares from 0 to 1000."""
    options = {"hoodie.parquet.small.file.limit": 0}
    for number in range(20):
        keys = np.arange(5000) + 5000 * number
        rows = pa.table({"id": keys, "fare": (keys * 7919 % 100_003) / 100.0})
        hf.write(rows, folder / "many_fares", options, key="id", operation="insert")


def build_own_wheel(folder: Path, kernels: str = "native") -> Path:
    """The wheel of this checkout.

    Args:
        folder: for the wheel, and for a copy of the sources, which a build changes.
        kernels: ``HUDI_FAST_COMPILE_KERNELS``.
    """
    sources = folder / "sources"
    left_out = shutil.ignore_patterns("__pycache__", "_compiled")
    for name in ("hudi_fast", "kernels"):
        shutil.copytree(CHECKOUT / name, sources / name, ignore=left_out)
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy2(CHECKOUT / name, sources / name)
    return build_wheel(sources, folder / "wheel", HUDI_FAST_COMPILE_KERNELS=kernels)


def tasks_of(side: str) -> list[str]:
    """Tasks of a side in an environment without PySpark, or for ``hudi_jar`` with it."""
    found = [task for task in TASKS if (HERE / side / f"{task}.sh").exists()]
    return [task for task in found if side == "hudi_jar" or task not in ON_SPARK]


def commands_of(script: Path) -> int:
    """Commands of a shell script; one over several lines counts once."""
    lines = [line.strip() for line in script.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def lines_of(program: Path) -> int:
    """Lines of a Python program that are neither empty nor comments; none if there is no program."""
    if not program.exists():
        return 0
    lines = [line.strip() for line in program.read_text(encoding="utf-8").splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def measure(
    side: str, folder: Path, tasks: Sequence[str], variables: Mapping[str, str], venv: Path | None = None
) -> list[Measured]:
    """Do tasks of a side, in an empty folder.

    Args:
        side: one of :data:`SIDES`.
        folder: is made.
        tasks: in this order. ``undo`` needs ``daily_csv`` before it.
        variables: of the environment: ``HUDI_FAST``, the requirement that stands for ``hudi-fast``.
        venv: an environment that is there; it is not installed then.

    Raises:
        AssertionError: a command failed.
    """
    make_files(folder / "incoming")
    _copy(side, folder)
    if venv is not None:
        (folder / "venv").symlink_to(venv.absolute())
    found = []
    for task in tasks:
        if task == "install" and venv is not None:
            continue
        if task == "slow_read":
            make_slow_table(folder)
        if task == "undo":
            _run(side, folder, "daily_csv", {**variables, "DAY": "bad"})
        if task in ("daily_csv", "move_job"):
            _run(side, folder, task, {**variables, "DAY": "1"})
        found.append(_run(side, folder, task, {**variables, "DAY": "2"}))
    return found


def measure_move(folder: Path, variables: Mapping[str, str], install: bool) -> tuple[list[Measured], str]:
    """Move the job of a folder of ``hudi_jar`` to hudi_fast, on a new table, and back.

    Args:
        folder: of :func:`measure` of ``hudi_jar``; its environment has PySpark.
        variables: as for :func:`measure`.
        install: hudi_fast into that environment.

    Returns:
        The tasks of the move, and the answer of the job when it runs with Hudi's jar again.

    Raises:
        AssertionError: a command failed.
    """
    shutil.rmtree(folder / "rides", ignore_errors=True)
    _copy("hudi_jar", folder)
    _run("hudi_jar", folder, "move_job", {**variables, "DAY": "1"})
    _copy("hudi_fast", folder)
    tasks = ON_SPARK if install else ON_SPARK[1:]
    found = [_run("hudi_fast", folder, task, {**variables, "DAY": "2"}) for task in tasks]
    _copy("hudi_jar", folder)
    return found, _run("hudi_jar", folder, "move_job", {**variables, "DAY": "2"}).answer


def _copy(side: str, folder: Path) -> None:
    for file in (HERE / side).glob("*.*"):
        shutil.copy2(file, folder)


def _run(side: str, folder: Path, task: str, variables: Mapping[str, str]) -> Measured:
    script = folder / f"{task}.sh"
    environment = {**os.environ, **variables, "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    begin, work = time.perf_counter(), _work_of_children()
    done = subprocess.run(
        ["sh", "-eu", script.name], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds, work = time.perf_counter() - begin, _work_of_children() - work
    assert done.returncode == 0, f"{side}, {task}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    lines = done.stdout.splitlines()
    program = script.with_suffix(".py")
    answer = lines[-1] if lines else ""
    return Measured(task, side, commands_of(script), lines_of(program), seconds, work, answer)


def _work_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table_of(measured: Sequence[Measured]) -> str:
    """A Markdown table: a row for each task, a column for each side."""
    sides = [side for side in SIDES if any(one.side == side for one in measured)]
    lines = ["| task | " + " | ".join(sides) + " |", "|---" * (len(sides) + 1) + "|"]
    for task, name in TASKS.items():
        cells = []
        for side in sides:
            (cell,) = [one for one in measured if (one.task, one.side) == (task, side)] or [None]
            cells.append(
                "–" if cell is None else f"{cell.commands}, {cell.lines}, {cell.seconds:.1f} s ({cell.work:.1f} s)"
            )
        if set(cells) != {"–"}:
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure all tasks of the sides that are asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="an empty folder")
    parser.add_argument("--wheel", type=Path, help="of hudi_fast")
    parser.add_argument("--sides", default=",".join(SIDES))
    given = parser.parse_args()
    scratch = given.scratch.absolute()
    wheel = given.wheel.absolute() if given.wheel else build_own_wheel(scratch / "build")
    variables = {"HUDI_FAST": str(wheel)}
    measured = []
    for side in given.sides.split(","):
        measured += measure(side, scratch / side, tasks_of(side), variables)
        if side == "hudi_jar":
            measured += measure_move(scratch / side, variables, install=True)[0]
    for one in measured:
        print(f"{one.side}, {one.task}: {one.seconds:.1f} s, {one.answer}", file=sys.stderr)
    print(table_of(measured))


if __name__ == "__main__":
    main()
