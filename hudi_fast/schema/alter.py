"""Changes of a table's columns by name, as in SQL's ``ALTER TABLE``.

::

    InternalSchema, changes ── altered ─► InternalSchema; each change applies to the result of the previous one

Names are dotted paths; ``element`` and ``value`` select the content of lists and maps (``points.element.x``). Changes
that would make stored rows unreadable are rejected, as are changes of columns that record keys, partition paths or
ordering values depend on.

Source: ``TableChanges``, ``SchemaChangeUtils.isTypeUpdateAllow``, ``AlterTableCommand`` (Hudi 1.2.0).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, get_args

import pyarrow as pa

from hudi_fast.errors import ConfigError, SchemaMismatchError
from hudi_fast.formats.avro.schema import check_column_name, is_meta_field
from hudi_fast.schema.cast import can_alter
from hudi_fast.schema.internal import (
    ArrayType,
    Field,
    InternalSchema,
    InternalType,
    MapType,
    RecordType,
    highest_id,
    internal_type,
    plain_arrow_type,
)
from hudi_fast.schema.normalize import storable_type
from hudi_fast.values import dataclass

__all__ = [
    "AddColumn",
    "Change",
    "ChangeType",
    "DropColumn",
    "MoveColumn",
    "RenameColumn",
    "SetComment",
    "SetNullable",
    "altered",
]


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column or a struct field; it is null in stored rows.

    Attributes:
        name: dotted path.
        type: any Arrow type that a Hudi table can hold.
        comment: comment on the column, or None.
        after: name of the preceding sibling; None for the last position.
        first: whether it becomes the first field of its struct.
    """

    name: str
    type: pa.DataType
    comment: str | None = None
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column or field; a later column of the same name does not restore its values.

    Attributes:
        name: dotted path.
    """

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column or field.

    Attributes:
        name: dotted path.
        to: the new name, without the path.
    """

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class ChangeType:
    """Widen a type: int -> long, float, double, string, decimal; long -> float, double, string, decimal; float ->
    double, string, decimal; double -> string, decimal; date -> string; decimal -> a wider decimal, string; string ->
    date, decimal, bytes; bytes -> string.

    Attributes:
        name: dotted path.
        type: the new type.
    """

    name: str
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Move a column or field among its siblings.

    Attributes:
        name: dotted path.
        after: name of the preceding sibling.
        first: whether it becomes the first field of its struct, instead of ``after``.
    """

    name: str
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class SetNullable:
    """Make a column or field nullable.

    Attributes:
        name: dotted path.
    """

    name: str


@dataclass(frozen=True, slots=True)
class SetComment:
    """Set or remove the comment on a column or field.

    Attributes:
        name: dotted path.
        comment: the text; None to remove it.
    """

    name: str
    comment: str | None


Change: TypeAlias = AddColumn | DropColumn | RenameColumn | ChangeType | MoveColumn | SetNullable | SetComment
"""One change of a schema."""

_Edit = Callable[[Field], Field]
_Siblings = Callable[[tuple[Field, ...]], tuple[Field, ...]]


def altered(
    schema: InternalSchema, changes: Sequence[Change], roles: Mapping[str, str], version: int = 0
) -> InternalSchema:
    """Apply changes to a schema.

    Args:
        schema: the newest schema.
        changes: in order of application.
        roles: columns that must not change, by dotted name, with their role: ``a record key field``.
        version: version of the result: the requested time of the commit.

    Raises:
        ConfigError: a column does not exist or must not change; a name is taken; there are no changes.
        SchemaMismatchError: a name cannot be stored, or stored values do not convert to a type.
        UnsupportedFeatureError: tables cannot hold a type.
    """
    if not changes:
        raise ConfigError("There is nothing to alter: pass changes such as AddColumn or RenameColumn.")
    record, highest = schema.record, schema.max_column_id
    for change in changes:
        _refuse(change, roles)
        record = _applied(record, highest, change)
        highest = max(highest, highest_id(record))
    return InternalSchema(version, highest, record)


def _applied(record: RecordType, highest: int, change: Change) -> RecordType:
    match change:
        case AddColumn():
            return _at_siblings(record, change.name, lambda fields: _added(fields, change, highest))
        case DropColumn(name):
            return _at_siblings(record, name, lambda fields: _dropped(fields, name))
        case RenameColumn(name, to):
            return _at_siblings(record, name, lambda fields: _renamed(fields, name, to))
        case MoveColumn():
            return _at_siblings(record, change.name, lambda fields: _moved(fields, change))
        case ChangeType(name, kind):
            return _at_field(record, name, lambda field: _retyped(field, name, kind))
        case SetNullable(name):
            return _at_field(record, name, lambda field: replace(field, optional=True))
        case SetComment(name, comment):
            return _at_field(record, name, lambda field: replace(field, doc=comment))


def _refuse(change: Change, roles: Mapping[str, str]) -> None:
    """Reject invalid changes, changes of Hudi's own columns, and some changes of columns with a role."""
    if not isinstance(change, get_args(Change)):
        raise ConfigError(
            f"A change must be one of {', '.join(one.__name__ for one in get_args(Change))}; got {change!r}."
        )
    if isinstance(change, AddColumn | ChangeType) and not isinstance(change.type, pa.DataType):
        raise ConfigError(
            f"The type of column {change.name!r} must be a pyarrow type such as pa.int64(); got {change.type!r}."
        )
    name = change.name
    if is_meta_field(name.split(".")[0]):
        raise ConfigError(f"Column {name!r} is one of Hudi's own and cannot be altered.")
    if not isinstance(change, DropColumn | RenameColumn | ChangeType):
        return
    for column, role in roles.items():
        is_it = column == name or column.startswith(f"{name}.")
        if not is_it:
            continue
        if isinstance(change, ChangeType):
            _refuse_type_of_role(change, column, role)
        else:
            what = "dropped" if isinstance(change, DropColumn) else "renamed"
            raise ConfigError(f"Column {name!r} cannot be {what}: {column!r} is {role}.")


