"""``CREATE INDEX``, ``DROP INDEX`` and ``SHOW INDEXES``.

Source: ``IndexCommands`` and ``HoodieSparkIndexClient`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark_api.sql.catalog import Entry
from hudi_fast.spark_api.sql.changes import write_settings
from hudi_fast.sql_text.cursor import Cursor
from hudi_fast.sql_text.statements import CreateIndex, DropIndex, ShowIndexes
from hudi_fast.table import HudiTable

__all__ = ["INDEXES"]

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
