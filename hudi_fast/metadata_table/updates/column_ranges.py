"""Column ranges of a table's files, and their records of statistics.

::

    file just written ─ ranges in its write stat ─┐
    base file ─ footer ───────────────────────────┼─► ColumnRanges ─► StatRow ─ stat_records ─► keys, Avro values
    log file ─ its data blocks ───────────────────┘
    records of files' statistics ─ ranges_of_records ─► ColumnRanges

Source: metadata reference 3.5; HoodieTableMetadataUtil#getColumnStatsRecords, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.log.blocks import BlockType
from hudi_fast.formats.parquet.column_ranges import (
    ColumnRange,
    ColumnRanges,
    merge_ranges,
    ranges_of_file,
    ranges_of_rows,
)
from hudi_fast.formats.parquet.leaf_columns import leaf_columns
from hudi_fast.merging.log_rows import LogRowReader
from hudi_fast.merging.log_scan import blocks_of_file
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.records import COLUMN_STATS, encode_records
from hudi_fast.metadata_table.stat_values import StatsVersion, ValueType, is_indexable, unwrap_values, wrap_values
from hudi_fast.metadata_table.table_delta import AddedFile
from hudi_fast.metadata_table.updates.produce_base import ProducerContext, open_added, stored_schema
from hudi_fast.schema.mislabelled import counts_milliseconds

__all__ = [
    "FILE_STATS",
    "PARTITION_STATS",
    "StatRow",
    "column_types",
    "in_types",
    "ranges_of_added",
    "ranges_of_records",
    "stat_records",
]

FILE_STATS, PARTITION_STATS = 3, 6
"""Types of records."""

_COLUMN_HASH = 12
"""Length of the column hash at the start of a key, in characters."""


@dataclass(frozen=True, slots=True)
class StatRow:
    """One record of statistics before encoding.

    Attributes:
        name: the file, or the partition path.
        column: dotted name.
        kind: type of the column's values; None where there are no values.
        type: :data:`FILE_STATS` or :data:`PARTITION_STATS`.
        tight: whether the bounds replace the bounds of an older record.
    """

    key: str
    name: str
    column: str
    range: ColumnRange
    kind: pa.DataType | None
    type: int = FILE_STATS
    tight: bool = False


# ---- ranges of files


def ranges_of_added(
    context: ProducerContext, one: AddedFile, columns: Sequence[str], types: Mapping[str, pa.DataType]
) -> ColumnRanges:
    """The ranges of a file: from its write stat if it records them, else read from the file.

    Args:
        context: the table.
        one: the file.
        columns: dotted names; columns that the file lacks are left out.
        types: types of the table's columns; timestamps that count milliseconds under another label get the table's
            type.

    Raises:
        CorruptTableError: the file is missing or corrupt.
    """
    noted = None if one.stat is None else one.stat.column_ranges
    if noted is not None:
        known = dict(noted.items())
        return {name: known[name] for name in columns if name in known}
    if one.is_log:
        return _ranges_of_log(context, one, columns)
    with open_added(context.storage, one) as reader:
        found = ranges_of_file(reader, columns)
        return _relabelled(found, types) if reader.has_labels else found


def _relabelled(ranges: ColumnRanges, types: Mapping[str, pa.DataType]) -> ColumnRanges:
    """The ranges of a file, in which timestamps with a wrong label get the type of the table's column."""
    found = dict(ranges)
    for name, one in ranges.items():
        low, high, kind = one.low, one.high, types.get(name)
        if low is not None and high is not None and kind is not None and counts_milliseconds(low.type, kind):
            found[name] = replace(one, low=pa.scalar(low.value, kind), high=pa.scalar(high.value, kind))
    return found


def _ranges_of_log(context: ProducerContext, one: AddedFile, columns: Sequence[str]) -> ColumnRanges:
    """Ranges of the rows in a log file's data blocks; columns that no block has are left out."""
    full = pa.schema([field.with_nullable(True) for field in stored_schema(context)])
    roots = {name.split(".")[0] for name in columns}
    wanted_columns = pa.schema([field for field in full if field.name in roots])
    reader = LogRowReader(context.storage, wanted_columns, {}, context.merge.history)
    found = []
    for block in blocks_of_file(context.merge, one.path, one.slice_logs):
        if block.kind is BlockType.DELETE:
            continue
        brought = reader.columns_of(block)
        wanted = [name for name in columns if brought is None or name.split(".")[0] in brought]
        rows = reader.read(block)
        if rows.num_rows:
            found.append(ranges_of_rows(rows, wanted))
    return merge_ranges(found)


def column_types(context: ProducerContext, columns: Sequence[str]) -> dict[str, pa.DataType]:
    """Types of the given columns of the table, by dotted name."""
    known = leaf_columns(stored_schema(context))
    return {name: known[name] for name in columns if name in known}


