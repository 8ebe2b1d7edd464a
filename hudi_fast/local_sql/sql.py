"""Routes a SQL statement without Spark.

::

    hf.sql(text, tables) ─► parse_statement ─┬─ a query ─────────► names ─► duckdb ─► rows
                                             ├─ a change ────────► HudiTable.write, update, delete, merge
                                             ├─ CALL ────────────► the procedure ─► rows
                                             └─ SHOW, DESCRIBE ──► rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import pyarrow as pa

from hudi_fast.config.option_names import Operation
from hudi_fast.config.words import checked_options
from hudi_fast.dml.assignments import is_literal
from hudi_fast.dml.dml import delete_locally, dml_settings, update_locally
from hudi_fast.dml.sql_statements import merge_aliases, merge_of, overwrite_options
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.expressions.sql_filters import sql_value
from hudi_fast.local_sql.queries import Tables, column_order, constant, query
from hudi_fast.metadata_table.state import open_state
from hudi_fast.procedures.call import Use, bound, is_procedure, rows_of
from hudi_fast.reading.prune import live_partitions, partitions_of_clause
from hudi_fast.schema.assignment import require_assignable
from hudi_fast.schema.conform import assigned_values, storable_rows
from hudi_fast.schema.names import renamed_fields, resolve_name
from hudi_fast.sessions import open_session
from hudi_fast.sql_text.cursor import Cursor
from hudi_fast.sql_text.grammar import parse_statement
from hudi_fast.sql_text.procedures import SIGNATURES
from hudi_fast.sql_text.statements import (
    Call,
    Delete,
    DescribeTable,
    Insert,
    MergeInto,
    RefreshTable,
    SetProperties,
    ShowPartitions,
    ShowProperties,
    Statement,
    TruncateTable,
    UnsetProperties,
    Update,
)
from hudi_fast.table import HudiTable
from hudi_fast.writing.flow import WriteResult

__all__ = ["sql"]

_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "(", "TABLE")
_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_(), "double": pa.float64()}


def sql(
    text: str,
    tables: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Execute a SQL statement without Spark.

    Statements have Spark's grammar. Conditions and values of ``UPDATE``, ``DELETE`` and ``MERGE INTO`` are evaluated on
    Arrow columns. Queries are evaluated by duckdb, in its semantics; a list of ``VALUES`` and ``SELECT * FROM name``
    do not need it.

    Args:
        text: a query, ``INSERT``, ``UPDATE``, ``DELETE``, ``MERGE INTO``, ``TRUNCATE``, ``CALL``, ``SHOW PARTITIONS``,
            ``SHOW TBLPROPERTIES``, ``ALTER TABLE ... SET`` or ``UNSET TBLPROPERTIES``, or ``DESCRIBE``.
        tables: by name, a path or a :class:`~hudi_fast.HudiTable`; for sources also anything with
            ``__arrow_c_stream__``, or a pandas DataFrame. A path in back-ticks is a name of itself.
        options: ``hoodie.*`` keys of writes and services.
        storage_options: how to reach tables that are given by path, see docs/object-stores.md.

    Returns:
        The rows of a query, a procedure or a description. After a change one row: int64 columns ``inserts``,
        ``updates``, ``deletes``.

    Raises:
        StatementError: the statement cannot be parsed; the message has the place.
        UnsupportedFeatureError: the statement or an expression needs Spark.
        HudiError: see :mod:`hudi_fast.errors`.

    Example:
        >>> import hudi_fast as hf
        >>> trips = {"trips": "/data/trips"}
        >>> hf.sql("UPDATE trips SET fare = round(fare * 1.1, 2) WHERE city = 'Oslo'", trips)  # doctest: +SKIP
        >>> hf.sql("SELECT city, avg(fare) FROM trips GROUP BY city", trips)  # doctest: +SKIP
        >>> hf.sql("CALL run_clean(table => 'trips', retain_commits => 3)", trips)  # doctest: +SKIP
    """
    if not isinstance(text, str):
        raise ConfigError(f"A statement is a text; got {type(text).__name__}.")
    names, settings = Tables(tables, storage_options), dict(checked_options(options) or {})
    statement = parse_statement(text)
    if statement is None:
        cursor = Cursor(text)
        if any(cursor.sees(word) for word in _QUERIES):
            return query(text, names)
        raise _refused(text)
    if isinstance(statement, Call):
        return _call(statement, names, settings)
    table = names.table(statement.table.parts)
    if type(statement) in CHANGES:
        done = CHANGES[type(statement)](table, statement, names, settings)
        counts = {"inserts": 0, "updates": 0, "deletes": 0}
        return pa.table({name: pa.array([getattr(done, name, 0)], pa.int64()) for name in counts})
    if isinstance(statement, SetProperties | UnsetProperties):
        return _set_properties(table, statement, settings)
    if type(statement) in _SHOWN:
        return _SHOWN[type(statement)](table, statement)
    raise _refused(text)


