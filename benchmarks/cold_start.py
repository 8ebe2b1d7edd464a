"""Seconds from the start of a process to the end of its first small write or read, as after ``pip install``.

::

    wheel with compiled kernels, wheel without ─► a virtual environment each ─► process by process ─► medians

``no cache`` is a machine that has never run the package: it has no kernels unless the wheel ships them. It has the
bytecode that pip compiles. Each step is a process of its own, and its rows are checked. ``benchmarks/start_up.py`` has
the same processes as micro-benchmarks.

Usage::

    python -m benchmarks.cold_start [--runs 5] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

__all__ = ["STEPS", "command", "make_table"]

CHECKOUT = Path(__file__).resolve().parents[1]
TABLE = "import pyarrow as pa, hudi_fast as hf; rows = pa.table({'id': ['a', 'b'], 'ts': [1, 1], 'fare': [1.5, 2.5]}); "
OPTIONS = (
    "options = {'hoodie.table.name': 't', 'hoodie.datasource.write.recordkey.field': 'id', "
    "'hoodie.datasource.write.precombine.field': 'ts'}; "
)
STEPS = {
    "Python alone": "pass",
    "import pyarrow": "import pyarrow",
    "first write, a new table": TABLE + OPTIONS + "assert hf.write(rows, 'new', options).inserts == 2",
    "upsert": TABLE + "assert hf.HudiTable.open('t').upsert(rows).updates == 2",
    "read": "import hudi_fast as hf; assert hf.HudiTable.open('t').to_arrow().num_rows == 2",
    "hudi-fast info": "",
}
"""The program of each process, in a folder with a table ``t``; empty for the command line."""


def command(step: str, executables: Path) -> list[str]:
    """The command of a step, from a folder with ``python`` and ``hudi-fast``."""
    if not STEPS[step]:
        return [str(executables / "hudi-fast"), "info", "t"]
    return [str(executables / "python"), "-c", STEPS[step]]


def make_table(folder: Path, executables: Path, environment: dict[str, str]) -> None:
    """Make the table ``t`` of two rows in a folder, in a process of its own."""
    code = TABLE + OPTIONS + "hf.write(rows, 't', options)"
    subprocess.run([executables / "python", "-c", code], cwd=folder, env=environment, check=True)


def main() -> None:
    """Build, install, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder for the environments, used again by the next run")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="cold-start-"))
    environments = {kind: _environment(folder / kind, levels) for kind, levels in (("shipped", "all"), ("jit", "none"))}
    print(f"{'seconds, median (range)':28}{'shipped kernels':>24}{'jit, no cache':>24}{'jit, cached':>24}")
    for step in STEPS:
        columns = []
        for kind, cached in (("shipped", False), ("jit", False), ("jit", True)):
            if cached:
                _run(environments[kind], step, cached)
            found = sorted(_run(environments[kind], step, cached) for _ in range(given.runs))
            columns.append(f"{median(found):10.2f} ({found[0]:.2f} to {found[-1]:.2f})")
        print(f"{step:28}" + "".join(f"{column:>24}" for column in columns), flush=True)
    if given.keep is None:
        shutil.rmtree(folder)


def _environment(folder: Path, levels: str) -> Path:
    """The ``bin`` folder of a new virtual environment with the wheel and its dependencies, and nothing else."""
    if not (folder / "env").exists():
        sources, wheels = folder / "sources", folder / "wheels"
        names = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
        for name in names.splitlines():
            if name.startswith(("hudi_fast/", "kernels/")) or "/" not in name:
                (sources / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, sources / name)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(wheels)]
        subprocess.run([*pip, "."], cwd=sources, env=os.environ | {"HUDI_FAST_COMPILE_KERNELS": levels}, check=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
        (wheel,) = wheels.glob("*.whl")
        subprocess.run([folder / "env" / "bin" / "pip", "install", "--quiet", str(wheel)], check=True)
    return folder / "env" / "bin"


def _run(executables: Path, step: str, cached: bool) -> float:
    """Seconds of a process, in a folder with a table ``t``."""
    with tempfile.TemporaryDirectory() as place:
        cache = executables.parent / "cache" if cached else Path(place) / "cache"
        environment = {"PATH": os.environ["PATH"], "HOME": place, "NUMBA_CACHE_DIR": str(cache)}
        if not (executables.parent / "t").exists():
            make_table(executables.parent, executables, environment)
        shutil.copytree(executables.parent / "t", Path(place) / "t")
        begin = time.perf_counter()
        subprocess.run(command(step, executables), cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin


if __name__ == "__main__":
    main()
