"""Column statistics of the metadata table as bounds of file slices and of partitions.

::

    columns ─► keys or key prefixes ─► metadata read ─► flat statistics of files
        ─► reliable bounds, in the table's types ─► one row per file ─► one row per slice

A bound that may be wrong becomes unknown. This holds for

* a file without a record, and a column without minimum and maximum: it may be all null, or have no statistics;
* a file whose statistics do not count nulls: it has no statistics, and zero for both bounds in Hudi 0.14 to 1.0;
* floating-point bounds that are NaN, or with zero between them: a Parquet file drops its bounds when one is NaN. Hudi
  then uses zero for both and merges them with the bounds of other files. So the remaining bounds exclude NaN;
* bytes, also of columns that are now text: Hudi compares them as signed numbers;
* strings for which the orders of UTF-16 and UTF-8 differ at the bound;
* long maximum strings, which may be truncated;
* strings with nulls where files or large row groups were merged: values without statistics count as nulls there;
* columns that were renamed, retyped or dropped since the file was written, and columns that now have their names.

A slice with log files gets the union of its files' bounds: a merged row may take one column from the base file and
another from the log, so a single file proves nothing about two columns. Sources: ``ParquetUtils``,
``HoodieColumnRangeMetadata`` (Hudi 1.2.0); ``Statistics`` of Apache Parquet's Java library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.expressions.conditions import Column
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.index.tagging import RECORD_KEY
from hudi_fast.metadata_table.keys import column_hash, column_stats_keys, partition_hash
from hudi_fast.metadata_table.read import lookup, prefix
from hudi_fast.metadata_table.stat_values import unwrap_values
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.skipping.bounds import Bounds
from hudi_fast.schema.history import SchemaHistory, altered_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice

__all__ = ["StatsColumn", "column_type", "partition_bounds", "slice_bounds", "stats_columns"]

_MAX_LOOKUPS = 512
"""Up to this many keys are looked up one by one; for more, all records of the columns are read, which are adjacent."""
_TRUNCATED_BYTES = 60
"""Maximum strings of this length or longer may be truncated: writers truncate to 64 bytes or more."""
_SEVERAL_ROW_GROUPS = 32 << 20
"""Base files of this size or larger may have several row groups, whose statistics were merged."""
_MAX_PARTITIONS = 64


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """A column of a filter with statistics.

    Attributes:
        column: as in the filter.
        name: as in the statistics.
        kind: its type in the table, or of the indexed expression.
        nested: whether it is inside a struct.
    """

    column: Column
    name: str
    kind: pa.DataType
    nested: bool = False


@dataclass(frozen=True)
class _Files:
    """The n files of slices.

    Attributes:
        slices: int64[n], number of the file's slice.
        large: bool[n], whether the file is a large base file.
        altered: columns that were altered since the file was written.
    """

    partitions: list[str]
    names: list[str]
    slices: npt.NDArray[np.int64]
    large: npt.NDArray[np.bool_]
    altered: list[frozenset[str]]


def column_type(schema: pa.Schema, column: Column) -> pa.DataType | None:
    """The type of a table column; None when the column does not exist or is nested."""
    kind: pa.DataType = pa.struct(list(schema))
    for name in column.path:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return None if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) else kind


def slice_bounds(
    table: MetadataTable,
    partition: str,
    slices: Sequence[FileSlice],
    columns: Sequence[StatsColumn],
    history: SchemaHistory | None = None,
) -> dict[Column, Bounds]:
    """Bounds of columns in each slice.

    ``partition`` is ``column_stats``, or an expression index of statistics.

    Raises:
        HudiError: the statistics cannot be read.
    """
    files = _files_of(slices, history)
    found = _read_stats(table, partition, files, columns)
    position = single_chunk(found.column("key"))
    bounds = {}
    for one in columns:
        keys = pa.array(column_stats_keys([one.name] * len(files.names), files.partitions, files.names), pa.string())
        stored = found.take(pc.index_in(keys, value_set=position))
        reliable = _as_written(_reliable(stored, one, files.large), one, files)
        bounds[one.column] = _by_slice(reliable, files.slices, len(slices))
    return bounds


def partition_bounds(
    table: MetadataTable, partitions: Sequence[str], columns: Sequence[StatsColumn]
) -> dict[Column, Bounds]:
    """Bounds of columns in each of the table's partitions, from the metadata table's ``partition_stats``.

    Bounds are unknown for a column that was added or indexed later, since some files of the partition have no
    statistics of it. Its value count is then smaller than the record key's, which is in every row and always indexed.

    Raises:
        HudiError: the statistics cannot be read.
    """
    names = [RECORD_KEY, *(one.name for one in columns)]
    paths = [partition_hash(path) for path in partitions]
    keys = {
        name: pa.array([head + path for path in paths], pa.string())
        for name, head in zip(names, map(column_hash, names), strict=True)
    }
    if len(partitions) * len(names) <= _MAX_LOOKUPS:
        found = lookup(table, "partition_stats", pa.concat_arrays(list(keys.values())))
    else:
        found = prefix(table, "partition_stats", [column_hash(name) for name in names])
    position = single_chunk(found.column("key"))
    rows = {name: found.take(pc.index_in(keys[name], value_set=position)) for name in names}
    counted = _one(rows[RECORD_KEY], "value_count")
    merged = np.ones(len(partitions), dtype=np.bool_)
    bounds = {}
    for one in columns:
        reliable = _reliable(rows[one.name], one, merged)
        complete = pc.equal(_one(rows[one.name], "value_count"), counted).fill_null(False)
        # A value count of zero is not reliable here: the sums include files without statistics.
        parts = (
            reliable.low,
            reliable.high,
            reliable.has_null,
            pc.or_kleene(reliable.has_value, pa.scalar(None, pa.bool_())),
        )
        low, high, *has = (pc.if_else(complete, part, pa.scalar(None, part.type)) for part in parts)
        bounds[one.column] = Bounds(low, high, has[0], has[1], excludes_nan=True)
    return bounds


# ---- reading


def _files_of(slices: Sequence[FileSlice], history: SchemaHistory | None) -> _Files:
    partitions, names, numbers, large, altered = [], [], [], [], []
    known: dict[str, frozenset[str]] = {}
    for number, one in enumerate(slices):
        for file in one.files:
            partitions.append(one.partition)
            names.append(file.name)
            numbers.append(number)
            large.append(file is one.base_file and file.size >= _SEVERAL_ROW_GROUPS)
            if file.instant not in known:
                known[file.instant] = altered_columns(history, file.instant)
            altered.append(known[file.instant])
    return _Files(partitions, names, np.array(numbers, dtype=np.int64), np.array(large, dtype=np.bool_), altered)


def _read_stats(table: MetadataTable, partition: str, files: _Files, columns: Sequence[StatsColumn]) -> pa.Table:
    """Statistics of the columns in the files, possibly also in others."""
    names = [one.name for one in columns]
    if len(files.names) * len(names) <= _MAX_LOOKUPS:
        keys = [column_stats_keys([name] * len(files.names), files.partitions, files.names) for name in names]
        return lookup(table, partition, pa.concat_arrays(keys))
    paths = sorted(set(files.partitions))
    if len(paths) * len(names) <= _MAX_PARTITIONS:
        return prefix(table, partition, [column_hash(name) + partition_hash(path) for name in names for path in paths])
    return prefix(table, partition, [column_hash(name) for name in names])


# ---- reliable bounds


def _reliable(stored: pa.Table, column: StatsColumn, merged: npt.NDArray[np.bool_]) -> Bounds:
    """Reliable bounds of each row of statistics; a row of nulls is unknown.

    ``merged`` is bool[n]: whether a row may merge several pieces, some of them without statistics.
    """
    low, high = (_typed(stored, name, column.kind) for name in ("min", "max"))
    nulls, values = (_one(stored, name) for name in ("null_count", "value_count"))
    deleted = _one(stored, "deleted").fill_null(True)
    uncounted = pc.less(nulls, 0).fill_null(True)
    unreliable = pc.or_(
        pc.or_(deleted, uncounted),
        _unreliable(low, high, pc.and_(pa.array(merged), pc.not_equal(nulls, 0).fill_null(True))),
    )
    unreliable = (
        pc.or_(unreliable, pc.struct_field(_one(stored, "min"), "BytesWrapper").is_valid())
        if _is_text(low)
        else unreliable
    )
    unknown = pa.scalar(None, column.kind)
    low = pc.if_else(pc.or_(unreliable, _misordered(low, lower=True)), unknown, low)
    high = pc.if_else(pc.or_(unreliable, _misordered(high, lower=False)), unknown, high)
    no_bool = pa.scalar(None, pa.bool_())
    counted = pc.if_else(pc.or_(deleted, uncounted), no_bool, pc.greater(nulls, 0))
    empty = pc.and_(pc.equal(values, 0), pc.equal(nulls, 0)).fill_null(False)
    has_value = pc.if_else(pc.and_(empty, pc.invert(deleted)), False, pc.if_else(low.is_valid(), True, no_bool))
    return Bounds(low, high, pc.if_else(column.nested, no_bool, counted), has_value, excludes_nan=True)


def _as_written(bounds: Bounds, column: StatsColumn, files: _Files) -> Bounds:
    """Bounds of files, unknown where the column was altered after the file was written."""
    root = column.name.partition(".")[0]
    changed = [root in names for names in files.altered]
    if not any(changed):
        return bounds
    unknown = pa.array(changed)
    parts = {name: getattr(bounds, name) for name in ("low", "high", "has_null", "has_value")}
    return replace(
        bounds, **{name: pc.if_else(unknown, pa.scalar(None, part.type), part) for name, part in parts.items()}
    )


def _unreliable(low: pa.Array, high: pa.Array, merged_with_nulls: pa.Array) -> pa.Array:
    """bool[n]: pairs of bounds that are unreliable, by their type and values."""
    kind = low.type
    if pa.types.is_floating(kind):
        around_zero = pc.and_(pc.less_equal(low, 0.0), pc.greater_equal(high, 0.0))
        may_have_nan = pc.or_(pc.is_nan(low), pc.invert(pc.less(high, float("inf"))))  # stored as infinity, or as NaN
        return pc.or_(may_have_nan, around_zero).fill_null(True)
    if _is_text(low):
        return merged_with_nulls
    orders = pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_decimal(kind)
    return pa.repeat(not (orders or pa.types.is_boolean(kind)), len(low))


def _misordered(bound: pa.Array, lower: bool) -> pa.Array:
    """bool[n]: strings that are a bound in UTF-16 order but not in byte order, or that may be truncated.

    Characters above U+FFFF precede U+E000 to U+FFFF in UTF-16 and follow them in UTF-8 (first bytes F0 to F4, and EE
    and EF).
    """
    if not _is_text(bound):
        return pa.repeat(False, len(bound))
    beyond = pc.match_substring_regex(bound, "[\U00010000-\U0010ffff]" if lower else "[\ue000-\uffff]")
    if lower:
        return beyond.fill_null(False)
    return pc.or_(beyond, pc.greater_equal(pc.binary_length(bound), _TRUNCATED_BYTES)).fill_null(False)


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def _typed(stored: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Stored values in a column's type; rows of the same stored type are unwrapped together."""
    values = _one(stored, name)
    shapes = pa.StructArray.from_arrays([_one(stored, "value_type"), _one(stored, "value_type_info")], ["type", "info"])
    pieces, rows = [], []
    numbers = np.arange(stored.num_rows, dtype=np.int64)
    codes, distinct = _codes(shapes)
    for code, shape in enumerate(distinct):
        here = numbers[codes == code]
        pieces.append(unwrap_values(values.take(pa.array(here)), shape["type"], shape["info"], kind))
        rows.append(here)
    if not pieces:
        return pa.nulls(0, kind)
    order = np.empty(stored.num_rows, dtype=np.int64)
    order[np.concatenate(rows)] = numbers
    return pa.concat_arrays(pieces).take(pa.array(order))


