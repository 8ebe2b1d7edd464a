"""The order of a group's rows: by columns, curves or buckets.

Computes the order of a group's rows: sort columns in, row numbers out.

::

    LINEAR           words of the first column, then of the second ... ─────────────────────────────┐
    ZORDER, HILBERT  a coordinate for each column ─► position on the curve ─► words ────────────────┴─► radix sort
                         DIRECT  its value, the range of the column spread over 64 bits
                         SAMPLE  number of smaller values, in as many steps as the sample has rows

``SAMPLE`` computes exact ranks instead of sampling, because the words of all rows are in memory anyway.

Source: ``SpaceCurveSortingHelper``, ``RangeSampleSort`` (Hudi 1.2.0), whose curves use stored values.

Clustering of tables with a simple bucket index: rows are sorted within their buckets, each of which stays one file.

::

    plan       one bucket to a group, one file group each; needs sort columns
    rewrite    bucket by bucket, also where a plan of Apache Hudi has several to a group ─► <bucket number>-<new id>-0

A bucket index finds rows only in the file group whose id begins with the number of their bucket. The new file group of
a bucket has the same number, so index and writers of both libraries find it; the old one is replaced.

Source: ``BucketBulkInsertDataInternalWriterHelper``, ``BucketIdentifier`` (Hudi 1.2.0).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.formats.varlen import VarlenBuffers, single_chunk, varlen_buffers
from hudi_fast.index.buckets import bucket_file_id, bucket_number, shared_bucket_file_id
from hudi_fast.kernels.sorting import byte_words, common_prefix, hilbert_values, radix_order, z_values
from hudi_fast.schema.names import dotted_values, find_dotted
from hudi_fast.services.clustering.cluster_work import Ordering
from hudi_fast.view.slices import FileSlice

__all__ = [
    "are_buckets",
    "coordinate",
    "is_sortable",
    "new_bucket_prefix",
    "one_bucket_to_a_group",
    "order_rows",
    "places",
    "require_buckets",
    "require_sortable",
    "sort_planes",
    "sort_roots",
    "sort_values",
]

Rows = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_ONE_CURVE_BITS = 32
"""Bits of each coordinate that the Hilbert curve uses for several columns; finer cells make no difference."""


def require_sortable(schema: pa.Schema, columns: Sequence[str]) -> None:
    """Refuse a plan that could not be executed.

    Args:
        schema: of the rows.
        columns: sort columns, dotted for nested ones.

    Raises:
        ConfigError: the rows have no such column.
        UnsupportedFeatureError: the type of a column is not sortable.
    """
    for column in columns:
        kind = _found(schema, column)[1]
        if not is_sortable(kind):
            raise UnsupportedFeatureError(
                f"Rows cannot be sorted by {column!r}, whose type is {kind}. Choose other columns for "
                "hoodie.clustering.plan.strategy.sort.columns."
            )


def sort_roots(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The top-level columns that contain the sort columns.

    Args:
        schema: of the rows.
        columns: sort columns, dotted for nested ones.

    Raises:
        ConfigError: the rows have no such column.
    """
    names = [_found(schema, column)[0] for column in columns]
    return pa.schema([schema.field(name) for name in dict.fromkeys(names)])


def sort_values(rows: pa.Table, columns: Sequence[str]) -> list[pa.ChunkedArray]:
    """The values of the sort columns, n each; null for a null parent.

    Raises:
        ConfigError: the rows have no such column.
    """
    for column in columns:
        _found(rows.schema, column)
    return [dotted_values(rows, column) for column in columns]


def order_rows(values: Sequence[pa.Array | pa.ChunkedArray], ordering: Ordering) -> Rows:
    """int64[n]: row numbers in the order of the new files; rows with equal values keep their order.

    Args:
        values: of the sort columns, n each.
        ordering: how to order by them.

    Raises:
        UnsupportedFeatureError: the type of a column is not sortable.
    """
    if ordering.curve == "LINEAR" or len(values) == 1:
        planes = [plane for column in values for plane in sort_planes(column)]
        return radix_order(np.concatenate(planes), len(planes))
    sampled = ordering.build == "SAMPLE"
    coordinates = [_sampled(column, ordering.sample_rows) if sampled else coordinate(column) for column in values]
    joined, count = np.concatenate(coordinates), len(coordinates)
    if ordering.curve == "HILBERT":
        return radix_order(hilbert_values(joined, count, _ONE_CURVE_BITS), count)
    return radix_order(z_values(joined, count), count)


