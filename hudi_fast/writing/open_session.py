"""Opens the session of a call on the backend that the call names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_fast.storage.base import Storage
from hudi_fast.writing.backend import spark_adapter
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.threads import ThreadBackend

__all__ = ["open_session"]


def open_session(storage: Storage, settings: Settings, spark: Any = None, small_on_driver: bool = True) -> TableSession:
    """The session of one call. It reads nothing until its state is used.

    Args:
        storage: the table's storage.
        settings: options of the call.
        spark: a Spark session whose tasks execute the work; None for threads of this process.
        small_on_driver: whether Spark's driver executes units that read less than ``hudi_fast.driver.max.bytes``.
    """
    if spark is None:
        return TableSession(storage, settings, ThreadBackend(settings.write.threads, storage.is_local))
    limit = settings.write.driver_max_bytes
    backend = spark_adapter().SparkBackend(
        spark, unit_bytes=limit if small_on_driver else 0, record_bytes=limit, files_are_local=storage.is_local
    )
    if settings.sync.catalogs:
        settings = replace(settings, sync=spark_adapter().sync_defaults(spark, settings.sync))
    return TableSession(storage, settings, backend)
