"""Compare hudi_fast with hudi-rs, delta-rs, Delta Lake and Iceberg: the same rows, cores and codec, rows checked.

::

    rows of :mod:`data` ─► each side loads a table of its own ─► each case into a copy of it, or a read of it
                            a process for each case ─► its rows, read by the side itself, equal the expected ones

``local``, ``hudi_rs``, ``hudi_rs_simple`` and ``delta_rs`` run in one process; ``spark``, ``delta`` and ``iceberg`` on
Spark with as many cores. The first run of a process warms it up and does not count. Cases that begin with ``mor`` are
merge-on-read tables.

``hudi_rs`` has its default index, the record index, and ``hudi_rs_simple`` has none. Both need cargo and protoc, which
build their program; they are left out if it cannot be built, unless ``--sides`` names them.

Usage::

    .venv/bin/python benchmarks/against_hudi/others.py --scratch FOLDER [--rows 2000000] [--runs 5]
        [--sides local,hudi_rs,hudi_rs_simple,delta_rs,spark,delta,iceberg]
        [--cases load,up1,up10,up100,read,mor_up1,mor_up10,mor_up100]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from data import COLUMNS, expected_rows, make_data
from hudi_rs_program import CannotBuildError, build
from report import Result, machine, report

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
SCRIPTS = {
    "local": ("our_side.py", ".venv"),
    "hudi_rs": ("hudi_rs_writer_side.py", ".venv"),
    "hudi_rs_simple": ("hudi_rs_writer_side.py", ".venv"),
    "delta_rs": ("delta_rs_side.py", ".venv-others"),
    "spark": ("our_side.py", ".venv"),
    "delta": ("lake_side.py", ".venv-hudi"),
    "iceberg": ("lake_side.py", ".venv-hudi"),
}
CASES = ("load", "up1", "up10", "up100", "read", "mor_up1", "mor_up10", "mor_up100")
HUDI_RS = ("hudi_rs", "hudi_rs_simple")
MERGE_ON_READ = ("local", "spark", "iceberg", *HUDI_RS)
"""Sides with merge-on-read tables."""


class Side:
    """One side, with its tables in the folder of the benchmark."""

    def __init__(self, name: str, folder: Path, data: Path, given: argparse.Namespace) -> None:
        self._name, self._folder, self._data, self._given = name, folder, data, given

    def measure(self, case: str) -> dict[str, Any] | None:
        """Seconds of all runs but the first, and the peak memory; None if the side has no such tables."""
        kind = "MERGE_ON_READ" if case.startswith("mor_") else "COPY_ON_WRITE"
        if kind == "MERGE_ON_READ" and self._name not in MERGE_ON_READ:
            return None
        work = case.removeprefix("mor_")
        table, runs = self._folder / f"{self._name}-{kind.lower()}", self._given.runs + 1
        if work == "load":
            run = self._run(kind, operation="bulk_insert", rows=self._data / "base", out=table, runs=runs)
        else:
            start = self._start(kind, table)
            if work == "read":
                shutil.rmtree(table, ignore_errors=True)
                shutil.copytree(start, table)
                run = self._run(kind, operation="read", start=table, out=self._folder / "rows", runs=runs)
            else:
                run = self._run(kind, operation="upsert", rows=self._data / work, start=start, out=table, runs=runs)
        self._check(case, kind, table, "base" if work in ("load", "read") else work)
        counted = run["all_seconds"][1:]
        return {**run, "seconds": median(counted), "all_seconds": counted}

    def _start(self, kind: str, table: Path) -> Path:
        """The loaded table. It was made at the path of ``table``, where copies of it are used."""
        start = table.with_name(f"{table.name}-start")
        if not start.exists():
            self._run(kind, operation="bulk_insert", rows=self._data / "base", out=table, runs=1)
            table.rename(start)
        return start

    def _check(self, case: str, kind: str, table: Path, name: str) -> None:
        rows = self._folder / "rows"
        self._run(kind, operation="read", start=table, out=rows, runs=1)
        got, expected = pq.read_table(rows, columns=list(COLUMNS), partitioning=None), expected_rows(self._data, name)
        same = got.cast(expected.schema).sort_by("uuid").combine_chunks()
        if not same.equals(expected):
            raise SystemExit(f"{case}, {self._name}: the rows differ from the expected ones")
        shutil.rmtree(rows)

    def _run(self, kind: str, **arguments: Any) -> dict[str, Any]:
        script, environment = SCRIPTS[self._name]
        command = [str(PROJECT / environment / "bin" / "python"), str(HERE / script), "--engine", self._name]
        more = {"table-type": kind, "codec": "zstd", "cores": self._given.cores}
        for name, value in {**arguments, **more}.items():
            command += [f"--{name}", str(value)]
        log = self._folder / f"{self._name}.log"
        with open(log, "wb") as errors:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, cwd=self._folder, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\nexited with {done.returncode}; see {log}")
        return dict(json.loads(done.stdout))


def sides_to_run(wanted: str | None) -> list[str]:
    """The sides of ``--sides``, or all that can run; builds the program of hudi-rs."""
    names = wanted.split(",") if wanted else list(SCRIPTS)
    if any(name in HUDI_RS for name in names):
        try:
            build()
        except CannotBuildError as error:
            if wanted:
                raise SystemExit(str(error)) from None
            print(f"{error} Its sides are left out.", file=sys.stderr, flush=True)
            names = [name for name in names if name not in HUDI_RS]
    return names


def main() -> None:
    """Run the requested cases and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for data and tables")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sides", help=f"default: all of {','.join(SCRIPTS)} that can run")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="file for the results")
    given = parser.parse_args()
    data, folder = make_data(given.scratch.resolve(), given.rows), given.scratch.resolve() / "others"
    folder.mkdir(exist_ok=True)
    names = sides_to_run(given.sides)
    results = []
    for case in given.cases.split(","):
        answers = {}
        for name in names:
            print(f"{case}, {name} ...", file=sys.stderr, flush=True)
            found = Side(name, folder, data, given).measure(case)
            if found is not None:
                answers[name] = found
        results.append(Result(case, "zstd", answers))
    print(f"{given.rows} rows, {len(COLUMNS)} columns; rows of every result compared; medians of {given.runs}")
    print(machine(given.cores, results))
    print(report(results, tuple(names)))
    if given.json:
        rows = [{"case": each.case, "codec": each.codec, **each.answers} for each in results]
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
