"""Entry points of streams: implement ``readStream`` and ``writeStream`` of a switched-on session.

::

    stream_writer   df.writeStream ─► foreachBatch(Sink) ─► StreamingQuery       PySpark 3.5 and later
    stream_reader   spark.readStream.format("hudi_fast") ─► streaming DataFrame   PySpark 4 and later
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import ConfigError
from hudi_fast.reading.incremental.stream import check_stream_options
from hudi_fast.spark.storage import prefixed, split_options, storage_settings
from hudi_fast.spark_api.source.entry import SOURCE_NAME, register_data_source
from hudi_fast.spark_api.streaming.sink import sink

__all__ = ["stream_reader", "stream_writer"]

_OUTPUT_MODES = ("append", "complete", "update")


def stream_writer(
    df: Any,
    path: str | os.PathLike[str],
    options: Mapping[str, Any] | None = None,
    *,
    output_mode: str = "append",
    trigger: Mapping[str, Any] | None = None,
    checkpoint: str | None = None,
    query_name: str | None = None,
    other_options: Mapping[str, Any] | None = None,
) -> Any:
    """Start a query that writes a streaming DataFrame to a table, each batch once.

    Args:
        df: a streaming PySpark DataFrame.
        path: base path of the table.
        options: ``hoodie.*`` keys of the write and of the stream, and of the storage (``hudi_fast.storage.*``).
        output_mode: ``append``, ``update`` or ``complete``, see :mod:`.output_modes`.
        trigger: arguments of ``DataStreamWriter.trigger``; None for its default.
        checkpoint: Spark's ``checkpointLocation``; None for the session's setting.
        query_name: of the query.
        other_options: Spark's own options for the query.

    Returns:
        The running ``StreamingQuery``.

    Raises:
        HudiError: an option is wrong; later errors fail the query.
    """
    own, storage = split_options(options or {})
    target = sink(path, own, _mode_of(output_mode), storage or storage_settings(df.sparkSession, path))
    writer = df.writeStream.foreachBatch(target).outputMode(output_mode)
    for key, value in {**(other_options or {}), "checkpointLocation": checkpoint}.items():
        writer = writer if value is None else writer.option(key, value)
    if trigger:
        writer = writer.trigger(**trigger)
    if query_name is not None:
        writer = writer.queryName(query_name)
    return writer.start()


def stream_reader(spark: Any, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Any:
    """A streaming DataFrame of the commits to a table.

    Args:
        spark: the session.
        path: base path of the table.
        options: ``hoodie.datasource.streaming.startOffset``, ``hudi_fast.stream.max_commits``, ...

    Raises:
        UnsupportedFeatureError: PySpark before 4, which has no data sources in Python.
        HudiError: no table, or an option is wrong.
    """
    register_data_source(spark)
    own, storage = split_options(options or {})
    check_stream_options(own)
    SourceOptions.from_options(own)
    reader = spark.readStream.format(SOURCE_NAME).options(**own)
    return reader.options(**prefixed(storage or storage_settings(spark, path))).load(os.fspath(path))


def _mode_of(output_mode: str) -> str:
    if output_mode.lower() not in _OUTPUT_MODES:
        raise ConfigError(f"The output mode {output_mode!r} is unknown; use one of {', '.join(_OUTPUT_MODES)}.")
    return output_mode.lower()