def _sampled(values: pa.Array | pa.ChunkedArray, sample_rows: int) -> Words:
    """Which of ``sample_rows`` quantiles each value is in, spread over 64 bits."""
    found = places(values)
    steps = max(min(sample_rows, len(found)), 1)
    step = found * np.uint64(steps) // np.uint64(max(len(found), 1))
    return step << np.uint64(64 - steps.bit_length())


def _found(schema: pa.Schema, column: str) -> tuple[str, pa.DataType]:
    """The top-level column of a sort column, and the type of its values."""
    found = find_dotted(schema, column)
    if found is None:
        raise ConfigError(
            f"There is no column {column!r} to sort by; the table has {', '.join(schema.names)}. Set "
            "hoodie.clustering.plan.strategy.sort.columns to columns of the table, dotted within structs. A pending "
            "clustering with this column can be rolled back."
        )
    return found


# ---- columns as uint64 words that sort like their values
#
# ::
#
#     integers, dates, times    two's complement, sign bit flipped ─────────────────────────┐
#     floating-point numbers    bits, negative ones inverted; -0.0 equals 0.0, NaN is last  ├─► uint64 planes, most
#     decimals                  one word, or two beyond 18 digits ──────────────────────────┤   significant first
#     strings, bytes            rank among all values, by their bytes ──────────────────────┘
#     nulls                     before all values, as in Spark
#
# A plane holds one word for each row. Strings are ranked eight bytes at a time, after their common prefix: rows that
# differ in the first eight bytes are done, the others are sorted by the next eight.

Plane = tuple[Words, ...]

_SIGN = np.uint64(1 << 63)
_LARGEST = (1 << 64) - 1
_WORD = 8
_ONE_WORD_DIGITS = 18
_LONG_TEXT = 512
"""If a string has more bytes than this after the common prefix, strings are compared as a whole."""

_ONE_ARRAY = (1 << 31) - 1
"""Most bytes that 32-bit offsets of an array can address."""

_SAMPLE = 4096
_FEW = 4


def is_sortable(kind: pa.DataType) -> bool:
    """Whether rows can be sorted by columns of this type."""
    if pa.types.is_dictionary(kind):
        return is_sortable(kind.value_type)
    return bool(
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
        or _is_text(kind)
    )


def sort_planes(values: pa.Array | pa.ChunkedArray, one_array: int = _ONE_ARRAY) -> list[Words]:
    """Words that sort as the values do, nulls first.

    Args:
        values: n values of a sortable type.
        one_array: bytes of text that fit into one array; Arrow ranks larger columns in place.

    Returns:
        uint64[n] each; a column with nulls has a first plane that marks them.

    Raises:
        UnsupportedFeatureError: the type is not sortable.
    """
    if _is_text(values.type) and values.nbytes > one_array:
        ranks = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.uint64)  # from 1 on; nulls have the last
        return [np.where(pc.is_valid(values).to_numpy(), ranks, np.uint64(0))]
    array = _plain(values)
    planes = _value_planes(array)
    if not array.null_count:
        return planes
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return [valid.astype(np.uint64), *(np.where(valid, plane, np.uint64(0)) for plane in planes)]


def places(values: pa.Array | pa.ChunkedArray, one_array: int = _ONE_ARRAY) -> Words:
    """uint64[n]: how many of the n values are smaller than each; nulls are the smallest.

    Args:
        values: n values of a sortable type.
        one_array: as for :func:`sort_planes`.

    Raises:
        UnsupportedFeatureError: the type is not sortable.
    """
    planes = sort_planes(values, one_array)
    order = radix_order(np.concatenate(planes), len(planes))
    return _ranks(order, _steps(planes, order))


