"""Queries without Spark, and the names of tables in them.

Queries without Spark: names of Hudi tables become Arrow datasets, and duckdb computes.

::

    text ─► references ─► {name: scan} ─┐
         └► duckdb's dialect ───────────┴─► duckdb ─► rows

Columns and conditions of a query are pushed down into the scans.

Resolves names in a statement without a catalog: to Hudi tables, and to rows of the program.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.dataset as ds

from hudi_fast.arrow_input import to_arrow_table
from hudi_fast.config.option_names import SnapshotType
from hudi_fast.config.table_config import TableConfig
from hudi_fast.dml.assignments import is_literal, literal_value
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.expressions.sql_filters import sql_value
from hudi_fast.reading.vector_search import BATCH_FUNCTION, FUNCTION, batch_arguments, search_arguments
from hudi_fast.sql_text.cursor import Cursor, Edit, Reference, edited, read_items, references_in
from hudi_fast.sql_text.evaluate import evaluated
from hudi_fast.table import HudiTable
from hudi_fast.writing.output_file import META_COLUMNS

__all__ = ["Tables", "column_order", "constant", "name_parts", "query"]


class Tables:
    """The tables of a statement.

    Args:
        given: name -> path, HudiTable, or rows.
        storage_options: how to reach paths.

    Raises:
        ConfigError: ``given`` is not a mapping, or has two names that differ only in upper and lower case.
    """

    def __init__(self, given: Mapping[str, Any] | None, storage_options: Mapping[str, Any] | None) -> None:
        if given is not None and not isinstance(given, Mapping):
            raise ConfigError(f"tables is a mapping from names to paths or tables; got {type(given).__name__}.")
        self._given = {name.lower(): value for name, value in (given or {}).items()}
        if len(self._given) != len(given or {}):
            raise ConfigError(f"tables has names that differ only in upper and lower case: {sorted(given or {})}.")
        self._storage_options = storage_options

    def find(self, parts: Sequence[str]) -> HudiTable | pa.Table:
        """The Hudi table, or the rows, of a name.

        Args:
            parts: of the name: a given name, a path, or ``hudi`` and a path.

        Raises:
            ConfigError: nothing has that name.
            TableNotFoundError: there is no table at the path.
        """
        name = ".".join(parts)
        if name.lower() in self._given:
            value = self._given[name.lower()]
            if isinstance(value, HudiTable):
                return value
            return self._open(value) if isinstance(value, str | os.PathLike) else to_arrow_table(value)
        if len(parts) == 2 and parts[0].lower() == "hudi":
            return self._open(parts[1])
        if len(parts) == 1 and "/" in name:
            return self._open(name)
        known = f" Known are {', '.join(sorted(self._given))}." if self._given else ""
        raise ConfigError(
            f"There is no table {name}.{known} Pass it, as tables={{{parts[-1]!r}: path}}, or write its path in "
            "back-ticks."
        )

    def table(self, parts: Sequence[str]) -> HudiTable:
        """The Hudi table of a name.

        Raises:
            ConfigError: the name belongs to rows, or is unknown.
            TableNotFoundError: there is no table at the path.
        """
        found = self.find(parts)
        if not isinstance(found, HudiTable):
            raise ConfigError(f"{'.'.join(parts)} is not a Hudi table: it has rows of the program.")
        return found

    def said(self, text: str) -> HudiTable:
        """The Hudi table that an argument of a procedure names: ``db.t``, or a path."""
        return self.table(name_parts(text))

    def _open(self, path: str | os.PathLike[str]) -> HudiTable:
        return HudiTable.open(path, self._storage_options)


def name_parts(text: str) -> Sequence[str]:
    """Parts of the name that an argument gives: ``db.t``, or a path."""
    return (text,) if "/" in text else Cursor(text).name().parts


_NOTHING = pa.schema([])
_CHANGES = {"hudi_table_changes": 3, "hudi_query": 2}


def query(text: str, tables: Tables) -> pa.Table:
    """The rows of a query.

    Args:
        text: the query, in Spark's grammar.
        tables: resolves its names.

    Raises:
        ConfigError: duckdb is not installed, or does not understand the query.
        UnsupportedFeatureError: a table function that needs Spark.
    """
    found = _without_duckdb(text, tables)
    return _by_duckdb(text, tables) if found is None else found


def constant(text: str) -> Any:
    """The value of an expression without columns."""
    if is_literal(text) and "\\" not in text:  # a long list of VALUES has many
        return literal_value(text)
    rows = pa.table({"it": [None]})
    return ds.dataset(rows).to_table(columns={"it": sql_value(text, _NOTHING)})["it"][0].as_py()


def column_order(schema: pa.Schema, config: TableConfig) -> list[str]:
    """Data columns as in Spark's catalog: partition columns last."""
    names = schema.names
    last = [name for name in (config.partition_fields if config.is_partitioned else ()) if name in names]
    return [*(name for name in names if name not in last), *last]


