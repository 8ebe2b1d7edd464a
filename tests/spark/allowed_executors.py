"""Prints how many tasks a session may run: it has no executor yet, and may have seven.

Arguments: none.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from hudi_fast.spark.arrow import parallelism, running_parallelism
from hudi_fast.spark.writing.workload import task_count

SETTINGS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.initialExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "7",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
}


def main() -> None:
    """Start the session and print."""
    builder = SparkSession.builder.master("local-cluster[1,1,1024]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    tasks = task_count(spark, 320 << 20), task_count(spark, 1 << 20, stored_bytes=319 << 20), task_count(spark, 1 << 40)
    print(running_parallelism(spark) < 7, parallelism(spark), *tasks)
    spark.stop()


if __name__ == "__main__":
    main()
