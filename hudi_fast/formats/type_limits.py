"""Limits of the types of a table: a read accepts every type that a write accepts.

A schema in a file is untrusted, so a read bounds the types that it describes (:mod:`hudi_fast.formats.avro.names`). A
write checks the same bounds before it stores a schema: :func:`check_type_limits`.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError

__all__ = ["MAX_LEVELS", "MAX_PARTS", "MAX_STORED_LEVELS", "MAX_UNSTORED", "check_type_limits"]

MAX_LEVELS = 64
"""Maximum levels of nested types, including the row and the values; Arrow's own format has the same limit.

A map is two levels there, because its entries are structs."""

MAX_STORED_LEVELS = 100
"""Maximum levels of a Parquet file's schema that Arrow reads: a list or a map takes two, any other type one."""

MAX_PARTS = 100_000
"""Maximum types in a row: columns, fields of structs, elements of lists, values of maps."""

MAX_UNSTORED = 64 << 10
"""Maximum Arrow bytes of a value that takes at most one byte in a record: a null of a fixed type, or a default."""


def check_type_limits(columns: Iterable[pa.Field]) -> None:
    """Refuse columns whose types no read accepts.

    Args:
        columns: columns of a row, of any Arrow types.

    Raises:
        UnsupportedFeatureError: the levels of nested types, the number of types or the bytes of a fixed-size value
            exceed the limits; the message names the column.
    """
    parts = 1
    for column in columns:
        parts += _parts(column.type, column.name, MAX_LEVELS - 1, MAX_STORED_LEVELS - 1)
        if parts > MAX_PARTS:
            raise UnsupportedFeatureError(
                f"The columns up to {column.name!r} have more than {MAX_PARTS:,} fields, elements and values. A table "
                "holds no more; put related columns into one map, or into several tables."
            )


def _parts(kind: pa.DataType, column: str, levels: int, stored: int) -> int:
    """The number of types in a type; raises if it has more than ``levels`` levels, or ``stored`` levels in Parquet."""
    if levels <= 0 or stored <= 0:
        raise UnsupportedFeatureError(
            f"Column {column!r} has more types inside each other than a read accepts: {MAX_LEVELS} levels in Arrow, "
            f"where a map is two, and {MAX_STORED_LEVELS} in Parquet, where a list or a map is two; the row is the "
            "first. Store the inner levels as text, such as JSON."
        )
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width > MAX_UNSTORED:
        raise UnsupportedFeatureError(
            f"Column {column!r} has values of {kind.byte_width:,} bytes each. A table holds values of a fixed size up "
            f"to {MAX_UNSTORED:,} bytes; cast it to binary."
        )
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _parts(kind.value_type, column, levels, stored)
    if not pa.types.is_nested(kind):
        return 1
    if pa.types.is_map(kind):
        return 1 + _parts(kind.item_type, column, levels - 2, stored - 2)
    inner = stored - (1 if pa.types.is_struct(kind) else 2)
    return 1 + sum(_parts(kind.field(at).type, column, levels - 1, inner) for at in range(kind.num_fields))
