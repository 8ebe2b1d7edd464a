"""Starts the Spark session of a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyspark

from hudi_fast.errors import ConfigError
from hudi_fast.spark.session import require_pyspark

__all__ = ["started_session"]

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
