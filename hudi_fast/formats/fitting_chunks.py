"""Cut rows into chunks that fit stored columns, which are Arrow arrays with 32-bit offsets.

An array of texts, of binary values or of lists counts its bytes or elements with 32 bits: at most 2 GiB. Rows of a
caller may have more in one chunk: large types count with 64 bits, and views, dictionaries and runs repeat a value
without storing it twice. Arrow refuses to convert some such chunks, and converts others wrongly (views, in pyarrow 26).
So the rows are cut before they are converted::

    rows of a caller ─► in_fitting_chunks ─► slices, without a copy ─► converted one by one ─► joined_chunks
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import InvalidDataError
from hudi_fast.formats.required_fields import map_entries

__all__ = ["MAX_IN_CHUNK", "fitting_slices", "in_fitting_chunks", "joined_chunks"]

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
