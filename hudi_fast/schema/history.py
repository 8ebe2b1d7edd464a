"""The history of a table's schema: names of columns when a file was written, and their current names.

::

    SchemaHistory ── schema_at(instant) ─► InternalSchema
          └───────── renames_at(instant) ──► Renames ─┬─ renamed_plan: stored schema ─► ConformPlan to current names
                                                      └─ renamed_avro: a log block's schema, with current names

Columns are matched by id: a renamed column has its new name; a dropped column is absent, even if a current column has
the same name. Stored columns that were not in the schema of their time keep their names. Types are converted to current
types only if the schema changed them in a way that writes cannot (``cast.read_cast``); readers convert all others, as
for tables without history.

A file has the newest schema that is not newer than its own instant, as in ``InternalSchemaCache`` and
``InternalSchemaMerger`` of Hudi 1.2.0. The current schema is the newest that is not newer than ``as_of``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.schema.cast import Convert, read_cast
from hudi_fast.schema.conform import Column, ConformPlan, convert_list, convert_map, convert_struct
from hudi_fast.schema.internal import (
    ArrayType,
    Field,
    InternalSchema,
    InternalType,
    MapType,
    RecordType,
    plain_arrow_type,
    same_type,
)
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = [
    "Rename",
    "Renames",
    "SchemaHistory",
    "altered_columns",
    "renamed_avro",
    "renamed_plan",
    "renames_at",
    "schema_at",
    "stored_name",
]


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """All schemas that a table has had.

    Attributes:
        versions: internal schemas, oldest first; at least one.
        as_of: newest requested time that counts for current names; None for the end of the history.
    """

    versions: tuple[InternalSchema, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """The change of a stored field.

    Attributes:
        stored: name of the field in the file.
        current: current name of the field; None if it was dropped.
        inside: changes inside the field; None without changes.
    """

    stored: str
    current: str | None
    inside: Renames | None = None


@dataclass(frozen=True, slots=True)
class Renames:
    """Changes inside a stored type. Immutable; can be pickled.

    Attributes:
        fields: changed fields of a record.
        element: changes of a list's elements, or of a map's values.
        kind: current type of a scalar, if it changed.
    """

    fields: tuple[Rename, ...] = ()
    element: Renames | None = None
    kind: pa.DataType | None = None


def schema_at(history: SchemaHistory, instant: str | None) -> InternalSchema | None:
    """The schema at ``instant``, or at the end of the history for None. Returns None before the history begins."""
    if instant is None:
        return history.versions[-1]
    known = [one for one in history.versions if one.version <= int(instant)]
    return known[-1] if known else None


def renames_at(history: SchemaHistory, instant: str) -> Renames | None:
    """Changes of the columns since the write with the requested time ``instant``; None without changes."""
    then, current = schema_at(history, instant), schema_at(history, history.as_of)
    if then is None or current is None or then is current:
        return None
    return _names(then.record, current.record)


def altered_columns(history: SchemaHistory | None, instant: str | None = None) -> frozenset[str]:
    """Top-level columns, by old and new names, that a file does not store under their current name.

    Args:
        history: history of the table; None for a table without history.
        instant: requested time of the write that created the file; None for files of any time.
    """
    if history is None:
        return frozenset()
    instants = [str(one.version) for one in history.versions] if instant is None else [instant]
    found = [renames_at(history, one) for one in instants]
    fields = [field for names in found if names is not None for field in names.fields]
    return frozenset(name for field in fields for name in (field.stored, field.current) if name is not None)


def stored_name(names: Renames | None, current: str) -> str | None:
    """The stored name of a current top-level column; None if it did not exist."""
    if names is None:
        return current
    found = next((one for one in names.fields if one.current == current), None)
    if found is not None:
        return found.stored
    return None if any(one.stored == current for one in names.fields) else current


# ---- comparing two schemas


def _names(then: InternalType, current: InternalType) -> Renames | None:
    match then, current:
        case RecordType(old), RecordType(new):
            by_id = {field.id: field for field in new}
            changed = [one for one in (_name(field, by_id.get(field.id)) for field in old) if one is not None]
            return Renames(fields=tuple(changed)) if changed else None
        case (ArrayType(old), ArrayType(new)) | (MapType(_, old), MapType(_, new)):
            inside = _names(old.type, new.type)
            return None if inside is None else Renames(element=inside)
        case str(), str():
            return None if same_type(then, current) else Renames(kind=plain_arrow_type(current))
    return None


def _name(old: Field, new: Field | None) -> Rename | None:
    if new is None:
        return Rename(old.name, None)
    inside = _names(old.type, new.type)
    return None if inside is None and new.name == old.name else Rename(old.name, new.name, inside)


# ---- Arrow


def renamed_plan(stored: pa.Schema, names: Renames) -> ConformPlan:
    """The conversion of a file's columns to the current columns.

    Args:
        stored: columns of the file.
        names: changes of these columns.

    Returns:
        A plan whose target has current names, in stored order, without dropped columns.
    """
    columns, fields = _renamed_fields(list(stored), names, "")
    return ConformPlan(stored, pa.schema(fields), tuple(columns))


def _renamed_fields(
    stored: Sequence[pa.Field], names: Renames | None, path: str
) -> tuple[list[Column], list[pa.Field]]:
    known = {} if names is None else {one.stored: one for one in names.fields}
    taken = {one.current for one in known.values()}
    columns, fields = [], []
    for position, field in enumerate(stored):
        name = known.get(field.name)
        current = field.name if name is None else name.current
        if current is None or (name is None and current in taken):
            continue
        where = f"{path}.{current}" if path else current
        kind, convert = _renamed_type(field.type, None if name is None else name.inside, where)
        columns.append(Column(where, kind, False, position, convert))
        fields.append(pa.field(current, kind, nullable=field.nullable))
    return columns, fields


def _renamed_type(stored: pa.DataType, names: Renames | None, path: str) -> tuple[pa.DataType, Convert | None]:
    if names is None:
        return stored, None
    if pa.types.is_struct(stored):
        columns, fields = _renamed_fields(list(stored), names, path)
        kind = pa.struct(fields)
        return kind, partial(convert_struct, columns=tuple(columns), target=kind)
    if pa.types.is_list(stored):
        inner, convert = _renamed_type(stored.value_type, names.element, f"{path}.element")
        kind = pa.list_(stored.value_field.with_type(inner))
        return kind, partial(convert_list, element=Column(f"{path}.element", inner, False, 0, convert), target=kind)
    if pa.types.is_map(stored):
        inner, convert = _renamed_type(stored.item_type, names.element, f"{path}.value")
        kind = pa.map_(stored.key_field, stored.item_field.with_type(inner))
        key = Column(f"{path}.key", stored.key_type, False, 0, None)
        value = Column(f"{path}.value", inner, False, 1, convert)
        return kind, partial(convert_map, key=key, value=value, target=kind)
    cast = None if names.kind is None else read_cast(stored, names.kind)
    return (stored, None) if cast is None or names.kind is None else (names.kind, cast)


# ---- Avro


def renamed_avro(text: str, names: Renames, where: str) -> str:
    """The Avro schema of a log block with current names.

    Avro data is read by position, so the names in its writer schema can be changed. Dropped fields get a name that no
    column has.

    Args:
        text: JSON text of the schema in the block's header.
        names: changes of the fields.
        where: location of the schema, for messages.

    Raises:
        CorruptTableError: the schema is invalid.
    """
    try:
        return json.dumps(_renamed_record(stored_json(text), names))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(f"The schema of a log block cannot be parsed ({error!r}).", where) from error


def _renamed_record(avro: dict[str, Any], names: Renames) -> dict[str, Any]:
    known = {one.stored: one for one in names.fields}
    taken = {one.current for one in names.fields}
    fields = []
    for field in avro["fields"]:
        name = known.get(field["name"])
        if name is None:
            gone = field["name"] in taken and not is_meta_field(field["name"])
            fields.append({**field, "name": f"__dropped__{field['name']}"} if gone else field)
            continue
        inside = name.inside
        kind = field["type"] if inside is None else _renamed_avro_type(field["type"], inside)
        current = f"__dropped__{name.stored}" if name.current is None else name.current
        fields.append({**field, "name": current, "type": kind})
    return {**avro, "fields": fields}


def _renamed_avro_type(avro: Any, names: Renames) -> Any:
    if isinstance(avro, list):
        return [_renamed_avro_type(branch, names) for branch in avro]
    if not isinstance(avro, dict):
        return avro
    kind = avro.get("type")
    if kind == "record":
        return _renamed_record(avro, names)
    for part, container in (("items", "array"), ("values", "map")):
        if kind == container and names.element is not None:
            return {**avro, part: _renamed_avro_type(avro[part], names.element)}
    return avro if isinstance(kind, str) or kind is None else {**avro, "type": _renamed_avro_type(kind, names)}
