"""A program: writes whose Python workers have too little memory, or are killed.

Argument: a scratch folder. Workers have ``spark.executor.pyspark.memory``. One write has a worker that is killed,
another one has workers that need more memory. For each the program prints the error, and the number of rows of the
table afterwards.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.spark.spark_writes import batch
from tests.support.small_tables import assert_tidy

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
MEMORY = "2200m"  # libraries take 1.6 GiB of addresses, hardly any of which is resident
ROWS, WIDTH = 150_000, 6_000


def main(folder: Path) -> None:
    """Two writes that fail; the table is as before them."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.executor.pyspark.memory": MEMORY,
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    first = batch(range(10)).select(["id", "part", "ts"])
    hf.write(first.append_column("note", pa.nulls(10, pa.string())), folder / "t", OPTIONS)
    few = wide_rows(spark, 10)
    for rows in (few.mapInArrow(die, few.schema), wide_rows(spark, ROWS)):
        try:
            hf.write(rows, folder / "t", {**OPTIONS, "hudi_fast.plan": "fused"})
        except hf.HudiError as error:
            print(type(error).__name__, error)
        print(hf.HudiTable.open(folder / "t").to_arrow(["id"]).num_rows)
    spark.stop()
    assert_tidy(folder / "t")


def wide_rows(spark: SparkSession, count: int) -> DataFrame:
    """Rows of one table partition, in two tasks."""
    rows = spark.range(0, count, 1, 2)
    rows = rows.select(F.format_string("k%09d", "id").alias("id"), F.lit("p0").alias("part"), F.col("id").alias("ts"))
    return rows.withColumn("note", F.repeat(F.col("id"), WIDTH // 10))


def die(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Kill this worker, as the system does where a container has no memory left."""
    yield from batches
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