def coordinate(values: pa.Array | pa.ChunkedArray, one_array: int = _ONE_ARRAY) -> Words:
    """One word per value, in an order consistent with the values, spread over 64 bits: for space-filling curves.

    Decimals of more than 18 digits count as doubles, and strings by eight bytes after their common prefix. Nulls are
    the smallest.

    Args:
        values: n values of a sortable type.
        one_array: bytes of text that fit into one array; larger columns use the rank among all values.

    Raises:
        UnsupportedFeatureError: the type is not sortable.
    """
    if _is_text(values.type) and values.nbytes > one_array:
        return places(values, one_array) * np.uint64(_LARGEST // max(len(values), 1))
    array = _plain(values)
    if pa.types.is_decimal(array.type) and array.type.precision > _ONE_WORD_DIGITS:
        array = array.cast(pa.float64())
    if _is_text(array.type):
        known = array.drop_null()
        buffers = varlen_buffers(array)
        skip = common_prefix(*varlen_buffers(known))
        words, _ = byte_words(*buffers, np.arange(len(array), dtype=np.int64), skip)
    else:
        words = _value_planes(array)[0]
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if not valid.any():
        return np.zeros(len(array), np.uint64)
    known_words = words[valid] if array.null_count else words
    low, high = int(known_words.min()), int(known_words.max())
    spread = (words - np.uint64(low)) * np.uint64(_LARGEST // max(high - low, 1))
    return np.where(valid, spread, np.uint64(0)) if array.null_count else spread


# ---- values


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without dictionary encoding, cast to one of few types."""
    array = single_chunk(values)
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
        kind = array.type
    if not is_sortable(kind):
        raise UnsupportedFeatureError(f"Rows cannot be sorted by a column of type {kind}; choose other columns.")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if _is_text(kind):
        return array.cast(pa.binary())
    if pa.types.is_decimal(kind):
        return array if pa.types.is_decimal128(kind) else array.cast(pa.decimal128(min(kind.precision, 38), kind.scale))
    return array


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _value_planes(array: pa.Array) -> list[Words]:
    """The values' words; undefined at nulls."""
    kind = array.type
    if _is_text(kind):
        return [_text_places(array)]
    if pa.types.is_boolean(kind):
        return [array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)]
    if pa.types.is_decimal(kind):
        low, high = _items(array, "u8").astype(np.uint64).reshape(-1, 2).T
        return [np.ascontiguousarray(low ^ _SIGN)] if kind.precision <= _ONE_WORD_DIGITS else [high ^ _SIGN, low.copy()]
    if pa.types.is_floating(kind):
        numbers = _items(array, f"f{kind.bit_width // 8}").astype(np.float64)
        bits = (np.where(np.isnan(numbers), np.nan, numbers) + 0.0).view(np.uint64)
        return [np.where(bits >> np.uint64(63), ~bits, bits | _SIGN)]
    if pa.types.is_unsigned_integer(kind):
        return [_items(array, f"u{kind.bit_width // 8}").astype(np.uint64)]
    signed = _items(array, f"i{kind.bit_width // 8}").astype(np.int64)
    return [signed.view(np.uint64) ^ _SIGN]


def _items(array: pa.Array, code: str) -> npt.NDArray[np.generic]:
    """The values' buffer, without a copy."""
    kind = np.dtype(code)
    width = array.type.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(0, kind)
    return np.frombuffer(buffer, np.uint8, len(array) * width, array.offset * width).view(kind)


# ---- strings


def _text_places(array: pa.Array) -> Words:
    """How many of the values are smaller than each; undefined at nulls."""
    sample = array.slice(0, _SAMPLE)
    if len(array) > _SAMPLE and len(sample.unique()) * _FEW < len(sample):
        encoded = array.dictionary_encode()
        codes = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        ranks = _text_places(encoded.dictionary)
        return np.asarray(ranks[codes]) if len(ranks) else np.zeros(len(array), np.uint64)
    known = array.drop_null() if array.null_count else array
    buffers = varlen_buffers(known)
    skip = common_prefix(*buffers)
    longest = int(np.diff(buffers.offsets).max(initial=0))
    if longest - skip > _LONG_TEXT:
        ranks = pc.rank(known.cast(pa.binary()), tiebreaker="dense").to_numpy().astype(np.uint64)
    else:
        ranks = _refined_places(buffers, len(known), skip)
    if len(known) == len(array):
        return ranks
    found = np.zeros(len(array), np.uint64)
    found[array.is_valid().to_numpy(zero_copy_only=False)] = ranks
    return found


def _refined_places(buffers: VarlenBuffers, count: int, skip: int) -> Words:
    words, lengths = byte_words(*buffers, np.arange(count, dtype=np.int64), skip)
    order = radix_order(np.concatenate([words, lengths]), 2)
    steps = _steps([words, lengths], order)
    tied = _tied(steps, lengths[order] == _WORD)
    while len(tied):
        skip += _WORD
        rows = order[tied]
        run = np.cumsum(steps)[tied].astype(np.uint64)
        words, lengths = byte_words(*buffers, rows, skip)
        again = radix_order(np.concatenate([run, words, lengths]), 3)
        order[tied] = rows[again]
        steps[tied] |= _steps([run, words, lengths], again)
        goes_on = np.zeros(count, np.bool_)
        goes_on[tied] = lengths[again] == _WORD
        tied = _tied(steps, goes_on)
    return _ranks(order, steps)


def _steps(planes: list[Words], order: Rows) -> npt.NDArray[np.bool_]:
    """bool[n]: positions in sorted order where a larger value begins; True for the first."""
    steps = np.zeros(len(order), np.bool_)
    steps[:1] = True
    for plane in planes:
        ordered = plane[order]
        steps[1:] |= ordered[1:] != ordered[:-1]
    return steps


def _tied(steps: npt.NDArray[np.bool_], goes_on: npt.NDArray[np.bool_]) -> Rows:
    """Positions whose value equals a neighbour's so far, and has more bytes."""
    follows = np.append(~steps[1:], False) if len(steps) else steps
    return np.flatnonzero((~steps | follows) & goes_on)


def _ranks(order: Rows, steps: npt.NDArray[np.bool_]) -> Words:
    starts = np.maximum.accumulate(np.where(steps, np.arange(len(order)), 0))
    ranks = np.empty(len(order), np.uint64)
    ranks[order] = starts.astype(np.uint64)
    return ranks


_MANY = 10_000
"""Ids of other file groups rarely begin with eight digits, and almost never with a number below this one."""

_Groups = list[tuple[tuple[FileSlice, ...], int]]


def are_buckets(file_ids: Sequence[str], index_type: str) -> bool:
    """Whether file groups are buckets of a simple bucket index, by their ids: no property of a table says so.

    Args:
        file_ids: of the file groups of a plan.
        index_type: ``hoodie.index.type`` of the call.
    """
    numbers = [number for one in file_ids if (number := bucket_number(one)) is not None]
    return bool(file_ids) and (index_type == "BUCKET" or (len(numbers) == len(file_ids) and min(numbers) < _MANY))


def require_buckets(where: str, file_ids: Iterable[str]) -> None:
    """Refuse file groups whose buckets cannot get new file groups.

    Args:
        where: the table.
        file_ids: its file groups.

    Raises:
        ConfigError: a file group is not a bucket.
        UnsupportedFeatureError: a bucket's file group has the fixed id that non-blocking writers use.
    """
    for one in file_ids:
        number = bucket_number(one)
        if number is None:
            raise ConfigError(
                f"{where} has the file group {one}, which is no bucket. Give the index that the table was written with "
                "(hoodie.index.type)."
            )
        if one == shared_bucket_file_id(number):
            raise UnsupportedFeatureError(
                f"{where} has buckets of non-blocking concurrent writers, for example the file group {one}. All of "
                "them give a bucket that id, so a bucket that was clustered and then emptied could not be created "
                "again. Compact the table instead."
            )


def one_bucket_to_a_group(where: str, groups: _Groups, options: ClusteringOptions) -> _Groups:
    """Split groups so that each holds one bucket, which becomes one file group.

    Args:
        where: the table.
        groups: file slices, and the number of file groups that they become.
        options: the sort columns.

    Raises:
        ConfigError: a file group is not a bucket.
        UnsupportedFeatureError: there is no sort column, or there are buckets of non-blocking writers.
    """
    slices = [one for group, _ in groups for one in group]
    if not options.sort_columns:
        raise UnsupportedFeatureError(
            f"{where} has a bucket index, for example the file group {slices[0].file_id}: its rows cannot move to "
            "other file groups, because the index would not find them. Name columns in "
            "hoodie.clustering.plan.strategy.sort.columns to sort the rows of each bucket; compact the table instead; "
            "or use hoodie.index.bucket.engine=CONSISTENT_HASHING, whose buckets split and merge."
        )
    require_buckets(where, (one.file_id for one in slices))
    return [((one,), 1) for one in slices]


def new_bucket_prefix(file_id: str) -> str:
    """The id of a new file group for the bucket of a file group, without its last part ``-0``."""
    number = bucket_number(file_id)
    assert number is not None, "the plan was checked"
    return bucket_file_id(number, str(uuid.uuid4())).rpartition("-")[0]
