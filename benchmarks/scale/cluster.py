"""hudi_fast beside Apache Hudi 1.2.0 on one standalone Spark cluster: a master and two workers of one core.

::

    rows, as Parquet: even, skewed ─► per side and table type: warm-up ─► insert ─► update of a tenth
                                                                             └─► rows of both tables compared ─► table

Both sides use Spark 3.5, the same cluster, the same files of rows, and their default options; they run in turn. Seconds
are from the call to the completed instant. Memory is the resident memory of all executors, sampled: the peak of the
JVMs, and that of the Python workers.

Usage, after ``make setup``::

    python -m benchmarks.scale.cluster [--rows 2000000] [--share 0.9] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from benchmarks.scale.measure import process_status, sampled
from tests.servers.spark_cluster import SparkCluster, spark_cluster

PROJECT = Path(__file__).parents[2]
PYTHONS = {name: PROJECT / folder / "bin/python" for name, folder in
           (("hudi_fast", ".venv-spark35"), ("hudi", ".venv-hudi"))}  # fmt: skip
SHAPES = ("even", "skewed")
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
_WARM_ROWS = 20_000


@dataclass(frozen=True)
class Figures:
    """What one write cost.

    Attributes:
        seconds: from the call to the completed instant.
        files: data files written.
        mebibytes: their size.
        jvm_mib: peak resident memory of all executor JVMs.
        python_mib: peak resident memory of all Python workers.
        plan: of hudi_fast; empty for Apache Hudi.
    """

    seconds: float
    files: int
    mebibytes: float
    jvm_mib: int
    python_mib: int
    plan: str


class Side:
    """The driver of a side, with a Spark application of its own."""

    def __init__(self, name: str, cluster: SparkCluster, memory: str, log: Path) -> None:
        python = str(PYTHONS[name])
        # Apache Hudi's environment has no hudi_fast, and needs none.
        modules = os.pathsep.join([str(PROJECT), str(PROJECT / "benchmarks/against_hudi")])
        environment = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONPATH": modules, "PYTHONWARNINGS": "ignore"}
        program = str(Path(__file__).with_name("cluster_side.py"))
        pipe = subprocess.PIPE
        self._cluster = cluster
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [python, program, name, cluster.url, memory],
                stdin=pipe, stdout=pipe, stderr=errors, text=True, env=environment,
            )  # fmt: skip
        self._log = log
        self.spark = self._answer()["spark"]

    def make(self, folder: Path, **rows: Any) -> None:
        """Store the rows of a shape as Parquet."""
        self._ask({"make": rows, "table": str(folder)})

    def write(self, rows: Path, table: Path, operation: str, table_type: str) -> Figures:
        """Write rows, and measure."""
        options = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.operation": operation,
        }
        before = _data_files(table)
        peaks = _Peaks(self._cluster)
        with sampled(peaks.sample):
            answer = self._ask({"rows": str(rows), "table": str(table), "options": options})
        made = {path: size for path, size in _data_files(table).items() if path not in before}
        size = sum(made.values()) / (1 << 20)
        return Figures(answer["seconds"], len(made), size, peaks.jvm_mib, peaks.python_mib, answer.get("plan", ""))

    def end(self) -> None:
        """End the application."""
        self._process.communicate()

    def _ask(self, step: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"A side has ended: {self._log.read_text(errors='replace')[-4000:]}")
        return dict(json.loads(line))


def main() -> None:
    """Run both sides on both shapes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--share", type=float, default=0.9, help="share of the rows in one partition, if skewed")
    parser.add_argument("--memory", default="2g", help="of an executor's JVM")
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=SHAPES)
    parser.add_argument("--types", nargs="*", choices=TYPES, default=TYPES)
    parser.add_argument("--folder", type=Path, help="for rows and tables; by default a temporary one")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="cluster-"))
    found: dict[tuple[str, str, str, str], Figures] = {}
    with _cluster(folder / "cluster", given.memory) as cluster:
        _make_rows(cluster, folder, given)
        for table_type in given.types:
            for shape in given.shapes:
                for name in PYTHONS:
                    insert, upsert = _measure(name, cluster, folder, shape, table_type, given.memory)
                    found[table_type, shape, "insert", name] = insert
                    found[table_type, shape, "upsert", name] = upsert
                _require_same_rows(folder / "hudi_fast" / "t", folder / "hudi" / "t", given.rows)
                for name in PYTHONS:
                    shutil.rmtree(folder / name)
    print(_as_table(found))


