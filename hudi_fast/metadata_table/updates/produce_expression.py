"""Records of ``expr_index_<name>``: statistics, or bloom filters, of a function's results in each file.

::

    files written ─► source column ─► function ─► results ─┬─► range ──► a record per file
                                                           │     │
    other files of the partition's newest slices ─ MDT ────┼─────┴─► merged ─► a record per partition
                                                           └─► their text ─► bloom filter ─► a record per file

Records hold the sizes of files, not of columns, as in Hudi. A file with unknown results gets no record, and neither
does its partition. A file without rows, such as a log of deletes, has no filter. Readers do not skip files without a
record.

Source: metadata reference 3.4 and 3.10; SparkMetadataWriterUtils, HoodieExpressionIndex, Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.log.blocks import BlockType
from hudi_fast.formats.parquet.column_ranges import ColumnRange, merge_ranges, ranges_of_rows
from hudi_fast.formats.varlen import single_chunk
from hudi_fast.merging.base_merge import plan_stored
from hudi_fast.merging.log_scan import LogRowReader, blocks_of_file
from hudi_fast.metadata_table.keys import (
    bloom_key,
    column_hash,
    column_stats_key,
    expression_partition_key,
    file_hash,
    partition_hash,
)
from hudi_fast.metadata_table.layout import IndexDefinition, PartitionKind
from hudi_fast.metadata_table.read import prefix
from hudi_fast.metadata_table.state import AddedFile
from hudi_fast.metadata_table.updates.produce_base import (
    EncodedRecords,
    ProducerContext,
    filter_records,
    open_added,
    removals,
    stored_schema,
)
from hudi_fast.metadata_table.updates.produce_functions import (
    Unknown,
    apply_function,
    check_function,
    has_texts,
    result_texts,
)
from hudi_fast.metadata_table.updates.produce_stats import (
    PARTITION_STATS,
    StatRow,
    ranges_of_records,
    stat_records,
    stats_version,
)
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass

__all__ = [
    "Expression",
    "ExpressionFilters",
    "ExpressionOfPartition",
    "ExpressionOfRemoved",
    "check_expression",
    "require_readable_filters",
    "texts_of_file",
]

_STATISTICS, _FILTERS = "column_stats", "bloom_filters"
_FILTER_OPTIONS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "filtertype": ("kind", str),
    "numentries": ("entries", int),
    "fpp": ("error_rate", float),
    "maxentries": ("max_entries", int),
}
"""Options of an index, each with the argument of :meth:`BloomFilter.create` and the function that parses its text."""

_THREADS = 4
_UNKNOWN = ColumnRange(None, None, 0, 1)


@dataclass(frozen=True)
class Expression:
    """The computation of an expression index: a function of a table column, and the type of its results."""

    definition: IndexDefinition
    column: pa.Field
    result: pa.DataType

    @property
    def has_filters(self) -> bool:
        """Whether the records of the index are bloom filters; else they are statistics."""
        return self.definition.kind == _FILTERS


@dataclass(frozen=True)
class ExpressionOfPartition:
    """The records of files in one data partition, and of the partition itself.

    Attributes:
        context: the table after the action.
        files: the files of the partition's newest slices; empty if it has no rows left.
        written: names of the files to write records for; the other files already have records.
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
        with ThreadPool(_THREADS) as pool:
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

    def _recorded(self, expression: Expression) -> dict[str, ColumnRange]:
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
        files: (partition path, name) of each file.
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
        expression = check_expression(self.context, self.partition)
        if expression.has_filters:
            keys = [bloom_key(where, name) for where, name in self.files]
        else:
            keys = [column_stats_key(expression.column.name, where, name) for where, name in self.files]
        yield from removals(self.partition, keys)


@dataclass(frozen=True)
class ExpressionFilters:
    """The bloom filters of files, base files and log files.

    Attributes:
        instant: stored with each filter.
    """

    context: ProducerContext
    partition: str
    files: tuple[AddedFile, ...]
    instant: str

    @property
    def weight(self) -> int:
        """Size of the files."""
        return sum(one.size for one in self.files)

    def read(self, schema: str) -> Iterator[EncodedRecords]:
        """One batch of records."""
        expression = check_expression(self.context, self.partition)
        with ThreadPool(_THREADS) as pool:
            found = list(pool.map(lambda one: _filter(self.context, expression, one), self.files))
        rows = [
            (bloom_key(one.partition, one.name), made.type_code, self.instant, made.to_base64().encode(), False)
            for one, made in zip(self.files, found, strict=True)
            if made is not None
        ]
        if rows:
            yield filter_records(self.partition, rows, schema)


