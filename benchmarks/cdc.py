"""CDC query after an upsert of 10 %: hudi_fast, with and without Spark, compared with Apache Hudi.

hudi_fast creates the table once, with change logs. Each side reads it in a separate process: first the changes of the
upsert, then those of both commits. The results are compared byte for byte before any time is printed.

Usage::

    .venv/bin/python benchmarks/cdc.py --scratch FOLDER [--rows 2000000] [--type COPY_ON_WRITE|MERGE_ON_READ]
        [--mode DATA_BEFORE_AFTER] [--sides local,spark,hudi] [--runs 3] [--cores 2]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path.insert(0, str(HERE / "against_hudi"))
PYTHONS = {"hudi": str(PROJECT / ".venv-hudi" / "bin" / "python")}
BEGIN = "hoodie.datasource.read.begin.instanttime"
CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}
Read = Callable[[dict[str, str]], None]
Keep = Callable[[dict[str, str], str], None]


def table_of(scratch: Path, rows: int, kind: str, mode: str) -> tuple[Path, str]:
    """The table, and the instant of its first commit."""
    import data

    import hudi_fast as hf
    from hudi_fast.storage.base import Storage
    from hudi_fast.view.table_state import load_state

    source = data.make_data(scratch, rows)
    path = scratch / f"cdc-{rows}-{kind.lower()}-{mode.lower()}"
    if not path.exists():
        options = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.recordkey.field": "uuid",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
            "hoodie.compact.inline": "false",
        }
        for operation, name in (("bulk_insert", "base"), ("upsert", "up10")):
            told = {**options, "hoodie.datasource.write.operation": operation}
            hf.write(data.read_rows(source, name), path, told)
    return path, load_state(Storage(path)).timeline.writes()[0].requested


def local_side(path: str) -> tuple[Read, Keep]:
    """Read in this process; drop every batch."""
    import pyarrow.parquet as pq

    from hudi_fast.reading.incremental.cdc import changes_batches, plan_query
    from hudi_fast.storage.base import Storage

    def read(options: dict[str, str]) -> None:
        for _ in changes_batches(plan_query(Storage(path), options)):
            pass

    def keep(options: dict[str, str], folder: str) -> None:
        os.makedirs(folder)
        pq.write_table(changes_batches(plan_query(Storage(path), options)).read_all(), f"{folder}/changes.parquet")

    return read, keep


def spark_side(path: str, cores: int, real: bool) -> tuple[Read, Keep]:
    """Read with Spark into a sink that drops all rows."""
    from side import SPARK_SETTINGS

    SPARK_SETTINGS["spark.driver.memory"] = "4g"
    if real:
        from hudi_side import session

        spark = session("1.2.0", cores)
    else:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        from our_side import WORKERS

        builder = SparkSession.builder.master(f"local[{cores}]")
        for key, value in {**SPARK_SETTINGS, **WORKERS}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def frame(options: dict[str, str]) -> Any:
        if real:
            return spark.read.format("hudi").options(**options).load(path)
        import hudi_fast as hf

        return hf.read(spark, path, options)

    def read(options: dict[str, str]) -> None:
        frame(options).write.format("noop").mode("overwrite").save()

    def keep(options: dict[str, str], folder: str) -> None:
        frame(options).write.parquet(folder)

    return read, keep


def processor_seconds() -> float:
    """CPU seconds of this process and its child processes; excludes other work on the machine."""
    from side import process_tree

    ticks = 0
    for pid in process_tree(os.getpid()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run_side(given: argparse.Namespace) -> None:
    """Time the reads of one side, store its results, and print one line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sides = {"local": local_side, "spark": lambda path: spark_side(path, given.cores, False)}
    sides["hudi"] = lambda path: spark_side(path, given.cores, True)
    read, keep = sides[given.side](given.table)
    seconds: dict[str, list[float]] = {}
    for name, begin in (("upsert", given.first), ("all", "000")):
        options = {**CDC, BEGIN: begin}
        keep(options, f"{given.out}/{name}")  # also warms up
        for _ in range(given.runs):
            started, used = time.perf_counter(), processor_seconds()
            read(options)
            seconds.setdefault(name, []).append(time.perf_counter() - started)
            seconds.setdefault(f"{name}, processors", []).append(processor_seconds() - used)
    print(json.dumps(seconds), file=answers, flush=True)


def compared(kept: dict[str, Path], name: str) -> int:
    """Number of changes that every side returned; exits the program if two sides differ."""
    import pyarrow.parquet as pq

    tables = {
        side: pq.read_table(folder / name).sort_by([("ts_ms", "ascending"), ("after", "ascending")])
        for side, folder in kept.items()
    }
    first = next(iter(tables.values()))
    for side, table in tables.items():
        if not table.cast(first.schema).equals(first):
            raise SystemExit(f"{name}: the changes of {side} differ from those of {next(iter(tables))}.")
    return int(first.num_rows)


def main() -> None:
    """Run all sides, compare, and print seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", required=True)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--type", default="COPY_ON_WRITE")
    parser.add_argument("--mode", default="DATA_BEFORE_AFTER")
    parser.add_argument("--sides", default="local,spark,hudi")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    for name in ("--side", "--table", "--first", "--out"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        run_side(given)
        return
    scratch = Path(given.scratch).resolve()
    path, first = table_of(scratch, given.rows, given.type, given.mode)
    seconds, kept = {}, {}
    for side in given.sides.split(","):
        kept[side] = scratch / f"changes-{side}-{os.getpid()}"
        command = [PYTHONS.get(side, sys.executable), __file__, "--side", side, "--table", str(path), "--first", first]
        command += ["--out", str(kept[side]), "--runs", str(given.runs), "--cores", str(given.cores), "--scratch", "."]
        done = subprocess.run(command, stdout=subprocess.PIPE, cwd=scratch, check=True)
        seconds[side] = json.loads(done.stdout)
    for name in ("upsert", "all"):
        print(f"{name}: {compared(kept, name):,} changes of {path.name}")
        for title in (name, f"{name}, processors"):
            for side, measured in seconds.items():
                middle = statistics.median(measured[title])
                ratio = f"x {statistics.median(seconds['hudi'][title]) / middle:.1f}" if "hudi" in seconds else ""
                print(f"  {title:20} {side:6} {middle:8.2f} s  {ratio}  {[round(one, 2) for one in measured[title]]}")


if __name__ == "__main__":
    main()
