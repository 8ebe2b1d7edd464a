"""Seconds and peak memory of planning reads, writes and table services, for a growing number of file groups.

::

    python -m benchmarks.scale.planning --groups 100000 --partitions 5000
        [--series 1000,10000,100000] [--only WORD] [--spark] [--folder FOLDER] [--keep]

Makes a table of each size with :mod:`benchmarks.scale.tables` and measures every step of :mod:`benchmarks.scale.steps`
in a process of its own. The number of partitions shrinks with the number of file groups. ``--folder`` is where tables
are made, on a file system with hard links; with ``--keep`` they stay, and the next run uses them again.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.scale.measure import Measured, growing, measured
from benchmarks.scale.steps import QUERIES, SERVICES, SPARK, WRITES
from benchmarks.scale.tables import TableSize, add_logs, make_table, partition_name

_WARM_GROUPS, _WARM_PARTITIONS = 40, 20
_LOGGED = 10  # one of so many partitions has log files


def main(arguments: Sequence[str] | None = None) -> None:
    given = _arguments(arguments)
    folder = Path(given.folder or tempfile.mkdtemp(prefix="hudi_fast-scale-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _measure(given, folder)
    finally:
        if not given.keep:
            shutil.rmtree(folder)


def _measure(given: argparse.Namespace, folder: Path) -> None:
    series = [int(each) for each in given.series.split(",")] if given.series else growing(given.groups)
    names = _steps(given)
    print(f"{'file groups':>11} {'partitions':>10} {'seconds':>8} {'CPU s':>7} {'peak MiB':>9}  step")
    for groups in series:
        partitions = max(1, given.partitions * groups // given.groups)
        sizes = {kind: TableSize(groups=groups, partitions=partitions, table_type=kind) for kind in _KINDS}
        warm = {kind: TableSize(groups=_WARM_GROUPS, partitions=_WARM_PARTITIONS, table_type=kind) for kind in _KINDS}
        for name, step in names.items():
            kind = "MERGE_ON_READ" if step is SERVICES["plan a compaction"] else "COPY_ON_WRITE"
            path, made = _table(folder, sizes[kind])
            if made is not None:
                _print(groups, partitions, made, f"make the {kind} table")
            small, _ = _table(folder, warm[kind])
            _print(groups, partitions, measured(step, path, sizes[kind], small, warm[kind]), name)


_KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def _steps(given: argparse.Namespace) -> dict[str, object]:
    found = {**QUERIES, **WRITES, **SERVICES, **(SPARK if given.spark else {})}
    return {name: step for name, step in found.items() if given.only in name}


def _table(folder: Path, size: TableSize) -> tuple[str, Measured | None]:
    """The path of a table of a size; and what making it took, unless it was there."""
    path = folder / f"{size.table_type}-{size.groups}-{size.partitions}"
    if path.exists():
        return str(path), None
    return str(path), measured(_make, str(path), size, f"{path}-warm", TableSize(groups=4, partitions=2))


def _make(path: str, size: TableSize) -> Callable[[], str]:
    def call() -> str:
        shutil.rmtree(path, ignore_errors=True)
        commits = make_table(path, size)
        if size.table_type == "MERGE_ON_READ":
            add_logs(path, size, [partition_name(number) for number in range(0, size.partitions, _LOGGED)])
        return f"{commits} commits"

    return call


def _print(groups: int, partitions: int, found: Measured, name: str) -> None:
    figures = f"{found.seconds:>8.2f} {found.cpu:>7.2f} {found.peak_mib:>9.0f}"
    print(f"{groups:>11} {partitions:>10} {figures}  {name}: {found.result}", flush=True)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=100_000, help="file groups of the largest table")
    parser.add_argument("--partitions", type=int, default=5_000, help="partitions of the largest table")
    parser.add_argument("--series", default="", help="numbers of file groups, separated by commas")
    parser.add_argument("--only", default="", help="measure steps whose name contains this text")
    parser.add_argument("--spark", action="store_true", help="measure the driver side of hf.read, too")
    parser.add_argument("--folder", default="", help="folder for the tables")
    parser.add_argument("--keep", action="store_true", help="keep the tables")
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
