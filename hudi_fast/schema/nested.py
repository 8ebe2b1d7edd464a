"""Converting columns, lists, maps and structs to target types: what a conform plan runs.

Design: a :class:`Column` says where a target field comes from and holds the function that converts it; nested types
hold the Columns of their parts. A list, map or struct is taken apart, its parts are converted, and it is put together
again around the same validity and offset buffers: unchanged parts are not copied. Only visible parts are looked at:
elements outside a slice or below a null cannot fail.

A value that cannot stay raises :class:`BadValueError` with the row in the array at hand; each level up turns that
into its own row, so that the message can name the row of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.schema.cast import Convert

__all__ = [
    "BadValueError",
    "Column",
    "all_null",
    "convert_encoded",
    "convert_list",
    "convert_map",
    "convert_struct",
    "fill_column",
    "null_refusal",
]


@dataclass(frozen=True, slots=True)
class Column:
    """One target field and how to get it.

    Attributes:
        path: dotted, for messages.
        kind: the target type.
        required: whether a null is an error.
        position: of the source field among its siblings; -1 when there is none, and nulls are put in.
        convert: None when the source has the target's type.
    """

    path: str
    kind: pa.DataType
    required: bool
    position: int
    convert: Convert | None


class BadValueError(Exception):
    """A value cannot be stored in its target column; turned into InvalidDataError where the batch is known.

    Args:
        path: dotted path of the column.
        reason: the rest of the sentence that begins with the column.
        row: in the array that was converted, counted from 0; None when not known.
    """

    def __init__(self, path: str, reason: str, row: int | None) -> None:
        super().__init__(path, reason, row)
        self.path = path
        self.reason = reason
        self.row = row


def fill_column(column: Column, values: pa.Array | None, length: int) -> pa.Array:
    """``values`` as the column's target type; ``length`` nulls when there are none (``position`` -1).

    Does not look at ``required``: only the caller knows which nulls are visible.

    Raises:
        BadValueError: a value does not fit the type.
    """
    if values is None:
        return pa.nulls(length, column.kind)
    if column.convert is None:
        return values
    try:
        return column.convert(values)
    except pa.ArrowInvalid as error:
        raise BadValueError(column.path, f"holds a value that does not fit {column.kind}: {error}", None) from error


def null_refusal(column: Column, row: int) -> BadValueError:
    """The error for a null at ``row`` of a required column."""
    return BadValueError(column.path, "holds a null, and the table takes none there", row)


def all_null(values: pa.Array, target: pa.DataType) -> pa.Array:
    """As many nulls of a type as ``values``, an array of Arrow's null type, is long."""
    return pa.nulls(len(values), target)


def convert_encoded(values: pa.Array, inner: Convert | None) -> pa.Array:
    """Decode a dictionary or run-end encoded array, then convert the plain one."""
    plain = _dictionary_decode(values) if pa.types.is_dictionary(values.type) else pc.run_end_decode(values)
    return plain if inner is None else inner(plain)


def _dictionary_decode(values: pa.DictionaryArray) -> pa.Array:
    laid_out = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(values.type.value_type)
    if laid_out is not None:  # Arrow takes nothing from views
        values = pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(laid_out))
    return values.dictionary_decode()


def convert_struct(values: pa.Array, columns: Sequence[Column], target: pa.DataType) -> pa.Array:
    """A struct array with the fields that ``columns`` say; n structs in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    children = values.flatten()
    made = []
    for column in columns:
        child = fill_column(column, children[column.position] if column.position >= 0 else None, len(values))
        # a null struct shows as a null in each of its fields
        if column.required and child.null_count > values.null_count:
            hole = pc.and_(pc.is_null(child), pc.is_valid(values))
            raise null_refusal(column, pc.index(hole, True).as_py())
        made.append(child)
    return pa.Array.from_buffers(target, len(values), [_validity(values)], values.null_count, 0, made)


def convert_list(values: pa.Array, element: Column, target: pa.DataType) -> pa.Array:
    """A list array with converted elements, from any kind of list array; n lists in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    offsets, elements = _visible_elements(values, element.path)
    made = _fill_elements(element, elements, offsets)
    return pa.Array.from_buffers(
        target, len(values), [_validity(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def convert_map(values: pa.Array, key: Column, value: Column, target: pa.DataType) -> pa.Array:
    """A map array with converted keys and values; n maps in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    entries_type = pa.struct([values.type.key_field, values.type.item_field])
    as_list = pa.Array.from_buffers(
        pa.list_(pa.field("entries", entries_type)),
        len(values),
        values.buffers()[:2],
        values.null_count,
        values.offset,
        [values.values],
    )
    offsets, entries = _visible_elements(as_list, value.path)
    keys, items = entries.flatten()
    parts = [_fill_elements(key, keys, offsets), _fill_elements(value, items, offsets)]
    made = pa.StructArray.from_arrays(parts, fields=[target.key_field, target.item_field])
    return pa.Array.from_buffers(
        target, len(values), [_validity(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def _fill_elements(column: Column, elements: pa.Array, offsets: np.ndarray) -> pa.Array:
    """Convert the elements of n lists; an error leaves with the row of the list."""
    try:
        made = fill_column(column, elements, len(elements))
        if column.required and made.null_count:
            raise null_refusal(column, pc.index(pc.is_null(made), True).as_py())
    except BadValueError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise
    return made


def _visible_elements(values: pa.Array, path: str) -> tuple[np.ndarray, pa.Array]:
    """Offsets (int32, n + 1, from 0) and the elements they count, for n lists in an array of any list layout."""
    if pa.types.is_list(values.type) and values.offset == 0 and values.null_count == 0:
        offsets = values.offsets.to_numpy()
        if offsets[0] == 0 and offsets[-1] == len(values.values):
            return offsets, values.values
    # Not by a cast between layouts: Arrow's cast of list views with nulls makes invalid offsets.
    lengths = pc.if_else(pc.is_valid(values), pc.list_value_length(values), 0).to_numpy()
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise BadValueError(path, f"has {offsets[-1]} elements in one batch: write smaller batches", None)
    return offsets.astype(np.int32), values.flatten()


def _validity(values: pa.Array) -> pa.Buffer | None:
    """The validity bits of an array, from its first row on; None when all rows are valid."""
    if values.null_count == 0:
        return None
    return values.buffers()[0] if values.offset == 0 else pc.is_valid(values).buffers()[1]
