"""Records of statistics in ``expr_index_<name>``: the range of a function's results in each file and partition.

::

    files written ─► source column ─► function ─► range of results ─► a record per file
                                                        │
    other files of the partition's newest slices ─ MDT ─┴─► merged ─► a record per partition

Sizes are those of files, not of columns, as in Hudi. A file with an unknown range gets no record, and neither does its
partition. Source: metadata reference 3.4 and 3.10; SparkMetadataWriterUtils, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.log.blocks import BlockType
from hudi_fast.formats.parquet.column_ranges import ColumnRange, merge_ranges, ranges_of_rows
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.merging.log_rows import LogRowReader
from hudi_fast.merging.log_scan import blocks_of_file
from hudi_fast.metadata_table.definitions import IndexDefinition
from hudi_fast.metadata_table.keys import (
    column_hash,
    column_stats_key,
    expression_partition_key,
    file_hash,
    partition_hash,
)
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.read import prefix
from hudi_fast.metadata_table.table_delta import AddedFile
from hudi_fast.metadata_table.updates.column_ranges import PARTITION_STATS, StatRow, ranges_of_records, stat_records
from hudi_fast.metadata_table.updates.produce_base import (
    EncodedRecords,
    ProducerContext,
    open_added,
    removals,
    stored_schema,
)
from hudi_fast.metadata_table.updates.produce_functions import Unknown, apply_function, check_function
from hudi_fast.metadata_table.updates.produce_stats import stats_version
from hudi_fast.schema.conform import plan_conform

__all__ = ["ExpressionOfPartition", "ExpressionOfRemoved", "check_expression"]

_STATISTICS = "column_stats"
_THREADS = 4
_UNKNOWN = ColumnRange(None, None, 0, 1)


@dataclass(frozen=True)
class _Expression:
    """The computation of an expression index: a function of a table column, and the type of its results."""

    definition: IndexDefinition
    column: pa.Field
    result: pa.DataType


@dataclass(frozen=True)
class ExpressionOfPartition:
    """The records of files in one data partition, and of the partition itself.

    Attributes:
        context: after the action.
        files: the files of its newest slices; empty if it has no rows left.
        written: names of the files to write records for; the others already have records.
    """

    context: ProducerContext
    partition: str
    data_partition: str
    files: tuple[AddedFile, ...]
    written: frozenset[str]

    @property
    def weight(self) -> int:
        """Size of the files whose column is read."""
        return sum(one.size for one in self.files if one.name in self.written)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        expression = check_expression(self.context, self.partition)
        known = self._recorded(expression)
        with ThreadPoolExecutor(_THREADS) as pool:
            found = list(pool.map(lambda one: known.get(one.name) or _range(self.context, expression, one), self.files))
        name, kind = expression.column.name, expression.result
        rows = [
            StatRow(column_stats_key(name, one.partition, one.name), one.name, name, range_, kind)
            for one, range_ in zip(self.files, found, strict=True)
            if range_.is_known and one.name not in known
        ]
        key = expression_partition_key(name, self.data_partition)
        merged = merge_ranges({name: one} for one in found).get(name)
        known_of_all = merged is not None and merged.is_known and self.context.no_earlier_writes
        if merged is not None and known_of_all:
            rows.append(StatRow(key, self.data_partition, name, merged, kind, PARTITION_STATS, True))
        if rows:
            version = stats_version(self.context, self.partition)
            yield EncodedRecords(self.partition, *stat_records(PartitionKind.EXPRESSION_INDEX, rows, version, schema))
        yield from removals(self.partition, [] if known_of_all else [key])

    def _recorded(self, expression: _Expression) -> dict[str, ColumnRange]:
        """Ranges in the metadata table of files that the action did not write."""
        table = self.context.metadata
        if table is None or self.partition not in table.partitions or self.written.issuperset(self._names()):
            return {}
        name = expression.column.name
        records = prefix(table, self.partition, [column_hash(name) + partition_hash(self.data_partition)])
        ranges = ranges_of_records(records, {name: expression.result})
        others = sorted(self._names() - self.written)
        where = partition_hash(self.data_partition)
        return {
            file: ranges[where + hashed][name]
            for file, hashed in zip(others, file_hash(others), strict=True)
            if where + hashed in ranges
        }

    def _names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.files)


@dataclass(frozen=True)
class ExpressionOfRemoved:
    """Deletes for removed files.

    Attributes:
        files: (partition path, name) of each.
    """

    context: ProducerContext
    partition: str
    files: tuple[tuple[str, str], ...]

    @property
    def weight(self) -> int:
        """0: reads no file."""
        return 0

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        column = check_expression(self.context, self.partition).column.name
        yield from removals(self.partition, [column_stats_key(column, where, name) for where, name in self.files])


def check_expression(context: ProducerContext, partition: str) -> _Expression:
    """The computation of an expression index.

    Raises:
        UnsupportedFeatureError: it is an index of bloom filters, its function is not supported, or it is not over one
            top-level column that files store.
    """
    definition = context.definitions.get(partition)
    where = f"The expression index {partition} of {context.storage.uri}"
    if definition is None or definition.kind != _STATISTICS or len(definition.source_fields) != 1:
        what = (
            "no definition" if definition is None else f"kind {definition.kind} over {list(definition.source_fields)}"
        )
        raise UnsupportedFeatureError(
            f"{where} has {what}; supported are indexes of {_STATISTICS} over one column. Drop the index, or write the "
            "table with Apache Hudi."
        )
    schema, name = stored_schema(context), definition.source_fields[0]
    dropped = context.config.drop_partition_columns and name in context.config.partition_fields
    if name not in schema.names or dropped:
        raise UnsupportedFeatureError(f"{where} is over {name!r}, which is not a top-level column stored in files.")
    column = schema.field(name).with_nullable(True)
    return _Expression(definition, column, check_function(definition.function, column.type, definition.options, where))


def _range(context: ProducerContext, expression: _Expression, one: AddedFile) -> ColumnRange:
    """The range of the results in one file."""
    name, definition = expression.column.name, expression.definition
    parts = []
    try:
        for values in _column(context, expression.column, one):
            results = apply_function(definition.function, values, definition.options)
            parts.append(ranges_of_rows(pa.table({name: results})))
    except Unknown:
        return _UNKNOWN
    found = merge_ranges(parts).get(name, ColumnRange(None, None, 0, 0))
    return replace(found, total_size=one.size, total_uncompressed_size=2 * one.size)


def _column(context: ProducerContext, column: pa.Field, one: AddedFile) -> Iterator[pa.Array]:
    """Values of the source column in the table's type, in batches of a file's rows."""
    wanted = pa.schema([column])
    if one.is_log:
        reader = LogRowReader(context.storage, wanted, {}, context.merge.history)
        for block in blocks_of_file(context.merge, one.path, one.slice_logs):
            brought = None if block.kind is BlockType.DELETE else reader.columns_of(block)
            if block.kind is not BlockType.DELETE and (brought is None or column.name in brought):
                yield single_chunk(reader.read(block).column(0))
        return
    with open_added(context.storage, one) as base:
        if column.name not in base.schema.names:
            yield pa.nulls(base.num_rows, column.type)
            return
        conforming = plan_conform(pa.schema([base.schema.field(column.name)]), wanted)
        for batch in base.batches([column.name]):
            yield conforming.apply(batch).column(0)
