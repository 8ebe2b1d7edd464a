# Create a table of three rows, then upsert two: one is newer than a stored row, one is new.
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("first rows").getOrCreate()

path = str(Path("trips").absolute())  # Apache Hudi needs an absolute path
options = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
first = spark.createDataFrame([(1, 9.5, 1), (2, 3.0, 1), (3, 7.25, 1)], "id long, fare double, ts long")
first.write.format("hudi").options(**options).mode("overwrite").save(path)
more = spark.createDataFrame([(3, 8.0, 2), (4, 2.5, 2)], "id long, fare double, ts long")
more.write.format("hudi").options(**options).mode("append").save(path)

# Read two columns of the rows that match a filter.
rows = spark.read.format("hudi").load(path).where("fare > 5").select("id", "fare").orderBy("id")
print([tuple(row) for row in rows.collect()])
