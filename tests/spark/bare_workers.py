"""A program: a write in a session whose Python workers lack our packages.

Argument: a scratch folder. Prints the error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import hudi_fast as hf
from tests.spark.spark_writes import batch, frame
from tests.support.small_tables import options


def main(folder: Path) -> None:
    """Force a plan that needs workers."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        hf.write(frame(spark, batch(range(10))), folder / "t", options() | {"hudi_fast.plan": "fused"})
    except hf.ConfigError as error:
        print(error)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
