"""The session of a call, and the Python of its workers.

The session of a call: classic or Spark Connect, its settings, and PySpark's methods without hudi_fast's wrappers.

Starts the Spark session of a command.

Checks that the Python of Spark's workers has hudi_fast: once per application, when it first uses a table.

Spark alone reads a copy-on-write table; without this check a job would fail at its first merge, perhaps hours later.
Only applications with a local master are checked: their workers start on this machine. On a cluster the first job
raises the error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyspark

from hudi_fast.config.sync_options import SyncOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = [
    "ORIGINAL",
    "as_it_was",
    "is_classic",
    "require_pyspark",
    "require_worker_python",
    "session_settings",
    "started_session",
    "sync_defaults",
    "text_map",
]

ORIGINAL = "_hudi_fast_wraps"
"""Attribute of a wrapped method: the original method."""

_LOWEST = (3, 5)


def require_pyspark(version: str) -> None:
    """Check the release of PySpark before its missing parts fail somewhere in a job.

    Args:
        version: ``pyspark.__version__``.

    Raises:
        UnsupportedFeatureError: PySpark before 3.5.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < _LOWEST:
        raise UnsupportedFeatureError(
            f"hudi_fast needs PySpark 3.5 or newer; this is {version}. Install it: pip install 'pyspark>=3.5'."
        )


def session_settings(spark: Any) -> Mapping[str, str]:
    """All settings of a session."""
    if is_classic(spark):
        return text_map(spark._jsparkSession.conf().getAll())
    every = getattr(spark.conf, "getAll", None)  # PySpark 4
    if every is not None:
        return dict(every)
    return {row[0]: row[1] for row in as_it_was(type(spark).sql)(spark, "SET").collect()}


def is_classic(spark: Any) -> bool:
    """Whether Python reaches the JVM of the session's driver; False for Spark Connect."""
    return hasattr(spark, "_jsparkSession")


def as_it_was(method: Any) -> Any:
    """A PySpark method without hudi_fast's wrapper."""
    return getattr(method, ORIGINAL, method)


# ---- settings of a session for syncing a catalog: its metastore and its version


_URIS_KEY = "hive.metastore.uris"


def sync_defaults(spark: Any, options: SyncOptions) -> SyncOptions:
    """The options, with the session's metastore and version where they name none."""
    context = getattr(spark, "_jsc", None)
    if context is None:
        uris = spark.conf.get(f"spark.hadoop.{_URIS_KEY}", None)
    else:
        uris = context.hadoopConfiguration().get(_URIS_KEY)
    return replace(
        options,
        metastore_uris=options.metastore_uris or uris or None,
        spark_version=options.spark_version or spark.version,
    )


# ---- values of Java and Scala objects, each in one call to Java


_SEPARATOR = "\u0001"


def text_map(scala_map: Any) -> dict[str, str]:
    """A Scala map from text to text."""
    entries = filter(None, str(scala_map.mkString(_SEPARATOR)).split(_SEPARATOR))
    return dict(entry.split(" -> " if " -> " in entry else ",", 1) for entry in entries)


_PYTHON = "PYSPARK_PYTHON"
_PYTHON_KEY = "spark.pyspark.python"
_NAME = "hudi-fast stream"
_DEFAULTS = {
    "spark.ui.showConsoleProgress": "false",  # its bars would stand between the lines of the command
    "spark.python.daemon.module": "hudi_fast.spark.daemon",
}
"""Settings of a session, unless the caller has others."""


@contextmanager
def started_session(master: str, name: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """A session for the duration of the block. A session that runs already is used, and goes on afterwards.

    Args:
        master: such as ``yarn`` or ``local[4]``; empty for that of the settings or of Spark's own files.
        name: of the application; empty for a name of this library.
        settings: of the session.

    Raises:
        ConfigError: Spark does not start.
        UnsupportedFeatureError: PySpark before 3.5.
    """
    from pyspark.sql import SparkSession

    require_pyspark(pyspark.__version__)
    wanted = master or settings.get("spark.master", "")
    is_local = not wanted or wanted.startswith("local")
    if is_local and _PYTHON_KEY not in settings:  # else workers run the first python3 of the path
        os.environ.setdefault(_PYTHON, sys.executable)
    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.appName(name or _NAME)
    if master:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    for key, value in {**_DEFAULTS, **settings}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # PySpark raises its own, Py4J's and Python's errors
        said = (str(error).strip() or repr(error)).splitlines()[0].rstrip(".")
        where = wanted or "of its own settings"
        raise ConfigError(
            f"Spark does not start with the master {where!r}: {said}. Spark needs Java 17, and a "
            "master such as --master 'local[4]' or --master yarn."
        ) from error
    try:
        yield session
    finally:
        if running is None:
            session.stop()


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
