"""Limits of stored columns: types, required fields, sizes of chunks.

Limits of the types of a table: a read accepts every type that a write accepts.

A schema in a file is untrusted, so a read bounds the types that it describes (:mod:`hudi_fast.formats.avro.schema`). A
write checks the same bounds before it stores a schema: :func:`check_type_limits`.

Nulls in required parts of nested columns: fields of structs, elements of lists, keys and values of maps.

A required part may be null only where its parent is null. Such a *hidden* null is not a value. But taking, filling and
decoding rows marks it in the validity bitmap of the part, and Arrow's Parquet writer refuses any null in a required
part::

    struct<no: int not null>      s    {no: 5}   null               validity of s   1 0
                                  no   5         (hidden)           validity of no  1 0  ─►  none

:func:`clear_hidden_nulls` removes these marks from an array, and :func:`without_hidden_nulls` from the rows of a file.
Both refuse any other null of a required part; the error names column and row.

Cut rows into chunks that fit stored columns, which are Arrow arrays with 32-bit offsets.

An array of texts, of binary values or of lists counts its bytes or elements with 32 bits: at most 2 GiB. Rows of a
caller may have more in one chunk: large types count with 64 bits, and views, dictionaries and runs repeat a value
without storing it twice. Arrow refuses to convert some such chunks, and converts others wrongly (views, in pyarrow 26).
So the rows are cut before they are converted::

    rows of a caller ─► in_fitting_chunks ─► slices, without a copy ─► converted one by one ─► joined_chunks
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError, UnsupportedFeatureError

__all__ = [
    "MAX_IN_CHUNK",
    "MAX_LEVELS",
    "MAX_PARTS",
    "MAX_STORED_LEVELS",
    "MAX_UNSTORED",
    "BadValueError",
    "check_type_limits",
    "clear_hidden_nulls",
    "fitting_slices",
    "has_required_part",
    "in_fitting_chunks",
    "joined_chunks",
    "map_entries",
    "null_array",
    "null_error",
    "validity_of",
    "visible_elements",
    "without_hidden_nulls",
]

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


MAX_IN_CHUNK = 2**31 - 1
"""Maximum bytes of texts, or elements of lists, in an array with 32-bit offsets."""

Sizes = npt.NDArray[np.int64]

_VIEWS = frozenset({pa.string_view(), pa.binary_view()})
_LARGE = frozenset({pa.large_string(), pa.large_binary()})
_PLAIN = frozenset({pa.string(), pa.binary()})


def in_fitting_chunks(rows: pa.Table, limit: int = MAX_IN_CHUNK) -> pa.Table:
    """The same rows; no column of a chunk has more than ``limit`` bytes or elements once it is stored.

    Args:
        rows: rows of a caller, of any types.
        limit: see :data:`MAX_IN_CHUNK`.

    Raises:
        InvalidDataError: one value has more bytes or elements.
    """
    if not any(map(_may_repeat, rows.schema.types)):
        return rows
    whole, slices, first_row = rows.to_batches(), list[pa.RecordBatch](), 0
    for batch in whole:
        slices += fitting_slices(batch, limit, first_row)
        first_row += batch.num_rows
    return pa.Table.from_batches(slices, rows.schema) if len(slices) > len(whole) else rows


def fitting_slices(batch: pa.RecordBatch, limit: int = MAX_IN_CHUNK, first_row: int = 0) -> Iterator[pa.RecordBatch]:
    """The slices of a batch for :func:`in_fitting_chunks`, without a copy.

    Args:
        batch: batch of a caller, of any types.
        limit: see :data:`MAX_IN_CHUNK`.
        first_row: number of the first row, for messages.

    Raises:
        InvalidDataError: one value has more bytes or elements.
    """
    totals = [
        (name, np.concatenate([[0], np.cumsum(sizes)]))
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if _may_repeat(column.type)
        for sizes in _sizes(column)
    ]
    totals = [(name, total) for name, total in totals if total[-1] > limit]
    start = 0
    while totals and start < batch.num_rows:
        ends = [(int(np.searchsorted(total, total[start] + limit, "right")) - 1, name) for name, total in totals]
        end, name = min(ends)
        if end == start:
            raise InvalidDataError(
                f"Column {name!r} has a value of more than {limit:,} bytes or elements in row {first_row + start}, "
                "counted from 0. Split the value, or keep it in a file of its own and store its path."
            )
        yield batch.slice(start, end - start)
        start = end
    if not totals:
        yield batch


def joined_chunks(rows: pa.Table, limit: int = MAX_IN_CHUNK) -> pa.Table:
    """The same rows, each column in as few chunks as possible.

    Args:
        rows: rows of storable types, or of dictionaries of them.
        limit: see :data:`MAX_IN_CHUNK`.
    """
    if rows.nbytes <= limit:
        return rows.combine_chunks()
    columns = [pa.chunked_array(_joined(column, limit), column.type) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _joined(column: pa.ChunkedArray, limit: int) -> Iterator[pa.Array]:
    held, total = list[pa.Array](), np.zeros(0, np.int64)
    for chunk in column.chunks:
        sizes = np.array([part.sum() for part in _sizes(chunk)], np.int64)
        if held and (total + sizes > limit).any():
            yield _joint(held)
            held = []
        total = total + sizes if held else sizes
        held.append(chunk)
    if held:
        yield _joint(held)


def _joint(chunks: list[pa.Array]) -> pa.Array:
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


# ---- sizes


def _may_repeat(kind: pa.DataType) -> bool:
    """Whether stored values may have more bytes or elements than 32-bit offsets of the type can count."""
    waiting = [kind]
    while waiting:
        one = waiting.pop()
        if one in _VIEWS or one in _LARGE or pa.types.is_dictionary(one) or pa.types.is_run_end_encoded(one):
            return True
        if _is_any_list(one) and not pa.types.is_list(one):
            return True
        if pa.types.is_nested(one):
            waiting += [one.field(at).type for at in range(one.num_fields)]
    return False


def _sizes(values: pa.Array) -> list[Sizes]:
    """int64[n] for each part of n values that has offsets, such as texts in lists: bytes or elements of each value."""
    kind = values.type
    if kind in _VIEWS:
        return [_view_lengths(values)]
    if kind in _LARGE or kind in _PLAIN:
        return [_filled(pc.binary_length(values))]
    if pa.types.is_dictionary(kind):
        codes = _filled(values.indices)
        return [np.append(part, 0)[np.where(values.is_valid(), codes, -1)] for part in _sizes(values.dictionary)]
    if pa.types.is_run_end_encoded(kind):
        numbers = pa.array(np.arange(len(values.values)))
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, numbers).slice(values.offset, len(values))
        return [part[pc.run_end_decode(runs).to_numpy()] for part in _sizes(values.values)]
    if pa.types.is_struct(kind):
        return [part for child in values.flatten() for part in _sizes(child)]
    if pa.types.is_map(kind):
        return _list_sizes(map_entries(values))
    return _list_sizes(values) if _is_any_list(kind) else []  # unions are refused elsewhere, by their type


def _list_sizes(values: pa.Array) -> list[Sizes]:
    lengths = _filled(pc.list_value_length(values))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    parts = _sizes(values.flatten())
    return [lengths, *(np.diff(np.concatenate([[0], np.cumsum(part)])[bounds]) for part in parts)]


def _view_lengths(values: pa.Array) -> Sizes:
    views = values.buffers()[1]
    if views is None:
        return np.zeros(len(values), np.int64)
    lengths = np.frombuffer(views, np.int32).reshape(-1, 4)[values.offset : values.offset + len(values), 0]
    return np.where(values.is_valid(), lengths, 0).astype(np.int64)


def _filled(numbers: pa.Array) -> Sizes:
    return np.asarray(pc.fill_null(numbers, 0)).astype(np.int64, copy=False)


def _is_any_list(kind: pa.DataType) -> bool:
    return pa.types.is_nested(kind) and hasattr(kind, "value_field")
