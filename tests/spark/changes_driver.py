"""Program: the driver of a stream from table to table by ``hf.stream_changes``, which a test may kill.

Usage: ``python -m tests.spark.changes_driver <folder> [connect] [hang]``. It copies ``<folder>/source`` to
``<folder>/copy``, one commit a batch. Says ``batch <number> <rows>`` before a batch is written, and at the end the
module of the session's class and the release of Spark. With ``hang`` a batch never ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hudi_fast as hf
from tests.support.small_tables import options

LIMIT = {"hudi_fast.stream.max.commits": "1"}
SETTINGS = options(operation="insert")


def main(folder: Path, connect: bool, hangs: bool) -> None:
    """Copy all that there is."""
    given = {"spark.ui.enabled": "false", "spark.python.daemon.module": "hudi_fast.spark.daemon"}
    builder = SparkSession.builder.config(map=given)
    spark = (builder.remote("local[2]") if connect else builder.master("local[2]")).getOrCreate()
    if not connect:
        spark.sparkContext.setLogLevel("OFF")
    sink = hf.sink(folder / "copy", SETTINGS)

    def write(rows: Any, batch: int) -> None:
        print("batch", batch, rows.count(), flush=True)
        while hangs:
            time.sleep(1)
        sink(rows.select("id", "part", "ts", "number"), batch)

    query = hf.stream_changes(
        spark, folder / "source", write, LIMIT, checkpoint=folder / "checkpoint", trigger={"availableNow": True}
    )
    query.awaitTermination()
    print(type(spark).__module__, spark.version)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "connect" in sys.argv, "hang" in sys.argv)
