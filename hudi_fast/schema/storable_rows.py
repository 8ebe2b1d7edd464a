"""Convert rows to the types that a table would store, so that a merge or SQL can compute with them before the write.

Dictionaries, run-end encoded columns, views and lists of any layout become plain columns. A column that no table can
store is unchanged: the statement may not write it.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.schema.conform import conform
from hudi_fast.schema.normalize import storable_type

__all__ = ["storable_rows"]


def storable_rows(rows: pa.Table) -> pa.Table:
    """The rows with each column in its storable type, if it has one (:mod:`hudi_fast.schema.normalize`).

    Args:
        rows: rows of any columns; names may repeat.

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
