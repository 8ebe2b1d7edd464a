"""Switch a session's ``format("hudi")`` to hudi_fast: PySpark's methods, wrapped once for all sessions.

The methods of PySpark's readers and writers, wrapped once for a process.

::

    __init__, format, option, mode ...    record the call, then call the original method
    save, load, start ...                 another source, or another session:     original method
                                          Hudi, in a switched-on session:         hudi_fast
                                              not supported, with fallback on:    original method
    sql, table, catalog.tableExists ...   in a switched-on session: hudi_fast, which calls the original method where
                                          no Hudi table is concerned
    insertInto, writeTo, toTable          a Hudi table of the catalog: hudi_fast; else the original method

The wrappers hold no state: calls are recorded in the reader or writer, and the switch is a setting of the session.
Threads and sessions therefore do not interfere.

``accelerate(spark)`` wraps the methods of PySpark's readers and writers once (``install``). If a session is switched
on and a call names a Hudi source, the calls of the reader or writer (``calls``) are translated
(``translate``) and executed (``actions``). All other calls reach the original method.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable
from typing import Any

import pyspark

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.spark.session import ORIGINAL, require_pyspark
from hudi_fast.spark_api.dropin.calls import (
    NOTED,
    Call,
    Request,
    begin_notes,
    final_calls,
    is_hudi,
    note,
    notes_of,
    read_calls,
)
from hudi_fast.spark_api.dropin.names import drop_names
from hudi_fast.spark_api.dropin.tables import (
    Parts,
    insert_into,
    load,
    load_stream,
    read_table,
    save,
    save_table,
    session_of,
    start_stream,
    stream_to,
    table_entry,
    write_to,
)
from hudi_fast.spark_api.sql.catalog import Entry
from hudi_fast.spark_api.sql.descriptions import describe_table, has_table, list_columns
from hudi_fast.spark_api.sql.statements import run_sql

__all__ = ["FALLBACK", "ON", "accelerate", "install", "set_mark"]

Act = Callable[[Parts, Request], Any]

_CLASSIC = ("pyspark.sql.readwriter", "pyspark.sql.streaming.readwriter")
_CONNECT = ("pyspark.sql.connect.readwriter", "pyspark.sql.connect.streaming.readwriter")
_BY_NAME = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_BATCH: dict[str, dict[str, Act]] = {
    "DataFrameReader": {"load": load},
    "DataFrameWriter": {"save": save, "saveAsTable": save_table},
    "DataFrameWriterV2": {},
}
_STREAM: dict[str, dict[str, Act]] = {
    "DataStreamReader": {"load": load_stream},
    "DataStreamWriter": {"start": start_stream},
}
_MODULES = ("session", "readwriter", "streaming.readwriter", "catalog")
_CATALOG = {"tableExists": has_table, "getTable": describe_table, "listColumns": list_columns}
_LOCK = threading.Lock()


def install(connect: bool) -> None:
    """Wrap the methods once.

    Args:
        connect: wrap the classes of Spark Connect instead of classic PySpark.
    """
    for module_name, acts in zip(_CONNECT if connect else _CLASSIC, (_BATCH, _STREAM), strict=True):
        module = importlib.import_module(module_name)
        with _LOCK:
            for class_name, methods in acts.items():
                _wrap_class(getattr(module, class_name), methods)
    package = "pyspark.sql.connect" if connect else "pyspark.sql"
    session, batch, stream, catalog = (importlib.import_module(f"{package}.{name}") for name in _MODULES)
    with _LOCK:
        _replace(session.SparkSession, "sql", _sql)
        if not connect:  # Connect's session.table calls its reader
            _replace(session.SparkSession, "table", _table)
        _replace(batch.DataFrameReader, "table", _table)
        _replace(batch.DataFrameWriter, "insertInto", _insert_into)
        _replace(stream.DataStreamWriter, "toTable", _to_table)
        for name in _BY_NAME:
            _replace(batch.DataFrameWriterV2, name, functools.partial(_write_to, name))
        for name, answer in _CATALOG.items():
            _replace(catalog.Catalog, name, functools.partial(_of_catalog, answer))


def _replace(kind: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Replace a method by ``make(method)``, once."""
    original = getattr(kind, name)
    if not hasattr(original, ORIGINAL):
        wrapper = functools.wraps(original)(make(original))
        setattr(wrapper, ORIGINAL, original)
        setattr(kind, name, wrapper)


