"""The switch of a session, stored in one session setting.

The setting is shared by every Python object of the session, by the clone in which a stream runs its batches and, on
Spark Connect, by the server; it ends with the session. Other sessions have their own settings.
"""

from __future__ import annotations

from typing import Any

__all__ = ["FALLBACK", "ON", "mark_of", "set_mark", "source_of"]

ON, FALLBACK = "on", "fallback"
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
