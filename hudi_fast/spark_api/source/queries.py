"""Queries of ``format("hudi_fast")``: options and requested columns.

::

    options ─► TableQuery ─► its columns as Spark's schema
                        └──► query_parts: plan of a snapshot, of a range, or of changes ─► parts
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.errors import SchemaMismatchError
from hudi_fast.expressions.conditions import Condition
from hudi_fast.reading.incremental.cdc import CHANGE_SCHEMA, plan_cdc
from hudi_fast.reading.incremental.query import incremental_view, plan_view
from hudi_fast.reading.scan import ScanQuery, plan_scan, readable_schema
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.spark.arrow import arrow_types
from hudi_fast.spark.table_types import spark_schema
from hudi_fast.spark_api.source.parts import Part, changes_parts, slices_parts
from hudi_fast.storage.base import Storage
from hudi_fast.view.table_state import load_state

__all__ = ["TableQuery", "check_columns", "query_parts", "table_columns"]


@dataclass(frozen=True)
class TableQuery:
    """A read. Picklable.

    Attributes:
        storage: the table's storage.
        settings: options of the read.
        options: as given.
    """

    storage: Storage
    settings: ReadOptions
    options: Mapping[str, Any]

    @property
    def is_cdc(self) -> bool:
        """Whether this is a CDC query."""
        return self.settings.query_type == "incremental" and self.settings.incremental_format == "cdc"


def table_columns(query: TableQuery) -> pa.Schema:
    """The columns of a read, in the table's types.

    Raises:
        HudiError: no table, or an unreadable table state.
    """
    if query.is_cdc:
        return CHANGE_SCHEMA
    if query.settings.as_of is None:
        return readable_schema(load_state(query.storage))
    return readable_schema(state_for_query(query.storage, query.settings.as_of, query.settings.metadata_enabled))


def check_columns(query: TableQuery, asked: Any) -> pa.Schema:
    """The Arrow form of the requested columns: a user's schema selects columns and cannot change types.

    Args:
        query: of the table.
        asked: ``StructType``.

    Raises:
        SchemaMismatchError: a requested column is missing, or has another type.
    """
    stored = {field.name: field.dataType for field in spark_schema(table_columns(query)).fields}
    for field in asked.fields:
        if stored.get(field.name) != field.dataType:
            has = "no such column" if field.name not in stored else stored[field.name].simpleString()
            raise SchemaMismatchError(
                f"The schema of the read asks for {field.name} {field.dataType.simpleString()}; {query.storage.uri} "
                f"has {has}. Use columns of the table with their own types: {', '.join(stored)}."
            )
    return arrow_types(asked)


def query_parts(
    query: TableQuery,
    columns: list[str],
    condition: Condition | None = None,
    expression: pc.Expression | None = None,
) -> list[Part]:
    """Plan the parts of a read.

    Args:
        query: of the table.
        columns: requested columns, in this order.
        condition: for data skipping.
        expression: row filter; None for all rows.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    settings = query.settings
    if query.is_cdc:
        return changes_parts(plan_cdc(load_state(query.storage), settings))
    how = ScanQuery.from_options(settings, query.options)
    if settings.query_type == "incremental":
        view = incremental_view(query.storage, settings)
        rows = view.row_filter()
        if rows is not None:
            expression = rows if expression is None else rows & expression
        return slices_parts(plan_view(view, columns, expression, None, how, condition))
    state = state_for_query(query.storage, settings.as_of, settings.metadata_enabled)
    return slices_parts(plan_scan(state, columns, expression, None, how, condition))
