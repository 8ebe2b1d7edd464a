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
becomes null, which means unknown and excludes nothing: the column's type may have changed. A timestamp of V1 that may
have another unit than the column also becomes null.

Source: metadata table reference, section 3.5; ValueType, ValueMetadata and HoodieAvroWrapperUtils, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.formats.varlen import string_array, varlen_buffers
from hudi_fast.kernels.avro_decode import COPY_SLACK, copy_values
from hudi_fast.kernels.avro_encode import find_wide_decimal, measure_decimals, write_decimals

__all__ = [
    "STAT_VALUE",
    "StatsVersion",
    "ValueType",
    "decimals_of_bytes",
    "indexed_columns",
    "is_indexable",
    "minimal_bytes",
    "unwrap_values",
    "wrap_values",
]

StatsVersion: TypeAlias = Literal["V1", "V2"]

_LAST_MILLISECOND = 253_402_300_799_999
"""The last millisecond of the year 9999. As microseconds, numbers up to this one are times between 1961 and 1978; they
may also be milliseconds.
"""


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
_MAX_V1_DIGITS, _V1_SCALE = 30, 15
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
        stored: values of :data:`STAT_VALUE`.
        value_type: ``value_type`` of all rows; None for V1.
        info: ``value_type_info`` of all rows.
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
    """Values in the type that they had when they were stored, derived from the column's type."""
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
        return decimals_of_bytes(values, _MAX_V1_DIGITS, _V1_SCALE)
    return values


def _moments(values: pa.Array, column: pa.DataType) -> pa.Array:
    """Timestamps of V1; null where the number may have another unit than the column.

    Releases before 1.1 store the number that is in the file. A file with milliseconds may belong to a column of
    microseconds, and a file with microseconds without a zone to a column of milliseconds (``schema.mislabelled``).
    """
    if column.unit == "us":
        # two comparisons, because the smallest int64 has no absolute value
        sure = pc.or_(pc.greater(values, _LAST_MILLISECOND), pc.less(values, -_LAST_MILLISECOND))
        return pc.if_else(sure, values, None).view(column)
    return values.view(column) if column.tz is not None else pa.nulls(len(values), column)


def _read_v2(values: pa.Array, value_type: int, info: str | None) -> pa.Array | None:
    """Values in the type named by ``value_type``; None for an unsupported type."""
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
        return None  # the unit comes from the file's label, which may be wrong: schema.mislabelled
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
        return bool(kind.scale <= _V1_SCALE and kind.precision + _V1_SCALE - kind.scale <= _MAX_V1_DIGITS)
    return kind in _OF_TYPE or bool(pa.types.is_fixed_size_binary(kind))


def indexed_columns(
    schema: pa.Schema,
    version: StatsVersion,
    meta_fields: bool,
    column_list: Sequence[str] = (),
    max_columns: int = 32,
) -> list[str]:
    """The columns with statistics, in Hudi's order: three meta columns, then the listed or the first columns.

    Args:
        schema: the table's columns, with or without meta columns.
        version: version of the statistics.
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


# ---- decimals as two's complement numbers of minimal length, like BigInteger.toByteArray


_WIDTH = 16
_LOW_HALF = 2**64 - 1


def minimal_bytes(values: pa.Array) -> pa.Array:
    """The unscaled numbers of a decimal128 array as bytes, big endian: binary[n]."""
    count = len(values)
    valid = values.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8)
    numbers = _numbers(values)
    sizes = np.zeros(count, np.int64)
    measure_decimals(numbers, valid, sizes)
    bounds = np.zeros(count + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    framed = np.empty(int(bounds[-1]), np.uint8)
    kept = np.flatnonzero(valid)
    halves = numbers.reshape(count, 2)[kept].reshape(-1)
    write_decimals(halves, -1, np.empty(0, np.uint8), -1, bounds[kept], bounds[kept + 1], framed)
    # A length of one byte precedes each number.
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(sizes - valid, out=offsets[1:])
    out = np.empty(int(offsets[-1]) + COPY_SLACK, np.uint8)
    copy_values(framed, bounds[:-1] + valid, offsets, out)
    nulls = count - len(kept)
    validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    return string_array(offsets, out, pa.binary(), validity, nulls)


def decimals_of_bytes(values: pa.Array, precision: int, scale: int) -> pa.Array:
    """Unscaled numbers as decimal128(precision, scale): n values; null for invalid bytes or too many digits.

    Args:
        values: binary[n], two's complement, big endian.
        precision: digits, at most 38.
        scale: digits after the decimal point.
    """
    count = len(values)
    offsets, data = varlen_buffers(values)
    ends, sizes = offsets[1:].astype(np.int64), np.diff(offsets).astype(np.int64)
    valid = (sizes > 0) & (sizes <= _WIDTH)
    if values.null_count:
        valid &= values.is_valid().to_numpy(zero_copy_only=False)
    sizes = np.where(valid, sizes, 0)
    out = np.zeros((count, _WIDTH), np.uint8)
    some = np.flatnonzero(valid)
    out[some] = np.where(data[ends[some] - sizes[some]] >= 0x80, 0xFF, 0)[:, None]
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        out[rows, place] = data[ends[rows] - 1 - place]
    halves = out.reshape(-1).view(np.uint64)
    limit = 10**precision - 1
    flags = valid.astype(np.uint8)
    first = 0
    while True:
        left = halves[2 * first :], flags[first:]
        found = int(find_wide_decimal(*left, _WIDTH, np.uint64(limit >> 64), np.uint64(limit & _LOW_HALF)))
        if found < 0:
            break
        flags[first + found] = 0
        first += found + 1
    nulls = count - int(flags.sum())
    validity = pa.py_buffer(np.packbits(flags, bitorder="little")) if nulls else None
    kind = pa.decimal128(precision, scale)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(halves)], nulls)


def _numbers(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(0, np.uint64)
    return np.frombuffer(buffer, np.uint64)[2 * values.offset : 2 * (values.offset + len(values))]
