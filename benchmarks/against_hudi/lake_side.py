"""The sides of Delta Lake and Iceberg on Spark 3.5, ``--engine delta`` or ``iceberg``: ``MERGE INTO`` by key.

A write of a new table loads it. A merge keeps the row with the larger ``ts``. ``--table-type MERGE_ON_READ`` is
Iceberg's merge-on-read. Prints one JSON line, like the other sides.

Iceberg's metadata has absolute paths, so a starting table is used at the path where it was made.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from side import SPARK_SETTINGS, Verbs, parse_work, process_tree, timed

RELEASES = {"delta": "3.3.2", "iceberg": "1.10.0"}
SETTINGS = {
    "delta": {
        "spark.jars.packages": f"io.delta:delta-spark_2.12:{RELEASES['delta']}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.parquet.compression.codec": "zstd",
    },
    "iceberg": {
        "spark.jars.packages": f"org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:{RELEASES['iceberg']}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.cache-enabled": "false",
    },
}
ICEBERG_MODES = {"COPY_ON_WRITE": "copy-on-write", "MERGE_ON_READ": "merge-on-read"}


def verbs_of(engine: str, table_type: str, cores: int, out: str) -> tuple[Verbs, str]:
    """The calls of a side, and Spark's version. Tables of Iceberg are in the folder of ``out``."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").appName("others")
    more = {"spark.sql.catalog.lake.warehouse": os.path.dirname(out)} if engine == "iceberg" else {}
    ivy = {"spark.jars.ivy": os.path.join(os.path.expanduser("~"), ".ivy2")}
    for key, value in {**SPARK_SETTINGS, **SETTINGS[engine], **more, **ivy}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def name(table: str) -> str:
        return f"delta.`{table}`" if engine == "delta" else f"lake.`{os.path.basename(table)}`"

    def rows_of(table: str) -> Any:
        if engine == "delta":  # the table may have been replaced by a copy of an earlier version
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        return spark.table(name(table))

    def load(rows: str, table: str) -> None:
        source = spark.read.parquet(rows)
        if engine == "delta":
            source.write.format("delta").partitionBy("city").save(table)
            return
        modes = {f"write.{verb}.mode": ICEBERG_MODES[table_type] for verb in ("merge", "update", "delete")}
        writer = source.writeTo(name(table)).partitionedBy("city").tableProperty("format-version", "2")
        for key, value in modes.items():
            writer = writer.tableProperty(key, value)
        writer.create()

    def write(rows: str, table: str, _: dict[str, str]) -> None:
        if not os.path.exists(table):
            load(rows, table)
            return
        rows_of(table)
        spark.read.parquet(rows).createOrReplaceTempView("source")
        spark.sql(
            f"MERGE INTO {name(table)} t USING source s ON t.uuid = s.uuid AND t.city = s.city "
            "WHEN MATCHED AND s.ts >= t.ts THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def read(table: str, _: dict[str, str]) -> None:
        rows_of(table).write.format("noop").mode("overwrite").save()

    def keep(table: str, folder: str, _: dict[str, str]) -> None:
        rows_of(table).write.mode("overwrite").parquet(folder)

    return Verbs(read, keep, write), spark.version


def main() -> None:
    """Execute the work of the command line."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work, own = parse_work(__doc__ or "")
    verbs, spark = verbs_of(own.engine, work.table_type, work.cores, work.start or work.out)
    run = timed(work, verbs, lambda: process_tree(os.getpid()))
    versions = {own.engine: RELEASES[own.engine], "spark": spark}
    print(json.dumps({**run, "versions": versions, "options": {}}), file=answers, flush=True)


if __name__ == "__main__":
    main()
