"""Executes ``save``, ``load`` and ``start`` for a switched-on session and a Hudi source.

Each function takes the constructor arguments of the reader or writer and the
:class:`~hudi_fast.spark_api.dropin.calls.Request`, and replaces Apache Hudi's data source with hudi_fast. Tables are
identified by path; :mod:`hudi_fast.spark_api.dropin.tables` handles names.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_fast.api import read, write
from hudi_fast.errors import SchemaMismatchError
from hudi_fast.schema.promotion import can_alter
from hudi_fast.spark.arrow import arrow_types, names_are_exact
from hudi_fast.spark.session import session_settings
from hudi_fast.spark.storage import session_path, split_options
from hudi_fast.spark_api.dropin.calls import Request
from hudi_fast.spark_api.dropin.translate import read_options, save_mode, stream_options, table_path, write_options

__all__ = ["frame_of", "load", "load_stream", "save", "session_of", "start_stream"]

Parts = tuple[Any, ...]


def session_of(built_from: Parts) -> Any:
    """The session that a reader or writer belongs to.

    Args:
        built_from: constructor arguments: a session first (a reader), a DataFrame (a writer), or a plan and its session
            (a writer of Spark Connect).
    """
    first = built_from[0]
    if hasattr(first, "sparkSession"):
        return first.sparkSession
    return first if hasattr(first, "readStream") else built_from[1]


def frame_of(built_from: Parts) -> Any:
    """The DataFrame that a writer writes; ``built_from`` as for :func:`session_of`."""
    if hasattr(built_from[0], "sparkSession"):
        return built_from[0]
    from pyspark.sql.connect.dataframe import DataFrame

    return DataFrame(built_from[0], built_from[1])


def save(built_from: Parts, request: Request) -> None:
    """``df.write.format("hudi")...save(path)``.

    Raises:
        HudiError: as :func:`hudi_fast.write`.
    """
    spark = session_of(built_from)
    path = session_path(spark, table_path(request, "save()"))
    options, storage = split_options(write_options(request))
    write(frame_of(built_from), path, options, save_mode(request.mode), storage)


def load(built_from: Parts, request: Request) -> Any:
    """``spark.read.format("hudi")...load(path)``: a DataFrame.

    Raises:
        HudiError: as :func:`hudi_fast.read`.
    """
    spark = session_of(built_from)
    path = session_path(spark, table_path(request, "load()"))
    options, storage = split_options(read_options(request, session_settings(spark)))
    frame = read(path, options, spark=spark, storage_options=storage)
    return frame if request.schema is None else _in_schema(spark, frame, request.schema, path)


def start_stream(built_from: Parts, request: Request) -> Any:
    """``df.writeStream.format("hudi")...start(path)``: the running query.

    Raises:
        HudiError: as :func:`hudi_fast.spark_api.streaming.entry.stream_writer`.
    """
    from hudi_fast.spark_api.streaming.entry import stream_writer

    spark = session_of(built_from)
    path = session_path(spark, table_path(request, "start()"))
    ours, rest = stream_options(request)
    locations = [key for key in rest if key.lower() == "checkpointlocation"]
    return stream_writer(
        frame_of(built_from),
        path,
        ours,
        output_mode=request.mode or "append",
        trigger=request.trigger,
        checkpoint=rest[locations[-1]] if locations else None,
        query_name=request.query_name,
        other_options={key: value for key, value in rest.items() if key not in locations},
    )


def load_stream(built_from: Parts, request: Request) -> Any:
    """``spark.readStream.format("hudi")...load(path)``: a streaming DataFrame.

    Raises:
        HudiError: as :func:`hudi_fast.spark_api.streaming.entry.stream_reader`.
    """
    from hudi_fast.spark_api.streaming.entry import stream_reader

    spark = session_of(built_from)
    path = session_path(spark, table_path(request, "load()"))
    ours, _ = stream_options(request)
    return stream_reader(spark, path, ours)


def _in_schema(spark: Any, frame: Any, asked: Any, path: str) -> Any:
    """Select the columns of a reader's ``schema``, with its order, names and types; null for columns not in the table.

    As in Apache Hudi 1.2.0, where a type to which values do not convert fails while rows are read.
    """
    wanted = spark.createDataFrame([], asked).schema if isinstance(asked, str) else asked
    exact = names_are_exact(spark)
    known = {field.name if exact else field.name.lower(): field for field in frame.schema.fields}
    columns = []
    for field in wanted.fields:
        stored = known.get(field.name if exact else field.name.lower())
        if stored is None:
            column = F.lit(None)
        elif stored.dataType == field.dataType or _converts(stored, field):
            column = F.col(f"`{stored.name}`")
        else:
            raise SchemaMismatchError(
                f"schema() asks for {field.name} as {field.dataType.simpleString()}; {path} has "
                f"{stored.dataType.simpleString()}, whose values may not convert. Ask for that type, and cast the "
                "column of the DataFrame that load() returns."
            )
        columns.append(column.cast(field.dataType).alias(field.name))
    return frame.select(*columns)


def _converts(stored: Any, wanted: Any) -> bool:
    """Whether an ALTER may change the type of a column this way."""
    types = [arrow_types(StructType([field]))[0].type for field in (stored, wanted)]
    return can_alter(*types)
