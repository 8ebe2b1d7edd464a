"""A program: PySpark's daemon of Python workers, whose collections of garbage look at new objects only.

After each task a worker collects all garbage, which means a look at each object of pyarrow, numba and the library: more
than most tasks of tests take. Here what a collection leaves is never looked at again.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace

from pyspark import daemon

__all__ = ["collect"]


def collect() -> None:
    """Collect the garbage of the last task."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    daemon.gc = SimpleNamespace(collect=collect)  # type: ignore[attr-defined]
    daemon.manager()
