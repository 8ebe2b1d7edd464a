"""Errors of Spark's jobs whose cause is outside the table, as a few sentences that say what to do.

A worker that lacks memory ends in one of three ways: Python or Arrow raise ``MemoryError``, the system refuses an
allocation (``ENOMEM``), or the process is killed, and Spark reports that it is gone.

Spark's message holds the traceback of a worker as text, with lines of source code and with messages of the user's own.
So the cause is read from the class of the raised exception. Spark's own text counts only where there is no exception of
Python.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hudi_fast.errors import CommitError, ConfigError, HudiError
from hudi_fast.values import dataclass

__all__ = ["explained_job_errors", "lack_of_memory", "out_of_memory"]

_MISSING_MODULE = re.compile(
    r"No module named '((?:hudi_fast|pyarrow|numpy|numba|llvmlite|pandas|mmh3|fastavro)\b[\w.]*)'"
)
"""Matches a missing module that hudi_fast needs. Other missing modules belong to the user's own code."""

_DISK_FULL = re.compile(
    r"[\w.]*(?:IOException|FileNotFoundException|FileSystemException|FSError)\b[^\n]*?"
    r"(?:No space left on device|Disk quota exceeded|File too large)"
)
"""Matches a failed write to a file of Spark itself. A write to a file of the table raises an OSError in Python."""

_RAISED = re.compile(
    r"^(?P<indent> *)(?:\S[^\n]*)?Traceback \(most recent call last\):\n"
    r"(?:(?P=indent) [^\n]*\n| *\n)*"  # frames, with lines of source code
    r"(?P=indent)(?P<kind>[A-Za-z_][\w.]*)(?::(?P<message>[^\n]*))?(?:\n\s*(?P<then>During handling of the above))?",
    re.MULTILINE,
)
"""Matches a traceback and the exception at its end."""

_LACKS_OF_MEMORY = frozenset({"MemoryError", "ArrowMemoryError", "_ArrayMemoryError"})
_NO_MEMORY = re.compile(r"\b(?:bad_alloc|Cannot allocate memory)\b")
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

_HOST = re.compile(r"\((\S+) executor \S+\)")


@contextmanager
def explained_job_errors(spark: Any, uri: str = "") -> Iterator[None]:
    """Turn errors that Spark raises in the block into errors of hudi_fast, if their cause is known.

    Args:
        spark: the session.
        uri: the table; empty if the caller names it.

    Raises:
        ConfigError: workers lack a package.
        CommitError: Spark's local folders are full, or a worker ran out of memory or was killed.
    """
    try:
        yield
    except HudiError:
        raise
    except Exception as error:
        explained = _explained(spark, uri, str(error))
        if explained is None:
            raise
        raise explained from error


def lack_of_memory(error: BaseException) -> BaseException | None:
    """The error, or the one of its causes, that reports a lack of memory; None without one."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM):
            return cause
        cause = cause.__cause__
    return None


def out_of_memory(uri: str, found: object) -> CommitError:
    """The error of a task whose worker has no memory left.

    Args:
        uri: the table; empty if unknown.
        found: what the worker or Spark says.
    """
    return CommitError(f"A task{_of(uri)} ran out of memory: {found}. The table is as before. {_ADVICE}")


def _explained(spark: Any, uri: str, text: str) -> HudiError | None:
    raised = _raised(text)
    missing = next((one.missing_module for one in raised if one.missing_module is not None), None)
    if missing is not None:
        return ConfigError(
            f"Spark's Python workers have no module {missing!r}. Install hudi_fast on every worker, or ship it with "
            "spark.archives. PYSPARK_PYTHON or spark.pyspark.python names the Python of the workers; the driver's is "
            f"{sys.executable}."
        )
    full = _DISK_FULL.search(text)
    if full is not None:
        folders = os.environ.get("SPARK_LOCAL_DIRS") or spark.conf.get("spark.local.dir", "/tmp")
        host = _HOST.search(text)
        where = f" on the host {host[1]}" if host is not None else ""
        return CommitError(
            f"Spark could not write a temporary file{_of(uri)}{where}: {full[0]}. The table is as before. Free "
            f"space in Spark's local folders (spark.local.dir, here {folders}; on a cluster, the local folders of its "
            "workers), or name folders with more space. Then run the operation again."
        )
    if raised:
        lacking = next((one for one in raised if one.lacks_memory), None)
        return None if lacking is None else out_of_memory(uri, str(lacking))
    if (found := _NO_MEMORY.search(text) or _KILLED.search(text)) is not None:
        return out_of_memory(uri, found[0])
    if (found := _CRASHED.search(text)) is not None:
        return CommitError(
            f"A task{_of(uri)} lost its Python worker: {found[0]}. The table is as before. The log of the executor may "
            f"say why; a worker that the system kills leaves no message, most often for lack of memory. {_ADVICE}"
        )
    return None


@dataclass(frozen=True, slots=True)
class _Raised:
    """An exception of Python: its class and the first line of its message."""

    kind: str
    message: str

    @property
    def lacks_memory(self) -> bool:
        """Whether the process had no memory left."""
        if self.kind.rpartition(".")[2] in _LACKS_OF_MEMORY:
            return True
        return self.message.startswith((f"[Errno {errno.ENOMEM}]", "std::bad_alloc"))

    @property
    def missing_module(self) -> str | None:
        """The module that hudi_fast needs and the process lacks."""
        found = _MISSING_MODULE.match(self.message) if self.kind == "ModuleNotFoundError" else None
        return None if found is None else found[1]

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}".rstrip(": ")


def _raised(text: str) -> list[_Raised]:
    """The exceptions at the ends of the tracebacks in the text, including causes, without handled exceptions.

    A text without a traceback may begin with the exception.
    """
    found = [one for one in _RAISED.finditer(text) if one["then"] is None]
    if found:
        return [_Raised(one["kind"], (one["message"] or "").strip()) for one in found]
    kind, _, message = text.partition("\n")[0].partition(": ")
    alone = _Raised(kind, message)
    return [alone] if alone.lacks_memory or alone.missing_module is not None else []


def _of(uri: str) -> str:
    return f" of the write to {uri}" if uri else ""
