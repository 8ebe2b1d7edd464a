"""A program: a change query on whatever PySpark runs it. Prints the session's module and release, and how many changes.

Argument: a scratch folder; ``connect`` after it for a session of Spark Connect.
"""

from __future__ import annotations

import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession

import hudi_fast as hf


def main(folder: str, kind: str = "classic") -> None:
    builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")).getOrCreate()
    path = f"{folder}/t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": "true",
    }
    for ts in (1, 2):
        rows = pa.table(
            {"id": [f"k{number}" for number in range(4 * ts)], "ts": [ts] * (4 * ts), "x": [0.5] * (4 * ts)}
        )
        hf.write(rows, path, options)
    read = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "earliest",
    }
    changes = sorted(map(repr, map(tuple, hf.read(spark, path, read).collect())))
    assert changes == sorted(repr(tuple(row.values())) for row in hf.HudiTable.open(path).cdc("earliest").to_pylist())
    print(type(spark).__module__, spark.version, len(changes))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
