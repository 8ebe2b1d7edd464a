"""Explains failures of Spark's Python workers: no memory, killed, or without a package.

A worker tells about a lack of memory in one of three ways: Python or Arrow raise ``MemoryError``, the system refuses an
allocation (``ENOMEM``), or the process is killed, and Spark reports that it is gone.
"""

from __future__ import annotations

import errno
import re
import sys

from hudi_fast.errors import CommitError, ConfigError, HudiError

__all__ = ["explained", "lack_of_memory", "out_of_memory"]

_MISSING_MODULE = re.compile(
    r"ModuleNotFoundError: No module named '((?:hudi_fast|pyarrow|numpy|numba|llvmlite|pandas|mmh3|fastavro)\b[\w.]*)'"
)
"""Modules that hudi_fast needs; others are missing for code of the user's own."""

_NO_MEMORY = re.compile(r"\b(?:MemoryError|ArrowMemoryError|_ArrayMemoryError|bad_alloc|Cannot allocate memory)\b")
_CRASHED = re.compile(r"Python worker exited unexpectedly|Python worker failed to connect back")
_KILLED = re.compile(
    r"Container killed by YARN|OOMKilled|exceeding (?:physical |virtual )?memory limits|exit (?:code|status):? 137",
    re.IGNORECASE,
)

_ADVICE = (
    "Give workers more memory: spark.executor.memoryOverhead (of an executor's container, outside its heap); or, if it "
    "is set, spark.executor.pyspark.memory, which is divided by the cores of an executor and limits the addresses of "
    "each worker, about 1.6 GiB of which are libraries. Or let fewer tasks share an executor (spark.executor.cores), "
    "or write smaller file groups (hoodie.parquet.max.file.size)."
)


def lack_of_memory(error: BaseException) -> BaseException | None:
    """The error, or the one that caused it, that is a lack of memory; None if there is none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM):
            return cause
        cause = cause.__cause__
    return None


def out_of_memory(uri: str | None, found: object) -> CommitError:
    """The error of a task whose worker has no memory left.

    Args:
        uri: the table; None if unknown.
        found: what the worker or Spark says.
    """
    return CommitError(f"A task{_of(uri)} ran out of memory: {found}. The table is as before. {_ADVICE}")


def explained(error: Exception, uri: str | None) -> HudiError | None:
    """The error that says what to do about an exception of Spark; None for one without such a cause.

    Args:
        error: of a Spark job.
        uri: the table; None if unknown.
    """
    text = str(error)
    if (missing := _MISSING_MODULE.search(text)) is not None:
        return ConfigError(
            f"Spark's Python workers have no module {missing[1]!r}. Install hudi_fast on every worker, or ship it with "
            "spark.archives. PYSPARK_PYTHON or spark.pyspark.python names the Python of the workers; the driver's is "
            f"{sys.executable}."
        )
    if (found := _NO_MEMORY.search(text) or _KILLED.search(text)) is not None:
        return out_of_memory(uri, found[0])
    if (found := _CRASHED.search(text)) is not None:
        return CommitError(
            f"A task{_of(uri)} lost its Python worker: {found[0]}. The table is as before. The log of the executor may "
            f"say why; a worker that the system kills leaves no message, most often for lack of memory. {_ADVICE}"
        )
    return None


def _of(uri: str | None) -> str:
    return "" if uri is None else f" of the write to {uri}"
