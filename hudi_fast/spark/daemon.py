"""A program: PySpark's daemon of Python workers, which loads the library once for all workers that it forks.

::

    spark.python.daemon.module=hudi_fast.spark.daemon       a setting of the session, before it starts

    executor ──► daemon: import pyarrow, pandas, the library, its kernels ──► fork ──► worker ──► tasks

Without it each worker imports all of these in its first task, and workers come and go: Spark ends them after a minute
without work, and starts others for other kinds of tasks. The memory of what the daemon has loaded is shared by its
workers. After each task PySpark collects garbage in the worker; a collection skips what the daemon has loaded.

The protocol is that of ``pyspark.daemon`` of PySpark 3.5 to 4.3, which does the rest.
"""

from __future__ import annotations

import contextlib
import gc

from hudi_fast.storage.allocator import choose_allocator

__all__ = ["main", "preload"]


def preload() -> None:
    """Import what tasks need, and exempt it from garbage collections."""
    with contextlib.suppress(ImportError):  # PySpark imports it in each worker, where it is installed
        import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import pyspark.worker  # noqa: F401

    import hudi_fast.spark.reading.reader
    import hudi_fast.spark.writing.engine  # noqa: F401
    from hudi_fast.kernels._kernel import compiled

    compiled()
    gc.collect()
    gc.freeze()


def main() -> None:
    """Serve Spark's requests for workers until the executor ends."""
    choose_allocator()
    preload()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
