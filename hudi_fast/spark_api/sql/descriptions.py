"""Statements that show a table, and those of its indexes.

``DESCRIBE``, ``SHOW CREATE TABLE``, ``SHOW TBLPROPERTIES`` and ``spark.catalog``, in the form of Spark 3.5.

Spark 4 describes a table only if it can load the table's source, which needs Apache Hudi's bundle.

``CREATE INDEX``, ``DROP INDEX`` and ``SHOW INDEXES``.

Source: ``IndexCommands`` and ``HoodieSparkIndexClient`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark_api.sql.catalog import SPARK_CATALOG, Entry
from hudi_fast.spark_api.sql.changes import write_settings
from hudi_fast.spark_api.sql.reading import read_entry
from hudi_fast.sql_text.cursor import Cursor
from hudi_fast.sql_text.statements import (
    CreateIndex,
    DescribeTable,
    DropIndex,
    ShowCreateTable,
    ShowIndexes,
    ShowProperties,
)
from hudi_fast.table import HudiTable

__all__ = ["DESCRIPTIONS", "INDEXES", "describe_table", "has_table", "list_columns"]

_DESCRIBED = "col_name string, data_type string, comment string"
_HIDDEN = ("path", "provider", "serialization.format")


def has_table(spark: Any, entry: Entry) -> bool:
    """``spark.catalog.tableExists``."""
    return True


def describe_table(spark: Any, entry: Entry) -> Any:
    """``spark.catalog.getTable``."""
    from pyspark.sql.catalog import Table

    kind = "MANAGED" if entry.managed else "EXTERNAL"
    return Table(entry.name[1], SPARK_CATALOG, [entry.name[0]], entry.comment, kind, isTemporary=False)


def list_columns(spark: Any, entry: Entry) -> list[Any]:
    """``spark.catalog.listColumns``."""
    from pyspark.sql.catalog import Column

    rest = {"isBucket": False, "isCluster": False}
    rest = {name: value for name, value in rest.items() if name in Column._fields}
    return [
        Column(
            name=one.name,
            description=one.metadata.get("comment"),
            dataType=one.dataType.simpleString(),
            nullable=one.nullable,
            isPartition=one.name in entry.partition_columns,
            **rest,
        )
        for one in _columns(spark, entry)
    ]


def _columns(spark: Any, entry: Entry) -> list[Any]:
    """Columns in the catalog; on Spark Connect the columns of the table."""
    if entry.schema is not None:
        return list(entry.schema.fields)
    return list(read_entry(spark, entry).schema.fields)


def _describe(spark: Any, entry: Entry, statement: DescribeTable) -> Any:
    fields = {one.name: one for one in _columns(spark, entry)}
    rows: list[tuple[str, str, str | None]] = [
        (name, one.dataType.simpleString(), one.metadata.get("comment")) for name, one in fields.items()
    ]
    if entry.partition_columns:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [
            (name, fields[name].dataType.simpleString(), fields[name].metadata.get("comment"))
            for name in entry.partition_columns
        ]
    if statement.extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(key, value, "") for key, value in _details(entry).items()]
    return spark.createDataFrame(rows, _DESCRIBED)


def _details(entry: Entry) -> dict[str, str]:
    listed = ", ".join(f"{key}={value}" for key, value in sorted(entry.properties.items()))
    details = {
        "Catalog": SPARK_CATALOG,
        "Database": entry.name[0],
        "Table": entry.name[1],
        "Type": "MANAGED" if entry.managed else "EXTERNAL",
        "Provider": "hudi",
        "Comment": entry.comment or "",
        "Table Properties": f"[{listed}]",
        "Location": entry.path,
    }
    return {key: value for key, value in details.items() if value}


def _show_create(spark: Any, entry: Entry, statement: ShowCreateTable) -> Any:
    columns = [f"  {one.name} {one.dataType.simpleString().upper()}{_comment(one)}" for one in _columns(spark, entry)]
    parts = [f"CREATE TABLE {SPARK_CATALOG}.{entry} (", ",\n".join(columns) + ")", "USING hudi"]
    if entry.partition_columns:
        parts.append(f"PARTITIONED BY ({', '.join(entry.partition_columns)})")
    if not entry.managed:
        parts.append(f"LOCATION {_text(entry.path)}")
    if entry.comment:
        parts.append(f"COMMENT {_text(entry.comment)}")
    shown = {key: value for key, value in sorted(entry.properties.items()) if key not in _HIDDEN}
    if shown:
        pairs = ",\n".join(f"  {_text(key)} = {_text(value)}" for key, value in shown.items())
        parts.append(f"TBLPROPERTIES (\n{pairs})")
    return spark.createDataFrame([("\n".join(parts) + "\n",)], "createtab_stmt string")


def _comment(column: Any) -> str:
    comment = column.metadata.get("comment")
    return f" COMMENT {_text(comment)}" if comment else ""


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _show_properties(spark: Any, entry: Entry, statement: ShowProperties) -> Any:
    shown = sorted(entry.properties.items())
    if statement.key is not None:
        missing = f"Table {entry} does not have property: {statement.key}"
        shown = [(statement.key, entry.properties.get(statement.key, missing))]
    return spark.createDataFrame(shown, "key string, value string")


DESCRIPTIONS: Mapping[type, Callable[[Any, Entry, Any], Any]] = {
    DescribeTable: _describe,
    ShowCreateTable: _show_create,
    ShowProperties: _show_properties,
}
"""By type of the statement: (session, table, statement) -> a DataFrame."""


_RECORD = "record_index"
_PREFIXES = ("expr_index_", "secondary_index_")


def _create(spark: Any, entry: Entry, statement: CreateIndex) -> None:
    services = HudiTable(storage_of(spark, entry.path)).services
    if statement.index in _names(services):
        if statement.if_not_exists:
            return
        raise ConfigError(f"CREATE INDEX {statement.index} ON {entry}: the table has an index of that name.")
    columns = [str(Cursor(column).name()) for column in statement.columns]
    options, function = dict(statement.options), None
    using = (statement.using or "").lower()
    settings = write_settings(spark, entry)
    if statement.index == _RECORD and using in ("", _RECORD):
        services.index(_RECORD, options=settings, spark=spark)
        return
    if using in ("", "secondary_index"):
        services.index("secondary_index", columns, statement.index, options=settings, spark=spark)
        return
    if using not in ("column_stats", "bloom_filters"):
        raise UnsupportedFeatureError(f"CREATE INDEX ... USING {statement.using} is not supported.")
    function = options.pop("expr", options.pop("func", None))
    if function is None:
        raise ConfigError(
            f"CREATE INDEX {statement.index} ON {entry}: an index by {using} needs an expression, such as "
            "OPTIONS (expr = 'lower'). Without one set hoodie.metadata.index.column.stats.enable=true, or "
            "hoodie.metadata.index.bloom.filter.enable=true."
        )
    settings = {**settings, "hoodie.expression.index.type": using}
    services.index("expr_index", columns, statement.index, function, options, options=settings, spark=spark)


def _drop(spark: Any, entry: Entry, statement: DropIndex) -> None:
    services = HudiTable(storage_of(spark, entry.path)).services
    if statement.index not in _names(services):
        if statement.if_exists:
            return
        raise ConfigError(f"DROP INDEX {statement.index} ON {entry}: the table has no index of that name.")
    services.drop_index(statement.index, write_settings(spark, entry))


def _show(spark: Any, entry: Entry, statement: ShowIndexes) -> Any:
    rows = []
    for one in HudiTable(storage_of(spark, entry.path)).services.indexes().to_pylist():
        name = _bare(one["partition"])
        if name not in ("files", "partition_stats"):
            rows.append((name, one.get("kind") or name, ",".join(one.get("columns") or [])))
    return spark.createDataFrame(rows, "index_name string, index_type string, col_name string")


def _names(services: Any) -> set[str]:
    return {_bare(one) for one in services.indexes().column("partition").to_pylist()}


def _bare(partition: str) -> str:
    return next((partition[len(prefix) :] for prefix in _PREFIXES if partition.startswith(prefix)), partition)


INDEXES: Mapping[type, Callable[[Any, Entry, Any], Any]] = {CreateIndex: _create, DropIndex: _drop, ShowIndexes: _show}
"""By type of the statement: (session, table, statement) -> a DataFrame, or None without rows."""
