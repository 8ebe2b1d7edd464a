"""Routes a SQL statement in a switched-on session.

::

    spark.sql(text) ─► parse_statement ─┬─ a query ──────────────► its Hudi tables as views ─► Spark
                                        ├─ about a Hudi table ───► changes, definitions, indexes, procedures
                                        └─ anything else ────────► Spark, as written
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.events import warn
from hudi_fast.procedures.call import Use, bound, is_procedure, rows_of
from hudi_fast.procedures.values import Rows
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark_api.dropin.names import Definition, define, defined
from hudi_fast.spark_api.sql.catalog import Entry, create_view_entry, find_entry
from hudi_fast.spark_api.sql.changes import delete_rows, insert_rows, merge_rows, update_rows, write_settings
from hudi_fast.spark_api.sql.definitions import DEFINITIONS, create_table
from hudi_fast.spark_api.sql.descriptions import DESCRIPTIONS, INDEXES
from hudi_fast.spark_api.sql.queries import Tables, is_query, query, tables_of
from hudi_fast.spark_api.sql.reading import constant, no_rows, original_sql, read_entry, table_said
from hudi_fast.sql_text.cursor import Cursor, Edit, StatementError, edited
from hudi_fast.sql_text.grammar import parse_statement
from hudi_fast.sql_text.procedures import SIGNATURES
from hudi_fast.sql_text.statements import (
    CacheQuery,
    Call,
    CreateTable,
    CreateView,
    Delete,
    Insert,
    MergeInto,
    NotNeeded,
    NotSupported,
    RefreshTable,
    Statement,
    Update,
)
from hudi_fast.table import HudiTable

__all__ = ["run_sql"]

_CHANGES: Mapping[type, Callable[[Any, Tables, Entry, Any], None]] = {
    Insert: insert_rows,
    Update: update_rows,
    Delete: delete_rows,
    MergeInto: merge_rows,
}
_ABOUT = {**DEFINITIONS, **DESCRIPTIONS, **INDEXES}
_QUOTES = str.maketrans({"\\": "\\\\", "'": "\\'"})


def run_sql(spark: Any, text: str, args: Any = None) -> Any:
    """Execute a statement: by hudi_fast where it concerns a Hudi table, else by Spark.

    Args:
        spark: the session.
        text: the statement.
        args: values of its parameters: by name, or a sequence by position; None without parameters.

    Returns:
        A DataFrame.

    Raises:
        StatementError: a statement about a Hudi table cannot be parsed; the message shows the place.
        HudiError: see :mod:`hudi_fast.errors`.
    """
    try:
        statement = parse_statement(text)
    except StatementError as error:
        if _is_ours(spark, text, error):
            raise
        return original_sql(spark, text, args)
    if statement is None:
        return query(spark, text, args) if is_query(text) else original_sql(spark, text, args)
    bound = text if not args else _bound(text, args)
    if bound is not text:
        again = parse_statement(bound)
        assert again is not None
        statement = again
    executed = _execute(spark, statement)
    if executed is None:
        return _by_spark(spark, text, statement, args)
    return executed


def _execute(spark: Any, statement: Statement) -> Any | None:
    """The result; None where the statement does not concern a Hudi table."""
    if isinstance(statement, Call):
        return _call_procedure(spark, statement) if is_procedure(statement.table.parts[-1]) else None
    if isinstance(statement, CreateView):
        return _create_view(spark, statement)
    if isinstance(statement, CreateTable):
        return _create_table(spark, statement)
    if isinstance(statement, CacheQuery):
        return _cache(spark, statement)
    entry = find_entry(spark, statement.table.parts)
    if not isinstance(entry, Entry):
        return None
    kind = type(statement)
    if isinstance(statement, NotSupported):
        raise UnsupportedFeatureError(
            f"{statement.what} of the Hudi table {entry} is not supported. {statement.advice}"
        )
    if isinstance(statement, NotNeeded):
        done = f"{statement.what} of the Hudi table {entry} did nothing: {statement.reason}."
        warn(done)
        return no_rows(spark)
    if isinstance(statement, RefreshTable):
        return no_rows(spark)
    if kind in _CHANGES:
        if entry.is_read_optimized:
            raise UnsupportedFeatureError(
                f"The table {entry} is a read-optimized view; change {str(entry)[:-3]} instead."
            )
        with tables_of(spark) as tables:
            _CHANGES[kind](spark, tables, entry, statement)
        return no_rows(spark)
    done = _ABOUT[kind](spark, entry, statement)
    return no_rows(spark) if done is None else done


def _create_table(spark: Any, statement: CreateTable) -> Any | None:
    provider = (statement.provider or "").lower()
    if statement.provider is None and statement.like is not None:
        provider = "hudi" if isinstance(find_entry(spark, statement.like.parts), Entry) else ""
    elif statement.provider is None:
        provider = str(spark.conf.get("spark.sql.sources.default", "parquet")).lower()
    if provider not in ("hudi", "org.apache.hudi"):
        return None
    with tables_of(spark) as tables:
        create_table(spark, tables, statement)
    return no_rows(spark)


def _create_view(spark: Any, statement: CreateView) -> Any | None:
    """Define a view over Hudi tables; None for a view over others."""
    with tables_of(spark) as tables:
        if not tables.has_tables(statement.query):
            return None
        name, text = statement.table.parts, statement.query
        if statement.columns:
            text = f"SELECT * FROM ({text}) AS v({', '.join(f'`{one}`' for one in statement.columns)})"
        frame = original_sql(spark, tables.rewritten(text))
        database = str(spark.catalog.currentDatabase())
        if statement.temporary == "global":
            raise UnsupportedFeatureError(
                f"The global temporary view {statement.table} over Hudi tables is not supported."
            )
        is_session_view = statement.must_exist and len(name) == 1 and defined(spark, name[0]) is not None
        if statement.temporary or is_session_view:
            define(spark, name[-1], Definition("", text, database), frame, statement.replace)
        else:
            create_view_entry(spark, name, statement, database, frame.schema)
    return no_rows(spark)


def _cache(spark: Any, statement: CacheQuery) -> Any | None:
    """Cache the rows of a query over Hudi tables under a name; None for a query over others."""
    with tables_of(spark) as tables:
        if not tables.has_tables(statement.query):
            return None
        frame = original_sql(spark, tables.rewritten(statement.query))
    frame.createTempView(statement.table.parts[-1])
    frame.cache()
    if not statement.lazy:
        frame.count()
    return no_rows(spark)


def _by_spark(spark: Any, text: str, statement: Statement, args: Any) -> Any:
    """A statement about another table; its query may read Hudi tables."""
    if isinstance(statement, Insert | MergeInto | CreateTable):
        return query(spark, text, args)
    return original_sql(spark, text, args)


def _is_ours(spark: Any, text: str, error: StatementError) -> bool:
    """Whether a statement that cannot be parsed concerns a Hudi table."""
    if error.table is None:
        return False
    if isinstance(find_entry(spark, error.table.parts), Entry):
        return True
    words = [token.text.lower() for token in Cursor(text).tokens]
    return any(words[at : at + 2] == ["using", "hudi"] for at in range(len(words)))


def _bound(text: str, args: Any) -> str:
    """The text with the values of its parameters as literals."""
    cursor, edits, at = Cursor(text), [], 0
    tokens = cursor.tokens
    for index, token in enumerate(tokens):
        if isinstance(args, Mapping):
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.text == ":" and following is not None and following.text in args and following.start == token.end:
                edits.append(Edit(token.start, following.end, _literal(args[following.text])))
        elif token.kind == "symbol" and token.text == "?":
            if at >= len(args):
                raise ConfigError(f"The statement has more parameters than the {len(args)} values that were given.")
            edits.append(Edit(token.start, token.end, _literal(args[at])))
            at += 1
    return edited(text, edits) if edits else text


def _literal(value: Any) -> str:
    """A Python value as a SQL literal."""
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, int):
        return f"{value}L" if abs(value) >= 2**31 else str(value)
    if isinstance(value, float):
        return f"double('{value!r}')"
    if isinstance(value, decimal.Decimal):
        return f"{value}BD"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, str):
        return f"'{value.translate(_QUOTES)}'"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    raise UnsupportedFeatureError(f"A parameter of type {type(value).__name__} is not supported in this statement.")


# ---- CALL in a Spark session: tables of its catalog, its settings, its tasks, and results as DataFrames
#
# Source: ``HoodieProcedures`` of Hudi 1.2.0.


def _call_procedure(spark: Any, statement: Call) -> Any:
    """Execute a procedure.

    Returns:
        A DataFrame with the procedure's columns.

    Raises:
        ConfigError: unknown, missing or wrong arguments.
        UnsupportedFeatureError: hudi_fast does not have the procedure.
        HudiError: of the service.
    """
    name = statement.table.parts[-1].lower()
    values = bound(name, statement.arguments, partial(constant, spark))
    entry_of = cache(lambda said: table_said(spark, said, f"CALL {name}"))
    use = Use(
        name,
        values,
        lambda said: HudiTable(storage_of(spark, entry_of(said).path)),
        lambda said: write_settings(spark, entry_of(said)),
        spark,
    )
    if name in ("copy_to_table", "copy_to_temp_view"):
        rows = _copy(use, entry_of(use.said))
    elif name == "hive_sync":
        rows = rows_of(replace(use, entry=entry_of(use.said).name))
    else:
        rows = rows_of(use)
    return spark.createDataFrame([tuple(row) for row in rows], SIGNATURES[name].columns)


def _copy(use: Use, entry: Entry) -> Rows:
    values = use.values
    options = {"hoodie.datasource.query.type": values["query_type"]}
    named = {
        "begin_instance_time": "hoodie.datasource.read.begin.instanttime",
        "end_instance_time": "hoodie.datasource.read.end.instanttime",
        "as_of_instant": "as.of.instant",
    }
    options |= {key: values[name] for name, key in named.items() if values.get(name)}
    frame = read_entry(use.spark, entry, options)
    if use.name == "copy_to_temp_view":
        make = {
            (False, False): frame.createTempView,
            (True, False): frame.createOrReplaceTempView,
            (False, True): frame.createGlobalTempView,
            (True, True): frame.createOrReplaceGlobalTempView,
        }[bool(values["replace"]), bool(values["global"])]
        make(values["view_name"])
        return [(0,)]
    if values.get("columns"):
        frame = frame.select(*(one.strip() for one in values["columns"].split(",")))
    frame.write.mode(values["save_mode"]).format("parquet").saveAsTable(values["new_table"])
    return [(0,)]
