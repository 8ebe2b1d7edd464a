"""Promotions: which stored values of one storable type can be read as another.

Whether a write may change a column this way is another question: :mod:`hudi_fast.schema.assignment` answers it.

:func:`can_promote` uses a table for scalar types and recursion for nested types. Data written with the *from* type can
then be read as the *to* type without loss, except of float digits. A struct may gain nullable fields and lose none; a
nullable element never becomes required.

Timestamps and times are separate: whether they can change their unit or zone depends on each value
(:func:`is_value_checked`). This is not a promotion, because a single row may not fit.

Source: HoodieSchemaCompatibilityChecker and the Avro rewriting of Hudi 1.2.0; enums and uuids are strings here.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

__all__ = ["can_alter", "can_promote", "is_projection", "is_value_checked", "sources_of"]

_NUMBERS_AND_TEXT = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string())

_PLAIN: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): _NUMBERS_AND_TEXT[1:],
    pa.int64(): _NUMBERS_AND_TEXT[2:],
    pa.float32(): _NUMBERS_AND_TEXT[3:],
    pa.float64(): _NUMBERS_AND_TEXT[4:],
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def can_promote(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether every value of ``from_type`` can be stored as ``to_type``; true for equal types.

    Both are storable types (``normalize.storable_type``). int -> long, float, double, string; long -> float, double,
    string, timestamp (the number is the timestamp's value); float -> double, string; double -> string; string <->
    bytes; decimal -> a decimal with at least as many digits on both sides of the point; list, map and struct by their
    parts.
    """
    if from_type == to_type or to_type in _PLAIN.get(from_type, ()):
        return True
    if pa.types.is_decimal128(from_type) and pa.types.is_decimal128(to_type):
        integers_fit = to_type.precision - to_type.scale >= from_type.precision - from_type.scale
        return bool(integers_fit and to_type.scale >= from_type.scale)
    if pa.types.is_timestamp(to_type):
        return bool(from_type == pa.int64())
    if pa.types.is_list(from_type) and pa.types.is_list(to_type):
        return _can_promote_field(from_type.value_field, to_type.value_field)
    if pa.types.is_map(from_type) and pa.types.is_map(to_type):
        keys_fit = can_promote(from_type.key_type, to_type.key_type)
        return keys_fit and _can_promote_field(from_type.item_field, to_type.item_field)
    if pa.types.is_struct(from_type) and pa.types.is_struct(to_type):
        return _fields_fit(_children(from_type), _children(to_type))
    return False


def can_alter(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether an ALTER may change a scalar type this way; allows more than writes do.

    In addition to :func:`can_promote`: int, long, float and double -> decimal; date and decimal -> string; string ->
    date, decimal. Values that do not fit become null (``cast.read_cast``). It does not allow long -> timestamp.

    Source: ``SchemaChangeUtils.isTypeUpdateAllow`` (Hudi 1.2.0).
    """
    if pa.types.is_timestamp(to_type) or pa.types.is_nested(from_type) or pa.types.is_nested(to_type):
        return bool(from_type == to_type)
    if can_promote(from_type, to_type):
        return True
    if pa.types.is_decimal128(to_type):
        return from_type in _NUMBERS_AND_TEXT
    if pa.types.is_date32(to_type):
        return bool(from_type == pa.string())
    return bool(to_type == pa.string() and (pa.types.is_date32(from_type) or pa.types.is_decimal128(from_type)))


def is_value_checked(from_type: pa.DataType, to_type: pa.DataType) -> bool:
    """Whether values convert if each value fits: between timestamps, and between times of day.

    A timestamp without zone is read as UTC when it gets a zone, and keeps its UTC reading when it loses one: only the
    unit changes the stored number.
    """
    both_timestamps = pa.types.is_timestamp(from_type) and pa.types.is_timestamp(to_type)
    return bool(both_timestamps or (pa.types.is_time(from_type) and pa.types.is_time(to_type)))


def is_projection(incoming: pa.Schema, table: pa.Schema) -> bool:
    """Whether rows of ``incoming`` fit into ``table`` unchanged: no column is new, and all shared columns can promote.

    Columns that ``incoming`` lacks must be nullable in ``table``.
    """
    return _fields_fit(list(incoming), list(table))


def sources_of(to_type: pa.DataType) -> tuple[str, ...]:
    """The types that can be promoted to a scalar type, as text for messages."""
    if pa.types.is_decimal128(to_type):
        return ("a decimal with no more digits on either side of the point",)
    if is_value_checked(to_type, to_type):
        return ("other units if each value fits", *(("int64",) if pa.types.is_timestamp(to_type) else ()))
    return tuple(str(each) for each, wider in _PLAIN.items() if to_type in wider)


def _can_promote_field(source: pa.Field, target: pa.Field) -> bool:
    return (target.nullable or not source.nullable) and can_promote(source.type, target.type)


def _fields_fit(sources: list[pa.Field], targets: list[pa.Field]) -> bool:
    by_name = {each.name: each for each in targets}
    given = {each.name for each in sources}
    if not given <= by_name.keys() or len(given) != len(sources):
        return False
    if any(not each.nullable for each in targets if each.name not in given):
        return False
    return all(_can_promote_field(each, by_name[each.name]) for each in sources)


def _children(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]