def _wrap_class(kind: Any, acts: dict[str, Act]) -> None:
    if hasattr(kind.__init__, ORIGINAL):
        return
    for name in [name for name in vars(kind) if name in NOTED]:
        setattr(kind, name, _noting(name, getattr(kind, name)))
    for name, act in acts.items():
        setattr(kind, name, _acting(getattr(kind, name), act))
    kind.__init__ = _beginning(kind.__init__)  # last: it marks the class as wrapped


def _beginning(original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        begin_notes(self, (*args, *kwargs.values()))

    setattr(wrapper, ORIGINAL, original)
    return wrapper


def _noting(name: str, original: Any) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        note(self, Call(name, args, kwargs))
        return result

    return wrapper


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        if _mark_of(self) is None:
            return original(self, sqlQuery, args, **kwargs) if args is not None else original(self, sqlQuery, **kwargs)
        if not kwargs:
            return run_sql(self, sqlQuery, args)
        formatter = importlib.import_module(f"{type(self).__module__.rpartition('.')[0]}.sql_formatter")
        texts = formatter.SQLStringFormatter(self)
        try:
            return run_sql(self, texts.format(sqlQuery, **kwargs), args)
        finally:
            texts.clear()

    return sql


def _table(original: Any) -> Any:
    def table(self: Any, tableName: str) -> Any:
        notes = notes_of(self)  # recorded calls of a reader; a session has none
        spark = (
            self if notes is None and hasattr(self, "readStream") else None if notes is None else session_of(notes[0])
        )
        found = None
        if spark is not None and _mark_of(spark) is not None:
            found = read_table(spark, tableName, None if notes is None else read_calls(notes[1]))
        return original(self, tableName) if found is None else found

    return table


def _of_catalog(answer: Callable[[Any, Entry], Any], original: Any) -> Any:
    def method(self: Any, tableName: str, dbName: str | None = None) -> Any:
        spark = self._sparkSession
        entry = None
        if _mark_of(spark) is not None:
            entry = table_entry(spark, tableName if dbName is None else f"`{dbName}`.`{tableName}`")
        if entry is not None:
            return answer(spark, entry)
        return original(self, tableName) if dbName is None else original(self, tableName, dbName)

    return method


def _insert_into(original: Any) -> Any:
    def insertInto(self: Any, tableName: str, overwrite: bool | None = None) -> None:
        found = _named(self, tableName)
        if found is None:
            original(self, tableName, overwrite)
        else:
            built_from, entry, request = found
            insert_into(built_from, entry, overwrite, request)

    return insertInto


def _write_to(method: str, original: Any) -> Any:
    def write(self: Any, *args: Any) -> None:
        notes = notes_of(self)
        name = None if notes is None else next((one for one in notes[0] if isinstance(one, str)), None)
        found = _named(self, name)
        if found is not None:
            write_to(found[0], method, found[1], found[2])
        elif notes is not None and _mark_of(session_of(notes[0])) and is_hudi(str(read_calls(notes[1]).source or "")):
            write_to(notes[0], method, None, read_calls(notes[1]))
        else:
            original(self, *args)

    return write


def _to_table(original: Any) -> Any:
    def toTable(self: Any, tableName: str, *args: Any, **kwargs: Any) -> Any:
        found = _named(self, tableName)
        if found is None:
            return original(self, tableName, *args, **kwargs)
        built_from, entry, _ = found
        calls = [*(notes_of(self) or ((), ()))[1], *final_calls(original, self, (tableName, *args), kwargs)]
        return stream_to(built_from, entry, read_calls(calls))

    return toTable


def _named(target: Any, name: Any) -> tuple[Parts, Entry, Request] | None:
    """The Hudi table that a writer names, in a switched-on session; None where the original method applies."""
    notes = notes_of(target)
    spark = None if notes is None else session_of(notes[0])
    if notes is None or _mark_of(spark) is None:
        return None
    entry = table_entry(spark, name)
    return None if entry is None else (notes[0], entry, read_calls(notes[1]))


def _acting(original: Any, act: Act) -> Any:
    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = _asked_of_us(self, original, args, kwargs)
        if found is None:
            return original(self, *args, **kwargs)
        built_from, request, falls_back = found
        try:
            return act(built_from, request)
        except UnsupportedFeatureError as error:
            # With a note the write is already committed, and only a later step is not supported.
            if not falls_back or getattr(error, "__notes__", None):
                raise
            return _by_spark(error, functools.partial(original, self, *args, **kwargs))

    return wrapper


def _asked_of_us(
    target: Any, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Parts, Request, bool] | None:
    """The request of the call; None when the original method handles it."""
    notes = notes_of(target)
    if notes is None:
        return None
    built_from, calls = notes
    try:
        last = final_calls(method, target, args, kwargs)
    except TypeError:  # invalid arguments: the original method raises the clearest error
        return None
    request = read_calls([*calls, *last])
    if request.elsewhere or (request.source is not None and not is_hudi(str(request.source))):
        return None
    spark = session_of(built_from)
    mark = _mark_of(spark)
    if mark is None or not is_hudi(_source_of(spark, request.source)):
        return None
    return built_from, request, mark == FALLBACK


def _by_spark(error: UnsupportedFeatureError, call: Callable[[], Any]) -> Any:
    """Run the call with Apache Hudi from Spark's class path; without it re-raise the first error."""
    try:
        result = call()
    except Exception as other:
        if "DATA_SOURCE_NOT_FOUND" not in str(other) and "Failed to find data source" not in str(other):
            warn(_left(error))
            raise
        error.add_note("There is no Apache Hudi on the class path of the session to fall back to.")
        raise error from None
    warn(_left(error))
    return result


def _left(error: UnsupportedFeatureError) -> str:
    return f"Falling back to Apache Hudi's own data source, because hudi_fast does not support this call: {error}"


# ---- the switch of a session, stored in one session setting
#
# The setting is shared by every Python object of the session, by the clone in which a stream runs its batches and, on
# Spark Connect, by the server; it ends with the session. Other sessions have their own settings.


ON = "on"
"""hudi_fast serves the session's Hudi tables."""
FALLBACK = "fallback"
"""The same; calls that hudi_fast does not support reach Apache Hudi's own data source."""
_MARK = "hudi_fast.accelerate"


def set_mark(spark: Any, mark: str | None) -> None:
    """Switch a session on (:data:`ON` or :data:`FALLBACK`), or off with None."""
    if mark is None:
        spark.conf.unset(_MARK)
    else:
        spark.conf.set(_MARK, mark)


def _mark_of(spark: Any) -> str | None:
    """:data:`ON`, :data:`FALLBACK`, or None when switched off."""
    mark: str | None = spark.conf.get(_MARK, None)
    return mark


def _source_of(spark: Any, named: str | None) -> str:
    """The named data source, or the session's default."""
    return named if named is not None else str(spark.conf.get("spark.sql.sources.default", "parquet"))


def accelerate(spark: Any, on: bool = True, *, fallback: bool = False) -> None:
    """Make hudi_fast serve ``format("hudi")``, Hudi tables by name, and SQL about them in this session.

    Other formats and other sessions are not affected. Repeated calls have no further effect.

    Args:
        spark: the PySpark session, classic or of Spark Connect.
        on: False switches this session back and drops its temporary views over Hudi tables.
        fallback: use Apache Hudi's own data source, with a :class:`HudiWarning`, for calls that hudi_fast refuses as
            not supported before writing anything. Requires Hudi's bundle on the session's class path.

    Raises:
        ConfigError: ``spark`` is not a Spark session.
        UnsupportedFeatureError: PySpark before 3.5.
    """
    require_pyspark(pyspark.__version__)
    if not hasattr(spark, "readStream") or not hasattr(spark, "conf"):
        raise ConfigError(f"accelerate needs a SparkSession, got {type(spark).__name__}.")
    if not on:
        set_mark(spark, None)
        drop_names(spark)
        return
    install(type(spark).__module__.startswith("pyspark.sql.connect"))
    set_mark(spark, FALLBACK if fallback else ON)
