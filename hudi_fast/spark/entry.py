"""The interface of the Spark adapter to other packages; see :func:`hudi_fast.writing.backend.spark_adapter`."""

from __future__ import annotations

from hudi_fast.spark.backend import SparkBackend
from hudi_fast.spark.catalogs import sync_defaults
from hudi_fast.spark.dml import delete_where_on, merge_on, update_on
from hudi_fast.spark.reading.reader import read
from hudi_fast.spark.storage import storage_of

__all__ = ["SparkBackend", "delete_where_on", "merge_on", "read", "storage_of", "sync_defaults", "update_on"]
