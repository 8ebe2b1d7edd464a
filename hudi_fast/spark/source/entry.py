"""Making the data source ``hudi_fast`` known to a session."""

from __future__ import annotations

from typing import Any

__all__ = ["SOURCE_NAME", "register"]

SOURCE_NAME = "hudi_fast"
"""What ``format`` takes."""


def register(spark: Any) -> None:
    """Let ``spark.read``, ``df.write``, ``spark.readStream`` and ``df.writeStream`` take ``format("hudi_fast")``.

    Args:
        spark: the session.

    Raises:
        UnsupportedFeatureError: PySpark before 4, which has no data sources in Python.
    """
    raise NotImplementedError
