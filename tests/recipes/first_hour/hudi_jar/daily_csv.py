# Upsert the CSV file of a day. The first run creates the table.
import sys
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("daily csv").getOrCreate()

path = str(Path("fares").absolute())  # Apache Hudi needs an absolute path
options = {
    "hoodie.table.name": "fares",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
rows = spark.read.csv(sys.argv[1], header=True, inferSchema=True)
rows.write.format("hudi").options(**options).mode("append").save(path)

found = spark.read.format("hudi").load(path).selectExpr("count(*)", "sum(fare)").first()
print(tuple(found))
