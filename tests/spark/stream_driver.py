"""Program: the driver of a stream of files, which a test kills.

Usage: ``python -m tests.spark.stream_driver <folder> <table type> [complete]``: with ``complete`` the table holds the
newest number of each partition path.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf
from tests.spark.stream_files import stream_of
from tests.support.small_tables import options


def main(folder: Path, kind: str, mode: str) -> None:
    """Write all batches that there are, one file each; say ``batch <number>`` before one is written."""
    given = {"spark.ui.enabled": "false", "spark.python.daemon.module": "hudi_fast.spark.daemon"}
    spark = SparkSession.builder.master("local[2]").config(map=given).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    settings = {
        **(options() if mode == "complete" else options(operation="insert")),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
    }
    sink = hf.sink(folder / "t", settings, mode)

    def write(rows: Any, batch: int) -> None:
        print("batch", batch, flush=True)
        sink(rows, batch)

    rows = stream_of(spark, folder / "in")
    if mode == "complete":
        rows = rows.groupBy("part").agg(F.max("number").alias("number"), F.max("ts").alias("ts"))
        rows = rows.withColumn("id", F.col("part"))
    writer = rows.writeStream.foreachBatch(write).trigger(availableNow=True).outputMode(mode)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    sink.wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "complete" if "complete" in sys.argv else "append")
