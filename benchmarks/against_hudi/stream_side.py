"""One side of :mod:`streams`: a query that upserts one file per batch into a table; prints one JSON line.

Runs under ``.venv-hudi`` with Apache Hudi's sink (``--side hudi``), or under ``.venv`` with ``hudi_fast.sink``
(``--side spark``) or, without Spark, ``hudi_fast.Streamer`` (``--side streamer``). A short stream into another table
warms up and is not timed. Spark measures the seconds of each batch (``triggerExecution``), and the streamer those of
each turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from side import SPARK_SETTINGS, hudi_settings

COLUMNS = "id long, part string, ts long, name string, value double"


def session(side: str, version: str, cores: int) -> Any:
    """A local session; for Apache Hudi with the bundle of that release."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {**SPARK_SETTINGS, "spark.driver.memory": "3g", "spark.sql.shuffle.partitions": str(cores)}
    if side == "hudi":
        settings |= hudi_settings(version)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("streams")
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def options(kind: str) -> dict[str, str]:
    """The options of the sink, the same for both sides."""
    return {
        "hoodie.table.name": "streamed",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.parquet.compression.codec": "zstd",
        "hoodie.clean.commits.retained": "5",
        "hoodie.keep.min.commits": "10",
        "hoodie.keep.max.commits": "15",
    }


def stream(spark: Any, side: str, source: str, table: str, kind: str) -> list[float]:
    """Write all files; returns the seconds of every batch."""
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", "1").parquet(source)
    writer: Any = files.writeStream.option("checkpointLocation", f"{table}-checkpoint").trigger(availableNow=True)
    if side == "hudi":
        query = writer.format("hudi").options(**options(kind)).start(table)
    else:
        import hudi_fast

        query = writer.foreachBatch(hudi_fast.sink(table, options(kind))).start()
    query.awaitTermination()
    done = [one for one in query.recentProgress if one["numInputRows"]]
    return [one["durationMs"]["triggerExecution"] / 1000 for one in done]


def turns(source: str, table: str, kind: str) -> list[float]:
    """Write all files by the streamer of one process, a file a turn; returns the seconds of every turn."""
    import hudi_fast

    given = {**options(kind), "hoodie.streamer.source.dfs.root": source}
    streamer = hudi_fast.Streamer(
        given, source_class="ParquetDFSSource", target_base_path=table, table_type=kind, op="UPSERT", source_limit=1
    )
    seconds = []
    while (turn := streamer.turn()).instant:
        seconds.append(turn.seconds)
    streamer.close()
    return seconds


def main() -> None:
    """Execute the work of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("side", "warm", "source", "table", "kind", "version"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cores", type=int, required=True)
    asked = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = None if asked.side == "streamer" else session(asked.side, asked.version, asked.cores)

    def streamed(source: str, table: str) -> list[float]:
        return (
            turns(source, table, asked.kind) if spark is None else stream(spark, asked.side, source, table, asked.kind)
        )

    streamed(asked.warm, f"{asked.table}-warm")
    begun = time.perf_counter()
    batches = streamed(asked.source, asked.table)
    print(json.dumps({"seconds": time.perf_counter() - begun, "batches": batches}), file=answers, flush=True)
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
