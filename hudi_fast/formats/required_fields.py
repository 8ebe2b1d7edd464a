"""Nulls in required parts of nested columns: fields of structs, elements of lists, keys and values of maps.

A required part may be null only where its parent is null. Such a *hidden* null is not a value. But taking, filling and
decoding rows marks it in the validity bitmap of the part, and Arrow's Parquet writer refuses any null in a required
part::

    struct<no: int not null>      s    {no: 5}   null               validity of s   1 0
                                  no   5         (hidden)           validity of no  1 0  ─►  none

:func:`clear_hidden_nulls` removes these marks from an array, and :func:`without_hidden_nulls` from the rows of a file.
Both refuse any other null of a required part; the error names column and row.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError

__all__ = [
    "BadValueError",
    "clear_hidden_nulls",
    "has_required_part",
    "map_entries",
    "null_array",
    "null_error",
    "validity_of",
    "visible_elements",
    "without_hidden_nulls",
]


class BadValueError(Exception):
    """A value that its column cannot hold; converted to InvalidDataError for the rows of a call.

    Args:
        path: dotted path of the column.
        reason: predicate of the sentence about the column.
        row: row in the array, counted from 0; None if unknown.
    """

    def __init__(self, path: str, reason: str, row: int | None) -> None:
        super().__init__(path, reason, row)
        self.path = path
        self.reason = reason
        self.row = row


def null_error(path: str, row: int) -> BadValueError:
    """The error for a null at ``row`` of a required column."""
    return BadValueError(path, "holds a null, but the table does not allow nulls there", row)


def without_hidden_nulls(rows: pa.Table) -> pa.Table:
    """The same rows, without hidden nulls in required parts, as Arrow's Parquet writer requires.

    Raises:
        InvalidDataError: a required part is null and its parent is not.
    """
    for number, field in enumerate(rows.schema):
        if has_required_part(field.type):
            try:
                cleared = [clear_hidden_nulls(chunk, field.name) for chunk in rows.column(number).chunks]
            except BadValueError as error:
                raise InvalidDataError(f"Column {error.path!r} {error.reason}.") from error
            rows = rows.set_column(number, field, pa.chunked_array(cleared, field.type))
    return rows


def clear_hidden_nulls(values: pa.Array, path: str) -> pa.Array:
    """The same n values, without any nulls in required parts.

    Args:
        values: values of any type.
        path: dotted path of the column, for messages.

    Raises:
        BadValueError: a required part is null and its parent is not.
    """
    if not _has_required_nulls(values):
        return values
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [
            _cleared_field(field, part, values, f"{path}.{field.name}")
            for field, part in zip(kind, values.flatten(), strict=True)
        ]
        return pa.Array.from_buffers(kind, len(values), [validity_of(values)], values.null_count, 0, parts)
    if pa.types.is_map(kind):
        offsets, entries = visible_elements(map_entries(values))
        keys, items = entries.flatten()
        cleared = [
            _cleared_elements(kind.key_field, keys, offsets, f"{path}.key"),
            _cleared_elements(kind.item_field, items, offsets, f"{path}.value"),
        ]
        child = pa.StructArray.from_arrays(cleared, fields=[kind.key_field, kind.item_field])
    else:
        offsets, elements = visible_elements(values)
        child = _cleared_elements(kind.value_field, elements, offsets, f"{path}.element")
    buffers = [validity_of(values), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(kind, len(values), buffers, values.null_count, 0, [child])


def null_array(count: int, kind: pa.DataType) -> pa.Array:
    """``count`` nulls of a type; its required parts mark no nulls."""
    return clear_hidden_nulls(pa.nulls(count, kind), "")


@lru_cache(4096)
def has_required_part(kind: pa.DataType) -> bool:
    """Whether a type has, at any depth, a part that allows no nulls."""
    return any(not field.nullable or has_required_part(field.type) for field in _parts_of(kind))


def visible_elements(values: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Offsets (n + 1, from 0) and the elements in their range, for n lists of any list layout."""
    if pa.types.is_list(values.type) and values.offset == 0 and values.null_count == 0:
        offsets = values.offsets.to_numpy()
        if offsets[0] == 0 and offsets[-1] == len(values.values):
            return offsets, values.values
    # No cast between layouts is used: Arrow's cast of list views with nulls produces invalid offsets.
    lengths = pc.if_else(pc.is_valid(values), pc.list_value_length(values), 0).to_numpy()
    bounds = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds, values.flatten()


def map_entries(values: pa.Array) -> pa.Array:
    """Maps as lists of their entries, without a copy."""
    entries = pa.list_(pa.field("entries", pa.struct([values.type.key_field, values.type.item_field])))
    buffers = values.buffers()[:2]
    return pa.Array.from_buffers(entries, len(values), buffers, values.null_count, values.offset, [values.values])


def validity_of(values: pa.Array) -> pa.Buffer | None:
    """The validity bits of an array, from its first row on; None without nulls."""
    if values.null_count == 0:
        return None
    return values.buffers()[0] if values.offset == 0 else pc.is_valid(values).buffers()[1]


def _parts_of(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) else []


def _has_required_nulls(values: pa.Array) -> bool:
    """Whether the array of a required part marks nulls, hidden or not."""
    kind = values.type
    if not has_required_part(kind):
        return False
    if pa.types.is_struct(kind):
        arrays = [values.field(number) for number in range(kind.num_fields)]
    else:
        arrays = [values.keys, values.items] if pa.types.is_map(kind) else [values.values]
    return any(
        (not field.nullable and array.null_count > 0) or _has_required_nulls(array)
        for field, array in zip(_parts_of(kind), arrays, strict=True)
    )


def _cleared_field(field: pa.Field, values: pa.Array, parents: pa.Array, path: str) -> pa.Array:
    """The values of a struct's field, without hidden nulls; ``values`` is null where a struct is null."""
    if not field.nullable and values.null_count > parents.null_count:
        raise null_error(path, pc.index(pc.and_(pc.is_null(values), pc.is_valid(parents)), True).as_py())
    cleared = clear_hidden_nulls(values, path)
    return cleared if field.nullable else _without_validity(cleared)


def _cleared_elements(field: pa.Field, values: pa.Array, offsets: np.ndarray, path: str) -> pa.Array:
    """The visible elements of lists, without hidden nulls; errors name the row of the list."""
    try:
        if not field.nullable and values.null_count:
            raise null_error(path, pc.index(pc.is_null(values), True).as_py())
        return clear_hidden_nulls(values, path)
    except BadValueError as error:
        error.row = None if error.row is None else int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise


def _without_validity(values: pa.Array) -> pa.Array:
    """The values without a validity bitmap; nulls become arbitrary values."""
    if not values.null_count:
        return values
    kind, count, buffers = values.type, len(values), values.buffers()
    if pa.types.is_struct(kind):
        fields = [values.field(number) for number in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, count, [None], 0, 0, fields)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return pa.Array.from_buffers(kind, count, [None, buffers[1]], 0, values.offset, [values.values])
    return pa.Array.from_buffers(kind, count, [None, *buffers[1:]], 0, values.offset)
