"""Temporary views of named tables, refreshed before each query if the table has changed.

::

    spark.sql, spark.table, spark.read.table ─► refresh_views ─► original method
                                                    │
      completed instants + read settings of the session, as text: unchanged since the last refresh? keep the view
                                                    │ otherwise
                                   hudi_fast.read ─► temporary view, stored with that text

A catalogue cannot replace these views. PySpark 4 accepts ``CREATE TABLE ... USING`` a Python data source, but passes it
neither path nor options when the table is read; a ``CREATE TEMPORARY VIEW ... USING`` always shows the rows of its
first query. If a program replaces the view, the replacement stays and the name is dropped from the session.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from hudi_fast.api import read
from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError, HudiWarning
from hudi_fast.spark.dropin.calls import Request
from hudi_fast.spark.dropin.names import NamedTable, keep_names, named_tables
from hudi_fast.spark.dropin.session import as_it_was, session_settings
from hudi_fast.spark.dropin.translate import read_options
from hudi_fast.spark.storage import storage_of
from hudi_fast.timeline.active import load_timeline

__all__ = ["drop_views", "known_table", "name_table", "refresh_views"]

_LOCK = threading.Lock()


def refresh_views(spark: Any) -> None:
    """Refresh the view of every named table of a session.

    Args:
        spark: the session.

    Warns:
        HudiWarning: a table cannot be read; its name is undefined until it can be read again.
    """
    if not _behind(spark):
        return
    with _LOCK:
        names, options = named_tables(spark), _read_settings(spark)
        for name in _behind(spark):
            table = names[name]
            if _is_ours(spark, name, table):
                names[name] = _show(spark, name, table.path, options)
            else:
                del names[name]
        keep_names(spark, names)


def known_table(spark: Any, name: str) -> NamedTable | None:
    """The named table of a session; None when the name is free or belongs to another view."""
    table = named_tables(spark).get(name)
    return table if table is not None and _is_ours(spark, name, table) else None


def name_table(spark: Any, name: str, path: str) -> None:
    """Register a table under a name in a session.

    Args:
        spark: the session.
        name: free, or of an existing named table.
        path: base path.
    """
    with _LOCK:
        shown = _show(spark, name, path, _read_settings(spark))
        keep_names(spark, {**named_tables(spark), name: shown})


def drop_views(spark: Any) -> None:
    """Remove all names of a session, and drop their views."""
    with _LOCK:
        for name, table in named_tables(spark).items():
            if table.view is not None and _is_ours(spark, name, table):
                spark.catalog.dropTempView(name)
        keep_names(spark, {})


def _behind(spark: Any) -> list[str]:
    """Named tables whose view is outdated."""
    names = named_tables(spark)
    if not names:
        return []
    options = _read_settings(spark)
    return [name for name, table in names.items() if _state(spark, table.path, options) != table.seen]


def _show(spark: Any, name: str, path: str, options: Mapping[str, str]) -> NamedTable:
    """Create the view; drop it where the table cannot be read, because old rows would be wrong."""
    seen = _state(spark, path, options)  # before the read: the next refresh finds commits in between
    try:
        read(spark, path, options).createOrReplaceTempView(name)
    except HudiError as error:
        spark.catalog.dropTempView(name)
        warnings.warn(f"The name {name} is unknown until {path} can be read: {error}", HudiWarning, stacklevel=5)
        return NamedTable(path, seen, None)
    return NamedTable(path, seen, _plain_table(spark, name).semanticHash())


def _state(spark: Any, path: str, options: Mapping[str, str]) -> str:
    """A short text that changes whenever the rows of a view of the table may change."""
    storage = storage_of(spark, path)
    try:
        config = TableConfig.from_properties(load_properties(storage), storage.uri)
        done = [instant.file_name for instant in load_timeline(storage, config).completed()]
    except HudiError as error:
        done = [str(error)]
    return hashlib.sha256(repr((done, sorted(options.items()))).encode()).hexdigest()


def _is_ours(spark: Any, name: str, table: NamedTable) -> bool:
    there = spark.catalog.tableExists(name)
    if not there or table.view is None:
        return not there and table.view is None
    return bool(_plain_table(spark, name).semanticHash() == table.view)


def _plain_table(spark: Any, name: str) -> Any:
    reader = spark.read
    return as_it_was(type(reader).table)(reader, name)


def _read_settings(spark: Any) -> dict[str, str]:
    return read_options(Request(), session_settings(spark))
