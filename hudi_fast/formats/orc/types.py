"""Types of ORC columns, and conversion of columns to the types of the file's Avro schema.

::

    Avro                                ORC          Arrow reads it as
    timestamp-millis, timestamp-micros  timestamp    timestamp[ns], the clock at the writer's place
    local-timestamp-*, time-*           int, bigint  int32, int64
    fixed, bytes                        binary       binary
    enum, string                        string       string
    all others                          the same     the same

An ORC timestamp is local time of the writer, and a stripe names the writer's time zone. Hudi stores instants in such
columns. Arrow reads timestamps of writers in UTC. :mod:`hudi_fast.formats.orc.stripe` reads timestamps of other
writers, and timestamps beyond the range of nanoseconds.

Source: ``AvroOrcUtils`` (0.15.0, 1.2.0); ORC specification v1, "Timestamp Columns".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.orc.stripe import StripeTimestamps

__all__ = [
    "count_types",
    "has_timestamps",
    "in_stored_types",
    "is_utc",
    "orc_schema",
    "orc_values",
    "parts_of",
    "plain_type",
    "seconds_ahead",
    "type_numbers",
]

_UTC = frozenset({"", "GMT", "UTC", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Universal", "Etc/UCT", "UCT", "Greenwich"})
_BEGINNING = datetime(2015, 1, 1)
_INSTANT = pa.timestamp("us", "UTC")


# ---- reading


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column in a file without an Avro schema, from the type as Arrow reads it."""
    if pa.types.is_timestamp(kind):
        return _INSTANT
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, pa.field("value", plain_type(kind.item_type)))
    return pa.int32() if kind in (pa.int8(), pa.int16()) else kind


def has_timestamps(kind: pa.DataType) -> bool:
    """Whether a type as Arrow reads it has timestamps."""
    return bool(pa.types.is_timestamp(kind)) or any(map(has_timestamps, _parts(kind)))


def type_numbers(schema: pa.Schema, first: int = 1) -> dict[str, range]:
    """The numbers of the ORC types of each column and its parts; ``first`` is the number of the first column."""
    found = {}
    for field in schema:
        end = first + count_types(field.type)
        found[field.name], first = range(first, end), end
    return found


def count_types(kind: pa.DataType) -> int:
    """The number of ORC types of a type as Arrow reads it, including its parts."""
    return 1 + sum(map(count_types, _parts(kind)))


def parts_of(kind: pa.DataType, number: int) -> Iterator[tuple[pa.DataType, int]]:
    """The parts of a type as Arrow reads it, and their numbers; ``number`` is the number of the type itself."""
    number += 1
    for part in _parts(kind):
        yield part, number
        number += count_types(part)


def _parts(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.field(place).type for place in range(kind.num_fields)]


def is_utc(zone: str) -> bool:
    """Whether a time zone is always UTC."""
    return zone in _UTC


def seconds_ahead(zone: str) -> int:
    """The seconds by which the year 2015 began earlier in a time zone than in UTC.

    Raises:
        ZoneInfoNotFoundError, ValueError: the zone is unknown.
    """
    ahead = ZoneInfo(zone).utcoffset(_BEGINNING)
    assert ahead is not None
    return int(ahead.total_seconds())


def in_stored_types(
    values: pa.Array, stored: pa.DataType, kind: pa.DataType, number: int, exact: StripeTimestamps | None = None
) -> pa.Array:
    """Values as Arrow reads them, in the type ``kind`` of the file's schema.

    Args:
        values: values of one stripe, not sliced.
        stored: the column's type in the file, as Arrow reads it.
        kind: the column's type in the file's schema.
        number: number of the ORC type.
        exact: converts seconds to timestamps, if ``values`` has seconds; None if ``values`` has the type ``stored``.

    Raises:
        pa.ArrowInvalid: a value does not fit.
        pa.ArrowNotImplementedError: the file holds another type.
        ValueError: a stream of nanoseconds is damaged.
    """
    if stored == kind and exact is None:
        return values
    if pa.types.is_struct(kind) and pa.types.is_struct(stored):
        numbers = type_numbers(pa.schema(list(stored)), number + 1)
        fields = [kind.field(place) for place in range(kind.num_fields)]
        parts = [
            in_stored_types(values.field(one.name), stored.field(one.name).type, one.type, numbers[one.name][0], exact)
            for one in fields
        ]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(values))
    if pa.types.is_list(kind) and pa.types.is_list(stored):
        inner = in_stored_types(values.values, stored.value_type, kind.value_type, number + 1, exact)
        return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=_nulls(values))
    if pa.types.is_map(kind) and pa.types.is_map(stored):
        after_keys = number + 1 + count_types(stored.key_type)
        items = in_stored_types(values.items, stored.item_type, kind.item_type, after_keys, exact)
        return pa.MapArray.from_arrays(values.offsets, values.keys, items, type=kind, mask=_nulls(values))
    if pa.types.is_timestamp(stored):
        if exact is not None:
            return exact.instants(values, number, stored.tz is not None).cast(kind, safe=False)
        return values.cast(pa.timestamp("ns", "UTC")).cast(kind, safe=False)
    if pa.types.is_integer(stored) and pa.types.is_temporal(kind):
        return values.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    return values.cast(kind)


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


# ---- writing


def orc_schema(schema: pa.Schema) -> pa.Schema:
    """The Arrow types of columns for which Arrow writes the same ORC types as Hudi."""
    return pa.schema([field.with_type(_orc_type(field.type)) for field in schema])


def orc_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in a type of :func:`orc_schema`.

    Raises:
        ValueError: a timestamp before 1970 has a fraction of a second, which Arrow writes with negative nanoseconds.
    """
    stored = values.type
    if pa.types.is_dictionary(stored):
        return orc_values(values.cast(stored.value_type), kind)
    if stored == kind and not pa.types.is_nested(kind):
        return values
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        # `flatten` would hide values below nulls, and `field` ignores the slice
        parts = [orc_values(pc.struct_field(values, number), field.type) for number, field in enumerate(fields)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(values))
    if pa.types.is_list(kind):
        inner = orc_values(values.values, kind.value_type)
        return _as_list(values, inner, kind)
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(
            _offsets(values), values.keys, orc_values(values.items, kind.item_type), type=kind, mask=_nulls(values)
        )
    if pa.types.is_timestamp(kind):
        made = values.cast(pa.timestamp("us", stored.tz)).cast(kind)
        _check_before_1970(made.cast(pa.int64()))
        return made
    if pa.types.is_integer(kind) and pa.types.is_temporal(stored):
        return values.cast(pa.int32() if stored.bit_width == 32 else pa.int64()).cast(kind)
    return values.cast(kind)


def _check_before_1970(micros: pa.Array) -> None:
    least = pc.min(micros).as_py()
    if least is not None and least < 0:
        whole = pc.multiply(pc.divide(micros, 1_000_000), 1_000_000)
        broken = pc.and_(pc.less(micros, 0), pc.not_equal(micros, whole))
        if pc.any(broken).as_py():
            raise ValueError(str(micros.filter(broken)[0].cast(_INSTANT)))


def _as_list(values: pa.Array, inner: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(_offsets(values), inner, type=kind, mask=_nulls(values))


def _offsets(values: pa.Array) -> pa.Array:
    """The offsets of a list or map array, copied: Arrow refuses a mask together with sliced offsets."""
    return pc.add(values.offsets, pa.scalar(0, pa.int32()))


def _orc_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _orc_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_orc_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_orc_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_orc_type(kind.item_type)))
    if pa.types.is_timestamp(kind):
        return pa.int64() if kind.tz is None else pa.timestamp("us")
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind
