"""One side of :mod:`benchmarks.scale.cluster`: a Spark driver that writes as it is asked.

Arguments: ``hudi_fast`` or ``hudi``, URL of the master, memory of an executor. Each line on standard input is a step as
JSON: ``rows``, a folder of Parquet files; ``table``; ``options``. For each line the program prints the seconds of the
write. A step without ``rows`` has ``make``: it writes the rows of a shape as Parquet.

Uses PySpark and the standard library only, because the interpreter of Apache Hudi's virtual environment runs it, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from side import hudi_settings

PARTITIONS = 20
RELEASE = "1.2.0"  # of Apache Hudi
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
OUR_SETTINGS = {
    # The cache of kernels that this user has: an image of a cluster has one, too (docs/kernels.md).
    "spark.executorEnv.NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", os.path.expanduser("~/.cache")),
}


def batch(spark: SparkSession, rows: int, step: int, ts: int, share: float) -> DataFrame:
    """Every ``step``-th row, with a share of them in one partition; each column is a function of number and ``ts``."""
    number = F.col("id")
    in_large = F.pmod(F.hash(number, F.lit(1)), F.lit(1000)) < int(share * 1000)
    part = F.when(in_large, F.lit(0)).otherwise(F.pmod(F.hash(number, F.lit(2)), F.lit(PARTITIONS)))
    return spark.range(0, rows, step, 4).select(
        F.format_string("key-%012d", number).alias("id"),
        F.format_string("p%02d", part).alias("part"),
        F.lit(ts).cast("long").alias("ts"),
        number.alias("value"),
        F.sha2(F.concat_ws("-", number, F.lit(ts)), 512).alias("text"),
    )


def main(side: str, url: str, memory: str) -> None:
    """Write until the input ends."""
    # Spark and Ivy print to descriptor 1; only answers may be printed there.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = {
        **SETTINGS,
        **(hudi_settings(RELEASE) if side == "hudi" else OUR_SETTINGS),
        "spark.executor.memory": memory,
    }
    spark = SparkSession.builder.master(url).appName(side).config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"spark": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        step = json.loads(line)
        begin = time.perf_counter()
        answer: dict[str, Any] = {}
        if "make" in step:
            batch(spark, **step["make"]).write.parquet(step["table"])
        elif side == "hudi":
            rows = spark.read.parquet(step["rows"])
            rows.write.format("hudi").options(**step["options"]).mode("append").save(step["table"])
        else:
            import hudi_fast as hf

            answer["plan"] = hf.write(spark.read.parquet(step["rows"]), step["table"], step["options"]).plan
        answer["seconds"] = time.perf_counter() - begin
        print(json.dumps(answer), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
