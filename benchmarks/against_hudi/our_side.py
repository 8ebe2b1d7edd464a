"""hudi_fast's side, ``--engine local`` or ``spark``: prints one JSON line as Apache Hudi's side does.

Local: the Parquet input is read as an Arrow table, inside the timed part, as Spark's scan is on the other side.
Memory is that of this interpreter and, on Spark, of the JVM and the Python workers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq
from side import SPARK_SETTINGS, parse_work, process_tree, timed, write_options

import hudi_fast

Write = Callable[[str, str, dict[str, str]], None]


def local_write(cores: int) -> Write:
    """Writes in this process, on that many threads."""
    pa.set_cpu_count(cores)

    def write(rows: str, table: str, options: dict[str, str]) -> None:
        hudi_fast.write(pq.read_table(rows, partitioning=None), table, options=options, mode="append")

    return write


def spark_write(cores: int) -> tuple[Write, dict[str, str]]:
    """Writes through PySpark on that many cores, and the versions in use."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("against-hudi")
    for key, value in SPARK_SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def write(rows: str, table: str, options: dict[str, str]) -> None:
        hudi_fast.write(spark.read.parquet(rows), table, options=options, mode="append")

    return write, {"spark": spark.version}


def main() -> None:
    """Do the work of the command line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work, own = parse_work(__doc__ or "")
    versions = {"hudi_fast": version("hudi-fast"), "pyarrow": pa.__version__}
    if own.engine == "spark":
        write, more = spark_write(work.cores)
        versions.update(more)
    else:
        write = local_write(work.cores)
    run = timed(work, write, lambda: process_tree(os.getpid()))
    print(json.dumps({**run, "versions": versions, "options": write_options(work)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
