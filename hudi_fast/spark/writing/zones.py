"""Casts to the table's types on Spark, where the session has a time zone (``spark.sql.session.timeZone``).

Timestamps of a DataFrame take the kind that the table has, with zone or without, as Spark's ``CAST`` makes them. Values
of SQL, updates and merges are cast to any type, unless the cast would give them another meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_fast.schema.assignment import require_assignable
from hudi_fast.spark.arrow import arrow_types
from hudi_fast.spark.table_types import spark_arrow

__all__ = ["in_table_kinds", "require_castable"]


def in_table_kinds(df: Any, table: pa.Schema | None) -> Any:
    """``df`` with each timestamp cast to the kind of its column, nested ones too; ``df`` itself where all are equal.

    Args:
        df: the rows.
        table: columns of the table; None for a new one.
    """
    known = {} if table is None else {field.name: field.type for field in table}
    kinds = [_kind(field.dataType, known.get(field.name)) for field in df.schema.fields]
    if all(kind == field.dataType for kind, field in zip(kinds, df.schema.fields, strict=True)):
        return df
    columns = []
    for kind, field in zip(kinds, df.schema.fields, strict=True):
        column = F.col(f"`{field.name}`")
        columns.append(column if kind == field.dataType else column.cast(kind).alias(field.name))
    return df.select(*columns)


def require_castable(given: Mapping[str, Any], table: pa.Schema, where: str) -> None:
    """Refuse values whose cast to the type of their column would give them another meaning.

    Args:
        given: Spark types of the values, by column of the table.
        table: columns of the table.
        where: statement or clause, for the message.

    Raises:
        SchemaMismatchError: there is such a value; the message has both types, and the cast to write.
    """
    wanted = spark_arrow(table)
    for name, kind in given.items():
        try:
            value = arrow_types(T.StructType([T.StructField("it", kind)]))[0].type
        except (
            PySparkTypeError,
            ValueError,
        ):  # a type without an Arrow form, such as `array()`: the cast itself decides
            continue
        require_assignable(wanted.field(name).type, value, name, where, has_zone=True)


def _kind(given: Any, stored: pa.DataType | None) -> Any:
    """The Spark type ``given`` with the timestamps of ``stored``."""
    if stored is None:
        return given
    if isinstance(given, (T.TimestampType, T.TimestampNTZType)) and pa.types.is_timestamp(stored):
        return T.TimestampNTZType() if stored.tz is None else T.TimestampType()
    if isinstance(given, T.StructType) and pa.types.is_struct(stored):
        inner: Mapping[str, pa.DataType] = {field.name: field.type for field in stored}
        fields = [
            T.StructField(one.name, _kind(one.dataType, inner.get(one.name)), one.nullable, one.metadata)
            for one in given.fields
        ]
        return T.StructType(fields)
    if isinstance(given, T.ArrayType) and pa.types.is_list(stored):
        return T.ArrayType(_kind(given.elementType, stored.value_type), given.containsNull)
    if isinstance(given, T.MapType) and pa.types.is_map(stored):
        return T.MapType(given.keyType, _kind(given.valueType, stored.item_type), given.valueContainsNull)
    return given
