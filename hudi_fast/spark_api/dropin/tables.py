"""Execute recorded reads and writes: of paths and of tables by name.

Reads and writes of Hudi tables by name: ``table``, ``saveAsTable``, ``insertInto``, ``writeTo``, ``toTable``.

::

    name ─► session's catalog: a Hudi table? ─► its path ─► hudi_fast reads, writes, or starts a stream
    saveAsTable of a new name ─► hudi_fast.write ─► entry in the catalog

A client of Spark Connect cannot make entries; there a new name lasts as long as the session, as a temporary view.

Executes ``save``, ``load`` and ``start`` for a switched-on session and a Hudi source.

Each function takes the constructor arguments of the reader or writer and the
:class:`~hudi_fast.spark_api.dropin.calls.Request`, and replaces Apache Hudi's data source with hudi_fast. Tables are
identified by path; :mod:`hudi_fast.spark_api.dropin.tables` handles names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from posixpath import isabs
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_fast.api import read, write
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import (
    ConfigError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from hudi_fast.events import warn
from hudi_fast.schema.cast import can_alter
from hudi_fast.spark.arrow import arrow_types, names_are_exact
from hudi_fast.spark.session import is_classic, session_settings
from hudi_fast.spark.storage import session_path, split_options, storage_of
from hudi_fast.spark_api.dropin.calls import Request, read_options, save_mode, stream_options, table_path, write_options
from hudi_fast.spark_api.dropin.names import Definition, define, defined
from hudi_fast.spark_api.sql.catalog import (
    Entry,
    create_entry,
    default_path,
    drop_entry,
    find_entry,
    full_name,
    is_taken,
    replace_entry,
)
from hudi_fast.spark_api.sql.changes import insert_by_position, insert_frame, write_settings
from hudi_fast.spark_api.sql.definitions import entry_of_path, long_keys
from hudi_fast.spark_api.sql.queries import read_named
from hudi_fast.spark_api.sql.reading import read_entry
from hudi_fast.sql_text.cursor import Cursor, StatementError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.places import normal_uri

__all__ = [
    "frame_of",
    "insert_into",
    "load",
    "load_stream",
    "read_table",
    "save",
    "save_table",
    "session_of",
    "start_stream",
    "stream_to",
    "table_entry",
    "write_to",
]

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
        HudiError: as :func:`hudi_fast.spark_api.streaming.sink.stream_writer`.
    """
    from hudi_fast.spark_api.streaming.sink import stream_writer

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
        HudiError: as :func:`hudi_fast.spark_api.streaming.sink.stream_reader`.
    """
    from hudi_fast.spark_api.streaming.sink import stream_reader

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


_NAME_KEY = "hoodie.table.name"


def read_table(spark: Any, name: Any, request: Request | None = None) -> Any | None:
    """``spark.table(name)`` and ``spark.read.table(name)``; None if the name does not belong to a Hudi table.

    Args:
        spark: the session.
        name: as written.
        request: the reader's calls; None for the session's own method.
    """
    parts = name_parts(name)
    if parts is None:
        return None
    if request is not None and request.schema is not None:
        return None  # Spark refuses it
    if request is None or not request.options:
        return read_named(spark, parts)
    found = find_entry(spark, parts)
    return read_entry(spark, found, read_options(request, {})) if isinstance(found, Entry) else None


def name_parts(name: Any) -> tuple[str, ...] | None:
    """The parts of a name as written; None for text that is not a name."""
    try:
        cursor = Cursor(str(name))
        parts = cursor.name().parts
    except StatementError:
        return None
    return parts if cursor.done else None


def table_entry(spark: Any, name: Any) -> Entry | None:
    """The Hudi table of this name; None for another name."""
    parts = name_parts(name)
    found = None if parts is None else find_entry(spark, parts)
    return found if isinstance(found, Entry) else None


def save_table(built_from: Parts, request: Request) -> None:
    """``df.write.format("hudi")...saveAsTable(name)``.

    Raises:
        ConfigError: invalid name, name of another table or view, or a path that differs from the named table's.
        TableExistsError: the table exists and the mode is ``errorifexists``.
        HudiError: as :func:`hudi_fast.write`.

    Warns:
        HudiWarning: on Spark Connect, for a new name: it ends with the session.
    """
    spark = session_of(built_from)
    request = replace(request, options=_long(request.options))
    parts = name_parts(request.table)
    name = None if parts is None else full_name(spark, parts)
    if parts is None or name is None:
        raise ConfigError(f"saveAsTable({request.table!r}): expected a name of spark_catalog, such as db.table.")
    mode, said = save_mode(request.mode), defined(spark, parts[-1]) if len(parts) == 1 else None
    found = find_entry(spark, parts)
    known = found if isinstance(found, Entry) else None
    known_path = known.path if known is not None else said.path if said is not None else ""
    if _nothing_to_do(spark, parts, mode, known_path):
        return
    path = _path_of(spark, name, request, known_path if mode == "append" else "")
    options, storage = split_options(write_options(request))
    options.setdefault(_NAME_KEY, _stored_name(storage_of(spark, path, storage)) or name[1].lower())
    write(frame_of(built_from), path, options, mode, storage)
    if not is_classic(spark):
        _name_in_session(spark, name[1], path, known_path)
        return
    if known is not None and mode == "append":
        return
    if known is not None and normal_uri(known.path) == path:
        replace_entry(spark, known, entry_of_path(spark, known.name, path))
        return
    if known is not None:
        drop_entry(spark, known, purge=False)
    managed = "path" not in request.options
    create_entry(spark, replace(entry_of_path(spark, (name[0], name[1].lower()), path), managed=managed))


def insert_into(built_from: Parts, entry: Entry, overwrite: bool | None, request: Request) -> None:
    """``df.write.insertInto(name)``: by position, as in Spark.

    Args:
        built_from: constructor arguments of the writer.
        entry: the table.
        overwrite: the argument; None for the writer's mode.
        request: the writer's calls.

    Raises:
        HudiError: as for ``INSERT INTO``.
    """
    spark = session_of(built_from)
    replaces = save_mode(request.mode) == "overwrite" if overwrite is None else overwrite
    options = {**write_settings(spark, entry), **_given(request)}
    insert_by_position(spark, entry, frame_of(built_from), replaces, options)


def write_to(built_from: Parts, method: str, entry: Entry | None, request: Request) -> None:
    """``df.writeTo(name).append()`` and ``overwritePartitions()``: by name, as in Spark.

    Raises:
        TableNotFoundError: there is no such Hudi table.
        UnsupportedFeatureError: another method.
    """
    if method not in ("append", "overwritePartitions"):
        raise UnsupportedFeatureError(
            f"writeTo(...).{method}() is not supported for Hudi tables. Use saveAsTable, or CREATE TABLE ... USING "
            "hudi and writeTo(...).append() or .overwritePartitions()."
        )
    if entry is None:
        raise TableNotFoundError(f"writeTo(...).{method}(): there is no such Hudi table; make it with CREATE TABLE.")
    spark = session_of(built_from)
    options = {**write_settings(spark, entry), **_given(request), "hoodie.datasource.overwrite.mode": "DYNAMIC"}
    insert_frame(spark, entry, frame_of(built_from), method != "append", options=options)


def stream_to(built_from: Parts, entry: Entry, request: Request) -> Any:
    """``df.writeStream.toTable(name)``: the running query.

    Raises:
        HudiError: as :func:`hudi_fast.spark_api.streaming.sink.stream_writer`.
    """
    settings = {key: (key, value) for key, value in write_settings(session_of(built_from), entry).items()}
    return start_stream(built_from, replace(request, path=entry.path, options={**settings, **request.options}))


def _given(request: Request) -> dict[str, str]:
    return split_options(write_options(replace(request, options=_long(request.options))))[0]


def _long(options: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Replace short keys, such as ``primaryKey``, by long ones."""
    values = long_keys({key: value for key, (_, value) in options.items()})
    return {key: options[key] if key in options else (key, value) for key, value in values.items()}


