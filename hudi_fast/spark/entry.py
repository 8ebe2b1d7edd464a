"""What the rest of the package calls of the Spark engine."""

from __future__ import annotations

from typing import Any

from hudi_fast.bootstrapping.run import BootstrapCarriers
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.services.carriers import Carriers
from hudi_fast.spark.bootstrapping import carriers_of_bootstrap
from hudi_fast.spark.dml import delete_where_on, merge_on, update_on
from hudi_fast.spark.reading.reader import read
from hudi_fast.spark.services.clustering import cluster_on
from hudi_fast.spark.services.compaction import compact_on
from hudi_fast.spark.services.deleting import delete_on
from hudi_fast.spark.services.metadata import run_on as index_on
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark.writing.engine import SparkEngine

__all__ = [
    "bootstrap_on",
    "carriers_on",
    "delete_where_on",
    "engine_for",
    "merge_on",
    "read",
    "storage_of",
    "update_on",
]


def bootstrap_on(spark: Any, options: WriteOptions) -> BootstrapCarriers:
    """What does the work of a bootstrap with these options as tasks of a Spark session."""
    return carriers_of_bootstrap(spark, options.driver_max_bytes)


def engine_for(df: Any, options: WriteOptions) -> SparkEngine:
    """The engine that writes ``df``."""
    return SparkEngine(df, options)


def carriers_on(spark: Any, driver_bytes: int = 0) -> Carriers:
    """What does the work of services as tasks of a Spark session.

    Args:
        spark: the session.
        driver_bytes: work that reads less than that is done by the driver itself.
    """
    return Carriers(
        compact_on(spark, driver_bytes),
        cluster_on(spark, driver_bytes),
        index_on(spark, driver_bytes),
        delete_on(spark),
    )
