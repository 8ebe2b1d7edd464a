"""Apache Hudi's table functions: changes of a table, queries of every type, the timeline, the files.

Source: ``HoodieTableChanges``, ``HoodieQuery`` and ``HoodieQueryTimeline`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.procedures.files import FILESYSTEM_COLUMNS, filesystem_rows
from hudi_fast.procedures.timeline import TIMELINE_COLUMNS, timeline_rows
from hudi_fast.reading.vector_search import BATCH_FUNCTION, FUNCTION, batch_arguments, search_arguments
from hudi_fast.spark.arrow import collect, frame_of
from hudi_fast.spark.storage import storage_of
from hudi_fast.spark.table_types import spark_arrow
from hudi_fast.spark_api.sql.reading import constant, read_entry, table_said
from hudi_fast.sql_text.coverage import REFUSED_FUNCTIONS
from hudi_fast.table import HudiTable

__all__ = ["TABLE_FUNCTIONS"]

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


def _values(spark: Any, name: str, arguments: Sequence[str], least: int, most: int) -> list[Any]:
    if not least <= len(arguments) <= most:
        raise ConfigError(f"{name} takes {least} to {most} arguments, got {len(arguments)}.")
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
