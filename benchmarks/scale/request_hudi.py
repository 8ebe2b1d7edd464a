"""Apache Hudi 1.2.0 in the place of :mod:`benchmarks.scale.request_client`: the same steps, on Spark ``local[2]``.

Storage is S3A of Hadoop, with its own defaults for retries. Runs under ``.venv-hudi`` with PySpark and
the standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from side import hudi_settings

RELEASE = "1.2.0"
HADOOP_AWS = "org.apache.hadoop:hadoop-aws:3.3.4"  # of the Hadoop client that PySpark 3.5 comes with
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.fs.s3a.endpoint": os.environ.get("AWS_ENDPOINT_URL", ""),
    "spark.hadoop.fs.s3a.endpoint.region": os.environ.get("AWS_REGION", ""),
    "spark.hadoop.fs.s3a.access.key": os.environ.get("AWS_ACCESS_KEY_ID", ""),
    "spark.hadoop.fs.s3a.secret.key": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.connection.maximum": "1000",  # with the default, 96, an upsert of 10 files ran out of them
    "spark.hadoop.fs.s3a.directory.marker.retention": "keep",  # the default from Hadoop 3.4 on; fewer requests
}


def rows(spark: SparkSession, files: int, ts: int) -> DataFrame:
    """Two rows for each partition."""
    number = F.col("id")
    return spark.range(0, 2 * files, 1, 4).select(
        F.format_string("k%06d", number).alias("id"),
        F.format_string("p%04d", number % files).alias("part"),
        F.lit(ts).cast("long").alias("ts"),
    )


def main() -> None:
    """Carry out one step for each line, until there are no more."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--files", type=int, required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--settings", type=json.loads, required=True, help="options of every write")
    given = parser.parse_args()
    # Spark and Ivy print to descriptor 1; only answers may be printed there.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    bundle = hudi_settings(RELEASE)
    bundle["spark.jars.packages"] += f",{HADOOP_AWS}"
    spark = SparkSession.builder.master("local[2]").config(map={**SETTINGS, **bundle}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    path = given.path.replace("s3://", "s3a://")
    settings = {**given.settings, "hoodie.datasource.write.table.type": given.kind}
    for line in sys.stdin:
        step: dict[str, Any] = json.loads(line)
        begin = time.monotonic()
        if step["step"] == "upsert":
            rows(spark, given.files, step["ts"]).write.format("hudi").options(**settings).mode("append").save(path)
        else:
            found = spark.read.format("hudi").load(path).select("ts").collect()
            if [row[0] for row in found] != [step["ts"]] * (2 * given.files):
                raise SystemExit(f"{path}: expected {2 * given.files} rows of {step['ts']}, found {len(found)}")
        seconds = time.monotonic() - begin
        print(json.dumps({"files": given.files, "seconds": seconds}), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
