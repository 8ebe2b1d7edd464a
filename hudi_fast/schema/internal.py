"""Internal schemas: columns with permanent ids.

Arrow types <-> the types of internal schemas, and ids for new columns.

::

    Arrow schema ── internal_schema ─► InternalSchema   (ids level by level, as in Hudi)
    InternalSchema, previous Arrow schema ── arrow_schema ─► Arrow schema

An internal schema has less detail than an Arrow or Avro schema: in older releases it does not tell whether a timestamp
has a zone. So unchanged types are taken from the previous Arrow schema, by their ids.

Source: ``InternalSchemaConverter`` and ``Types`` (Hudi 1.2.0).

Internal schemas: a table's columns with permanent ids, as Hudi stores them.

Ids identify columns across renames and drops: two columns of one name are the same only if they have the same id. Ids
are never reused (``max_column_id``). The ids of a new schema are assigned level by level: all fields of a record first,
then the fields inside each field.

::

    JSON text ── parse_schema ─► InternalSchema ── schema_json ─► JSON text   (``latest_schema`` of commit metadata)
    {"schemas": [...]} ── parse_versions ─► InternalSchemas, newest first ── versions_json ─► text of a schema commit

Types of leaves keep Hudi's text (:mod:`hudi_fast.schema.internal`), so that unknown types survive.

Source: ``InternalSchema``, ``SerDeHelper``, ``InternalSchemaConverter`` (Hudi 0.15.0 and 1.2.0). The spelling of keys
comes from tables of both releases.

Column ids after a write to a table with a schema history.

New columns get new ids, and all other columns keep theirs. A write that replaces the columns gives new ids to all.

::

    previous InternalSchema, columns of the write ─► InternalSchema of the write

Source: ``AvroSchemaEvolutionUtils.reconcileSchema`` (Hudi 1.2.0), which never drops or renames a column.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import is_meta_field, with_meta, without_meta
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = [
    "TYPES",
    "ArrayType",
    "Field",
    "InternalSchema",
    "InternalType",
    "MapType",
    "RecordType",
    "arrow_schema",
    "child_fields",
    "evolved_ids",
    "highest_id",
    "internal_schema",
    "internal_type",
    "parse_schema",
    "parse_versions",
    "plain_arrow_type",
    "replaced_ids",
    "same_type",
    "schema_json",
    "versions_json",
    "with_path",
]


@dataclass(frozen=True, slots=True)
class Field:
    """A column, a field of a record, the element of a list, the key or value of a map.

    Attributes:
        id: unique in the table.
        name: ``element``, ``key`` or ``value`` inside lists and maps.
        optional: whether the field is nullable.
        type: type of the field's values.
        doc: comment, or None.
    """

    id: int
    name: str
    optional: bool
    type: InternalType
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class RecordType:
    """A struct of named fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list."""

    element: Field


@dataclass(frozen=True, slots=True)
class MapType:
    """A map with string keys."""

    key: Field
    value: Field


InternalType: TypeAlias = str | RecordType | ArrayType | MapType
"""A nested type, or the text of a scalar type."""


@dataclass(frozen=True, slots=True)
class InternalSchema:
    """The columns of a table, meta columns first, between two commits that change them.

    Attributes:
        version: requested time of the commit that created the schema, as a number; 0 before the history begins.
        max_column_id: highest id that was ever assigned.
        record: the columns.
    """

    version: int
    max_column_id: int
    record: RecordType

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(field.name for field in self.record.fields)


def child_fields(kind: InternalType) -> tuple[Field, ...]:
    """The direct fields of a type; empty for a scalar type."""
    match kind:
        case RecordType(fields):
            return fields
        case ArrayType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
    return ()


def with_path(kind: InternalType, path: str = "") -> Iterator[tuple[str, Field]]:
    """All fields inside a type with their dotted names, outer fields first."""
    for field in child_fields(kind):
        where = f"{path}.{field.name}" if path else field.name
        yield where, field
        yield from with_path(field.type, where)


def highest_id(kind: InternalType) -> int:
    """The highest id inside a type; -1 without fields."""
    return max((field.id for _, field in with_path(kind)), default=-1)


# ---- JSON


def parse_schema(text: str, where: str) -> InternalSchema:
    """Parse the internal schema in ``latest_schema`` of commit metadata; ``where`` names its location in messages.

    Raises:
        CorruptTableError: the text is invalid.
    """
    return _schema(_json(text, where), where)


def parse_versions(text: str, where: str) -> list[InternalSchema]:
    """Parse the internal schemas of a schema commit, newest first.

    Raises:
        CorruptTableError: the text is invalid.
    """
    listed = _json(text, where)
    if not isinstance(listed, dict) or not isinstance(listed.get("schemas"), list):
        raise CorruptTableError("Expected an object with a list of schemas.", where)
    found = [_schema(one, where) for one in listed["schemas"]]
    return sorted(found, key=lambda one: one.version, reverse=True)


def schema_json(schema: InternalSchema) -> str:
    """The text of a schema, with keys in Hudi's order."""
    return json.dumps(_schema_value(schema), separators=(",", ":"), ensure_ascii=False)


def versions_json(schemas: Sequence[InternalSchema]) -> str:
    """The text of a schema commit; ``schemas`` are newest first."""
    listed = {"schemas": [_schema_value(one) for one in schemas]}
    return json.dumps(listed, separators=(",", ":"), ensure_ascii=False)


def _json(text: str, where: str) -> Any:
    try:
        return stored_json(text)
    except ValueError as error:
        raise CorruptTableError(f"Expected a schema history in JSON, found invalid JSON: {error}.", where) from error


