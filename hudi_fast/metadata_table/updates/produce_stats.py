"""Records of ``column_stats``, one per file and column, and of ``partition_stats``, one per partition and column.

::

    files written ─► their ranges ─► column_stats: a record for each column of the file
                          │          a log with only deletes: an empty record for every indexed column
                          └────┐
    other files of the touched ┴► partition_stats: the ranges of the files of the newest slices, merged; replaces
    partitions ─ MDT records ──┘  the old record; deletes until the next write, if the partition has no files or an
                                  earlier pending write may add to it

Source: metadata reference 3.5 and 3.6; HoodieTableMetadataUtil#convertMetadataToColumnStatsRecords and
#convertMetadataToPartitionStatRecords, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from hudi_fast.formats.parquet.column_ranges import ColumnRange, ColumnRanges, merge_ranges
from hudi_fast.metadata_table.definitions import index_version
from hudi_fast.metadata_table.keys import column_hash, file_hash, partition_hash, partition_stats_key
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import prefix
from hudi_fast.metadata_table.stat_values import StatsVersion
from hudi_fast.metadata_table.table_delta import AddedFile, TableDelta, added_logs
from hudi_fast.metadata_table.updates.column_ranges import (
    PARTITION_STATS,
    StatRow,
    column_types,
    in_types,
    ranges_of_added,
    ranges_of_records,
    stat_records,
)
from hudi_fast.metadata_table.updates.produce_base import EncodedRecords, ProducerContext, removals
from hudi_fast.schema.history import altered_columns
from hudi_fast.view.slices import latest_slices

__all__ = ["StatsOfFiles", "StatsOfPartitions", "StatsOfRemoved", "files_of_slices", "stats_version"]

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
