"""The session of a call: classic or Spark Connect, its settings, and PySpark's methods without hudi_fast's wrappers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.spark.java import text_map

__all__ = ["ORIGINAL", "as_it_was", "is_classic", "session_settings"]

ORIGINAL = "_hudi_fast_wraps"
"""Attribute of a wrapped method: the original method."""


def session_settings(spark: Any) -> Mapping[str, str]:
    """All settings of a session."""
    if is_classic(spark):
        return text_map(spark._jsparkSession.conf().getAll())
    every = getattr(spark.conf, "getAll", None)  # PySpark 4
    if every is not None:
        return dict(every)
    return {row[0]: row[1] for row in as_it_was(type(spark).sql)(spark, "SET").collect()}


def is_classic(spark: Any) -> bool:
    """Whether Python reaches the JVM of the session's driver: it is not one of Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def as_it_was(method: Any) -> Any:
    """A PySpark method without hudi_fast's wrapper."""
    return getattr(method, ORIGINAL, method)
