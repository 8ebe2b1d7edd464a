"""The process whose requests :mod:`benchmarks.scale.requests` counts: steps on one table of an S3 server.

::

    parent                                this process
    {"step": "upsert", "ts": 2}  ───────► hf.write ...
    counts, checks rows          ◄─────── {"seconds": 3.1, "files": 100}

One line of JSON each. The table has one file of two rows in each partition. Storage options come from the environment.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import hudi_fast as hf

__all__ = ["SETTINGS", "rows"]

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.bloom.num_entries": "100",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
}


def rows(files: int, ts: int) -> pa.Table:
    """Two rows for each partition."""
    numbers = range(2 * files)
    return pa.table(
        {
            "id": [f"k{number:06d}" for number in numbers],
            "part": [f"p{number % files:04d}" for number in numbers],
            "ts": [ts] * len(numbers),
        }
    )


def main() -> None:
    """Carry out one step for each line, until there are no more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--threads", required=True)
    parser.add_argument("--spark", action="store_true")
    given = parser.parse_args()
    spark = _session() if given.spark else None
    settings = {**SETTINGS, "hoodie.datasource.write.table.type": given.kind, "hudi_fast.threads": given.threads}
    steps = _steps(given.path, given.files, settings, spark)
    for line in sys.stdin:
        asked = json.loads(line)
        begin = time.monotonic()
        try:
            files = steps[asked["step"]](asked["ts"])
            answer: dict[str, Any] = {"files": files}
        except hf.HudiError as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({**answer, "seconds": time.monotonic() - begin}), flush=True)


def _steps(path: str, files: int, settings: dict[str, str], spark: Any) -> dict[str, Callable[[int], int]]:
    """What each step does; its argument is the value of the column ``ts``; it returns the number of files."""

    def write(ts: int) -> int:
        if spark is None:
            return hf.write(rows(files, ts), path, settings).files_written
        frame = spark.createDataFrame(rows(files, ts).to_pandas()).repartition(4)
        return hf.write(frame, path, {**settings, "hudi_fast.plan": "fused"}).files_written

    def rollback(_: int) -> int:
        table = hf.HudiTable.open(path)
        newest = str(table.history()["instant"].to_pylist()[-1])
        return table.services.rollback(newest, settings, spark=spark).files_deleted

    def clean(_: int) -> int:
        return hf.HudiTable.open(path).services.clean(settings, spark=spark).files_deleted

    def plan(_: int) -> int:
        if spark is None:
            return int(hf.HudiTable.open(path).explain()["after"].to_pylist()[-1])
        hf.read(spark, path)
        return files

    def read(ts: int) -> int:
        found = hf.HudiTable.open(path).to_arrow(columns=["ts"])["ts"].to_pylist() if spark is None else _on_spark()
        if found != [ts] * (2 * files):
            raise SystemExit(f"{path}: expected {2 * files} rows of {ts}, found {len(found)}")
        return files

    def _on_spark() -> list[int]:
        return [row[0] for row in hf.read(spark, path, columns=["ts"]).collect()]

    return {"upsert": write, "rollback": rollback, "clean": clean, "plan of a read": plan, "snapshot read": read}


def _session() -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2,4]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    main()
