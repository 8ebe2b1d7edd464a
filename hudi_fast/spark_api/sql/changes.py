"""``INSERT``, ``UPDATE``, ``DELETE`` and ``MERGE INTO`` on Hudi tables.

::

    statement ─► source query (queries) ─► columns in the table's types ─► hudi_fast.write
              └─► conditions and values as text, evaluated by Spark ─────► hudi_fast.merge, update, delete

Settings of a write: settings of the session (``SET hoodie.*``), else the properties of the table. Source:
``ProvidesHoodieConfig``, ``InsertIntoHoodieTableCommand`` and the answers of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from hudi_fast.api import merge, write
from hudi_fast.config.option_fields import WRITE
from hudi_fast.config.options import find_option
from hudi_fast.dml.dml import dml_settings
from hudi_fast.dml.sql_statements import merge_aliases, merge_of, overwrite_options
from hudi_fast.errors import ConfigError, InvalidDataError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.reading.prune import live_partitions, partitions_of_clause
from hudi_fast.schema.names import resolve_name
from hudi_fast.sessions import open_session
from hudi_fast.spark.arrow import names_are_exact, session_conf, spark_schema
from hudi_fast.spark.dml import delete_where_on, update_on
from hudi_fast.spark.session import session_settings
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark.writing.columns import require_castable
from hudi_fast.spark_api.sql.catalog import Entry
from hudi_fast.spark_api.sql.queries import Tables
from hudi_fast.spark_api.sql.reading import constant, original_sql
from hudi_fast.sql_text.statements import Delete, Insert, MergeInto, Update
from hudi_fast.table import HudiTable

__all__ = [
    "delete_rows",
    "insert_by_position",
    "insert_frame",
    "insert_rows",
    "matching_partitions",
    "merge_rows",
    "update_rows",
    "write_settings",
]

_OPERATION = "hoodie.datasource.write.operation"
_INSERT_OPERATION = "hoodie.spark.sql.insert.into.operation"
_OVERWRITE_MODE, _SPARK_MODE = "hoodie.datasource.overwrite.mode", "spark.sql.sources.partitionOverwriteMode"
_ANSI = {"spark.sql.ansi.enabled": "true"}
_MISFITS = ("CAST_INVALID_INPUT", "CAST_OVERFLOW", "OUT_OF_RANGE", "ARITHMETIC_OVERFLOW")


def insert_rows(spark: Any, tables: Tables, entry: Entry, statement: Insert) -> None:
    """``INSERT INTO`` and ``INSERT OVERWRITE``.

    Raises:
        ConfigError: the columns do not match the table's.
        HudiError: as for a write.
    """
    source = original_sql(spark, tables.rewritten(statement.source))
    table = _Columns(spark, entry)
    fixed = {table.named(name): text for name, text in statement.partition.items() if text is not None}
    wanted = [name for name in table.order if name not in fixed]
    if statement.by_name:
        frame = _by_name(source, table, wanted, entry)
    else:
        chosen = [table.named(name) for name in statement.columns] or wanted
        frame = _by_position(source, chosen, entry)
    for name, text in fixed.items():
        frame = frame.withColumn(name, F.expr(text))
    insert_frame(spark, entry, frame, statement.overwrite, statement.partition)


def insert_frame(
    spark: Any,
    entry: Entry,
    frame: Any,
    overwrite: bool = False,
    clause: Mapping[str, str | None] | None = None,
    options: Mapping[str, str] | None = None,
) -> None:
    """Insert the rows of a DataFrame whose columns are named as the table's.

    Args:
        spark: the session.
        entry: the table.
        frame: missing columns are null; names may be in upper or lower case.
        overwrite: replace the partitions of the rows, or the whole table.
        clause: the ``PARTITION`` clause of an overwrite: columns with their values as expressions, or None; None
            without a clause.
        options: of the write; None for the options of the session and the table.
    """
    table = _Columns(spark, entry)
    settings = write_settings(spark, entry) if options is None else dict(options)
    operation = settings.pop(_INSERT_OPERATION, None) or settings.pop(_OPERATION, None) or "insert"
    if overwrite:
        said, paths = clause or {}, partial(matching_partitions, spark, entry, table.table, clause or {})
        mode = settings.pop(_OVERWRITE_MODE, None) or spark.conf.get(_SPARK_MODE, "static")
        settings |= overwrite_options(operation, str(mode), table.table.config.is_partitioned, said, paths)
        operation = settings[_OPERATION]
    given = {table.named(name): name for name in frame.columns}
    if len(given) < len(frame.columns):
        raise ConfigError(f"INSERT INTO {entry}: some of the columns {frame.columns} differ only in case; rename them.")
    kinds = {name: frame.schema.fields[frame.columns.index(own)].dataType for name, own in given.items()}
    require_castable(kinds, table.table.schema, f"INSERT INTO {entry}")
    with session_conf(spark, _ANSI):
        typed = frame.select(
            *(
                F.col(f"`{given[name]}`").cast(kind).alias(name)
                if name in given
                else F.lit(None).cast(kind).alias(name)
                for name, kind in table.types.items()
            )
        )
        try:
            write(typed, entry.path, {**settings, _OPERATION: operation}, "append", dict(table.storage.options))
        except PySparkException as error:
            if not any(name in str(error) for name in _MISFITS):
                raise
            raise InvalidDataError(
                f"INSERT INTO {entry}: a value does not fit its column; the table is as before. {error}"
            ) from error


def insert_by_position(spark: Any, entry: Entry, frame: Any, overwrite: bool, options: Mapping[str, str]) -> None:
    """Insert a DataFrame whose columns are in the order of the table; arguments as for :func:`insert_frame`."""
    named = _by_position(frame, _Columns(spark, entry).order, entry)
    insert_frame(spark, entry, named, overwrite, options=options)


def update_rows(spark: Any, tables: Tables, entry: Entry, statement: Update) -> None:
    """``UPDATE``.

    Raises:
        HudiError: as :func:`hudi_fast.update`.
    """
    values = {name: tables.rewritten(text) for name, text in statement.values.items()}
    where = None if statement.where is None else tables.rewritten(statement.where)
    update_on(spark, _dml_session(spark, entry), where, values, statement.alias or entry.name[1])


def delete_rows(spark: Any, tables: Tables, entry: Entry, statement: Delete) -> None:
    """``DELETE FROM``.

    Raises:
        HudiError: as :func:`hudi_fast.delete`.
    """
    where = None if statement.where is None else tables.rewritten(statement.where)
    delete_where_on(spark, _dml_session(spark, entry), where, statement.alias or entry.name[1])


def merge_rows(spark: Any, tables: Tables, entry: Entry, statement: MergeInto) -> None:
    """``MERGE INTO``.

    Raises:
        HudiError: as :func:`hudi_fast.merge`.
    """
    source = original_sql(spark, tables.rewritten(statement.source))
    aliases = merge_aliases(statement, entry.name[1])
    settings = {key: value for key, value in write_settings(spark, entry).items() if key != _OPERATION}
    settings.pop(_INSERT_OPERATION, None)
    storage = dict(storage_of(spark, entry.path).options)
    builder = merge(entry.path, source, settings, aliases, storage, spark=spark)
    merge_of(builder, statement, tables.rewritten).execute()


def write_settings(spark: Any, entry: Entry) -> dict[str, str]:
    """Options of a write: the table's properties, and the session's settings, which take precedence."""
    found: dict[str, str] = {}
    settings = session_settings(spark)
    unprefixed = {
        key.removeprefix("spark."): value for key, value in settings.items() if key.startswith("spark.hoodie.")
    }
    for key, value in [*entry.properties.items(), *unprefixed.items(), *settings.items()]:
        option = find_option(key) if key.startswith("hoodie.") else None
        if option is not None and WRITE[0] in option.families:
            found[option.key] = value
    return found


def matching_partitions(spark: Any, entry: Entry, table: HudiTable, clause: Mapping[str, str | None]) -> list[str]:
    """Paths of the partitions that a ``PARTITION`` clause matches; all with an empty one.

    Raises:
        ConfigError: the table is not partitioned by one of the columns.
    """
    view, constant_of = open_state(table._storage).view, partial(constant, spark)
    return partitions_of_clause(table.config, live_partitions(view), clause, constant_of, str(entry))


class _Columns:
    """The columns of a table: ``types`` by name, and ``order`` in SQL."""

    def __init__(self, spark: Any, entry: Entry) -> None:
        self.storage = storage_of(spark, entry.path)
        self.table = HudiTable(self.storage)
        fields = [one for one in spark_schema(self.table.schema).fields if not one.name.startswith("_hoodie_")]
        self.types: dict[str, Any] = {one.name: one.dataType for one in fields}
        config = self.table.config
        partitions = entry.partition_columns or (config.partition_fields if config.is_partitioned else ())
        last = [name for name in partitions if name in self.types]
        self.order = [*(name for name in self.types if name not in last), *last]
        self._exact = names_are_exact(spark)
        self._entry = entry

    def named(self, name: str) -> str:
        """The table's column of this name, in upper or lower case.

        Raises:
            ConfigError: there is none, or several differ only in case.
        """
        found = resolve_name(name, self.order, str(self._entry), self._exact)
        if found is not None:
            return found
        raise ConfigError(f"The table {self._entry} has no column {name}; it has {', '.join(self.order)}.")


def _dml_session(spark: Any, entry: Entry) -> Any:
    settings = {key: value for key, value in write_settings(spark, entry).items() if key != _OPERATION}
    settings.pop(_INSERT_OPERATION, None)
    return open_session(storage_of(spark, entry.path), dml_settings(settings), spark)


def _by_position(source: Any, chosen: Sequence[str], entry: Entry) -> Any:
    given = [name for name in source.columns if not name.startswith("_hoodie_")]
    if len(given) != len(source.columns):
        source = source.select(*(F.col(f"`{name}`") for name in given))
    if len(given) != len(chosen):
        raise ConfigError(
            f"INSERT INTO {entry}: the query has {len(given)} columns {given}, and {len(chosen)} are expected: "
            f"{', '.join(chosen)}. Name the columns: INSERT INTO {entry} (...)."
        )
    return source.toDF(*chosen)


def _by_name(source: Any, table: _Columns, wanted: Sequence[str], entry: Entry) -> Any:
    names = [name for name in source.columns if not name.startswith("_hoodie_")]
    renamed = {name: table.named(name) for name in names}
    extra = [name for name in renamed.values() if name not in wanted]
    if extra:
        raise ConfigError(f"INSERT INTO {entry} BY NAME: the partition clause has a value for {extra} already.")
    return source.select(*(F.col(f"`{name}`").alias(column) for name, column in renamed.items()))
