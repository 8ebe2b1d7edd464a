"""Reads and writes of Hudi tables by name: ``table``, ``saveAsTable``, ``insertInto``, ``writeTo``, ``toTable``.

::

    name ─► session's catalog: a Hudi table? ─► its path ─► hudi_fast reads, writes, or starts a stream
    saveAsTable of a new name ─► hudi_fast.write ─► entry in the catalog

A client of Spark Connect cannot make entries; there a new name lasts as long as the session, as a temporary view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from posixpath import isabs
from typing import Any
from urllib.parse import urlparse

from hudi_fast.api import read, write
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, TableExistsError, TableNotFoundError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.spark.session import is_classic
from hudi_fast.spark.storage import session_path, split_options, storage_of
from hudi_fast.spark_api.dropin.actions import Parts, frame_of, session_of, start_stream
from hudi_fast.spark_api.dropin.calls import Request
from hudi_fast.spark_api.dropin.names import Definition, define, defined
from hudi_fast.spark_api.dropin.translate import read_options, save_mode, table_path, write_options
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

__all__ = ["insert_into", "read_table", "save_table", "stream_to", "table_entry", "write_to"]

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
        HudiError: as :func:`hudi_fast.spark_api.streaming.entry.stream_writer`.
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
