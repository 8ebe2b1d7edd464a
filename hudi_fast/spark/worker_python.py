"""Checks that the Python of Spark's workers has hudi_fast: once per application, when it first uses a table.

Spark alone reads a copy-on-write table; without this check a job would fail at its first merge, perhaps hours later.
Only applications with a local master are checked: their workers start on this machine. On a cluster the first job
raises the error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import Any

from hudi_fast.errors import ConfigError
from hudi_fast.spark.session import is_classic

__all__ = ["require_worker_python"]

_QUESTION = "import importlib.util as u, sys; sys.exit(None in map(u.find_spec, ('hudi_fast', 'pyarrow', 'numba')))"
_SECONDS = 30

_asked: set[str] = set()
"""Applications that need no further check."""


def require_worker_python(spark: Any) -> None:
    """Check that workers on this machine find hudi_fast.

    Args:
        spark: the session.

    Raises:
        ConfigError: they do not find it, or a package that it needs.
    """
    if not is_classic(spark):
        return
    context = spark.sparkContext
    if context.applicationId in _asked:
        return
    if str(context.master).startswith("local"):
        _require(str(context.pythonExec))
    _asked.add(context.applicationId)


def _require(python: str) -> None:
    found = shutil.which(python)
    if found == sys.executable:
        return
    if found is None or subprocess.run([found, "-c", _QUESTION], timeout=_SECONDS, check=False).returncode:
        raise ConfigError(
            f"Spark's workers run {found or python}, which lacks hudi_fast or a package that it needs, and the driver "
            f"runs {sys.executable}: set PYSPARK_PYTHON={sys.executable} before the session starts."
        )
