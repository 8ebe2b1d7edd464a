"""The history of a table's schema: how columns were called when a file was written, and how they are called today.

::

    SchemaHistory ── schema_at(instant) ─► InternalSchema
          └───────── names_at(instant) ──► Names ─┬─ renamed_plan: stored schema ─► ConformPlan to today's names
                                                  └─ renamed_avro: a log block's schema, in today's names

A column is followed by its id: one that was renamed has its new name, one that was dropped is gone, even if there is
another one of its name today. What is stored and was not in the schema of its time keeps its name. Types are taken to
today's only where the schema changed them in a way that writes alone would not (``cast.read_cast``); whoever reads does
the rest, as for files of a table without history.

A file's schema is the newest that is not newer than its own instant, as ``InternalSchemaCache`` and
``InternalSchemaMerger`` of Hudi 1.2.0 look for it; today's is the newest that is not newer than ``as_of``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.schema import is_meta_field
from hudi_fast.schema.cast import Convert, read_cast
from hudi_fast.schema.conform import ConformPlan
from hudi_fast.schema.internal import ArrayType, Field, InternalSchema, InternalType, MapType, RecordType
from hudi_fast.schema.internal_types import plain_arrow_type, same_type
from hudi_fast.schema.nested import Column, convert_list, convert_map, convert_struct

__all__ = [
    "Name",
    "Names",
    "SchemaHistory",
    "altered_columns",
    "names_at",
    "renamed_avro",
    "renamed_plan",
    "schema_at",
    "stored_name",
]


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """What a table's schema has been.

    Attributes:
        versions: internal schemas, oldest first; at least one.
        as_of: newest requested time that counts for today's names; None for the end of the history.
    """

    versions: tuple[InternalSchema, ...]
    as_of: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """What has become of a stored field.

    Attributes:
        stored: its name in the file.
        today: its name today; None when it was dropped.
        inside: what has become of what is in it; None when nothing has.
    """

    stored: str
    today: str | None
    inside: Names | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """What has become of what is inside a stored type. A value; can be pickled.

    Attributes:
        fields: those of a record that are not as they were.
        element: of a list, or of a map's values.
        kind: today's type of a plain value, where it is another.
    """

    fields: tuple[Name, ...] = ()
    element: Names | None = None
    kind: pa.DataType | None = None


def schema_at(history: SchemaHistory, instant: str | None) -> InternalSchema | None:
    """The schema of the time of an instant; of the end of the history for None. None before the history begins."""
    if instant is None:
        return history.versions[-1]
    known = [one for one in history.versions if one.version <= int(instant)]
    return known[-1] if known else None


def names_at(history: SchemaHistory, instant: str) -> Names | None:
    """What has become of columns that a write stored; None when all are as they were.

    Args:
        history: of the table.
        instant: requested time of the write.
    """
    then, today = schema_at(history, instant), schema_at(history, history.as_of)
    if then is None or today is None or then is today:
        return None
    return _names(then.record, today.record)


def altered_columns(history: SchemaHistory | None, instant: str | None = None) -> frozenset[str]:
    """Top-level columns, by old and new names, of which a file says nothing under the name of today.

    Args:
        history: of the table; None for a table without history.
        instant: requested time of the write that made the file; None for files of any time.
    """
    if history is None:
        return frozenset()
    instants = [str(one.version) for one in history.versions] if instant is None else [instant]
    found = [names_at(history, one) for one in instants]
    fields = [field for names in found if names is not None for field in names.fields]
    return frozenset(name for field in fields for name in (field.stored, field.today) if name is not None)


def stored_name(names: Names | None, today: str) -> str | None:
    """What a top-level column of today was called; None when it was not there."""
    if names is None:
        return today
    found = next((one for one in names.fields if one.today == today), None)
    if found is not None:
        return found.stored
    return None if any(one.stored == today for one in names.fields) else today


# ---- comparing two schemas


def _names(then: InternalType, today: InternalType) -> Names | None:
    match then, today:
        case RecordType(old), RecordType(new):
            by_id = {field.id: field for field in new}
            changed = [one for one in (_name(field, by_id.get(field.id)) for field in old) if one is not None]
            return Names(fields=tuple(changed)) if changed else None
        case (ArrayType(old), ArrayType(new)) | (MapType(_, old), MapType(_, new)):
            inside = _names(old.type, new.type)
            return None if inside is None else Names(element=inside)
        case str(), str():
            return None if same_type(then, today) else Names(kind=plain_arrow_type(today))
    return None


def _name(old: Field, new: Field | None) -> Name | None:
    if new is None:
        return Name(old.name, None)
    inside = _names(old.type, new.type)
    return None if inside is None and new.name == old.name else Name(old.name, new.name, inside)


# ---- Arrow


def renamed_plan(stored: pa.Schema, names: Names) -> ConformPlan:
    """How the columns of a file become those that they are today.

    Args:
        stored: columns of the file.
        names: what has become of them.

    Returns:
        A plan whose target has today's names, in stored order; dropped columns are not in it.
    """
    columns, fields = _renamed_fields(list(stored), names, "")
    return ConformPlan(stored, pa.schema(fields), tuple(columns))


def _renamed_fields(stored: Sequence[pa.Field], names: Names | None, path: str) -> tuple[list[Column], list[pa.Field]]:
    known = {} if names is None else {one.stored: one for one in names.fields}
    taken = {one.today for one in known.values()}
    columns, fields = [], []
    for position, field in enumerate(stored):
        name = known.get(field.name)
        today = field.name if name is None else name.today
        if today is None or (name is None and today in taken):
            continue
        where = f"{path}.{today}" if path else today
        kind, convert = _renamed_type(field.type, None if name is None else name.inside, where)
        columns.append(Column(where, kind, False, position, convert))
        fields.append(pa.field(today, kind, nullable=field.nullable))
    return columns, fields


def _renamed_type(stored: pa.DataType, names: Names | None, path: str) -> tuple[pa.DataType, Convert | None]:
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


def renamed_avro(text: str, names: Names, where: str) -> str:
    """The Avro schema of a log block with today's names.

    Avro data is read by position, so the names of the schema that it was written with may be changed. Fields that were
    dropped get a name that no column has.

    Args:
        text: JSON text of the schema in the block's header.
        names: what has become of the fields.
        where: what holds it, for messages.

    Raises:
        CorruptTableError: it cannot be understood.
    """
    try:
        return json.dumps(_renamed_record(json.loads(text), names))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptTableError(f"The schema of a log block cannot be understood ({error!r}).", where) from error


def _renamed_record(avro: dict[str, Any], names: Names) -> dict[str, Any]:
    known = {one.stored: one for one in names.fields}
    taken = {one.today for one in names.fields}
    fields = []
    for field in avro["fields"]:
        name = known.get(field["name"])
        if name is None:
            gone = field["name"] in taken and not is_meta_field(field["name"])
            fields.append({**field, "name": f"__dropped__{field['name']}"} if gone else field)
            continue
        inside = name.inside
        kind = field["type"] if inside is None else _renamed_avro_type(field["type"], inside)
        today = f"__dropped__{name.stored}" if name.today is None else name.today
        fields.append({**field, "name": today, "type": kind})
    return {**avro, "fields": fields}


def _renamed_avro_type(avro: Any, names: Names) -> Any:
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