@contextmanager
def _cluster(folder: Path, memory: str) -> Iterator[SparkCluster]:
    """Workers of Spark 3.5, with a gibibyte more than their executor's heap."""
    (home,) = PYTHONS["hudi"].parents[1].glob("lib/python3*/site-packages/pyspark")
    with spark_cluster(folder, 2, f"{int(memory.removesuffix('g')) + 1}g", home, str(PYTHONS["hudi_fast"])) as running:
        yield running


def _make_rows(cluster: SparkCluster, folder: Path, given: argparse.Namespace) -> None:
    side = Side("hudi_fast", cluster, given.memory, folder / "make.log")
    print(f"Spark {side.spark}, {given.rows:,} rows", flush=True)
    for shape in given.shapes:
        share = given.share if shape == "skewed" else 0.0
        for name, rows, step, ts in (
            ("insert", given.rows, 1, 1),
            ("upsert", given.rows, 10, 2),
            ("warm", min(_WARM_ROWS, given.rows), 1, 1),
        ):
            side.make(folder / "rows" / shape / name, rows=rows, step=step, ts=ts, share=share)
    side.end()


def _measure(
    name: str, cluster: SparkCluster, folder: Path, shape: str, table_type: str, memory: str
) -> tuple[Figures, Figures]:
    """Insert all rows into a new table, then update a tenth of them."""
    place, rows = folder / name, folder / "rows" / shape
    place.mkdir()
    side = Side(name, cluster, memory, folder / f"{name}.log")
    for operation in ("insert", "upsert"):
        side.write(rows / "warm", place / "warm", operation, table_type)
    insert = side.write(rows / "insert", place / "t", "insert", table_type)
    upsert = side.write(rows / "upsert", place / "t", "upsert", table_type)
    side.end()
    print(f"{table_type} {shape} {name}: {insert} {upsert}", flush=True)
    return insert, upsert


def _require_same_rows(ours: Path, theirs: Path, count: int) -> None:
    tables: list[pa.Table] = []
    for path in (ours, theirs):
        rows = hf.HudiTable.open(path).to_arrow(columns=["id", "part", "ts", "value", "text"])
        tables.append(rows.sort_by("id").combine_chunks())
    if tables[0].num_rows != count or not tables[0].cast(tables[1].schema).equals(tables[1]):
        raise SystemExit(f"{ours} and {theirs} differ: {tables[0].num_rows} and {tables[1].num_rows} of {count} rows.")


def _data_files(table: Path) -> dict[str, int]:
    """Base files and log files, with their sizes."""
    if not table.exists():
        return {}
    found = [path for path in table.rglob("*") if ".hoodie" not in path.relative_to(table).parts and path.is_file()]
    named = [path for path in found if path.suffix == ".parquet" or ".log." in path.name]
    return {
        str(path): path.stat().st_size
        for path in named
        if not path.name.startswith(".hoodie") and not path.name.endswith(".crc")
    }


def _as_table(found: dict[tuple[str, str, str, str], Figures]) -> str:
    lines = [
        "| table | rows | write | side | seconds | files | MiB | executors' JVMs | Python workers |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (table_type, shape, operation, name), one in found.items():
        plan = f", `{one.plan}`" if one.plan else ""
        label = "hudi_fast" if name == "hudi_fast" else "Apache Hudi"
        lines.append(
            f"| `{table_type}` | {shape} | {operation} | {label}{plan} | {one.seconds:.1f} | {one.files} | "
            f"{one.mebibytes:.0f} | {one.jvm_mib} MiB | {one.python_mib} MiB |"
        )
    return "\n".join(lines)


class _Peaks:
    """Peak resident memory of all executors together."""

    def __init__(self, cluster: SparkCluster) -> None:
        self.jvm_mib = self.python_mib = 0
        self._cluster = cluster

    def sample(self) -> None:
        """Look at all processes."""
        self.jvm_mib = max(self.jvm_mib, _resident_mib([each.pid for each in self._cluster.executors()]))
        self.python_mib = max(self.python_mib, _resident_mib([each.pid for each in self._cluster.python_workers()]))


def _resident_mib(pids: list[int]) -> int:
    return sum(process_status(pid).get("VmRSS", 0) for pid in pids) >> 10


if __name__ == "__main__":
    main()
