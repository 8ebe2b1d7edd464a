"""Leaf columns, as Parquet stores them, of tables in memory: their names, their values, and whether they hold NaN.

Columns have Parquet's dotted paths: ``a.b`` within a struct, ``a.list.element`` for the elements of a list,
``a.key_value.key`` and ``a.key_value.value`` for the keys and values of a map.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["leaf_columns", "leaf_values", "nan_columns"]

_ELEMENT, _KEY, _VALUE = ".list.element", ".key_value.key", ".key_value.value"


def leaf_columns(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Dotted names and types of all leaf columns, in the order of Parquet's columns."""
    found: dict[str, pa.DataType] = {}
    for field in schema:
        _leaves(field.name, field.type, found)
    return found


def leaf_values(rows: pa.Table | pa.RecordBatch, path: str) -> pa.Array | pa.ChunkedArray:
    """The values of a column of :func:`leaf_columns`. An empty list has no value, a null parent has one null."""
    name = next(one for one in rows.schema.names if path == one or path.startswith(f"{one}."))
    values, rest = rows.column(name), path[len(name) :]
    while rest:
        kind = values.type
        if _is_list(kind) and rest.startswith(_ELEMENT):
            values, rest = pc.list_flatten(values), rest[len(_ELEMENT) :]
        elif pa.types.is_map(kind) and rest.startswith((_KEY, _VALUE)):
            part, rest = (0, rest[len(_KEY) :]) if rest.startswith(_KEY) else (1, rest[len(_VALUE) :])
            entries = values.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
            values = pc.struct_field(pc.list_flatten(entries), [part])
        else:
            member = next(one for one in kind if rest == f".{one.name}" or rest.startswith(f".{one.name}."))
            values, rest = pc.struct_field(values, member.name), rest[len(member.name) + 1 :]
    return values


def nan_columns(rows: pa.Table) -> set[str]:
    """Dotted names of the floating-point columns that hold NaN; columns may be dictionary-encoded."""
    return {
        name
        for name, kind in leaf_columns(rows.schema).items()
        if _is_floating(kind) and _has_nan(leaf_values(rows, name))
    }


def _leaves(path: str, kind: pa.DataType, found: dict[str, pa.DataType]) -> None:
    if pa.types.is_struct(kind):
        for member in kind:
            _leaves(f"{path}.{member.name}", member.type, found)
    elif _is_list(kind):
        _leaves(path + _ELEMENT, kind.value_type, found)
    elif pa.types.is_map(kind):
        _leaves(path + _KEY, kind.key_type, found)
        _leaves(path + _VALUE, kind.item_type, found)
    else:
        found[path] = kind


def _is_floating(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _has_nan(values: pa.Array | pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return bool(pc.any(pc.is_nan(values)).as_py())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
