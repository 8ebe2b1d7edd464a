"""Convert minimum and maximum values between a column's Arrow type and the wrappers that records store.

::

    column's type ── storage type ── wrapper: a member of the union

               V1 (table versions below 9)                    V2 (since 9), with a value_type
    date       DateWrapper                                    IntWrapper, days
    timestamp  LongWrapper, in the column's unit              LongWrapper
    decimal    DecimalWrapper, rescaled to 15 digits          BytesWrapper: two's complement, minimal length
    others     the wrapper of the Avro type's Java class      the same

V1 values can only be read with the column's type. Compaction in 0.15 turns DateWrapper into IntWrapper and
DecimalWrapper into BytesWrapper (at scale 15), so both are read. A value that cannot be converted to the column's type
becomes null, which means unknown and excludes nothing: the column's type may have changed. So does a timestamp of V1
that may have another unit than the column.

Source: metadata table reference, section 3.5; ValueType, ValueMetadata and HoodieAvroWrapperUtils, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.metadata_table.stat_decimals import decimals_of_bytes, minimal_bytes

__all__ = ["STAT_VALUE", "StatsVersion", "ValueType", "indexed_columns", "is_indexable", "unwrap_values", "wrap_values"]

StatsVersion: TypeAlias = Literal["V1", "V2"]

_LAST_MILLISECOND = 253_402_300_799_999
"""Of the year 9999: a number of microseconds up to this one, of the years 1961 to 1978, may be one of milliseconds."""


def _wrapper(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, pa.struct([pa.field("value", kind)]))


_V1_DECIMAL = pa.decimal128(30, 15)

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
        _wrapper("DecimalWrapper", _V1_DECIMAL),
        _wrapper("TimeMicrosWrapper", pa.time64("us")),
        _wrapper("TimestampMicrosWrapper", pa.int64()),
        _wrapper("LocalDateWrapper", pa.int32()),
    ]
)
"""A stored minimum or maximum: at most one member is not null; null means unknown."""


class ValueType(IntEnum):
    """Values of ``value_type`` in V2 records; Hudi's ordinals."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


_TYPES: Mapping[ValueType, pa.DataType] = {
    ValueType.BOOLEAN: pa.bool_(),
    ValueType.INT: pa.int32(),
    ValueType.LONG: pa.int64(),
    ValueType.FLOAT: pa.float32(),
    ValueType.DOUBLE: pa.float64(),
    ValueType.STRING: pa.string(),
    ValueType.BYTES: pa.binary(),
    ValueType.DATE: pa.date32(),
    ValueType.TIME_MILLIS: pa.time32("ms"),
    ValueType.TIME_MICROS: pa.time64("us"),
    ValueType.TIMESTAMP_MILLIS: pa.timestamp("ms", tz="UTC"),
    ValueType.TIMESTAMP_MICROS: pa.timestamp("us", tz="UTC"),
    ValueType.LOCAL_TIMESTAMP_MILLIS: pa.timestamp("ms"),
    ValueType.LOCAL_TIMESTAMP_MICROS: pa.timestamp("us"),
}
_OF_TYPE = {kind: value_type for value_type, kind in _TYPES.items()}
_READ_TYPES: dict[int, pa.DataType] = {
    **{int(value_type): kind for value_type, kind in _TYPES.items()},
    int(ValueType.FIXED): pa.binary(),
    int(ValueType.UUID): pa.string(),
}

_WRAPPER_OF_TYPE: Mapping[pa.DataType, str] = {
    pa.bool_(): "BooleanWrapper",
    pa.int32(): "IntWrapper",
    pa.int64(): "LongWrapper",
    pa.float32(): "FloatWrapper",
    pa.float64(): "DoubleWrapper",
    pa.binary(): "BytesWrapper",
    pa.string(): "StringWrapper",
}
_DAYS = ("DateWrapper", "LocalDateWrapper")
_MOST_V1_DIGITS, _V1_SCALE = 30, 15
_ALWAYS_INDEXED = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")


# ---- to the stored form


