"""Converts table types to Spark types.

Times of day become numbers, timestamps count microseconds, fixed-size binary becomes binary, vectors become arrays.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_fast.formats.blobs import is_blob
from hudi_fast.formats.vectors import HUDI_TYPE, descriptor_of, is_vector

__all__ = ["as_spark", "spark_arrow", "spark_schema"]


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema (``StructType``) of a table: times of day as their numbers, fixed-size binary as binary.

    Vectors are arrays. The column metadata ``hudi_type`` marks vectors and blobs, as in Apache Hudi 1.2, so a table
    created from such a DataFrame has the same types.
    """
    struct = from_arrow_schema(spark_arrow(schema), prefer_timestamp_ntz=True)
    for column, stored in zip(struct.fields, schema, strict=True):
        if is_vector(stored.type):
            column.metadata = {HUDI_TYPE: descriptor_of(stored.type)}
        elif is_blob(stored.type):
            column.metadata = {HUDI_TYPE: "BLOB"}
    return struct


def spark_arrow(schema: pa.Schema) -> pa.Schema:
    """The Arrow form of :func:`spark_schema`, for rows passed to Spark."""
    return pa.schema([pa.field(field.name, _spark_kind(field.type)) for field in schema])


def as_spark(batch: pa.RecordBatch, target: pa.Schema) -> list[pa.Array]:
    """Cast the columns of ``batch`` to the types of ``target``, which may have further columns."""
    return [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, target, strict=False)
    ]


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    if is_vector(kind):
        return pa.list_(kind.value_type)
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_kind(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_kind(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _spark_kind(kind.item_type))
    return kind