def _codes(shapes: pa.StructArray) -> tuple[npt.NDArray[np.int64], list[dict[str, Any]]]:
    """A number per row, equal for equal shapes; and the shapes by number."""
    texts = pc.binary_join_element_wise(
        shapes.field("type").cast(pa.string()), shapes.field("info"), "/", null_handling="replace"
    ).dictionary_encode()
    codes: npt.NDArray[np.int64] = texts.indices.to_numpy().astype(np.int64)
    firsts = [int(np.argmax(codes == code)) for code in range(len(texts.dictionary))]
    return codes, [shapes[first].as_py() for first in firsts]


def _one(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# ---- from files to slices


def _by_slice(files: Bounds, slices: npt.NDArray[np.int64], count: int) -> Bounds:
    """Bounds of slices from the bounds of their files, which are in the order of slices; unknown if a file's are."""
    if len(slices) == count:
        return files  # each slice has one file
    empty = pc.and_(pc.invert(files.has_value.fill_null(True)), pc.invert(files.has_null.fill_null(True)))
    rows = pa.table({"slice": slices, "low": files.low, "high": files.high}).filter(pc.invert(empty))
    strict = pc.ScalarAggregateOptions(skip_nulls=False)
    ends = rows.group_by("slice").aggregate([("low", "min", strict), ("high", "max", strict)])
    place = pc.index_in(pa.array(np.arange(count)), value_set=_one(ends, "slice"))
    has = [_any(part, slices, count) for part in (files.has_null, files.has_value)]
    return Bounds(
        _one(ends, "low_min").take(place), _one(ends, "high_max").take(place), has[0], has[1], excludes_nan=True
    )


def _any(parts: pa.Array, slices: npt.NDArray[np.int64], count: int) -> pa.Array:
    """Three-valued "or" of the parts of each slice."""
    codes = pc.if_else(parts, 2, 0).fill_null(1).to_numpy(zero_copy_only=False)
    highest = np.zeros(count, dtype=np.int64)
    np.maximum.at(highest, slices, codes)
    return pa.array(highest == 2, mask=highest == 1)


def stats_columns(schema: pa.Schema, columns: Sequence[Column]) -> list[StatsColumn]:
    """The columns that may have statistics, with their types in the table."""
    chosen = []
    for column in columns:
        kind = column_type(schema, column)
        clash = len(column.path) > 1 and column.name in schema.names
        if kind is not None and not clash and not any("." in name for name in column.path):
            chosen.append(StatsColumn(column, column.name, kind, len(column.path) > 1))
    return chosen