def _schema(value: Any, where: str) -> InternalSchema:
    try:
        record = _type(value)
        if not isinstance(record, RecordType):
            raise TypeError("not a record")
        stated = _get(value, "max_column_id", None)
        highest = highest_id(record) if stated is None else int(stated)
        version = int(_get(value, "version_id", 0))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptTableError(f"An internal schema cannot be parsed ({error!r}).", where) from error
    return InternalSchema(version, highest, record)


_REQUIRED = object()


def _get(value: Any, key: str, default: Any = _REQUIRED) -> Any:
    """The value of a key; some releases write ``-`` instead of ``_``."""
    for spelling in (key, key.replace("_", "-")):
        if spelling in value:
            return value[spelling]
    if default is _REQUIRED:
        raise KeyError(key)
    return default


def _type(value: Any) -> InternalType:
    if isinstance(value, str):
        return value
    match value["type"]:
        case "record":
            return RecordType(tuple(_field(one) for one in value["fields"]))
        case "array":
            optional = bool(_get(value, "element_optional"))
            return ArrayType(Field(int(_get(value, "element_id")), "element", optional, _type(value["element"])))
        case "map":
            key = Field(int(_get(value, "key_id")), "key", False, _type(value["key"]))
            optional = bool(_get(value, "value_optional"))
            return MapType(key, Field(int(_get(value, "value_id")), "value", optional, _type(value["value"])))
    raise ValueError(f"a type {value['type']!r}")


def _field(value: Any) -> Field:
    doc = value.get("doc")
    return Field(int(value["id"]), str(value["name"]), bool(value["optional"]), _type(value["type"]), doc)


def _schema_value(schema: InternalSchema) -> dict[str, Any]:
    head = {"max_column_id": schema.max_column_id, "version_id": schema.version}
    return {**head, **_record_value(schema.record)}


def _record_value(record: RecordType) -> dict[str, Any]:
    return {"type": "record", "fields": [_field_value(one) for one in record.fields]}


def _field_value(field: Field) -> dict[str, Any]:
    made = {"id": field.id, "name": field.name, "optional": field.optional, "type": _type_value(field.type)}
    return made if field.doc is None else {**made, "doc": field.doc}


def _type_value(kind: InternalType) -> Any:
    match kind:
        case RecordType():
            return _record_value(kind)
        case ArrayType(element):
            head = {"type": "array", "element_id": element.id, "element": _type_value(element.type)}
            return {**head, "element_optional": element.optional}
        case MapType(key, value):
            head = {"type": "map", "key_id": key.id, "key": _type_value(key.type), "value_id": value.id}
            return {**head, "value": _type_value(value.type), "value_optional": value.optional}
    return kind


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


def evolved_ids(before: InternalSchema, columns: pa.Schema, version: int) -> InternalSchema:
    """The internal schema of a table after a write with these columns.

    ``columns`` are the data columns of the table after the write. ``before`` is the newest schema; its columns that are
    missing in ``columns`` are kept at the end: files of some tables do not store their partition columns. If the result
    differs from ``before``, it has ``version``, the requested time of the write.

    Raises:
        UnsupportedFeatureError: a new column has a type that internal schemas do not have.
    """
    ids = itertools.count(before.max_column_id + 1)
    meta = tuple(field for field in before.record.fields if is_meta_field(field.name))
    data = tuple(field for field in before.record.fields if not is_meta_field(field.name))
    record = RecordType((*meta, *_fields_with_ids(data, list(columns), "", ids)))
    if record == before.record:
        return before
    return InternalSchema(version, max(before.max_column_id, highest_id(record)), record)


def replaced_ids(before: InternalSchema, columns: pa.Schema, version: int) -> InternalSchema:
    """The internal schema of a table after a write that replaced all rows and columns: no column keeps its id.

    Args:
        before: the newest schema.
        columns: data columns of the table after the write.
        version: requested time of the write.

    Raises:
        UnsupportedFeatureError: a column has a type that internal schemas do not have.
    """
    ids = itertools.count(before.max_column_id + 1)
    meta = tuple(field for field in before.record.fields if is_meta_field(field.name))
    record = RecordType((*meta, *_fields_with_ids((), list(columns), "", ids)))
    return InternalSchema(version, highest_id(record), record)


def _fields_with_ids(
    before: Sequence[Field], columns: Sequence[pa.Field], path: str, ids: Iterator[int]
) -> tuple[Field, ...]:
    known = {field.name: field for field in before}
    made = []
    for column in columns:
        where = f"{path}.{column.name}" if path else column.name
        old = known.pop(column.name, None)
        if old is None:
            own = next(ids)
            made.append(Field(own, column.name, column.nullable, internal_type(column.type, where, ids)))
        else:
            kind = _type_with_ids(old.type, column.type, where, ids)
            made.append(replace(old, optional=column.nullable, type=kind))
    return (*made, *known.values())


def _type_with_ids(before: InternalType, kind: pa.DataType, path: str, ids: Iterator[int]) -> InternalType:
    match before:
        case RecordType(fields) if pa.types.is_struct(kind):
            return RecordType(_fields_with_ids(fields, list(kind), path, ids))
        case ArrayType(element) if pa.types.is_list(kind):
            inner = _type_with_ids(element.type, kind.value_type, f"{path}.element", ids)
            return ArrayType(replace(element, optional=kind.value_field.nullable, type=inner))
        case MapType(key, value) if pa.types.is_map(kind):
            inner = _type_with_ids(value.type, kind.item_type, f"{path}.value", ids)
            return MapType(key, replace(value, optional=kind.item_field.nullable, type=inner))
        case str() as text if plain_arrow_type(text) == kind:
            return text
    return internal_type(kind, path, ids)
