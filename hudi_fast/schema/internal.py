"""Internal schemas: a table's columns with permanent ids, as Hudi stores them.

Ids identify columns across renames and drops: two columns of one name are the same only if they have the same id. Ids
are never reused (``max_column_id``). The ids of a new schema are assigned level by level: all fields of a record first,
then the fields inside each field.

::

    JSON text ── parse_schema ─► InternalSchema ── schema_json ─► JSON text   (``latest_schema`` of commit metadata)
    {"schemas": [...]} ── parse_versions ─► InternalSchemas, newest first ── versions_json ─► text of a schema commit

Types of leaves keep Hudi's text (:mod:`hudi_fast.schema.internal_types`), so that unknown types survive.

Source: ``InternalSchema``, ``SerDeHelper``, ``InternalSchemaConverter`` (Hudi 0.15.0 and 1.2.0). The spelling of keys
comes from tables of both releases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.stored_json import stored_json

__all__ = [
    "ArrayType",
    "Field",
    "InternalSchema",
    "InternalType",
    "MapType",
    "RecordType",
    "child_fields",
    "highest_id",
    "parse_schema",
    "parse_versions",
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