def _refused(text: str) -> UnsupportedFeatureError:
    words = " ".join(token.text.upper() for token in Cursor(text).tokens[:2])
    return UnsupportedFeatureError(
        f"{words} ... needs Spark. hf.sql executes queries, INSERT, UPDATE, DELETE, MERGE INTO, TRUNCATE, CALL, SHOW "
        "PARTITIONS, SHOW TBLPROPERTIES, ALTER TABLE ... SET and UNSET TBLPROPERTIES, and DESCRIBE; HudiTable has "
        "create, alter and services."
    )


# ---- changes: INSERT, UPDATE, DELETE, MERGE INTO, TRUNCATE

_NO_COLUMNS = pa.schema([])
_INSERT_OPERATION = "hoodie.spark.sql.insert.into.operation"
_OPERATION = "hoodie.datasource.write.operation"
_OVERWRITE_MODE = "hoodie.datasource.overwrite.mode"


def _insert(table: HudiTable, statement: Insert, tables: Tables, settings: dict[str, Any]) -> WriteResult:
    columns = _Columns(table)
    fixed = {columns.named(name): text for name, text in statement.partition.items() if text is not None}
    source = storable_rows(query(statement.source, tables))
    kept = [at for at, name in enumerate(source.column_names) if not name.startswith("_hoodie_")]
    given_names = [source.column_names[at] for at in kept]
    wanted = [name for name in columns.order if name not in fixed]
    if statement.by_name:
        named = [columns.named(name) for name in given_names]
        if taken := [name for name in named if name in fixed]:
            raise ConfigError(f"INSERT ... BY NAME: the partition clause has a value for {taken} already.")
    else:
        named = [columns.named(name) for name in statement.columns] or wanted
        if len(named) != len(kept):
            raise ConfigError(
                f"INSERT INTO {statement.table}: the query has {len(kept)} columns {given_names}, and {len(named)} are "
                f"expected: {', '.join(named)}. Name the columns: INSERT INTO {statement.table} (...)."
            )
    rows = pa.table([source.column(at) for at in kept], names=named)
    for name, text in fixed.items():
        rows = rows.append_column(name, pa.array([constant(text)] * rows.num_rows))
    given = dict(settings)
    operation = given.pop(_INSERT_OPERATION, None) or given.pop(_OPERATION, None) or "insert"
    if statement.overwrite:
        replaced = partial(_matching, table, statement.partition, str(statement.table))
        mode = str(given.pop(_OVERWRITE_MODE, "static"))
        given |= overwrite_options(operation, mode, table.config.is_partitioned, statement.partition, replaced)
        operation = given.pop(_OPERATION)
    return table.write(columns.conformed(rows, str(statement.table)), cast(Operation, str(operation)), given)


def _update(table: HudiTable, statement: Update, tables: Tables, settings: dict[str, Any]) -> WriteResult:
    values = {name: _escaped(text) for name, text in statement.values.items()}
    alias = statement.alias or statement.table.parts[-1]
    return update_locally(_session(table, settings), statement.where, values, alias)


def _delete(table: HudiTable, statement: Delete, tables: Tables, settings: dict[str, Any]) -> WriteResult:
    alias = statement.alias or statement.table.parts[-1]
    return delete_locally(_session(table, settings), statement.where, alias)


def _merge(table: HudiTable, statement: MergeInto, tables: Tables, settings: dict[str, Any]) -> WriteResult:
    source = query(statement.source, tables)
    builder = table.merge(source, _of_dml(settings), merge_aliases(statement, statement.table.parts[-1]))
    return merge_of(builder, statement, _escaped).execute()


def _truncate(table: HudiTable, statement: TruncateTable, tables: Tables, settings: dict[str, Any]) -> WriteResult:
    given = _of_dml(settings)
    if not statement.partition:
        return table.truncate(options=given)
    paths = _matching(table, statement.partition, str(statement.table))
    if not paths:
        said = ", ".join(name if value is None else f"{name}={value}" for name, value in statement.partition.items())
        raise ConfigError(f"TRUNCATE TABLE {statement.table}: there is no partition {said}.")
    return table.truncate(paths, given)


def _matching(table: HudiTable, clause: Mapping[str, str | None], name: str) -> list[str]:
    """Paths of the partitions that a ``PARTITION`` clause matches."""
    view = open_state(table._storage).view
    return partitions_of_clause(table.config, live_partitions(view), clause, constant, name)


