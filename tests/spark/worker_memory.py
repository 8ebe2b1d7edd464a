"""A program: how much memory Python workers take to rewrite a file group of 120 MiB.

Arguments: a scratch folder, a plan. Prints the size of the file and the workers' peak, in MiB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hudi_fast as hf

ROWS = 1_250_000
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.parquet.max.file.size": str(200 << 20),
    "hudi_fast.threads": "1",
}


def main(folder: Path, plan: str) -> None:
    """A file group of rows that do not compress; a fifth of them updated."""
    noise = pa.py_buffer(np.random.default_rng(0).bytes(ROWS * 100))
    data = pa.Array.from_buffers(pa.binary(100), ROWS, [None, noise]).cast(pa.binary())
    ids = pa.array(np.arange(ROWS)).cast(pa.string())
    rows = pa.table({"id": ids, "ts": pa.array(np.ones(ROWS, dtype=np.int64)), "data": data})
    hf.write(rows, folder / "t", {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"})
    (size,) = hf.HudiTable.open(folder / "t").files()["bytes"].to_pylist()
    del rows, data, noise
    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    changes = spark.range(0, ROWS, 5).select(
        F.col("id").cast("string").alias("id"),
        F.lit(2).cast("long").alias("ts"),
        F.sha2(F.col("id").cast("string"), 512).cast("binary").alias("data"),
    )
    result = hf.write(changes, folder / "t", {**OPTIONS, "hudi_fast.plan": plan})
    assert result.updates == ROWS // 5, result
    print(size >> 20, max(row["mib"] for row in spark.range(0, 16, 1, 16).mapInArrow(peak, "mib long").collect()))
    spark.stop()


def peak(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The most memory that this worker has had resident."""
    list(batches)
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    yield pa.RecordBatch.from_pydict({"mib": [int(line.split()[1]) >> 10]})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
