"""The engine of a streamer: this process, or a session of Spark. What the engines share is in ``streamer.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.storage.extras import import_extra
from hudi_fast.streamer.settings import OWN_PREFIX, StreamSettings

__all__ = ["names_spark", "no_rows", "require_engine", "session_of_command", "task_errors"]

_ENGINES = ("process", "spark")
_SETTING = "spark."


def require_engine(settings: StreamSettings, spark: Any) -> None:
    """Check that the engine that the settings name is the one that the caller gives.

    Raises:
        ConfigError: it is another one, or unknown.
    """
    engine = _checked(settings.arguments.get("engine", ""))
    if engine == "spark" and spark is None:
        raise ConfigError("The engine spark needs a session: hf.Streamer(..., spark=session).")
    if engine == "process" and spark is not None:
        raise ConfigError(
            "The settings name the engine process, and the caller gives a Spark session. Give one of them."
        )


@contextmanager
def session_of_command(
    properties: Mapping[str, Any], arguments: Mapping[str, Any], settings: Mapping[str, str]
) -> Iterator[Any]:
    """The Spark session of a command, for the duration of the block; None if its engine is this process.

    Args:
        properties: of the streamer. Those of ``spark.`` are settings of the session.
        arguments: of the streamer, with underscores: ``engine``, ``master``, ``spark_master``, ``spark_app_name``.
        settings: of the session, which win over the properties.

    Raises:
        ConfigError: the engine is unknown; settings of Spark without it; PySpark is not installed, or does not start.
    """

    master = _given(properties, arguments, "master")
    if not names_spark(properties, arguments):
        if settings or master:
            raise ConfigError("--master and --conf are settings of Spark. Give --engine spark, or leave them out.")
        yield None
        return
    import_extra("pyspark", "spark", "A stream with the engine spark")
    from hudi_fast.spark.session import started_session

    own = {key: str(value) for key, value in properties.items() if key.startswith(_SETTING) and value is not None}
    wrong = next((key for key in settings if not key.startswith(_SETTING)), None)
    if wrong is not None:
        raise ConfigError(f"--conf sets a key of Spark, which begins with {_SETTING}; got {wrong!r}.")
    master = master or _given(properties, arguments, "spark_master")
    with started_session(master, _given(properties, arguments, "spark_app_name"), {**own, **settings}) as session:
        yield session


def names_spark(properties: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Whether the engine of a command is Spark.

    Args:
        properties: of the streamer.
        arguments: of the streamer, with underscores.

    Raises:
        ConfigError: the engine is unknown.
    """
    return _checked(_given(properties, arguments, "engine")) == "spark"


def _given(properties: Mapping[str, Any], arguments: Mapping[str, Any], name: str) -> str:
    return str(arguments.get(name) or properties.get(OWN_PREFIX + name.replace("_", "-")) or "")


def task_errors(spark: Any) -> AbstractContextManager[None]:
    """Raise errors of hudi_fast that tasks of the block raised, in place of Spark's errors around them."""
    if spark is None:
        return nullcontext()
    from hudi_fast.spark.turn_rows import explained_task_errors

    return explained_task_errors(spark)


def no_rows(spark: Any, schema: pa.Schema) -> Any:
    """A DataFrame of the columns without rows."""
    from hudi_fast.spark.turn_rows import no_rows as without_rows

    return without_rows(spark, schema)


def _checked(engine: str) -> str:
    if engine and engine not in _ENGINES:
        raise ConfigError(f"--engine is one of {', '.join(_ENGINES)}; got {engine!r}.")
    return engine
