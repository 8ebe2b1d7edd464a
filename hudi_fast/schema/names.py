"""Resolve names of columns and of their fields as Spark does: in upper or lower case, and never by a guess.

::

    a name as written ─► resolve_name ─► the column of that name; an error if two columns differ only in case
    nested columns ────► renamed_fields ─► the same values under the names of another type

Exact names (``spark.sql.caseSensitive=true``) must have the same spelling and case.

Columns by dotted names: ``a.b`` is the field ``b`` of the struct column ``a``; its values are null for a null ``a``.

A column whose own name has dots takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError

__all__ = ["dotted_values", "find_dotted", "renamed_fields", "resolve_name"]


def resolve_name(name: str, names: Iterable[str], where: str, exact: bool = False) -> str | None:
    """The name among ``names`` that ``name`` means; None if there is no such name.

    Args:
        name: the name as written.
        names: names of the columns, or of the fields of a struct.
        where: description of the names, for messages.
        exact: whether names are case-sensitive.

    Raises:
        ConfigError: several names differ only in case.
    """
    fits = [one for one in names if one == name or (not exact and one.lower() == name.lower())]
    if len(fits) > 1:
        raise ConfigError(
            f"{where}: the name {name!r} is ambiguous, because {' and '.join(map(repr, fits))} differ only in case. "
            "Rename or drop one of them."
        )
    return fits[0] if fits else None


def renamed_fields(column: pa.ChunkedArray, kind: pa.DataType, where: str) -> pa.ChunkedArray:
    """The column with its struct fields named as in another type; the values are not copied.

    Args:
        column: a column of any type.
        kind: the type that has the names, at all levels.
        where: the column, for messages.

    Raises:
        ConfigError: two fields of a struct differ only in case.
    """
    named = _named(column.type, kind, where)
    return column if named == column.type else pa.chunked_array([one.view(named) for one in column.chunks], named)


def _named(own: pa.DataType, other: pa.DataType, where: str) -> pa.DataType:
    """``own`` with the names of ``other``."""
    if pa.types.is_struct(own) and pa.types.is_struct(other):
        names = [field.name for field in own]
        fields = {resolve_name(field.name, names, f"{where}, its fields"): field for field in other}
        return pa.struct([_named_field(field, fields.get(field.name), where) for field in own])
    if pa.types.is_map(own) and pa.types.is_map(other):
        return pa.map_(own.key_field, _with_type(own.item_field, other.item_type, where))
    if pa.types.is_list(own) and _has_elements(other):
        return pa.list_(_with_type(own.value_field, other.value_type, where))
    if pa.types.is_large_list(own) and _has_elements(other):
        return pa.large_list(_with_type(own.value_field, other.value_type, where))
    return own


def _named_field(own: pa.Field, other: pa.Field | None, where: str) -> pa.Field:
    if other is None:
        return own
    return _with_type(own, other.type, f"{where}.{own.name}").with_name(other.name)


def _with_type(own: pa.Field, other: pa.DataType, where: str) -> pa.Field:
    return own.with_type(_named(own.type, other, where))


def _has_elements(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def find_dotted(schema: pa.Schema, name: str) -> tuple[str, pa.DataType] | None:
    """The top-level column that contains a dotted name, and the type of its values; None if there is no such column.

    Args:
        schema: schema of the rows.
        name: dotted within structs.
    """
    if name in schema.names:
        return name, schema.field(name).type
    root, _, rest = name.partition(".")
    if not rest or root not in schema.names:
        return None
    kind = schema.field(root).type
    for part in rest.split("."):
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return root, kind


def dotted_values(rows: pa.Table, name: str) -> pa.ChunkedArray:
    """The n values of a column that :func:`find_dotted` finds.

    Args:
        rows: n rows.
        name: dotted within structs.
    """
    if name in rows.schema.names:
        return rows.column(name)
    root, _, rest = name.partition(".")
    return pc.struct_field(rows.column(root), rest.split("."))
