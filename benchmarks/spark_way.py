"""The way of rows on Spark, part by part: seconds of each prefix of a write and of a read, and the floor beside them.

::

    write   scan ─► scan, rows to Python ─► scan, shuffle, rows to Python ─► the write          beside: df.write.parquet
    read    Spark's scan of the base files ─► the same rows through Python ─► the snapshot      beside: one process

Each part is a job of its own, over the rows that the next one has, too. So the difference of two lines is what the
later one adds. One session; the first run of each part warms it up and does not count. Rows are counted.

Usage::

    python -m benchmarks.spark_way --scratch FOLDER [--rows 2000000] [--cores 2] [--runs 5]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import hudi_fast as hf
from benchmarks.against_hudi.data import make_data
from benchmarks.against_hudi.side import SPARK_SETTINGS

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.parquet.compression.codec": "zstd",
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


class Way:
    """The parts over one data set.

    Args:
        spark: the session.
        data: the folder of the data set.
        folder: for tables.
        given: the command line.
    """

    def __init__(self, spark: Any, data: Path, folder: Path, given: argparse.Namespace) -> None:
        self.spark, self.data, self.folder, self.given = spark, data, folder, given

    def report(self) -> None:
        """Measure and print all parts."""
        print(f"{'part':54} seconds, median (range) of {self.given.runs}")
        self._write("bulk_insert", "base", {})
        for kind, more in (("COPY_ON_WRITE", {}), ("MERGE_ON_READ", MERGE_ON_READ)):
            for name in ("up1", "up10", "up100"):
                self._write(f"upsert {name}, {kind}", name, more)
        self._read()

    def _write(self, title: str, name: str, more: dict[str, str]) -> None:
        rows = self.spark.read.parquet(str(self.data / name))
        out, start = self.folder / "out", self._start(more)

        def write() -> None:
            operation = "bulk_insert" if name == "base" else "upsert"
            hf.write(rows, str(out), {**OPTIONS, **more, "hoodie.datasource.write.operation": operation}, mode="append")

        def fresh() -> None:
            shutil.rmtree(out, ignore_errors=True)
            if name != "base":
                shutil.copytree(start, out)

        print(title)
        if not more:  # the parts before the write are the same for both kinds of tables
            self._part("scan", lambda: _drop(rows))
            self._part("scan, rows to Python", lambda: _drop(_dropped_in_python(rows)))
            if name != "base":
                shuffled = rows.repartition(2 * self.given.cores, "city")
                self._part("scan, shuffle, rows to Python", lambda: _drop(_dropped_in_python(shuffled)))
            self._part("scan, df.write.partitionBy(...).parquet", lambda: self._plain(rows))
        self._part("the write", write, fresh)

    def _read(self) -> None:
        for kind, more in (("COPY_ON_WRITE", {}), ("MERGE_ON_READ, 1 % in the log", MERGE_ON_READ)):
            table = self.folder / f"read-{len(more)}"
            if not table.exists():
                shutil.copytree(self._start(more), table)
                if more:
                    changed = self.spark.read.parquet(str(self.data / "up1"))
                    hf.write(changed, str(table), {**OPTIONS, **more}, mode="append")
            files = sorted(str(one) for one in table.glob("*/*.parquet"))
            base = self.spark.read.parquet(*files)
            print(f"snapshot, {kind}")
            self._part("Spark's scan of the base files", lambda base=base: _drop(base))
            self._part("one process", lambda table=table: _count(hf.HudiTable.open(table).to_batches()))
            self._part("the snapshot", lambda table=table: _drop(hf.read(self.spark, str(table))))

    def _start(self, more: dict[str, str]) -> Path:
        """A loaded table, made once."""
        start = self.folder / f"start-{len(more)}"
        if not start.exists():
            rows = self.spark.read.parquet(str(self.data / "base"))
            hf.write(rows, str(start), {**OPTIONS, **more, "hoodie.datasource.write.operation": "bulk_insert"})
        return start

    def _plain(self, rows: Any) -> None:
        out = str(self.folder / "plain")
        rows.write.partitionBy("city").option("compression", "zstd").mode("overwrite").parquet(out)

    def _part(self, name: str, run: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> None:
        seconds = []
        for _ in range(self.given.runs + 1):
            prepare()
            begin = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - begin)
        counted = seconds[1:]
        print(f"    {name:50} {median(counted):.2f} ({min(counted):.2f}-{max(counted):.2f})", flush=True)


def _drop(rows: Any) -> None:
    """Compute all rows of a DataFrame and drop them in the JVM."""
    rows.write.format("noop").mode("overwrite").save()


def _dropped_in_python(rows: Any) -> Any:
    """A DataFrame whose rows are sent to Python, which answers with their number."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})

    return rows.mapInArrow(count, "rows bigint")


def _count(batches: Any) -> int:
    return sum(batch.num_rows for batch in batches)


def main() -> None:
    """Start the session, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for data and tables")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{given.cores}]").appName("spark-way")
    batches = {"maxRecordsPerBatch": 65536, "maxBytesPerBatch": 2**31 - 1}  # as in a write of rows of known size
    arrow = {f"spark.sql.execution.arrow.{name}": str(value) for name, value in batches.items()}
    for key, value in {**SPARK_SETTINGS, **arrow}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    folder = given.scratch.resolve() / "spark-way"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        Way(spark, make_data(given.scratch.resolve(), given.rows), folder, given).report()
    finally:
        spark.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