CHANGES: Mapping[type, Callable[[HudiTable, Any, Tables, dict[str, Any]], WriteResult]] = {
    Delete: _delete,
    Insert: _insert,
    MergeInto: _merge,
    TruncateTable: _truncate,
    Update: _update,
}
"""By kind of statement: (table, statement, tables by name, options) -> the result of the write."""


def _session(table: HudiTable, settings: Mapping[str, Any]) -> Any:
    return open_session(table._storage, dml_settings(_of_dml(settings)))


def _escaped(text: str) -> Any:
    """A value for :meth:`HudiTable.update`, which resolves no escapes: text with escapes becomes an expression."""
    return sql_value(text, _NO_COLUMNS) if "\\" in text and is_literal(text) else text


def _of_dml(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in (_OPERATION, _INSERT_OPERATION)}


class _Columns:
    """The columns of a table, in the order of SQL."""

    def __init__(self, table: HudiTable) -> None:
        self._schema, self._path = table.schema, table.path
        self.order = column_order(self._schema, table.config)

    def named(self, name: str) -> str:
        """The column of this name, in upper or lower case.

        Raises:
            ConfigError: there is none, or several differ only in case.
        """
        found = resolve_name(name, self.order, self._path)
        if found is not None:
            return found
        raise ConfigError(f"The table {self._path} has no column {name}; it has {', '.join(self.order)}.")

    def conformed(self, rows: pa.Table, table: str) -> pa.Table:
        """The rows with all columns of the table, in its types; missing columns are null.

        Raises:
            InvalidDataError: a value does not fit its column.
            SchemaMismatchError: its column would give a value another meaning.
        """
        found = {}
        for field in self._schema:
            if field.name not in rows.column_names:
                found[field.name] = pa.nulls(rows.num_rows, field.type)
                continue
            values = renamed_fields(rows.column(field.name), field.type, f"INSERT INTO {table}, column {field.name!r}")
            require_assignable(field.type, values.type, field.name, f"INSERT INTO {table}")
            found[field.name] = assigned_values(values, field.type, field.name, f"INSERT INTO {table}")
        return pa.table(found)


# ---- procedures


def _call(statement: Call, names: Tables, settings: Mapping[str, Any]) -> pa.Table:
    name = statement.table.parts[-1].lower()
    if not is_procedure(name):
        raise ConfigError(f"There is no procedure {name}; CALL help() lists them.")
    values = bound(name, statement.arguments, constant)
    use = Use(name, values, names.said, lambda _: {key: str(value) for key, value in settings.items()})
    rows = [tuple(row) for row in rows_of(use)]
    fields = [column.strip().rsplit(" ", 1) for column in SIGNATURES[name].columns.split(",")]
    columns = {column.strip("`"): _TYPES[kind] for column, kind in fields}
    return pa.table(
        [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(columns.values())], names=list(columns)
    )


# ---- descriptions


def _describe(table: HudiTable, statement: Statement) -> pa.Table:
    fields = list(table.schema)
    comments = [(one.metadata or {}).get(b"comment", b"").decode() or None for one in fields]
    return pa.table(
        {
            "col_name": pa.array([one.name for one in fields], pa.string()),
            "data_type": pa.array([str(one.type) for one in fields], pa.string()),
            "comment": pa.array(comments, pa.string()),
        }
    )


def _partitions(table: HudiTable, statement: Statement) -> pa.Table:
    if isinstance(statement, ShowPartitions) and statement.partition:
        raise UnsupportedFeatureError("SHOW PARTITIONS ... PARTITION needs Spark; HudiTable.partitions() shows all.")
    return table.partitions().select(["partition"])


def _properties(table: HudiTable, statement: Statement) -> pa.Table:
    wanted = statement.key if isinstance(statement, ShowProperties) else None
    found = {key: value for key, value in table.config.raw.items() if wanted in (None, key)}
    return pa.table({"key": pa.array(list(found), pa.string()), "value": pa.array(list(found.values()), pa.string())})


def _nothing(table: HudiTable, statement: Statement) -> pa.Table:
    return pa.table({})


_SHOWN: Mapping[type, Callable[[HudiTable, Statement], pa.Table]] = {
    DescribeTable: _describe,
    RefreshTable: _nothing,
    ShowPartitions: _partitions,
    ShowProperties: _properties,
}

# ---- properties


def _set_properties(
    table: HudiTable, statement: SetProperties | UnsetProperties, settings: Mapping[str, Any]
) -> pa.Table:
    changes = statement.properties if isinstance(statement, SetProperties) else dict.fromkeys(statement.keys)
    table.set_properties(changes, options=settings)
    return pa.table({})