def _refuse_type_of_role(change: ChangeType, column: str, role: str) -> None:
    if not (pa.types.is_integer(change.type) or pa.types.is_decimal(change.type)):
        raise ConfigError(
            f"The type of column {column!r} cannot become {change.type}: it is {role}, and its stored values would "
            "no longer be found."
        )


# ---- siblings


def _added(fields: tuple[Field, ...], change: AddColumn, highest: int) -> tuple[Field, ...]:
    leaf = change.name.rpartition(".")[2]
    check_column_name(leaf, f"column {change.name}")
    _require_free(fields, change.name, leaf)
    ids = itertools.count(highest + 1)
    own = next(ids)
    kind = internal_type(storable_type(change.type, change.name), change.name, ids)
    new = Field(own, leaf, True, kind, change.comment)
    return _placed(fields, new, change.name, change.after, change.first, last=True)


def _dropped(fields: tuple[Field, ...], name: str) -> tuple[Field, ...]:
    old = _find(fields, name)
    left = tuple(field for field in fields if field is not old)
    if all(is_meta_field(field.name) for field in left):
        raise ConfigError(f"Column {name!r} cannot be dropped: it is the last one of its struct, or of the table.")
    return left


def _renamed(fields: tuple[Field, ...], name: str, to: str) -> tuple[Field, ...]:
    old = _find(fields, name)
    check_column_name(to, f"the new name of column {name}")
    _require_free(tuple(field for field in fields if field is not old), name, to)
    return tuple(replace(field, name=to) if field is old else field for field in fields)


def _moved(fields: tuple[Field, ...], change: MoveColumn) -> tuple[Field, ...]:
    old = _find(fields, change.name)
    if change.after is None and not change.first:
        raise ConfigError(f"The target of column {change.name!r} is missing: pass after= or first=True to MoveColumn.")
    others = tuple(field for field in fields if field is not old)
    return _placed(others, old, change.name, change.after, change.first, last=False)


