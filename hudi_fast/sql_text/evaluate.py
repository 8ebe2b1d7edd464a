"""Queries in Spark's grammar over Arrow data, computed by duckdb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.sql_text.cursor import syntax_fault
from hudi_fast.storage.extras import import_extra

__all__ = ["evaluated"]


def evaluated(text: str, sources: Mapping[str, Any], shown: str | None = None) -> pa.Table:
    """The rows of a query.

    Args:
        text: the query, in Spark's grammar.
        sources: Arrow data by name, such as a table or a ``pyarrow.dataset``; columns and conditions are pushed down.
        shown: the query in messages; None for ``text``.

    Raises:
        ConfigError: duckdb is not installed, or does not understand the query.
    """
    duckdb = import_extra("duckdb", "sql", "A query without Spark")
    import sqlglot
    from sqlglot.errors import SqlglotError

    said = text if shown is None else shown
    try:
        (translated,) = sqlglot.transpile(text, read="spark", write="duckdb")
    except (SqlglotError, ValueError) as error:
        raise ConfigError(f"The query {said!r} cannot be read: {syntax_fault(text, error)}.") from error
    with duckdb.connect(config={"python_enable_replacements": False}) as connection:
        for name, source in sources.items():
            connection.register(name, source)
        try:
            rows: pa.Table = connection.sql(translated).to_arrow_table()
        except duckdb.Error as error:
            raise ConfigError(f"duckdb refuses the query {said!r}: {error}") from error
    return rows
