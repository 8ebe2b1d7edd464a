"""A program: a table that is saved by name, looked at by name, and changed in every way there is.

Arguments: a scratch folder; ``classic`` or ``connect``. Prints the answers, which are the same everywhere.
"""

from __future__ import annotations

import sys
import warnings

import pyarrow.compute as pc
from pyspark.sql import SparkSession

import hudi_fast as hf

TABLE = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def main(folder, kind):
    """Saved, looked at, changed by others, widened, gone."""
    builder = SparkSession.builder
    builder = builder.remote("local[2]") if kind == "connect" else builder.master("local[2]")
    if kind != "connect":
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    hf.accelerate(spark)
    warnings.simplefilter("error")

    def frame(*rows):
        return spark.createDataFrame(rows, "id string, v int, part string")

    def show(title):
        of_sql = spark.sql("SELECT id, v FROM rides ORDER BY id").collect()
        assert of_sql == spark.table("rides").select("id", "v").orderBy("id").collect()
        assert of_sql == spark.read.table("Rides").select("id", "v").orderBy("id").collect()
        print(title, *[f"{row['id']}={row['v']}" for row in of_sql])

    path = f"{folder}/t"
    writer = frame(("a", 1, "x"), ("b", 2, "y")).write.format("hudi").options(**TABLE).option("path", path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        writer.partitionBy("part").saveAsTable("rides")
    assert sum("lives as long as this session" in str(one.message) for one in caught) == (kind == "connect")
    show("saved")
    frame(("b", 20, "y"), ("c", 3, "y")).write.format("hudi").mode("append").saveAsTable("rides")
    show("appended")
    frame(("d", 4, "x")).write.format("hudi").option("hoodie.table.name", "rides").mode("append").save(path)
    show("saved to the path")
    spark.sql("CREATE TEMPORARY VIEW dear AS SELECT id FROM rides WHERE v > 3")
    hf.write(frame(("e", 5, "x")), path, {"hoodie.table.name": "rides"})
    print(sorted(row[0] for row in spark.sql("SELECT id FROM dear").collect()))
    hf.delete(None, path, pc.field("id") == "a")
    show("deleted without Spark")
    wide = spark.createDataFrame([("f", 6, "x", 1.5)], "id string, v int, part string, fare double")
    wide.write.format("hudi").mode("append").saveAsTable("rides")
    print(spark.sql("SELECT fare FROM rides WHERE id = 'f'").collect()[0][0])
    frame(("z", 26, "z")).write.format("hudi").options(**TABLE).mode("overwrite").option("path", path).saveAsTable(
        "rides"
    )
    show("overwritten")
    hf.accelerate(spark, False)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
