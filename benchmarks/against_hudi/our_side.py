"""The side of hudi_fast, ``--engine local``, ``spark`` or ``spark_rows``: prints one JSON line, like the other sides.

Local: the timed part includes reading the Parquet input as an Arrow table, like Spark's scan on the other side. A read
drops every batch. On Spark, a read uses the same sink as the side of Apache Hudi. ``spark_rows`` writes rows that Spark
computes, so that tasks cannot read the files of the input themselves.
Memory is that of this interpreter and, on Spark, of the JVM and the Python workers.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from side import SPARK_SETTINGS, Verbs, parse_work, process_tree, timed, write_options

import hudi_fast

WORKERS = {"spark.python.daemon.module": "hudi_fast.spark.daemon"}
"""As docs/spark-plans.md advises."""

BEGIN = "hoodie.datasource.read.begin.instanttime"


def local_verbs(cores: int) -> Verbs:
    """Calls that run in this process with ``cores`` threads."""
    pa.set_cpu_count(cores)

    def write(rows: str, table: str, options: dict[str, str]) -> None:
        hudi_fast.write(pq.read_table(rows, partitioning=None), table, options=options, mode="append")

    def batches(table: str, options: dict[str, str]) -> pa.RecordBatchReader:
        opened = hudi_fast.HudiTable.open(table)
        return opened.incremental(options[BEGIN]).to_reader() if BEGIN in options else opened.to_batches()

    def read(table: str, options: dict[str, str]) -> None:
        for _ in batches(table, options):
            pass

    def keep(table: str, folder: str, options: dict[str, str]) -> None:
        rows = batches(table, options)
        with pq.ParquetWriter(os.path.join(folder, "rows.parquet"), rows.schema) as file:
            for batch in rows:
                file.write_batch(batch)

    def compact(table: str, options: dict[str, str]) -> None:
        hudi_fast.HudiTable.open(table).services.compact(options)

    def cluster(table: str, sort: str, options: dict[str, str]) -> None:
        hudi_fast.HudiTable.open(table).services.cluster({**options, **sorted_by(sort)})

    def lookup(table: str, keys: list[str]) -> list[tuple[str, int]]:
        rows = hudi_fast.HudiTable.open(table).to_arrow(filter=pc.field("uuid").isin(keys))
        return list(zip(rows["uuid"].to_pylist(), rows["ts"].to_pylist(), strict=True))

    return Verbs(read, keep, write, compact, cluster, lookup)


def spark_verbs(cores: int, computed: bool) -> tuple[Verbs, dict[str, str]]:
    """Calls that run on PySpark with ``cores`` cores, and the versions in use.

    Args:
        cores: of the session.
        computed: whether a function of Spark makes a column of the rows to write; its values do not change.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("against-hudi")
    for key, value in {**SPARK_SETTINGS, **WORKERS}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def write(rows: str, table: str, options: dict[str, str]) -> None:
        scanned = spark.read.parquet(rows)
        given = scanned.withColumn("distance", F.abs("distance")) if computed else scanned
        hudi_fast.write(given, table, options=options, mode="append")

    def read(table: str, options: dict[str, str]) -> None:
        hudi_fast.read(spark, table, options).write.format("noop").mode("overwrite").save()

    def keep(table: str, folder: str, options: dict[str, str]) -> None:
        hudi_fast.read(spark, table, options).write.mode("overwrite").parquet(folder)

    def compact(table: str, options: dict[str, str]) -> None:
        hudi_fast.HudiTable.open(table).services.compact(options, spark=spark)

    def cluster(table: str, sort: str, options: dict[str, str]) -> None:
        hudi_fast.HudiTable.open(table).services.cluster({**options, **sorted_by(sort)}, spark=spark)

    def lookup(table: str, keys: list[str]) -> list[tuple[str, int]]:
        listed = ", ".join(f"'{key}'" for key in keys)
        rows = hudi_fast.read(spark, table, filter=f"uuid IN ({listed})").collect()
        return [(row["uuid"], row["ts"]) for row in rows]

    return Verbs(read, keep, write, compact, cluster, lookup), {"spark": spark.version}


def sorted_by(columns: str) -> dict[str, str]:
    """The clustering option with the sort columns."""
    return {"hoodie.clustering.plan.strategy.sort.columns": columns} if columns else {}


def main() -> None:
    """Execute the work of the command line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work, own = parse_work(__doc__ or "")
    versions = {"hudi_fast": version("hudi-fast"), "pyarrow": pa.__version__}
    if own.engine != "local":
        verbs, more = spark_verbs(work.cores, own.engine == "spark_rows")
        versions.update(more)
    else:
        verbs = local_verbs(work.cores)
    run = timed(work, verbs, lambda: process_tree(os.getpid()))
    print(json.dumps({**run, "versions": versions, "options": write_options(work)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
