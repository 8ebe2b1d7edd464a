"""Program: the driver of a stream of files, which a test kills.

Usage: ``python -m tests.spark.stream_driver <folder> <table type>``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hudi_fast as hf
from tests.spark.stream_files import stream_of
from tests.support.small_tables import options


def main(folder: Path, kind: str) -> None:
    """Write all batches that there are, one file each; say ``batch <number>`` before one is written."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    settings = {
        **options(operation="insert"),
        "hoodie.datasource.write.table.type": kind,
        "hoodie.compact.inline.max.delta.commits": "2",
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "6",
    }
    sink = hf.sink(folder / "t", settings)

    def write(rows: Any, batch: int) -> None:
        print("batch", batch, flush=True)
        sink(rows, batch)

    writer = stream_of(spark, folder / "in").writeStream.foreachBatch(write).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    sink.wait()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
