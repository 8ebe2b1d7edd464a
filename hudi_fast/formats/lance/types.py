"""Types of the columns of Lance files, as Hudi's Spark writer stores them.

::

    table                                   Lance file
    fixed-size bytes                        binary
    time of day                             int32 (milliseconds), int64 (microseconds)
    timestamp in milliseconds               timestamp in microseconds
    vector                                  fixed-size list of nullable numbers
    dictionary-encoded text                 text
    map                                     none: Hudi's version of Lance has no maps
    all others                              the same

hudi_fast stores the Avro schema in the file's metadata (:data:`SCHEMA_KEY`), which restores the first three types.
Files of Apache Hudi have no Avro schema. Types that no table has, such as Arrow's large texts, are read as the table's
nearest type.

Source: ``HoodieSparkLanceWriter`` (Hudi 1.2.0), ``LanceArrowUtils`` (lance-spark 0.4.0).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.vectors import is_vector, vector_type

__all__ = ["SCHEMA_KEY", "lance_schema", "lance_values", "map_columns", "table_schema", "table_values"]

SCHEMA_KEY = b"hudi_fast.avro.schema"
"""Key of a file's metadata whose value is the Avro schema of its rows."""

_PLAIN = {
    **{kind: kind for kind in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    **{kind: kind for kind in (pa.string(), pa.binary(), pa.date32(), pa.time32("ms"), pa.time64("us"))},
    **{kind: pa.int32() for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())},
    **{kind: pa.string() for kind in (pa.large_string(), pa.string_view())},
    **{kind: pa.binary() for kind in (pa.large_binary(), pa.binary_view())},
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
}


# ---- reading


def table_schema(stored: pa.Schema, known: pa.Schema, where: str) -> pa.Schema:
    """The columns of a file in types of a table.

    Args:
        stored: the columns of the file.
        known: columns of the file's Avro schema; empty without one.
        where: the file, for messages.

    Raises:
        UnsupportedFeatureError: a column has a type that no table has.
    """
    fields = []
    for field in stored:
        kind = known.field(field.name).type if field.name in known.names else _table_type(field.type, field.name, where)
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


def _table_type(kind: pa.DataType, name: str, where: str) -> pa.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_decimal128(kind) or pa.types.is_fixed_size_binary(kind):
        return kind
    if pa.types.is_dictionary(kind):
        return _table_type(kind.value_type, name, where)
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_table_type(one.type, f"{name}.{one.name}", where)) for one in _bare(kind)])
    if pa.types.is_fixed_size_list(kind) and kind.value_type in (pa.float32(), pa.float64(), pa.int8()):
        return vector_type(kind.list_size, kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _table_type(kind.value_type, f"{name}.element", where)
        return pa.list_(pa.field("element", inner, kind.value_field.nullable))
    if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.large_string()):
        inner = _table_type(kind.item_type, f"{name}.value", where)
        return pa.map_(pa.string(), pa.field("value", inner, kind.item_field.nullable))
    raise UnsupportedFeatureError(f"Column {name!r} of the Lance file {where} is of type {kind}, which is not read.")


def _bare(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at).remove_metadata() for at in range(kind.num_fields)]


def table_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a file in a type of :func:`table_schema`.

    Raises:
        pa.ArrowInvalid: a value does not fit.
        pa.ArrowNotImplementedError: the file holds another type.
    """
    if values.type == kind:
        return values
    if is_vector(kind) and pa.types.is_fixed_size_list(values.type):
        if values.type.list_size != kind.list_size or values.type.value_type != kind.value_type:
            raise pa.ArrowNotImplementedError(f"{values.type} cannot be read as {kind}")
        return pa.Array.from_buffers(
            kind, len(values), [values.buffers()[0]], values.null_count, values.offset, [values.values]
        )
    return values.cast(kind)


# ---- writing


def map_columns(schema: pa.Schema) -> list[str]:
    """The columns that hold maps at any depth."""
    return [field.name for field in schema if _holds_map(field.type)]


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return pa.types.is_nested(kind) and any(_holds_map(kind.field(at).type) for at in range(kind.num_fields))


def lance_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a file for columns of a table."""
    return pa.schema([field.with_type(_lance_type(field.type)).remove_metadata() for field in schema])


def _lance_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _lance_type(kind.value_type)
    if is_vector(kind):
        return pa.list_(pa.field("element", kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_lance_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_lance_type(kind.value_type)))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def lance_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a table in a type of :func:`lance_schema`."""
    if values.type == kind:
        return values
    if is_vector(values.type):
        return pa.Array.from_buffers(
            kind, len(values), [values.buffers()[0]], values.null_count, values.offset, [values.values]
        )
    return values.cast(kind)
