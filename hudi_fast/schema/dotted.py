"""Columns by dotted names: ``a.b`` is the field ``b`` of the struct column ``a``; its values are null for a null ``a``.

A column whose own name has dots takes precedence.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["dotted_values", "find_dotted"]


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
