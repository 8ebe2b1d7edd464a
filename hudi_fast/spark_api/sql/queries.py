"""Queries over Hudi tables by name.

::

    text ─► references ─► catalog: Hudi? ─► hudi_fast.read ─► temporary view ─┐
              └──────────── everything else stays as written ────────────────┴─► text ─► Spark's own sql()

Spark resolves the temporary views while it analyzes the statement; on classic Spark they are dropped afterwards.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from hudi_fast.api import read
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.procedures.files import FILESYSTEM_COLUMNS, filesystem_rows
from hudi_fast.procedures.timeline import TIMELINE_COLUMNS, timeline_rows
from hudi_fast.reading.vector_search import BATCH_FUNCTION, FUNCTION, batch_arguments, search_arguments
from hudi_fast.spark.arrow import collect, frame_of, spark_arrow
from hudi_fast.spark.session import is_classic
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark_api.dropin.names import defined
from hudi_fast.spark_api.sql.catalog import Entry, ViewEntry, find_entry, is_taken
from hudi_fast.spark_api.sql.reading import constant, original_sql, read_entry, session_options, table_said
from hudi_fast.sql_text.coverage import REFUSED_FUNCTIONS
from hudi_fast.sql_text.cursor import Cursor, Edit, Reference, edited, references_in
from hudi_fast.table import HudiTable

__all__ = ["TABLE_FUNCTIONS", "Tables", "is_query", "query", "read_named", "tables_of"]

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN", "(")
_NUMBERS = itertools.count()


def is_query(text: str) -> bool:
    """Whether a statement is a query, or ``EXPLAIN`` of one."""
    cursor = Cursor(text)
    return any(cursor.sees(word) for word in _QUERIES)


def query(spark: Any, text: str, args: Any = None) -> Any:
    """The rows of a query that may name Hudi tables: a DataFrame."""
    with tables_of(spark) as tables:
        return original_sql(spark, tables.rewritten(text), args)


def read_named(spark: Any, parts: Sequence[str]) -> Any | None:
    """The rows of a Hudi table, or of a view over some, by its name; None where Spark alone knows the name."""
    with tables_of(spark) as tables:
        return tables.frame_of(tuple(parts))


@contextmanager
def tables_of(spark: Any) -> Iterator[Tables]:
    """The Hudi tables of one statement."""
    tables = Tables(spark)
    try:
        yield tables
    finally:
        tables.close()


class Tables:
    """Replaces names of Hudi tables in texts by temporary views; see :func:`tables_of`."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._views: dict[tuple[Any, ...], str | None] = {}

    def rewritten(self, text: str, database: str | None = None) -> str:
        """The text with temporary views in place of Hudi tables.

        Args:
            text: a query, or an expression with subqueries.
            database: the database of unqualified names; None for the session's.
        """
        edits: list[Edit] = []
        for one in references_in(text):
            parts = one.name.parts
            bare = database is not None and one.arguments is None and len(parts) == 1
            if bare and defined(self._spark, parts[0]) is None:
                parts = (str(database), *parts)
            view = self._view(parts, one)
            if view is None and len(parts) > len(one.name.parts) and is_taken(self._spark, parts):
                edits.append(Edit(one.name.start, one.name.start, f"`{database}`."))
            if view is None:
                continue
            sampled = text[one.end :].lstrip()[:11].upper() == "TABLESAMPLE"
            alias = "" if one.alias or sampled else f" AS `{one.name.parts[-1]}`"
            edits.append(Edit(one.name.start, one.end, f"{view}{alias}"))
            edits += [Edit(start, end, "") for start, end in one.prefixes]
        return edited(text, edits)

    def frame_of(self, parts: tuple[str, ...], moment: tuple[str, str] | None = None) -> Any | None:
        """The rows of a Hudi table, or of a view over some; None for other names.

        Args:
            parts: of the name.
            moment: of time travel, as in :class:`~hudi_fast.sql_text.cursor.Reference`.
        """
        said = defined(self._spark, parts[0]) if len(parts) == 1 else None
        if said is not None and not said.query:
            return read(self._spark, said.path, self._options(moment))
        if said is not None:
            return original_sql(self._spark, self.rewritten(said.query, said.database))
        found = find_entry(self._spark, parts)
        if isinstance(found, Entry):
            return read_entry(self._spark, found, self._options(moment, defaults=False))
        if isinstance(found, ViewEntry) and self.has_tables(found.text, found.database):
            frame = original_sql(self._spark, self.rewritten(found.text, found.database))
            return frame.toDF(*found.columns) if len(found.columns) == len(frame.columns) else frame
        return None

    def has_tables(self, text: str, database: str | None = None) -> bool:
        """Whether a query reads a Hudi table, directly or through views."""
        return self.rewritten(text, database) != text and any(self._views.values())

    def close(self) -> None:
        """Drop the temporary views. On Spark Connect they stay, because a DataFrame is analyzed with each action."""
        if is_classic(self._spark):
            for view in filter(None, self._views.values()):
                self._spark.catalog.dropTempView(view)
        self._views.clear()

    def _view(self, parts: tuple[str, ...], one: Reference) -> str | None:
        key = (tuple(part.lower() for part in parts), one.moment, one.arguments)
        if key not in self._views:
            if one.arguments is not None:
                function = TABLE_FUNCTIONS.get(parts[0].lower())
                frame = None if function is None else function(self._spark, one.arguments)
            else:
                frame = self.frame_of(parts, one.moment)
            self._views[key] = None if frame is None else self._show(frame, key)
        return self._views[key]

    def _show(self, frame: Any, key: tuple[Any, ...]) -> str:
        if is_classic(self._spark):
            name = f"__hudi_fast_{next(_NUMBERS)}"
        else:
            name = f"__hudi_fast_{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}"
        frame.createOrReplaceTempView(name)
        return name

    def _options(self, moment: tuple[str, str] | None, defaults: bool = True) -> dict[str, str]:
        settings = session_options(self._spark) if defaults else {}
        return settings if moment is None else {**settings, "as.of.instant": self._instant(*moment)}

    def _instant(self, kind: str, expression: str) -> str:
        """The instant of ``AS OF``: text or a number unchanged; Spark evaluates other expressions."""
        tokens = Cursor(expression).tokens
        if len(tokens) == 1 and tokens[0].kind in ("string", "number"):
            return tokens[0].text
        if kind == "VERSION":
            raise ConfigError(f"VERSION AS OF {expression}: expected an instant, as a number or a text.")
        row = original_sql(self._spark, f"SELECT date_format({expression}, 'yyyy-MM-dd HH:mm:ss.SSS')").first()
        if row[0] is None:
            raise ConfigError(f"TIMESTAMP AS OF {expression}: the expression is null.")
        return str(row[0])


