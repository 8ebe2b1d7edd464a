# A job that upserts the rows of a CSV file into a table.
import os
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("rides").getOrCreate()

path = str(Path("rides").absolute())
options = dict(line.strip().split("=", 1) for line in open("move_job.properties"))
rows = spark.read.csv(f"incoming/{os.environ['DAY']}.csv", header=True, inferSchema=True)
rows.write.format("hudi").options(**options).mode("append").save(path)

found = spark.read.format("hudi").load(path).selectExpr("count(*)", "sum(fare)").first()
print(tuple(found))