def _name_in_session(spark: Any, name: str, path: str, known_path: str) -> None:
    define(spark, name, Definition(path, "", str(spark.catalog.currentDatabase())), read(spark, path))
    if not known_path:
        warn(f"On Spark Connect the name {name} lives as long as this session; the table is {path}.")


def _nothing_to_do(spark: Any, parts: tuple[str, ...], mode: str, known_path: str) -> bool:
    """Whether mode ``ignore`` skips the write; raises where the mode or another table forbids it."""
    name = ".".join(parts)
    if known_path:
        if mode == "errorifexists":
            raise TableExistsError(
                f"There is a table {name} ({known_path}), and the mode is errorifexists: use mode append, overwrite or "
                "ignore."
            )
        return mode == "ignore"
    if not is_taken(spark, parts):
        return False
    temporary = spark.catalog.getTable(".".join(f"`{part}`" for part in parts)).isTemporary
    if mode == "ignore" and not temporary:
        return True
    kind = "temporary view" if temporary else "table or view in the session's catalog"
    raise ConfigError(
        f"saveAsTable({name!r}): there is a {kind} of that name that is not a Hudi table. Drop it or use another name."
    )


def _path_of(spark: Any, name: tuple[str, str], request: Request, known: str) -> str:
    """Path of the table; ``known`` is the path of the existing table of that name, or empty."""
    default = session_path(spark, default_path(spark, name))
    if "path" not in request.options:
        return known or normal_uri(default)
    said = table_path(request, "saveAsTable()")
    absolute = bool(urlparse(said).scheme) or isabs(said)
    path = normal_uri(session_path(spark, said) if absolute else f"{default.rpartition('/')[0]}/{said}")
    if known and normal_uri(known) != path:
        raise ConfigError(
            f"The table {'.'.join(name)} is {known}, not {path}: leave the option 'path' out, or use another name."
        )
    return path


def _stored_name(storage: Storage) -> str | None:
    """The name in the table's configuration; None without a table."""
    try:
        return TableConfig.from_properties(load_properties(storage), storage.uri).name
    except TableNotFoundError:
        return None
