"""The session of a call: classic or Spark Connect, its settings, and PySpark's methods without hudi_fast's wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import UnsupportedFeatureError

__all__ = [
    "ORIGINAL",
    "as_it_was",
    "is_classic",
    "require_pyspark",
    "session_settings",
    "sync_defaults",
    "text_map",
]

ORIGINAL = "_hudi_fast_wraps"
"""Attribute of a wrapped method: the original method."""

_LOWEST = (3, 5)


def require_pyspark(version: str) -> None:
    """Check the release of PySpark before its missing parts fail somewhere in a job.

    Args:
        version: ``pyspark.__version__``.

    Raises:
        UnsupportedFeatureError: PySpark before 3.5.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < _LOWEST:
        raise UnsupportedFeatureError(
            f"hudi_fast needs PySpark 3.5 or newer; this is {version}. Install it: pip install 'pyspark>=3.5'."
        )


def session_settings(spark: Any) -> Mapping[str, str]:
    """All settings of a session."""
    if is_classic(spark):
        return text_map(spark._jsparkSession.conf().getAll())
    every = getattr(spark.conf, "getAll", None)  # PySpark 4
    if every is not None:
        return dict(every)
    return {row[0]: row[1] for row in as_it_was(type(spark).sql)(spark, "SET").collect()}


def is_classic(spark: Any) -> bool:
    """Whether Python reaches the JVM of the session's driver; False for Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def as_it_was(method: Any) -> Any:
    """A PySpark method without hudi_fast's wrapper."""
    return getattr(method, ORIGINAL, method)


# ---- settings of a session for syncing a catalog: its metastore and its version


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


# ---- values of Java and Scala objects, each in one call to Java


_SEPARATOR = "\u0001"


def text_map(scala_map: Any) -> dict[str, str]:
    """A Scala map from text to text."""
    entries = filter(None, str(scala_map.mkString(_SEPARATOR)).split(_SEPARATOR))
    return dict(entry.split(" -> " if " -> " in entry else ",", 1) for entry in entries)
