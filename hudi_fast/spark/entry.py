"""What the rest of the package calls of the Spark engine."""

from __future__ import annotations

from typing import Any

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.spark.compaction import compact_on
from hudi_fast.spark.engine import SparkEngine
from hudi_fast.spark.metadata import run_on as index_on
from hudi_fast.spark.reader import read

__all__ = ["compact_on", "engine_for", "index_on", "read"]


def engine_for(df: Any, options: WriteOptions) -> SparkEngine:
    """The engine that writes ``df``."""
    return SparkEngine(df, options)
