"""Routes a SQL statement without Spark.

::

    hf.sql(text, tables) ─► parse_statement ─┬─ a query ─────────► names ─► duckdb ─► rows
                                             ├─ a change ────────► HudiTable.write, update, delete, merge
                                             ├─ CALL ────────────► the procedure ─► rows
                                             └─ SHOW, DESCRIBE ──► rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_fast.config.words import checked_options
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.local_sql.changes import CHANGES
from hudi_fast.local_sql.names import Tables
from hudi_fast.local_sql.queries import constant, query
from hudi_fast.procedures.call import Use, bound, is_procedure, rows_of
from hudi_fast.sql_text.cursor import Cursor
from hudi_fast.sql_text.grammar import parse_statement
from hudi_fast.sql_text.procedures import SIGNATURES
from hudi_fast.sql_text.statements import (
    Call,
    DescribeTable,
    RefreshTable,
    SetProperties,
    ShowPartitions,
    ShowProperties,
    Statement,
    UnsetProperties,
)

if TYPE_CHECKING:
    from hudi_fast.table import HudiTable

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
