"""Opens the table's storage for a call, and a session on the engine that the call names.

Only this module chooses between the threads of this process and Spark. Modules below it take a session. What a session
needs is imported when one is opened: a read needs none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hudi_fast.arrow_input import is_from_spark
from hudi_fast.errors import ConfigError
from hudi_fast.storage.base import Storage

if TYPE_CHECKING:
    from hudi_fast.view.table_state import TableState
    from hudi_fast.writing.session import TableSession
    from hudi_fast.writing.settings import Settings

__all__ = ["check_spark", "open_session", "open_storage"]


def check_spark(spark: Any) -> None:
    """Check the argument ``spark`` of a call.

    Raises:
        ConfigError: it is neither None nor an object of PySpark.
    """
    if spark is not None and not is_from_spark(spark):
        raise ConfigError(f"spark is a SparkSession, or None to work in this process; got {type(spark).__name__}.")


def open_storage(spark: Any, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> Storage:
    """The storage of a table; on Spark, without options, as the session reaches it.

    Raises:
        HudiError: the path or an option is invalid.
    """
    if spark is None or storage_options:
        return Storage(path, storage_options)
    from hudi_fast.spark.storage import storage_of

    return storage_of(spark, path)


def open_session(
    storage: Storage,
    settings: Settings,
    spark: Any = None,
    *,
    small_on_driver: bool = True,
    guard: Callable[[TableState], None] | None = None,
    undoes: bool = False,
) -> TableSession:
    """The session of one call. It reads nothing until its state is used.

    Args:
        storage: the table's storage.
        settings: options of the call.
        spark: a Spark session whose tasks execute the work; None for threads of this process.
        small_on_driver: whether Spark's driver executes units that read less than ``hudi_fast.driver.max.bytes``.
        guard: gives a write up; see :class:`hudi_fast.writing.session.Call`.
        undoes: whether the call undoes commits.
    """
    from hudi_fast.writing.session import Call, TableSession
    from hudi_fast.writing.threads import ThreadBackend

    if spark is None:
        threads = ThreadBackend(settings.write.engine.threads, storage.is_local)
        return TableSession(Call(storage, settings, threads, guard=guard, undoes=undoes))
    from hudi_fast.spark.backend import SparkBackend
    from hudi_fast.spark.session import sync_defaults

    limit = settings.write.engine.driver_max_bytes
    backend = SparkBackend(
        spark, unit_bytes=limit if small_on_driver else 0, record_bytes=limit, files_are_local=storage.is_local
    )
    if settings.sync.catalogs:
        settings = replace(settings, sync=sync_defaults(spark, settings.sync))
    return TableSession(Call(storage, settings, backend, guard=guard, undoes=undoes))
