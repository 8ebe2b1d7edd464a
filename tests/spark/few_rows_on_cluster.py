"""Few rows into large tables, on a cluster: prints for each kind of write how it ran.

A line has the kind, the plan, the number of tasks that wrote files, and how many base files the driver opened. Small
files count as large here, because large ones would take minutes to make.

Arguments: a folder for the tables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hudi_fast as hf
from hudi_fast.spark.writing import broadcast
from hudi_fast.storage.base import Storage
from hudi_fast.writing import lookup
from tests.spark.spark_writes import batch
from tests.spark.test_spark_plans import PARTITIONED, SMALL_FILES, TABLE

RECORDS = {
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    "hoodie.metadata.global.record.level.index.enable": "true",
}
BOUND = 20_000
"""Bytes of the rows that the driver collects, and of files that it reads for them."""


def main(folder: Path) -> None:
    """Write to one table of each kind."""
    opened: list[str] = []
    original = Storage.open_input

    def open_input(self: Storage, path: str, size: int | None = None) -> Any:
        opened.append(path)
        return original(self, path, size)

    session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    spark = session.config("spark.executor.memory", "512m").getOrCreate()
    changes = batch(range(0, 2000, 100), ts=500)
    kinds = {
        "unpartitioned": (TABLE, batch(range(2000)), changes),
        "records": ({**PARTITIONED, **RECORDS}, batch(range(2000)), changes),
        "little": (TABLE, batch(range(20)), batch([1], ts=500)),
    }
    broadcast.PARTITION_BYTES = broadcast.LOOKUP_BYTES = BOUND
    lookup.is_little = lambda *_: False
    bound = {"hudi_fast.driver.max.bytes": str(BOUND)}
    for name, (options, stored, rows) in kinds.items():
        path = folder / name
        hf.write(stored, path, {**options, **SMALL_FILES})
        Storage.open_input = open_input  # type: ignore[method-assign]
        result = hf.write(spark.createDataFrame(rows), path, {**options, **SMALL_FILES, **bound})
        Storage.open_input = original  # type: ignore[method-assign]
        assert result.updates == rows.num_rows, result
        written = [one.name for one in path.rglob(f"*_{result.instant}.parquet") if ".hoodie" not in one.parts]
        tasks = {name_.split("_")[1].split("-")[0] for name_ in written}
        print(name, result.plan, len(tasks), sum(path.endswith(".parquet") for path in opened))
        opened.clear()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
