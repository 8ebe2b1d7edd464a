"""What syncing a catalog takes from a session: its metastore and its version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_fast.config.sync_options import SyncOptions

__all__ = ["sync_defaults"]

_URIS_KEY = "hive.metastore.uris"


def sync_defaults(spark: Any, options: SyncOptions) -> SyncOptions:
    """The options, with the session's metastore and version where they name none."""
    context = getattr(spark, "_jsc", None)
    if context is None:
        uris = spark.conf.get(f"spark.hadoop.{_URIS_KEY}", None)
    else:
        uris = context.hadoopConfiguration().get(_URIS_KEY)
    return replace(
        options,
        metastore_uris=options.metastore_uris or uris or None,
        spark_version=options.spark_version or spark.version,
    )
