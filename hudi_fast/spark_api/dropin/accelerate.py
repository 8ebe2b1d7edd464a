"""Switches a session's ``format("hudi")`` to hudi_fast.

``accelerate(spark)`` wraps the methods of PySpark's readers and writers once (``install``). If a session is switched
on and a call names a Hudi source, the calls of the reader or writer (``calls``) are translated
(``translate``) and executed (``actions``). All other calls reach the original method.
"""

from __future__ import annotations

from typing import Any

import pyspark

from hudi_fast.errors import ConfigError
from hudi_fast.spark.session import require_pyspark
from hudi_fast.spark_api.dropin.install import FALLBACK, ON, install, set_mark
from hudi_fast.spark_api.dropin.names import drop_names

__all__ = ["accelerate"]


def accelerate(spark: Any, on: bool = True, *, fallback: bool = False) -> None:
    """Make hudi_fast serve ``format("hudi")``, Hudi tables by name, and SQL about them in this session.

    Other formats and other sessions are not affected. Repeated calls have no further effect.

    Args:
        spark: the PySpark session, classic or of Spark Connect.
        on: False switches this session back and drops its temporary views over Hudi tables.
        fallback: use Apache Hudi's own data source, with a :class:`HudiWarning`, for calls that hudi_fast refuses as
            not supported before writing anything. Requires Hudi's bundle on the session's class path.

    Raises:
        ConfigError: ``spark`` is not a Spark session.
        UnsupportedFeatureError: PySpark before 3.5.
    """
    require_pyspark(pyspark.__version__)
    if not hasattr(spark, "readStream") or not hasattr(spark, "conf"):
        raise ConfigError(f"accelerate needs a SparkSession, got {type(spark).__name__}.")
    if not on:
        set_mark(spark, None)
        drop_names(spark)
        return
    install(type(spark).__module__.startswith("pyspark.sql.connect"))
    set_mark(spark, FALLBACK if fallback else ON)
