"""Convert columns, lists, maps and structs to target types: the execution of a conform plan.

A :class:`Column` describes the source of a target field and its conversion; nested types hold the Columns of their
parts. A list, map or struct is split, its parts are converted, and it is rebuilt around the same validity and offset
buffers, so unchanged parts are not copied. Only visible parts are converted: elements outside a slice or below a null
cannot fail.

A value that does not fit raises :class:`BadValueError` with its row in the current array. Each outer level converts
this to its own row, so the message names the row of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.required_fields import (
    BadValueError,
    map_entries,
    null_array,
    null_error,
    validity_of,
    visible_elements,
)
from hudi_fast.schema.cast import Convert

__all__ = [
    "Column",
    "all_null",
    "convert_encoded",
    "convert_list",
    "convert_map",
    "convert_struct",
    "convert_vectors",
    "fill_column",
]


@dataclass(frozen=True, slots=True)
class Column:
    """One target field and its source.

    Attributes:
        path: dotted path of the field, for messages.
        kind: the target type.
        required: whether a null is an error.
        position: position of the source field among its siblings; -1 without source: the field is filled with nulls.
        convert: the conversion; None if the source has the target's type.
    """

    path: str
    kind: pa.DataType
    required: bool
    position: int
    convert: Convert | None


def fill_column(column: Column, values: pa.Array | None, length: int) -> pa.Array:
    """Convert ``values`` to the column's target type; without values (``position`` -1) return ``length`` nulls.

    Ignores ``required``: only the caller knows which nulls are visible.

    Raises:
        BadValueError: a value does not fit the type.
    """
    if values is None:
        return null_array(length, column.kind)
    if column.convert is None:
        return values
    try:
        return column.convert(values)
    except pa.ArrowInvalid as error:
        raise BadValueError(column.path, f"holds a value that does not fit {column.kind}: {error}", None) from error


def all_null(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert an array of Arrow's null type to nulls of a type."""
    return null_array(len(values), target)


def convert_encoded(values: pa.Array, inner: Convert | None) -> pa.Array:
    """Decode a dictionary or run-end encoded array, then convert it."""
    plain = _dictionary_decode(values) if pa.types.is_dictionary(values.type) else pc.run_end_decode(values)
    return plain if inner is None else inner(plain)


def _dictionary_decode(values: pa.DictionaryArray) -> pa.Array:
    laid_out = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(values.type.value_type)
    if laid_out is not None:  # Arrow cannot decode dictionaries of views
        values = pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(laid_out))
    return values.dictionary_decode()


def convert_struct(values: pa.Array, columns: Sequence[Column], target: pa.DataType) -> pa.Array:
    """A struct array with the fields that ``columns`` define; n structs in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    children = values.flatten()
    made = []
    for column in columns:
        child = fill_column(column, children[column.position] if column.position >= 0 else None, len(values))
        # a null struct shows as a null in each of its fields
        if column.required and child.null_count > values.null_count:
            hole = pc.and_(pc.is_null(child), pc.is_valid(values))
            raise null_error(column.path, pc.index(hole, True).as_py())
        made.append(child)
    return pa.Array.from_buffers(target, len(values), [validity_of(values)], values.null_count, 0, made)


def convert_list(values: pa.Array, element: Column, target: pa.DataType) -> pa.Array:
    """A list array with converted elements, from any kind of list array; n lists in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    offsets, elements = _visible_elements(values, element.path)
    made = _fill_elements(element, elements, offsets)
    return pa.Array.from_buffers(
        target, len(values), [validity_of(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def convert_vectors(values: pa.Array, path: str, target: pa.DataType) -> pa.Array:
    """Vectors from lists of numbers, of any list layout; n lists in, n vectors out."""
    present = values.is_valid().to_numpy(zero_copy_only=False)
    lengths = pc.fill_null(pc.list_value_length(values), target.list_size).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(lengths != target.list_size)
    if len(wrong):
        row = int(wrong[0])
        raise BadValueError(path, f"has a vector of {lengths[row]} numbers; expected {target.list_size}", row)
    flat = values.drop_null().flatten()
    if flat.null_count:
        row = int(np.flatnonzero(present)[pc.index(pc.is_null(flat), True).as_py() // target.list_size])
        raise BadValueError(path, "has a null among the numbers of a vector", row)
    try:
        numbers = pc.cast(flat, target.value_type, safe=not pa.types.is_floating(target.value_type))
    except pa.ArrowInvalid as error:
        raise BadValueError(path, f"has numbers that are no {target.value_type}: {error}", None) from error
    if not present.all():
        filled = np.zeros((len(values), target.list_size), target.value_type.to_pandas_dtype())
        filled[present] = numbers.to_numpy(zero_copy_only=False).reshape(-1, target.list_size)
        numbers = pa.array(filled.reshape(-1))
    return pa.Array.from_buffers(target, len(values), [validity_of(values)], values.null_count, 0, [numbers])


def convert_map(values: pa.Array, key: Column, value: Column, target: pa.DataType) -> pa.Array:
    """A map array with converted keys and values; n maps in, n out."""
    if len(values) == 0:
        return pa.array([], target)
    offsets, entries = _visible_elements(map_entries(values), value.path)
    keys, items = entries.flatten()
    parts = [_fill_elements(key, keys, offsets), _fill_elements(value, items, offsets)]
    made = pa.StructArray.from_arrays(parts, fields=[target.key_field, target.item_field])
    return pa.Array.from_buffers(
        target, len(values), [validity_of(values), pa.py_buffer(offsets)], values.null_count, 0, [made]
    )


def _fill_elements(column: Column, elements: pa.Array, offsets: np.ndarray) -> pa.Array:
    """Convert the elements of n lists; errors name the row of the list."""
    try:
        made = fill_column(column, elements, len(elements))
        if column.required and made.null_count:
            raise null_error(column.path, pc.index(pc.is_null(made), True).as_py())
    except BadValueError as error:
        if error.row is not None:
            error.row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise
    return made


def _visible_elements(values: pa.Array, path: str) -> tuple[np.ndarray, pa.Array]:
    """Offsets (int32, n + 1, from 0) and the elements in their range, for n lists of any list layout."""
    offsets, elements = visible_elements(values)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise BadValueError(path, f"has {offsets[-1]} elements in one batch: write smaller batches", None)
    return offsets.astype(np.int32, copy=False), elements
