"""Least and greatest values of columns, between a column's own Arrow type and the wrappers that records store.

Table versions below 9 (V1) choose the wrapper by the Java value and leave the reader to know the column's type; from 9
on (V2) the wrapper is that of a plain type and the value's type stands beside it.

Source: metadata table reference, section 3.5; ValueType, ValueMetadata and HoodieAvroWrapperUtils, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import pyarrow as pa

__all__ = ["STAT_VALUE", "StatsVersion", "ValueType", "indexed_columns", "is_indexable", "unwrap_values", "wrap_values"]

StatsVersion: TypeAlias = Literal["V1", "V2"]


def _wrapper(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, pa.struct([pa.field("value", kind)]))


STAT_VALUE = pa.struct(
    [
        _wrapper("BooleanWrapper", pa.bool_()),
        _wrapper("IntWrapper", pa.int32()),
        _wrapper("LongWrapper", pa.int64()),
        _wrapper("FloatWrapper", pa.float32()),
        _wrapper("DoubleWrapper", pa.float64()),
        _wrapper("BytesWrapper", pa.binary()),
        _wrapper("StringWrapper", pa.string()),
        _wrapper("DateWrapper", pa.int32()),
        _wrapper("DecimalWrapper", pa.decimal128(30, 15)),
        _wrapper("TimeMicrosWrapper", pa.time64("us")),
        _wrapper("TimestampMicrosWrapper", pa.int64()),
        _wrapper("LocalDateWrapper", pa.int32()),
    ]
)
"""A least or greatest value as it is stored: at most one of the members is not null; null: unknown."""


class ValueType:
    """What ``value_type`` of a V2 record says; Hudi's ordinals."""

    V1 = 0
    NULL = 1


def wrap_values(values: pa.Array, version: StatsVersion) -> tuple[pa.StructArray, int | None, str | None]:
    """Values as they are stored.

    Args:
        values: of one column, in its own Arrow type; null: unknown.
        version: of the statistics.

    Returns:
        Values of :data:`STAT_VALUE`, and what ``value_type`` and ``value_type_info`` say of all of them (None for V1).

    Raises:
        UnsupportedFeatureError: a type that has no statistics in that version.
    """
    raise NotImplementedError


def unwrap_values(
    stored: pa.StructArray, value_type: int | None, info: str | None, column_type: pa.DataType
) -> pa.Array:
    """Stored values in a column's Arrow type; null: unknown, also where a value does not fit the type.

    Args:
        stored: of :data:`STAT_VALUE`.
        value_type: that all rows have; None for V1.
        info: ``value_type_info`` of them.
        column_type: of the table's column now.
    """
    raise NotImplementedError


def is_indexable(field: pa.Field, version: StatsVersion) -> bool:
    """Whether Hudi keeps statistics of such a column."""
    raise NotImplementedError


def indexed_columns(
    schema: pa.Schema,
    version: StatsVersion,
    meta_fields: bool,
    column_list: Sequence[str] = (),
    max_columns: int = 32,
) -> list[str]:
    """The columns with statistics, in Hudi's order: three meta columns, then the listed ones or the first of the table.

    Args:
        schema: the table's columns, meta columns or not.
        version: of the statistics.
        meta_fields: whether the table's rows carry meta columns.
        column_list: names, dotted for nested columns; empty for the first ``max_columns`` that can be indexed.
        max_columns: most columns beside meta columns when none are listed.
    """
    raise NotImplementedError
