"""Few rows into many file groups on a Spark cluster: seconds, tasks and what the driver reads, for growing numbers.

::

    python -m benchmarks.scale.few_rows [--groups 10000] [--partitions 100] [--cores 2] [--folder FOLDER]

Makes a table with :mod:`benchmarks.scale.tables`, whose file groups are links to a few small files, and upserts one row
into each of 1, 10, 100 ... of them, on a local cluster with an executor for each core. Small files count as large, so
that the tasks share them by file group. A line has the number of touched file groups, the seconds from the call to the
completed instant, the processor time of the driver, the number of tasks that wrote, and the base files that the driver
opened.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_fast as hf
from benchmarks.scale.tables import TableSize, make_table, partition_name
from hudi_fast.spark.writing import broadcast
from hudi_fast.writing import lookup
from tests.spark.spark_writes import base_files_opened, tasks_of

_LARGE = 0
"""Files with more bytes than this count as large."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000, help="file groups of the table")
    parser.add_argument("--partitions", type=int, default=100, help="partitions of the table")
    parser.add_argument("--cores", type=int, default=2, help="executors with one core each")
    parser.add_argument("--folder", default="", help="folder for the table")
    given = parser.parse_args(arguments)
    folder = Path(given.folder or tempfile.mkdtemp(prefix="hudi_fast-few-rows-"))
    size = TableSize(groups=given.groups, partitions=given.partitions, statistics=False)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local-cluster[{given.cores},1,2048]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.executor.memory", "1g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    broadcast.PARTITION_BYTES = broadcast.LOOKUP_BYTES = _LARGE
    lookup.is_little = lambda *_: False
    try:
        make_table(folder / "t", size)
        print(f"{'touched':>8} {'seconds':>8} {'driver CPU s':>13} {'tasks':>6} {'read by the driver':>19}  plan")
        for touched in (1, 1, *(10**power for power in range(1, 9) if 10**power <= given.groups)):
            _measure(spark, folder / "t", size, touched)
    finally:
        spark.stop()
        if not given.folder:
            shutil.rmtree(folder)


def _measure(spark: SparkSession, path: Path, size: TableSize, touched: int) -> None:
    """Upsert a row into ``touched`` file groups. The first measurement starts the workers."""
    numbers = range(touched)
    rows = pa.table(
        {
            "id": [f"key-{number // size.partitions:04d}-{0:08d}" for number in numbers],
            "part": [partition_name(number % size.partitions) for number in numbers],
            "ts": pa.array([2] * touched, pa.int64()),
            "value": pa.array([1] * touched, pa.int64()),
            "text": ["changed"] * touched,
        }
    )
    frame = spark.createDataFrame(rows)
    with base_files_opened() as opened:
        began, used = time.perf_counter(), time.process_time()
        result = hf.write(frame, path, size.options())
        seconds, used = time.perf_counter() - began, time.process_time() - used
    assert (result.updates, result.inserts) == (touched, 0), result
    tasks = tasks_of(path, result.instant)
    print(f"{touched:>8} {seconds:>8.2f} {used:>13.2f} {len(tasks):>6} {len(opened):>19}  {result.plan}", flush=True)


if __name__ == "__main__":
    main()