def in_types(ranges: ColumnRanges, types: Mapping[str, pa.DataType]) -> ColumnRanges:
    """Ranges of an older file in the table's current types, without dropped columns.

    A range is unknown where a value does not fit its type.
    """
    found = {}
    for name, one in ranges.items():
        if name not in types:
            continue
        if one.low is not None and one.high is not None and one.low.type != types[name]:
            low, high = None, None
            if _keeps_order(one.low.type, types[name]):
                with contextlib.suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    low, high = _grown(one.low, types[name]), _grown(one.high, types[name])
            one = replace(one, low=low, high=high)
        found[name] = one
    return found


def _grown(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """A value in a later type of its column. A float becomes the double with the same text, as in stored rows."""
    if value.type == pa.float32() and kind == pa.float64():
        return value.cast(pa.string()).cast(kind)
    return value.cast(kind)


def _keeps_order(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether values promoted to another type keep their order: numbers do, except as text."""

    def family(kind: pa.DataType) -> int:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return 1
        return 2 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 0

    return family(old) == family(new) > 0


# ---- records


def stat_records(
    partition: PartitionKind, rows: Sequence[StatRow], version: StatsVersion, schema: str
) -> tuple[pa.Array, pa.Array]:
    """Encode rows to keys and Avro values; rows whose type has no statistics are left out."""
    by_kind: dict[pa.DataType | None, list[StatRow]] = {}
    for row in rows:
        if row.kind is None or is_indexable(pa.field(row.column, row.kind), version):
            by_kind.setdefault(row.kind, []).append(row)
    tables = [_table(kind, found, version) for kind, found in by_kind.items()]
    return encode_records(partition, pa.concat_tables(tables or [COLUMN_STATS.empty_table()]), schema)


def _table(kind: pa.DataType | None, rows: Sequence[StatRow], version: StatsVersion) -> pa.Table:
    """The flat table of rows whose values have one type."""
    lows, highs = [row.range.low for row in rows], [row.range.high for row in rows]
    if kind is None:
        low = high = pa.nulls(len(rows), COLUMN_STATS.field("min").type)
        value_type: int | None = None if version == "V1" else ValueType.NULL
        info: str | None = None
    else:
        low, value_type, info = wrap_values(pa.array(lows, kind), version)
        high, _, _ = wrap_values(_without_nan(pa.array(highs, kind)), version)
    columns = {
        "key": [row.key for row in rows],
        "type": [row.type for row in rows],
        "file_name": [row.name for row in rows],
        "column_name": [row.column for row in rows],
        "min": low,
        "max": high,
        "value_count": [row.range.value_count for row in rows],
        "null_count": [row.range.null_count for row in rows],
        "total_size": [row.range.total_size for row in rows],
        "total_uncompressed_size": [row.range.total_uncompressed_size for row in rows],
        "deleted": [False] * len(rows),
        "tight": [row.tight for row in rows],
        "value_type": [value_type] * len(rows),
        "value_type_info": [info] * len(rows),
    }
    return pa.table(columns, schema=COLUMN_STATS)


def _without_nan(highs: pa.Array) -> pa.Array:
    """Upper bounds with infinity for NaN: Apache Hudi 1.2.0 leaves out files whose bound is NaN, for any comparison."""
    if not pa.types.is_floating(highs.type):
        return highs
    return pc.if_else(pc.is_nan(highs), pa.scalar(float("inf"), highs.type), highs)


def ranges_of_records(rows: pa.Table, types: Mapping[str, pa.DataType]) -> dict[str, dict[str, ColumnRange]]:
    """Ranges from records of files' statistics: by hashed partition and file (end of the key), then by column.

    ``rows`` are of :data:`hudi_fast.metadata_table.records.COLUMN_STATS`. Records of columns that are not in ``types``
    are left out.
    """
    found: dict[str, dict[str, ColumnRange]] = {}
    for (column, value_type, info), numbers in _alike(rows).items():
        if column not in types:
            continue
        part = rows.take(pa.array(numbers)).combine_chunks()
        low, high = (
            unwrap_values(cast(pa.StructArray, _chunk(part, name)), value_type, info, types[column])
            for name in ("min", "max")
        )
        counts = [part.column(name).to_pylist() for name in COLUMN_STATS.names[6:10]]
        for at, key in enumerate(part.column("key").to_pylist()):
            values, nulls, size, plain = (each[at] or 0 for each in counts)
            known = low[at].is_valid and high[at].is_valid
            least, limit = (low[at], high[at]) if known else (None, None)
            found.setdefault(key[_COLUMN_HASH:], {})[column] = ColumnRange(least, limit, nulls, values, size, plain)
    return found


def _alike(rows: pa.Table) -> dict[tuple[str, int | None, str | None], list[int]]:
    """Row numbers by column, value type and type info."""
    groups: dict[tuple[str, int | None, str | None], list[int]] = {}
    names: Iterable[list[object]] = (
        rows.column(name).to_pylist() for name in ("column_name", "value_type", "value_type_info")
    )
    for number, key in enumerate(zip(*names, strict=True)):
        groups.setdefault(cast(tuple[str, int | None, str | None], key), []).append(number)
    return groups


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