def _without_duckdb(text: str, tables: Tables) -> pa.Table | None:
    """The rows of ``VALUES ...`` or ``SELECT * FROM name``; None for other queries."""
    cursor = Cursor(text)
    if cursor.take("VALUES"):
        return _values(cursor)
    if not cursor.take("SELECT", "*", "FROM") or cursor.sees("("):
        return None
    name = cursor.name()
    cursor.take(";")
    if not cursor.done:
        return None
    found = tables.find(name.parts)
    return found.to_arrow(_columns(found)) if isinstance(found, HudiTable) else found


def _values(cursor: Cursor) -> pa.Table | None:
    """Rows of constants; None if anything follows."""
    rows = []
    while True:
        if cursor.sees("("):
            row = read_items(Cursor(cursor.inside()))
        else:
            row = [cursor.until((",",))]
        rows.append(row)
        if not cursor.take(","):
            break
    cursor.take(";")
    if not cursor.done:
        return None
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise ConfigError(f"VALUES: the rows have {sorted({len(row) for row in rows})} values.")
    columns = [[constant(row[at]) for row in rows] for at in range(width)]
    try:
        return pa.table({f"col{at}": column for at, column in enumerate(columns, 1)})
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ConfigError(f"VALUES: the values of a column are of different types: {error}") from error


def _columns(table: HudiTable) -> list[str]:
    config = table.config
    return [*(META_COLUMNS if config.populate_meta_fields else ()), *column_order(table.schema, config)]


# ---- duckdb


def _by_duckdb(text: str, tables: Tables) -> pa.Table:
    sources: dict[str, Any] = {}
    edits: list[Edit] = []
    for one in references_in(text):
        name = f"__hudi_fast_{len(sources)}"
        sources[name] = _source(one, tables)
        alias = "" if one.alias else f" AS `{one.name.parts[-1]}`"
        edits.append(Edit(one.name.start, one.end, f"{name}{alias}"))
        edits += [Edit(start, end, "") for start, end in one.prefixes]
    return evaluated(edited(text, edits), sources, text)


def _source(one: Reference, tables: Tables) -> Any:
    if one.arguments is not None:
        name = one.name.parts[0].lower()
        if name in (FUNCTION, BATCH_FUNCTION):
            return _closest(name, [_value(text) for text in one.arguments], tables)
        return _changes(name, [constant(text) for text in one.arguments], tables)
    found = tables.find(one.name.parts)
    if not isinstance(found, HudiTable):
        if one.moment is not None:
            raise ConfigError(f"{one.name} is not a Hudi table; time travel needs one.")
        return found
    return found.scan(_columns(found), as_of=None if one.moment is None else str(constant(one.moment[1])))


def _closest(name: str, values: list[Any], tables: Tables) -> pa.Table:
    """The rows of ``hudi_vector_search`` or ``hudi_vector_search_batch``."""
    if name == FUNCTION:
        given = search_arguments(values)
        return tables.said(str(values[0])).vector_search(**given)
    given = batch_arguments(values)
    asked = tables.find(name_parts(str(values[2])))
    queries = asked.to_arrow(_columns(asked)) if isinstance(asked, HudiTable) else asked
    return tables.said(str(values[0])).vector_search_batch(queries=queries, **given)


def _value(text: str) -> Any:
    """A constant, or the list of an ``ARRAY(...)`` of constants."""
    cursor = Cursor(text)
    if not cursor.take("ARRAY"):
        return constant(text)
    return [constant(one) for one in read_items(Cursor(cursor.inside()))]


def _changes(name: str, values: list[Any], tables: Tables) -> pa.Table:
    """The rows of a table function."""
    if name not in _CHANGES:
        known = ", ".join([*_CHANGES, FUNCTION, BATCH_FUNCTION])
        raise UnsupportedFeatureError(f"The table function {name} needs Spark; these do not: {known}.")
    if not _CHANGES[name] <= len(values) <= 4:
        raise ConfigError(f"{name} takes {_CHANGES[name]} to 4 arguments, got {len(values)}.")
    table, kind = tables.said(str(values[0])), str(values[1])
    if name == "hudi_query" and kind in ("snapshot", "read_optimized"):
        return table.to_arrow(_columns(table), query_type=cast(SnapshotType, kind))
    formats: Mapping[str, str] = {"latest_state": "latest_state", "cdc": "cdc", "incremental": "latest_state"}
    if kind not in formats:
        raise ConfigError(f"{name}: the second argument is {kind!r}; expected one of {', '.join(formats)}.")
    begin, end = (str(one) for one in (*values[2:], "", "")[:2])
    asked = {"hoodie.datasource.query.incremental.format": formats[kind]}
    return table.incremental(begin or "earliest", end or None, options=asked)
