"""A program: dbt builds a project of Hudi tables twice, with new rows in between, in a session of hudi_fast.

Arguments: a scratch folder; the folder of the project. Prints rows of the models as JSON.
"""

from __future__ import annotations

import json
import os
import sys

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import hudi_fast as hf

MODELS = ("fares", "daily", "totals", "log")


def build(folder, project, *more):
    """``dbt build``."""
    places = ["--project-dir", project, "--profiles-dir", project, "--target-path", f"{folder}/target"]
    done = dbtRunner().invoke(["build", *places, "--log-path", f"{folder}/logs", "--quiet", *more])
    if not done.success:
        failed = [f"{one.node.name}: {one.message}" for one in getattr(done.result, "results", ()) if one.message]
        raise SystemExit("\n".join([str(done.exception), *failed]))


def main(folder, project):
    """Build, add rows, and build again."""
    os.chdir(folder)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport()
    builder = builder.config("spark.sql.shuffle.partitions", 2).config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    spark = builder.getOrCreate()
    hf.accelerate(spark)
    spark.sql("CREATE TABLE raw_rides (ride string, city string, fare double, ts bigint) USING hudi")
    spark.sql("INSERT INTO raw_rides VALUES ('a', 'Oslo', 10, 1), ('b', 'Rome', 20, 2)")
    answers = []
    for since, with_country in ((0, False), (2, True)):
        build(folder, project, "--vars", json.dumps({"since": since, "with_country": with_country}))
        found = {name: spark.table(f"rides.{name}") for name in MODELS}
        answers.append({
            "fares": rows(found["fares"], "ride", "fare", "city"),
            "daily": rows(found["daily"], "city", "rides", "fare"),
            "totals": rows(found["totals"], "country", "fare"),
            "log": rows(found["log"], "ts"),
            "columns": [name for name in found["fares"].columns if not name.startswith("_hoodie")],
        })  # fmt: skip
        spark.sql("INSERT INTO raw_rides VALUES ('b', 'Rome', 25, 3), ('c', 'Oslo', 5, 4)")
    details = spark.sql("DESCRIBE EXTENDED rides.fares").collect()
    print(json.dumps({"answers": answers, "described": [list(row) for row in details]}))
    spark.stop()


def rows(frame, *columns):
    return sorted(list(row) for row in frame.selectExpr(*columns).collect())


if __name__ == "__main__":
    main(*sys.argv[1:])
