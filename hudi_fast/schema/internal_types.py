"""Arrow types <-> the types of internal schemas, and ids for new columns.

::

    Arrow schema ── internal_schema ─► InternalSchema   (ids level by level, as in Hudi)
    InternalSchema, previous Arrow schema ── arrow_schema ─► Arrow schema

An internal schema has less detail than an Arrow or Avro schema: in older releases it does not tell whether a timestamp
has a zone. So unchanged types are taken from the previous Arrow schema, by their ids.

Source: ``InternalSchemaConverter`` and ``Types`` (Hudi 1.2.0).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import with_meta, without_meta
from hudi_fast.schema.internal import (
    ArrayType,
    Field,
    InternalSchema,
    InternalType,
    MapType,
    RecordType,
    highest_id,
)

__all__ = ["TYPES", "arrow_schema", "internal_schema", "internal_type", "plain_arrow_type", "same_type"]

TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time-millis": pa.time32("ms"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp-millis": pa.timestamp("ms", tz="UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
}
"""Scalar types by their text. Decimals and fixeds are not listed: ``decimal(8, 2)``, ``decimal_fixed(8, 2)[4]``,
``decimal_bytes(8, 2)``, ``fixed[16]``."""

_NAMES: Mapping[pa.DataType, str] = {kind: name for name, kind in TYPES.items() if name != "uuid"}
_DECIMAL = re.compile(r"decimal(?:_fixed|_bytes)?\((\d+),\s*(\d+)\)(?:\[\d+\])?")
_FIXED = re.compile(r"fixed\[(\d+)\]")


def plain_arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a scalar internal type.

    Raises:
        UnsupportedFeatureError: the type is unknown.
    """
    known = TYPES.get(text.replace("_", "-") if "timestamp" in text or "time" in text else text)
    if known is not None:
        return known
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := _FIXED.fullmatch(text):
        return pa.binary(int(found[1]))
    raise UnsupportedFeatureError(f"The schema's history has a column of the unknown type {text!r}.")


def same_type(one: str, other: str) -> bool:
    """Whether two scalar internal types have the same values, even if their texts differ."""
    if one == other:
        return True
    decimals = [_DECIMAL.fullmatch(text) for text in (one, other)]
    if any(found is None for found in decimals):
        return False
    return len({found.groups() for found in decimals if found is not None}) == 1


def internal_type(kind: pa.DataType, path: str, ids: Iterator[int]) -> InternalType:
    """The internal type of a storable Arrow type, with new ``ids``; ``path`` names the column in messages.

    Raises:
        UnsupportedFeatureError: internal schemas have no such type.
    """
    if pa.types.is_struct(kind):
        return RecordType(_fields(list(kind), path, ids))
    if pa.types.is_list(kind):
        own = next(ids)
        inner = internal_type(kind.value_type, f"{path}.element", ids)
        return ArrayType(Field(own, "element", kind.value_field.nullable, inner))
    if pa.types.is_map(kind):
        key, value = next(ids), next(ids)
        inner = internal_type(kind.item_type, f"{path}.value", ids)
        return MapType(Field(key, "key", False, "string"), Field(value, "value", kind.item_field.nullable, inner))
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if kind not in _NAMES:
        raise UnsupportedFeatureError(f"Column {path} has type {kind}, which a schema history cannot store.")
    return _NAMES[kind]


def internal_schema(schema: pa.Schema, version: int = 0) -> InternalSchema:
    """Data columns, with or without meta columns, as an internal schema with new ids; meta columns come first."""
    record = RecordType(_fields(list(with_meta(schema)), "", itertools.count()))
    return InternalSchema(version, highest_id(record), record)


def arrow_schema(schema: InternalSchema, before: InternalSchema, known: pa.Schema) -> pa.Schema:
    """The data columns of an internal schema.

    Args:
        schema: the internal schema.
        before: another version of the schema, with known Arrow types.
        known: the data columns of ``before``.

    Raises:
        UnsupportedFeatureError: a type is unknown, and ``before`` does not have it.
    """
    types = dict(_types_by_id(before.record, pa.struct(list(known))))
    fields = _arrow_fields(schema.record.fields, {field.id: field for field in _all(before.record)}, types)
    return without_meta(pa.schema(fields))


def _fields(columns: Sequence[pa.Field], path: str, ids: Iterator[int]) -> tuple[Field, ...]:
    own = [next(ids) for _ in columns]  # a whole level before the next
    made = []
    for number, column in zip(own, columns, strict=True):
        where = f"{path}.{column.name}" if path else column.name
        made.append(Field(number, column.name, column.nullable, internal_type(column.type, where, ids)))
    return tuple(made)


def _all(kind: InternalType) -> Iterator[Field]:
    match kind:
        case RecordType(fields):
            inside: tuple[Field, ...] = fields
        case ArrayType(element):
            inside = (element,)
        case MapType(key, value):
            inside = (key, value)
        case _:
            inside = ()
    for field in inside:
        yield field
        yield from _all(field.type)


def _types_by_id(kind: InternalType, arrow: pa.DataType) -> Iterator[tuple[int, pa.DataType]]:
    """Ids and Arrow types of all fields that are in both types."""
    match kind:
        case RecordType(fields) if pa.types.is_struct(arrow):
            pairs = [(one, arrow.field(one.name).type) for one in fields if arrow.get_field_index(one.name) >= 0]
        case ArrayType(element) if pa.types.is_list(arrow):
            pairs = [(element, arrow.value_type)]
        case MapType(_, value) if pa.types.is_map(arrow):
            pairs = [(value, arrow.item_type)]
        case _:
            pairs = []
    for field, inner in pairs:
        yield field.id, inner
        yield from _types_by_id(field.type, inner)


def _arrow_fields(
    fields: Sequence[Field], before: Mapping[int, Field], types: Mapping[int, pa.DataType]
) -> list[pa.Field]:
    return [pa.field(one.name, _arrow_type(one, before, types), nullable=one.optional) for one in fields]


def _arrow_type(field: Field, before: Mapping[int, Field], types: Mapping[int, pa.DataType]) -> pa.DataType:
    old = before.get(field.id)
    if old is not None and old.type == field.type and field.id in types:
        return types[field.id]
    match field.type:
        case RecordType(fields):
            return pa.struct(_arrow_fields(fields, before, types))
        case ArrayType(element):
            return pa.list_(pa.field("element", _arrow_type(element, before, types), nullable=element.optional))
        case MapType(_, value):
            inner = pa.field("value", _arrow_type(value, before, types), nullable=value.optional)
            return pa.map_(pa.string(), inner)
        case str() as text:
            return plain_arrow_type(text)
