# The newest write was wrong. Look at the writes, then at some rows that the newest one changed.
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("undo").getOrCreate()

path = str(Path("fares").absolute())
spark.sql(f"CREATE TABLE fares USING hudi LOCATION '{path}'")
commits = spark.sql("CALL show_commits(table => 'fares')")
commits.show(truncate=False)
wrong, before = (row["commit_time"] for row in commits.orderBy("commit_time", ascending=False).take(2))
now = spark.read.format("hudi").load(path).selectExpr("id", "fare")
earlier = spark.read.format("hudi").option("as.of.instant", before).load(path).selectExpr("id", "fare as fare_before")
now.join(earlier, "id").where("fare <> fare_before").show(5)

# Undo it.
spark.sql(f"CALL rollback_to_instant(table => 'fares', instant_time => '{wrong}')").show()

found = spark.read.format("hudi").load(path).selectExpr("count(*)", "sum(fare)").first()
print(tuple(found))