# ---- Apache Hudi's table functions: changes of a table, queries of every type, the timeline, the files
#
# Source: ``HoodieTableChanges``, ``HoodieQuery`` and ``HoodieQueryTimeline`` of Hudi 1.2.0.


_TYPE = "hoodie.datasource.query.type"
_FORMAT = "hoodie.datasource.query.incremental.format"
_BEGIN, _END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


def _table_changes(spark: Any, arguments: Sequence[str]) -> Any:
    values = _values(spark, "hudi_table_changes", arguments, 3, 4)
    if values[1] not in ("latest_state", "cdc"):
        raise ConfigError(f"hudi_table_changes: the second argument is {values[1]!r}; expected latest_state or cdc.")
    options = {_TYPE: "incremental", _FORMAT: str(values[1]), _BEGIN: str(values[2])}
    return _read(spark, "hudi_table_changes", values, options, 3)


def _query(spark: Any, arguments: Sequence[str]) -> Any:
    values = _values(spark, "hudi_query", arguments, 2, 4)
    options = {_TYPE: str(values[1])}
    if len(values) > 2:
        options[_BEGIN] = str(values[2])
    return _read(spark, "hudi_query", values, options, 3)


def _query_timeline(spark: Any, arguments: Sequence[str]) -> Any:
    values = _values(spark, "hudi_query_timeline", arguments, 1, 2)
    entry = table_said(spark, values[0], "hudi_query_timeline")
    rows = timeline_rows(HudiTable(storage_of(spark, entry.path)))
    return spark.createDataFrame(list(rows), TIMELINE_COLUMNS)


def _read(spark: Any, name: str, values: Sequence[Any], options: Mapping[str, str], end: int) -> Any:
    given = dict(options)
    if len(values) > end:
        given[_END] = str(values[end])
    return read_entry(spark, table_said(spark, values[0], name), given)


def _values(spark: Any, name: str, arguments: Sequence[str], least: int, limit: int) -> list[Any]:
    if not least <= len(arguments) <= limit:
        raise ConfigError(f"{name} takes {least} to {limit} arguments, got {len(arguments)}.")
    return [constant(spark, one) for one in arguments]


def _filesystem_view(spark: Any, arguments: Sequence[str]) -> Any:
    values = _values(spark, "hudi_filesystem_view", arguments, 1, 2)
    entry = table_said(spark, values[0], "hudi_filesystem_view")
    partition = str(values[1]) if len(values) > 1 else None
    rows = filesystem_rows(HudiTable(storage_of(spark, entry.path)), partition)
    return spark.createDataFrame(list(rows), FILESYSTEM_COLUMNS)


def _vector_search(spark: Any, arguments: Sequence[str]) -> Any:
    """Runs in the driver: it reads the vectors, and keeps the k closest rows."""
    values = [constant(spark, one) for one in arguments]
    given = search_arguments(values)
    return _frame(spark, _table(spark, values[0], FUNCTION).vector_search(**given))


def _vector_search_batch(spark: Any, arguments: Sequence[str]) -> Any:
    """Runs in the driver, as the search for one vector; the queries may be rows of any table or view."""
    values = [constant(spark, one) for one in arguments]
    given = batch_arguments(values)
    table, name = _table(spark, values[0], BATCH_FUNCTION), str(values[2])
    asked = read_entry(spark, table_said(spark, name, BATCH_FUNCTION)) if "/" in name else spark.table(name)
    return _frame(spark, table.vector_search_batch(queries=collect(asked), **given))


def _table(spark: Any, said: Any, what: str) -> HudiTable:
    return HudiTable(storage_of(spark, table_said(spark, said, what).path))


def _frame(spark: Any, rows: pa.Table) -> Any:
    return frame_of(spark, rows.cast(spark_arrow(rows.schema)))


def _refused(name: str) -> Callable[[Any, Sequence[str]], Any]:
    def refuse(spark: Any, arguments: Sequence[str]) -> Any:
        raise UnsupportedFeatureError(f"The table function {name} is not supported. {REFUSED_FUNCTIONS[name]}")

    return refuse


TABLE_FUNCTIONS: Mapping[str, Callable[[Any, Sequence[str]], Any]] = {
    "hudi_table_changes": _table_changes,
    "hudi_filesystem_view": _filesystem_view,
    "hudi_query": _query,
    "hudi_query_timeline": _query_timeline,
    FUNCTION: _vector_search,
    BATCH_FUNCTION: _vector_search_batch,
    **{name: _refused(name) for name in REFUSED_FUNCTIONS},
}
"""By name: (session, arguments as expressions) -> a DataFrame."""
