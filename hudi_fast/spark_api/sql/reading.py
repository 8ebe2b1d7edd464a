"""Reads of tables of the catalog, and values of constant expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_fast.api import read
from hudi_fast.errors import ConfigError
from hudi_fast.spark.session import as_it_was, session_settings
from hudi_fast.spark_api.dropin.calls import Request, read_options
from hudi_fast.spark_api.sql.catalog import Entry, find_entry
from hudi_fast.sql_text.cursor import Cursor

__all__ = ["constant", "no_rows", "original_sql", "read_entry", "session_options", "table_said"]

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}


def original_sql(spark: Any, text: str, args: Any = None) -> Any:
    """Spark's own ``sql``."""
    sql = as_it_was(type(spark).sql)
    return sql(spark, text) if args is None else sql(spark, text, args)


def no_rows(spark: Any) -> Any:
    """The result of a statement that returns nothing: a DataFrame without columns and rows."""
    return spark.range(0).select()


def session_options(spark: Any) -> dict[str, str]:
    """The session's defaults for reads."""
    return read_options(Request(), session_settings(spark))


def read_entry(spark: Any, entry: Entry, options: Mapping[str, str] | None = None) -> Any:
    """The rows of a table of the catalog; partition columns last, as in the catalog.

    Args:
        spark: the session; its ``hoodie.*`` settings are defaults.
        entry: the table.
        options: of the read.
    """
    settings = session_options(spark)
    if entry.is_read_optimized:
        settings["hoodie.datasource.query.type"] = "read_optimized"
    frame = read(spark, entry.path, {**settings, **(options or {})})
    last = [name for name in entry.partition_columns if name in frame.columns]
    order = [name for name in frame.columns if name not in last] + last
    return frame if order == frame.columns else frame.select(*(f"`{name}`" for name in order))


def table_said(spark: Any, said: Any, what: str) -> Entry:
    """The table that a text names: in the catalog, or by its base path.

    Args:
        spark: the session.
        said: ``db.table``, or a path.
        what: the function or procedure, for messages.

    Raises:
        ConfigError: there is no such table.
    """
    text = str(said)
    if "/" in text:
        return Entry(("", text), text)
    found = find_entry(spark, Cursor(text).name().parts)
    if not isinstance(found, Entry):
        raise ConfigError(f"{what}: there is no Hudi table {text} in the session's catalog. Check the name.")
    return found


def constant(spark: Any, expression: str) -> Any:
    """The value of an expression without columns.

    Args:
        spark: evaluates it, unless it is a literal.
        expression: SQL.
    """
    tokens = Cursor(expression).tokens
    if len(tokens) == 1 and tokens[0].kind == "string":
        return tokens[0].text
    if len(tokens) == 1 and tokens[0].text.upper() in _CONSTANTS:
        return _CONSTANTS[tokens[0].text.upper()]
    if len(tokens) == 1 and tokens[0].kind == "number" and tokens[0].text.isdigit():
        return int(tokens[0].text)
    return original_sql(spark, f"SELECT {expression}").first()[0]
