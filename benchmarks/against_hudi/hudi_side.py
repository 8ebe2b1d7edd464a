"""The side of Apache Hudi: runs under ``.venv-hudi`` and prints one JSON line (:class:`side.Run`).

The session is warmed up before the timed runs. Memory is that of the JVM and of this interpreter.
"""

from __future__ import annotations

import json
import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from side import SPARK_SETTINGS, Verbs, hudi_settings, parse_work, process_tree, timed, write_options


def session(version: str, cores: int) -> SparkSession:
    """A local session with the Hudi bundle of that release."""
    builder = SparkSession.builder.master(f"local[{cores}]").appName("against-hudi")
    spark = builder.config(map={**SPARK_SETTINGS, **hudi_settings(version)}).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def verbs_of(spark: SparkSession) -> Verbs:
    """The calls of an Apache Hudi user."""

    def write(rows: str, table: str, options: dict[str, str]) -> None:
        spark.read.parquet(rows).write.format("hudi").options(**options).mode("append").save(table)

    def read(table: str, options: dict[str, str]) -> None:
        spark.read.format("hudi").options(**options).load(table).write.format("noop").mode("overwrite").save()

    def keep(table: str, folder: str, options: dict[str, str]) -> None:
        spark.read.format("hudi").options(**options).load(table).write.mode("overwrite").parquet(folder)

    def compact(table: str, options: dict[str, str]) -> None:
        # A procedure takes its settings as one string.
        settings = ",".join(f"{key}={value}" for key, value in options.items())
        told = f"op => 'scheduleAndExecute', path => '{table}', options => '{settings}'"
        done = spark.sql(f"CALL run_compaction({told})").collect()
        if not done:
            raise RuntimeError(f"Apache Hudi found nothing to compact in {table}")

    def cluster(table: str, sort: str, options: dict[str, str]) -> None:
        settings = ",".join(f"{key}={value}" for key, value in options.items())
        told = f"op => 'scheduleAndExecute', path => '{table}', options => '{settings}'"
        order = f", order => '{sort}'" if sort else ""
        done = spark.sql(f"CALL run_clustering({told}{order})").collect()
        if not done:
            raise RuntimeError(f"Apache Hudi found nothing to cluster in {table}")

    def lookup(table: str, keys: list[str]) -> list[tuple[str, int]]:
        rows = spark.read.format("hudi").load(table).where(F.col("uuid").isin(keys)).collect()
        return [(row["uuid"], row["ts"]) for row in rows]

    return Verbs(read, keep, write, compact, cluster, lookup)


def main() -> None:
    """Execute the work of the command line."""
    # Spark and Ivy print to descriptor 1; only the result may be printed there.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work, own = parse_work(__doc__ or "")
    spark = session(own.version, work.cores)
    run = timed(work, verbs_of(spark), lambda: process_tree(os.getpid()))
    versions = {"hudi": own.version, "spark": spark.version}
    print(json.dumps({**run, "versions": versions, "options": write_options(work)}), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
