"""A program: PySpark's daemon of Python workers, which loads the library once for all workers that it forks.

A worker of Spark's own daemon loads pyarrow, pandas and the library by itself, which takes longer than all tasks of a
small test, and workers come and go: after a minute without work, after an error, and for each kind of work of a Python
data source. After each task a worker collects all garbage, which means a look at each object of all of these. Here what
is loaded, and what a collection leaves, is never looked at again.
"""

from __future__ import annotations

import gc
from importlib import import_module
from types import SimpleNamespace

from pyspark import __version__, daemon

__all__ = ["collect"]


def collect() -> None:
    """Collect the garbage of the last task."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    names = ["pandas", "pyspark.worker", "hudi_fast.spark.writing.engine"]
    if int(__version__.split(".")[0]) >= 4:  # before, Spark has no data sources in Python
        names.append("hudi_fast.spark_api.source.batch_reader")
    for name in names:
        import_module(name)
    collect()
    daemon.gc = SimpleNamespace(collect=collect)  # type: ignore[attr-defined]
    daemon.manager()
