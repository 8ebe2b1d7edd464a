"""Registers the data source ``hudi_fast`` with a session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.jvm import java_class

__all__ = ["SOURCE_NAME", "register_data_source"]

SOURCE_NAME = "hudi_fast"
"""The name in ``format(...)``."""


def register_data_source(spark: Any) -> None:
    """Register ``format("hudi_fast")`` for ``spark.read``, ``df.write``, ``spark.readStream`` and ``df.writeStream``.

    Filter pushdown (``hudi_fast.source.pushdown``) needs ``spark.sql.python.filterPushdown.enabled=true`` in the
    session, and PySpark 4.1.

    Args:
        spark: the session.

    Raises:
        ConfigError: ``spark`` is not a session.
        UnsupportedFeatureError: PySpark before 4, which has no data sources in Python.
    """
    import pyspark

    if int(pyspark.__version__.split(".")[0]) < 4:
        raise UnsupportedFeatureError(
            f'format("{SOURCE_NAME}") and readStream need PySpark 4; this is {pyspark.__version__}. '
            "hudi_fast.read, hudi_fast.write, hudi_fast.sink and hudi_fast.stream_changes work here."
        )
    if not hasattr(spark, "readStream"):
        raise ConfigError(f"register_data_source needs a SparkSession, got {type(spark).__name__}.")
    from hudi_fast.spark_api.source.data_source import HudiDataSource

    with _active(spark):
        spark.dataSource.register(HudiDataSource)


@contextmanager
def _active(spark: Any) -> Iterator[None]:
    """Make the session the active one of this thread.

    A source is registered with its session, but Spark 4 first looks for it in the thread's active session
    (``DataSourceRegistration.checkDataSourceExists``), and refuses it where that one, another session, has it.
    """
    if not hasattr(spark, "_jsparkSession"):  # Spark Connect, whose server makes it the active one
        yield
        return
    sessions = java_class(spark._jvm, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
