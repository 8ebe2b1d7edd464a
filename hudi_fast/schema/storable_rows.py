"""Rows that are computed with before they are written: each column in the type that a table would store it in.

A merge and SQL compute with dictionaries, run-end encoded columns, views and lists of any layout as with plain columns.
A column that no table can store stays as it is: the statement may not write it.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.schema.conform import conform
from hudi_fast.schema.normalize import storable_type

__all__ = ["storable_rows"]


def storable_rows(rows: pa.Table) -> pa.Table:
    """The rows with each column in its storable type, where it has one (:mod:`hudi_fast.schema.normalize`).

    Args:
        rows: any columns; two may have one name.

    Raises:
        InvalidDataError: a value does not fit the storable type.
    """
    columns = [_storable(rows.column(at), rows.schema.field(at)) for at in range(rows.num_columns)]
    fields = [field.with_type(column.type) for field, column in zip(rows.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)) if columns else rows


def _storable(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        kind = storable_type(field.type, field.name)
    except HudiError:
        return column
    if kind == field.type:
        return column
    given = pa.table([column], names=[field.name])
    return conform(given, pa.schema([pa.field(field.name, kind)])).column(0)