def wrap_values(values: pa.Array, version: StatsVersion) -> tuple[pa.StructArray, int | None, str | None]:
    """Convert values to their stored form.

    ``values`` are of one column, in its own Arrow type; null means unknown.

    Returns:
        Values of :data:`STAT_VALUE`, and their common ``value_type`` and ``value_type_info`` (None for V1).

    Raises:
        UnsupportedFeatureError: the type has no statistics in that version.
    """
    kind = values.type
    if not is_indexable(pa.field("value", kind), version):
        raise UnsupportedFeatureError(f"Columns of type {kind} have no statistics of version {version}.")
    if version == "V1":
        if pa.types.is_decimal(kind):
            return _wrapped("DecimalWrapper", pc.cast(values, _V1_DECIMAL)), None, None
        name = "DateWrapper" if kind == pa.date32() else None
        return _wrapped(name, _in_storage_type(values)), None, None
    if pa.types.is_decimal(kind):
        info = f"{kind.precision},{kind.scale}"
        return _wrapped("BytesWrapper", minimal_bytes(values)), int(ValueType.DECIMAL), info
    value_type = ValueType.FIXED if pa.types.is_fixed_size_binary(kind) else _OF_TYPE[kind]
    return _wrapped(None, _in_storage_type(values)), int(value_type), None


def _in_storage_type(values: pa.Array) -> pa.Array:
    """Values in their storage type."""
    kind = values.type
    if pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    if pa.types.is_temporal(kind):
        return values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return values


def _wrapped(name: str | None, values: pa.Array) -> pa.StructArray:
    """Values of :data:`STAT_VALUE` with one member, given by name or by the values' type."""
    name = name or _WRAPPER_OF_TYPE[values.type]
    mask = values.is_null() if values.null_count else None
    members = [
        pa.StructArray.from_arrays([values], fields=list(field.type), mask=mask)
        if field.name == name
        else pa.nulls(len(values), field.type)
        for field in STAT_VALUE
    ]
    return pa.StructArray.from_arrays(members, fields=list(STAT_VALUE), mask=mask)


# ---- from the stored form


def unwrap_values(
    stored: pa.StructArray, value_type: int | None, info: str | None, column_type: pa.DataType
) -> pa.Array:
    """Convert stored values to a column's Arrow type; null means unknown, or a value that does not fit the type.

    Args:
        stored: of :data:`STAT_VALUE`.
        value_type: of all rows; None for V1.
        info: their ``value_type_info``.
        column_type: current type of the table's column.
    """
    found = pa.nulls(len(stored), column_type)
    for at, field in enumerate(STAT_VALUE):
        member = stored.field(at)
        if member.null_count == len(member):
            continue
        values = member.flatten()[0]
        if stored.null_count:
            values = pc.if_else(stored.is_valid(), values, None)
        if value_type is None:
            values = _read_v1(field.name, values, column_type)
        else:
            values = _read_v2(values, value_type, info)
        values = None if values is None else _promoted(values, column_type)
        if values is not None:
            found = values if found.null_count == len(found) else pc.coalesce(found, values)
    return found


def _read_v1(wrapper: str, values: pa.Array, column: pa.DataType) -> pa.Array | None:
    """Values in their type when stored, derived from the column's type."""
    if wrapper in _DAYS:
        return values.view(pa.date32())
    if wrapper == "TimestampMicrosWrapper":
        return values.view(pa.timestamp("us"))
    if wrapper == "IntWrapper" and (column == pa.date32() or pa.types.is_time32(column)):
        return values.view(column)
    if wrapper == "LongWrapper" and pa.types.is_timestamp(column):
        return _moments(values, column)
    if wrapper == "LongWrapper" and pa.types.is_time64(column):
        return values.view(column)
    if wrapper == "BytesWrapper" and pa.types.is_decimal(column):
        return decimals_of_bytes(values, _MOST_V1_DIGITS, _V1_SCALE)
    return values


def _moments(values: pa.Array, column: pa.DataType) -> pa.Array:
    """Timestamps of V1; null where the number may have another unit than the column.

    Releases before 1.1 store the number of the file. A file of milliseconds may belong to a column of microseconds, and
    a file of microseconds without a zone to a column of milliseconds (``schema.mislabelled``).
    """
    if column.unit == "us":
        # not by the absolute value: the smallest int64 has none
        sure = pc.or_(pc.greater(values, _LAST_MILLISECOND), pc.less(values, -_LAST_MILLISECOND))
        return pc.if_else(sure, values, None).view(column)
    return values.view(column) if column.tz is not None else pa.nulls(len(values), column)


def _read_v2(values: pa.Array, value_type: int, info: str | None) -> pa.Array | None:
    """Values in the type named by ``value_type``; None for an unsupported one."""
    if value_type == ValueType.DECIMAL:
        precision, _, scale = (info or "").partition(",")
        if not (precision.isdecimal() and scale.isdecimal() and 0 <= int(scale) <= int(precision) <= 38):
            return None
        return decimals_of_bytes(values, int(precision), int(scale)) if values.type == pa.binary() else None
    kind = _READ_TYPES.get(value_type)
    if kind is None or _WRAPPER_OF_TYPE.get(_storage_type(kind)) != _WRAPPER_OF_TYPE.get(values.type):
        return None
    return values.view(kind) if kind != values.type else values


