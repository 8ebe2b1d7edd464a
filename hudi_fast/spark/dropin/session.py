"""The switch of a session, stored in one session setting.

The setting is shared by every Python object of the session, by the clone in which a stream runs its batches and, on
Spark Connect, by the server; it ends with the session. Other sessions have their own settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.spark.java import text_map

__all__ = [
    "FALLBACK",
    "ON",
    "ORIGINAL",
    "as_it_was",
    "is_classic",
    "mark_of",
    "session_settings",
    "set_mark",
    "source_of",
]

ON, FALLBACK = "on", "fallback"
ORIGINAL = "_hudi_fast_wraps"
"""Attribute of a wrapped method: the original method."""
_MARK = "hudi_fast.accelerate"


def set_mark(spark: Any, mark: str | None) -> None:
    """Switch a session on (:data:`ON` or :data:`FALLBACK`), or off with None."""
    if mark is None:
        spark.conf.unset(_MARK)
    else:
        spark.conf.set(_MARK, mark)


def mark_of(spark: Any) -> str | None:
    """:data:`ON`, :data:`FALLBACK`, or None when switched off."""
    mark: str | None = spark.conf.get(_MARK, None)
    return mark


def source_of(spark: Any, named: str | None) -> str:
    """The named data source, or the session's default."""
    return named if named is not None else str(spark.conf.get("spark.sql.sources.default", "parquet"))


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
