"""Records of ``column_stats`` and ``partition_stats``, and the ranges in them.

Records of ``column_stats``, one per file and column, and of ``partition_stats``, one per partition and column.

::

    files written ─► their ranges ─► column_stats: a record for each column of the file
                          │          a log with only deletes: an empty record for every indexed column
                          └────┐
    other files of the touched ┴► partition_stats: the ranges of the files of the newest slices, merged; replaces
    partitions ─ MDT records ──┘  the old record; deletes until the next write, if the partition has no files or an
                                  earlier pending write may add to it

Source: metadata reference 3.5 and 3.6; HoodieTableMetadataUtil#convertMetadataToColumnStatsRecords and
#convertMetadataToPartitionStatRecords, Hudi 1.2.0.

Column ranges of a table's files, and their records of statistics.

::

    file just written ─ ranges in its write stat ─┐
    base file ─ footer ───────────────────────────┼─► ColumnRanges ─► StatRow ─ stat_records ─► keys, Avro values
    log file ─ its data blocks ───────────────────┘
    records of files' statistics ─ ranges_of_records ─► ColumnRanges

Source: metadata reference 3.5; HoodieTableMetadataUtil#getColumnStatsRecords, Hudi 1.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from hudi_fast.merging.log_scan import LogRowReader, blocks_of_file
from hudi_fast.metadata_table.keys import column_hash, file_hash, partition_hash, partition_stats_key
from hudi_fast.metadata_table.layout import PartitionKind, index_version
from hudi_fast.metadata_table.read import prefix
from hudi_fast.metadata_table.records import COLUMN_STATS, encode_records
from hudi_fast.metadata_table.stat_values import StatsVersion, ValueType, is_indexable, unwrap_values, wrap_values
from hudi_fast.metadata_table.state import AddedFile, TableDelta, added_logs
from hudi_fast.metadata_table.updates.produce_base import (
    EncodedRecords,
    ProducerContext,
    open_added,
    removals,
    stored_schema,
)
from hudi_fast.schema.cast import counts_milliseconds
from hudi_fast.schema.history import altered_columns
from hudi_fast.values import dataclass
from hudi_fast.view.slices import latest_slices

__all__ = [
    "FILE_STATS",
    "PARTITION_STATS",
    "StatRow",
    "StatsOfFiles",
    "StatsOfPartitions",
    "StatsOfRemoved",
    "column_types",
    "files_of_slices",
    "in_types",
    "ranges_of_added",
    "ranges_of_records",
    "stat_records",
    "stats_version",
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


_FOOTER_BYTES = 1 << 19
"""Approximate size of a footer that is read for its statistics."""

_RANGE_BYTES = 1 << 12
"""Bytes that can be read in the time that encoding one recorded range takes, about 10 microseconds."""

_NOTHING = ColumnRange(None, None, 0, 0)


def stats_version(context: ProducerContext, partition: str = PartitionKind.COLUMN_STATS) -> StatsVersion:
    """The encoding of values in a metadata partition."""
    return cast(StatsVersion, index_version(partition, context.config.version, context.definitions))


def reading_weight(files: Sequence[AddedFile]) -> int:
    """Bytes to read for the ranges of files; each range in a write stat counts as :data:`_RANGE_BYTES`."""
    return sum(map(_reading_bytes, files))


def _reading_bytes(one: AddedFile) -> int:
    if one.stat is not None and one.stat.column_ranges is not None:
        return len(one.stat.column_ranges) * _RANGE_BYTES
    return one.size if one.is_log else _FOOTER_BYTES


@dataclass(frozen=True)
class StatsOfFiles:
    """The ``column_stats`` of files."""

    context: ProducerContext
    files: tuple[AddedFile, ...]

    @property
    def weight(self) -> int:
        """The work of reading and encoding the ranges."""
        return reading_weight(self.files)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        context, columns = self.context, self.context.indexed_columns
        types = column_types(context, columns)
        column_hashes = {name: column_hash(name) for name in columns}
        rows = []
        for one, hashed in zip(self.files, file_hash([each.name for each in self.files]), strict=True):
            ranges = ranges_of_added(context, one, columns, types)
            where = partition_hash(one.partition) + hashed
            if one.is_log and not any(found.value_count for found in ranges.values()):
                rows += [StatRow(column_hashes[name] + where, one.name, name, _NOTHING, None) for name in columns]
                continue
            for name, found in ranges.items():
                kind = types.get(name) if found.low is None else found.low.type
                if not found.is_known:
                    continue  # a record would make readers assume a file without values
                rows.append(StatRow(column_hashes[name] + where, one.name, name, found, kind))
        if rows:
            kind = PartitionKind.COLUMN_STATS
            yield EncodedRecords(kind, *stat_records(kind, rows, stats_version(context), schema))


@dataclass(frozen=True)
class StatsOfRemoved:
    """Deletes for removed files.

    Attributes:
        files: (partition path, name) of each file.
    """

    context: ProducerContext
    files: tuple[tuple[str, str], ...]

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        hashed = file_hash([name for _, name in self.files])
        files = [partition_hash(where) + one for (where, _), one in zip(self.files, hashed, strict=True)]
        columns = [column_hash(name) for name in self.context.indexed_columns]
        yield from removals(PartitionKind.COLUMN_STATS, [column + file for column in columns for file in files])


@dataclass(frozen=True)
class StatsOfPartitions:
    """The ``partition_stats`` of partitions.

    Attributes:
        context: the table after the action.
        files: by partition path, the files of the newest slices; empty if the partition has no rows left.
        written: the files that the action wrote.
        records: whether the metadata table has ranges of the other files.
    """

    context: ProducerContext
    files: Mapping[str, tuple[AddedFile, ...]]
    written: frozenset[tuple[str, str]]
    records: bool

    @property
    def weight(self) -> int:
        """Bytes of files to read for ranges that are not recorded."""
        fresh = [
            one
            for found in self.files.values()
            for one in found
            if not self.records or (one.partition, one.name) in self.written
        ]
        return reading_weight(fresh)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        types = column_types(self.context, self.context.indexed_columns)
        known = self._recorded(types) if self.records else {}
        names = {one.name for files in self.files.values() for one in files}
        hashed = dict(zip(names, file_hash(list(names)), strict=True))
        rows: list[StatRow] = []
        deletes: list[str] = []
        for partition, files in sorted(self.files.items()):
            where = partition_hash(partition)
            merged = merge_ranges(self._ranges(one, known.get(where + hashed[one.name]), types) for one in files)
            altered = self._altered(files, types)
            for name in dict.fromkeys([*merged, *altered] if files else types):
                key, found = partition_stats_key(name, partition), merged.get(name)
                if found is None or not found.is_known or name in altered or not self.context.no_earlier_writes:
                    deletes.append(key)
                else:
                    rows.append(StatRow(key, partition, name, found, types[name], PARTITION_STATS, True))
        kind = PartitionKind.PARTITION_STATS
        if rows:
            yield EncodedRecords(kind, *stat_records(kind, rows, stats_version(self.context, kind), schema))
        yield from removals(kind, deletes)

    def _altered(self, files: Sequence[AddedFile], names: Iterable[str]) -> list[str]:
        """Columns that some of the files store under a former name."""
        history = self.context.merge.history
        roots = {root for instant in {one.instant for one in files} for root in altered_columns(history, instant)}
        return [name for name in names if name.partition(".")[0] in roots]

    def _recorded(self, types: Mapping[str, pa.DataType]) -> dict[str, dict[str, ColumnRange]]:
        """Ranges of the files that the action did not write, see :func:`ranges_of_records`."""
        table = self.context.metadata
        wanted = [
            partition
            for partition, files in self.files.items()
            if any((partition, one.name) not in self.written for one in files)
        ]
        if table is None or not wanted:
            return {}
        columns, partitions = [column_hash(name) for name in types], [partition_hash(name) for name in wanted]
        prefixes = [column + partition for column in columns for partition in partitions]
        return ranges_of_records(prefix(table, PartitionKind.COLUMN_STATS, prefixes), types)

    def _ranges(self, one: AddedFile, recorded: ColumnRanges | None, types: Mapping[str, pa.DataType]) -> ColumnRanges:
        """The ranges of a file in the table's types.

        They come from records if all ranges are known, else from the write stat or the file.
        """
        fresh = (one.partition, one.name) in self.written
        if not fresh and recorded is not None and all(found.is_known for found in recorded.values()):
            return recorded
        return in_types(ranges_of_added(self.context, one, list(types), types), types)


def files_of_slices(
    context: ProducerContext, partition: str, change: TableDelta | None = None
) -> tuple[AddedFile, ...]:
    """The files of the newest slices of a partition; files of ``change`` keep their write stats.

    ``context`` is the table after the change.
    """
    written = {} if change is None else {one.name: one for one in change.added if one.partition == partition}
    found = []
    for slice_ in latest_slices(context.view, partition):
        base, files = slice_.base_file, added_logs(partition, slice_.log_files)
        if base is not None:
            files.insert(0, AddedFile(partition, base.name, base.size, base.file_id, False, base.instant))
        found += [written.get(one.name, one) for one in files]
    return tuple(found)
