"""Making the data source ``hudi_fast`` known to a session."""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import UnsupportedFeatureError

__all__ = ["SOURCE_NAME", "register"]

SOURCE_NAME = "hudi_fast"
"""What ``format`` takes."""

_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def register(spark: Any) -> None:
    """Let ``spark.read``, ``df.write``, ``spark.readStream`` and ``df.writeStream`` take ``format("hudi_fast")``.

    Filters go to the source from PySpark 4.1 on: ``spark.sql.python.filterPushdown.enabled`` is set for the session.

    Args:
        spark: the session.

    Raises:
        UnsupportedFeatureError: PySpark before 4, which has no data sources in Python.
    """
    import pyspark

    if int(pyspark.__version__.split(".")[0]) < 4:
        raise UnsupportedFeatureError(
            f'format("{SOURCE_NAME}") and streams from a table need PySpark 4; this is {pyspark.__version__}. '
            "hudi_fast.read, hudi_fast.write and hudi_fast.sink work here."
        )
    from hudi_fast.spark.source.data_source import HudiDataSource

    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(HudiDataSource)
