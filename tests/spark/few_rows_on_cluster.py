"""Few rows into large tables, on a cluster: prints for each kind of write how it ran.

A line has the kind, the plan, the number of tasks that wrote files, and how many base files the driver opened. Small
files count as large here, because large ones would take minutes to make.

Arguments: a folder for the tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import hudi_fast as hf
from hudi_fast.spark.writing import broadcast
from hudi_fast.writing import lookup
from tests.spark.spark_writes import base_files_opened, batch, tasks_of
from tests.spark.test_spark_broadcast import INDEXES
from tests.spark.test_spark_plans import PARTITIONED, SMALL_FILES, TABLE

BOUND = 20_000
"""Bytes of the rows that the driver collects, and of files that it reads for them."""


def main(folder: Path) -> None:
    """Write to one table of each kind."""
    session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    spark = session.config("spark.executor.memory", "512m").getOrCreate()
    changes = batch(range(0, 2000, 100), ts=500)
    kinds = {
        "unpartitioned": (TABLE, batch(range(2000)), changes),
        "records": ({**PARTITIONED, **INDEXES["records"]}, batch(range(2000)), changes),
        "little": (TABLE, batch(range(20)), batch([1], ts=500)),
    }
    broadcast.PARTITION_BYTES = broadcast.LOOKUP_BYTES = BOUND
    lookup.is_little = lambda *_: False
    bound = {"hudi_fast.driver.max.bytes": str(BOUND)}
    for name, (options, stored, rows) in kinds.items():
        path = folder / name
        hf.write(stored, path, {**options, **SMALL_FILES})
        with base_files_opened() as opened:
            result = hf.write(spark.createDataFrame(rows), path, {**options, **SMALL_FILES, **bound})
        assert result.updates == rows.num_rows, result
        print(name, result.plan, len(tasks_of(path, result.instant)), len(opened))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
