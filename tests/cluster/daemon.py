"""A program: PySpark's daemon of Python workers, which imports the library once before it forks workers.

Workers that are killed are replaced at once, so that a test can kill many.
"""

from __future__ import annotations

import pyarrow.parquet
from pyspark.daemon import manager

import hudi_fast.spark.backend
import hudi_fast.spark.writing.engine

__all__ = ["PRELOADED"]

PRELOADED = (pyarrow.parquet, hudi_fast.spark.backend, hudi_fast.spark.writing.engine)

if __name__ == "__main__":
    manager()
