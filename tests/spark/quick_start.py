"""A program: a first day with Hudi through Spark's own calls. What it does is Hudi's; who does it, one line decides.

Arguments: a scratch folder, and ``classic`` or ``connect`` for a session that hudi_fast works for, or the release of
Apache Hudi to run it on, unchanged but for that line. Prints the answers to its queries, without times: they are the
same for all.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

RIDES = [
    (1695159649087, "r-01", "Ana", "tandem", 19.10, "lisboa"),
    (1695091554788, "r-02", "Bea", "cargo", 27.70, "lisboa"),
    (1695046462179, "r-03", "Ciro", "city", 33.90, "lisboa"),
    (1695332066204, "r-04", "Dora", "city", 93.50, "lisboa"),
    (1695516137016, "r-05", "Emil", "tandem", 34.15, "recife"),
    (1695376420876, "r-06", "Fay", "cargo", 43.40, "recife"),
    (1695173887231, "r-07", "Gil", "city", 17.85, "pune"),
    (1695115999911, "r-08", "Hana", "city", 41.06, "pune"),
]
COLUMNS = "ts long, ride string, rider string, bike string, fare double, city string"
KEYS = {
    "hoodie.datasource.write.recordkey.field": "ride",
    "hoodie.datasource.write.precombine.field": "ts",
}
OPERATION = "hoodie.datasource.write.operation"


def show(title, frame, *columns):
    """Print rows in an order of their own."""
    print(f"-- {title}")
    for row in sorted(tuple(map(str, row)) for row in frame.select(*columns).collect()):
        print("  ", *row)


def keyless(spark, path, table_type):
    """A table that makes its keys itself: rows are read from it, changed, and written back."""
    table = {
        "hoodie.table.name": "rides",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.partitionpath.field": "city",
    }
    spark.createDataFrame(RIDES, COLUMNS).write.format("hudi").options(**table).mode("overwrite").save(path)
    spark.read.format("hudi").load(path).createOrReplaceTempView("rides")
    show("dear rides", spark.sql("SELECT ride, fare FROM rides WHERE fare > 30"), "ride", "fare")

    rows = spark.read.format("hudi").load(path)
    first = rows.agg(F.max("_hoodie_commit_time")).collect()[0][0]
    updated = rows.filter("rider = 'Dora'").withColumn("fare", F.col("fare") * 10)
    updated.write.format("hudi").option(OPERATION, "upsert").options(**table).mode("append").save(path)
    show("Dora pays more", spark.read.format("hudi").load(path), "ride", "fare")

    gone = spark.read.format("hudi").load(path).filter("rider = 'Fay'")
    gone.write.format("hudi").option(OPERATION, "delete").options(**table).mode("append").save(path)
    show("Fay is gone", spark.read.format("hudi").load(path), "ride", "rider")

    late = spark.createDataFrame([(1695700000000, "r-09", "Ida", "city", 5.0, "pune")], COLUMNS)
    late.write.format("hudi").options(**table).mode("append").save(path)
    show("Ida comes", spark.read.format("hudi").load(path).filter("city = 'pune'"), "ride", "rider")

    show("on the first day", spark.read.format("hudi").option("as.of.instant", first).load(path), "ride", "fare")


def keyed(spark, path, table_type):
    """A table with record keys, an ordering field and change data."""
    table = {
        "hoodie.table.name": "rides_by_key",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.table.cdc.enabled": "true",
        **KEYS,
    }

    def write(rows, operation, mode="append"):
        frame = spark.createDataFrame(rows, COLUMNS)
        writer = frame.write.format("hudi").options(**table).option(OPERATION, operation).partitionBy("city")
        writer.mode(mode).save(path)

    write(RIDES, "insert", "errorifexists")
    first = spark.read.format("hudi").load(path).agg(F.max("_hoodie_commit_time")).collect()[0][0]
    changed = [(ts + 1, ride, rider, bike, fare + 1, city) for ts, ride, rider, bike, fare, city in RIDES[:3]]
    write([*changed, (1, "r-07", "Gil", "city", 0.0, "pune")], "upsert")
    show("late news loses", spark.read.format("hudi").load(path), "ride", "fare")
    write(RIDES[4:5], "delete")
    show("r-05 is gone", spark.read.format("hudi").load(path), "ride", "fare")

    since = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": first}
    news = spark.read.format("hudi").options(**since).load(path)
    show("all that was written", news, "ride", "fare")
    changes = (
        spark.read.format("hudi").options(**since, **{"hoodie.datasource.query.incremental.format": "cdc"}).load(path)
    )
    fares = [F.get_json_object(image, "$.fare").alias(image) for image in ("before", "after")]
    rides = F.coalesce(*[F.get_json_object(image, "$.ride") for image in ("after", "before")])
    show("change by change", changes, rides, "op", *fares)

    write([(1695800000000, "r-10", "Jon", "city", 8.5, "pune")], "insert_overwrite")
    show("pune anew", spark.read.format("hudi").load(path), "ride", "city")


def main(folder, kind):
    """Both tables in both table types."""
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    if kind == "connect":
        spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
    elif kind == "classic":
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
    else:
        from tests.peer.server import start_session

        spark = start_session(kind, folder)
    if kind in ("connect", "classic"):
        import hudi_fast as hf

        hf.accelerate(spark)
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        print(table_type)
        keyless(spark, f"{folder}/keyless/{table_type}", table_type)
        keyed(spark, f"{folder}/keyed/{table_type}", table_type)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