def texts_of_file(context: ProducerContext, expression: Expression, one: AddedFile) -> Iterator[pa.Array]:
    """The text of a function's results in a file, string[n] by batches of rows; null and empty texts are left out.

    Raises:
        Unknown: a result cannot be computed here.
    """
    definition = expression.definition
    for values in _column(context, expression.column, one):
        texts = result_texts(apply_function(definition.function, values, definition.options))
        yield texts.filter(pc.fill_null(pc.not_equal(texts, ""), False))


def require_readable_filters(context: ProducerContext, partition: str) -> None:
    """Refuse bloom filters of a type whose values Apache Hudi would not find.

    Raises:
        UnsupportedFeatureError: the results are dates or timestamps: Hudi stores their text and looks for their number.
    """
    expression = check_expression(context, partition)
    if expression.has_filters and pa.types.is_temporal(expression.result):
        raise UnsupportedFeatureError(
            f"The expression index {partition} of {context.storage.uri} is to hold bloom filters of "
            f"{expression.definition.function!r}, whose results are of type {expression.result}. Apache Hudi looks for "
            "their number in filters of their text and loses rows, so the index is not built. Use column_stats."
        )


def check_expression(context: ProducerContext, partition: str) -> Expression:
    """The computation of an expression index.

    Raises:
        UnsupportedFeatureError: the index has an unsupported function or kind, or is not over one top-level column that
            files store.
    """
    definition = context.definitions.get(partition)
    where = f"The expression index {partition} of {context.storage.uri}"
    known = definition is not None and definition.kind in (_STATISTICS, _FILTERS)
    if definition is None or not known or len(definition.source_fields) != 1:
        what = (
            "no definition" if definition is None else f"kind {definition.kind} over {list(definition.source_fields)}"
        )
        raise UnsupportedFeatureError(
            f"{where} has {what}; supported are {_STATISTICS} and {_FILTERS} over one column. Drop the index, or write "
            "the table with Apache Hudi."
        )
    schema, name = stored_schema(context), definition.source_fields[0]
    dropped = context.config.drop_partition_columns and name in context.config.partition_fields
    if name not in schema.names or dropped:
        raise UnsupportedFeatureError(f"{where} is over {name!r}, which is not a top-level column stored in files.")
    column = schema.field(name).with_nullable(True)
    filters = _FILTER_OPTIONS if definition.kind == _FILTERS else ()
    options = {option: text for option, text in definition.options.items() if option not in filters}
    result = check_function(definition.function, column.type, options, where)
    if definition.kind == _STATISTICS and pa.types.is_nested(result):
        raise UnsupportedFeatureError(f"{where} is of statistics of {definition.function!r}, whose results are lists.")
    if definition.kind == _FILTERS:
        _empty_filter(definition, where)
        if not has_texts(result):
            raise UnsupportedFeatureError(f"{where} has bloom filters of results of type {result}; use column_stats.")
    return Expression(definition, column, result)


def _empty_filter(definition: IndexDefinition, where: str) -> BloomFilter:
    """An empty filter with the settings of the index; missing settings are Hudi's defaults."""
    shown = {name: definition.options[name] for name in _FILTER_OPTIONS if name in definition.options}
    given: dict[str, Any] = {}
    try:
        for name, text in shown.items():
            argument, parse = _FILTER_OPTIONS[name]
            given[argument] = parse(text)
        return BloomFilter.create(**given)
    except (ValueError, ConfigError) as error:
        raise UnsupportedFeatureError(f"{where} has bloom filters with the settings {shown}: {error}") from error


def _filter(context: ProducerContext, expression: Expression, one: AddedFile) -> BloomFilter | None:
    """The filter of a file's results; None for a file without rows, or with unknown results."""
    made = _empty_filter(expression.definition, expression.definition.name)
    rows = 0
    try:
        for texts in texts_of_file(context, expression, one):
            made.add(pc.unique(texts))
            rows += len(texts)
    except Unknown:
        return None
    return made if rows else None


def _range(context: ProducerContext, expression: Expression, one: AddedFile) -> ColumnRange:
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
        conforming = plan_stored(base, [column.name], wanted)
        for batch in base.batches([column.name]):
            yield conforming.apply(batch).column(0)