def _storage_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _promoted(values: pa.Array, column: pa.DataType) -> pa.Array | None:
    """Values of an older column type in the current one; None where the order may differ."""
    kind = values.type
    if kind == column:
        return values
    text = (pa.string(), pa.binary())
    if kind in (pa.int32(), pa.int64()) and pa.types.is_floating(column):
        return pc.cast(values, column, safe=False)
    times = pa.types.is_timestamp(kind) and pa.types.is_timestamp(column)
    if times and (kind.unit, column.unit) == ("us", "ms"):
        return None  # the unit is that of the file's label, which may be wrong: schema.mislabelled
    if times:
        return _fitting(values.view(pa.timestamp(kind.unit)), pa.timestamp(column.unit), column)
    whole = kind == pa.int32() and column == pa.int64()
    decimals = pa.types.is_decimal(kind) and pa.types.is_decimal(column)
    clock = pa.types.is_time(kind) and pa.types.is_time(column)
    fixed = kind == pa.binary() and pa.types.is_fixed_size_binary(column)
    if whole or decimals or clock or fixed or (kind in text and column in text):
        return _fitting(values, column, column)
    return None


def _fitting(values: pa.Array, target: pa.DataType, seen_as: pa.DataType) -> pa.Array:
    """Cast to ``target``, with null for failures, then view the bits as ``seen_as``."""
    try:
        return pc.cast(values, target).view(seen_as)
    except pa.ArrowInvalid:
        pass
    parts = []
    for at in range(len(values)):
        try:
            parts.append(pc.cast(values.slice(at, 1), target))
        except pa.ArrowInvalid:
            parts.append(pa.nulls(1, target))
    return pa.concat_arrays(parts).view(seen_as)


# ---- indexed columns


def is_indexable(field: pa.Field, version: StatsVersion) -> bool:
    """Whether Hudi stores statistics of such a column: primitive types; in V1 only decimals that fit the wrapper."""
    kind = field.type
    if pa.types.is_decimal(kind):
        if version == "V2":
            return True
        return bool(kind.scale <= _V1_SCALE and kind.precision + _V1_SCALE - kind.scale <= _MOST_V1_DIGITS)
    return kind in _OF_TYPE or bool(pa.types.is_fixed_size_binary(kind))


def indexed_columns(
    schema: pa.Schema,
    version: StatsVersion,
    meta_fields: bool,
    column_list: Sequence[str] = (),
    max_columns: int = 32,
) -> list[str]:
    """The columns with statistics, in Hudi's order: three meta columns, then the listed columns or the first ones.

    Args:
        schema: the table's columns, with or without meta columns.
        version: of the statistics.
        meta_fields: whether the table's rows have meta columns.
        column_list: names, dotted for nested columns (``a.b``, ``list.list.element``, ``map.key_value.key``); empty for
            the first ``max_columns`` that can be indexed. Missing columns and columns that cannot be indexed are
            ignored, as in Hudi.
        max_columns: maximum number of columns besides meta columns when none are listed.

    Returns:
        Names, dotted for nested columns.
    """
    own = [field for field in schema if not is_meta_field(field.name)]
    if column_list:
        known = {name: field for field in own for name, field in _leaves(field.name, field)}
        listed = dict.fromkeys(column_list)
        names = [name for name in listed if name in known and is_indexable(known[name], version)]
    else:
        names = [field.name for field in own if is_indexable(field, version)][:max_columns]
    return [*_ALWAYS_INDEXED, *names] if meta_fields else names


def _leaves(path: str, field: pa.Field) -> list[tuple[str, pa.Field]]:
    """Primitive columns at and below a field, with their dotted names."""
    kind = field.type
    if pa.types.is_struct(kind):
        return [leaf for inner in kind for leaf in _leaves(f"{path}.{inner.name}", inner)]
    if pa.types.is_list(kind):
        return _leaves(f"{path}.list.element", kind.value_field)
    if pa.types.is_map(kind):
        return [
            *_leaves(f"{path}.key_value.key", kind.key_field),
            *_leaves(f"{path}.key_value.value", kind.item_field),
        ]
    return [(path, field)]