def _placed(
    fields: tuple[Field, ...], field: Field, name: str, after: str | None, first: bool, last: bool
) -> tuple[Field, ...]:
    if first and (after is not None or "." not in name):
        raise ConfigError(
            f"Column {name!r} cannot become the first one: Hudi's own columns come first; name the column to follow."
            if after is None
            else f"Column {name!r} cannot both be the first one and follow {after!r}."
        )
    if first:
        return (field, *fields)
    if after is None and last:
        return (*fields, field)
    found = next((at for at, one in enumerate(fields) if one.name == after), None)
    if found is None or (is_meta_field(fields[found].name) and found + 1 < len(fields) and _is_meta(fields[found + 1])):
        siblings = [one.name for one in fields if not is_meta_field(one.name)]
        raise ConfigError(f"Column {name!r} cannot follow {after!r}: its siblings are {siblings}.")
    return (*fields[: found + 1], field, *fields[found + 1 :])


def _is_meta(field: Field) -> bool:
    return is_meta_field(field.name)


def _require_free(fields: tuple[Field, ...], name: str, to: str) -> None:
    taken = next((field.name for field in fields if field.name.lower() == to.lower()), None)
    if taken is not None:
        raise ConfigError(f"Column {name!r} cannot be called {to!r}: the column {taken!r} already exists.")


def _find(fields: tuple[Field, ...], name: str) -> Field:
    leaf = name.rpartition(".")[2]
    found = next((field for field in fields if field.name == leaf), None)
    if found is None:
        listed = [field.name for field in fields if not is_meta_field(field.name)]
        raise ConfigError(f"There is no column {name!r}; the columns are {listed}.")
    return found


# ---- types


def _retyped(field: Field, name: str, kind: pa.DataType) -> Field:
    if not isinstance(field.type, str) or pa.types.is_nested(kind):
        raise SchemaMismatchError(
            f"Column {name!r} cannot become {kind}: only scalar types can be changed. Change the fields inside it."
        )
    stored, wanted = plain_arrow_type(field.type), storable_type(kind, name)
    if stored == wanted:
        return field
    if not can_alter(stored, wanted):
        raise SchemaMismatchError(
            f"Column {name!r} is {stored} and cannot become {wanted}: stored values would not fit."
        )
    made = internal_type(wanted, name, itertools.count())
    return replace(field, type=made)


# ---- navigation


def _at_siblings(record: RecordType, name: str, change: _Siblings) -> RecordType:
    """Change the field with the dotted name ``name`` and its siblings."""
    parent = name.rpartition(".")[0]
    if not parent:
        return RecordType(change(record.fields))

    def inside(field: Field) -> Field:
        if not isinstance(field.type, RecordType):
            raise ConfigError(f"{parent!r} has no fields that can be added, dropped, renamed or moved: see {name!r}.")
        return replace(field, type=RecordType(change(field.type.fields)))

    return _at_field(record, parent, inside)


def _at_field(record: RecordType, name: str, change: _Edit) -> RecordType:
    """Change the field with the dotted name ``name``."""
    made = _in_type(record, name.split("."), name, change)
    assert isinstance(made, RecordType)
    return made


def _in_type(kind: InternalType, parts: Sequence[str], name: str, change: _Edit) -> InternalType:
    def within(field: Field) -> Field:
        if len(parts) == 1:
            return change(field)
        return replace(field, type=_in_type(field.type, parts[1:], name, change))

    match kind:
        case RecordType(fields) if any(field.name == parts[0] for field in fields):
            return RecordType(tuple(within(field) if field.name == parts[0] else field for field in fields))
        case ArrayType(element) if parts[0] == "element":
            return ArrayType(within(element))
        case MapType(key, value) if parts[0] == "value":
            return MapType(key, within(value))
    raise ConfigError(f"There is no column {name!r}: {parts[0]!r} does not exist.")
