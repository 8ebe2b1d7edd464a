"""``format("hudi")`` of a session done by hudi_fast: the switch.

Data flow: ``accelerate(spark)`` -> methods of PySpark's readers and writers, wrapped once
(:mod:`hudi_fast.spark.dropin.install`) -> for a session that is switched on (:mod:`hudi_fast.spark.dropin.session`) and
a source that is Hudi: what was asked for (:mod:`hudi_fast.spark.dropin.calls`) is translated
(:mod:`hudi_fast.spark.dropin.translate`) and done (:mod:`hudi_fast.spark.dropin.actions`); everything else: the method
that was there.
"""

from __future__ import annotations

from typing import Any

from hudi_fast.errors import ConfigError
from hudi_fast.spark.dropin.defaults import warn_of_defaults
from hudi_fast.spark.dropin.install import install
from hudi_fast.spark.dropin.session import FALLBACK, ON, set_mark
from hudi_fast.spark.dropin.views import drop_views

__all__ = ["accelerate"]


def accelerate(spark: Any, on: bool = True, *, fallback: bool = False) -> None:
    """Let hudi_fast do what this session does with ``format("hudi")``: ``df.write``, ``spark.read``, streams.

    Everything else that the session does stays Spark's. Other sessions stay as they are. Calling it again is harmless.

    Args:
        spark: the PySpark session, classic or of Spark Connect.
        on: False undoes it for this session; the names of tables that were saved in it end.
        fallback: what hudi_fast refuses as not supported, before anything is written, goes to Apache Hudi's own data
            source with a :class:`HudiWarning`; for sessions that have its bundle on their class path.

    Raises:
        ConfigError: ``spark`` is not a Spark session.
    """
    if not hasattr(spark, "readStream") or not hasattr(spark, "conf"):
        raise ConfigError(f"accelerate needs a SparkSession, got {type(spark).__name__}.")
    if not on:
        set_mark(spark, None)
        drop_views(spark)
        return
    warn_of_defaults()
    install(type(spark).__module__.startswith("pyspark.sql.connect"))
    set_mark(spark, FALLBACK if fallback else ON)
