"""Reads by ``format("hudi_fast")``: options, filters, parts, batches and streams.

Queries of ``format("hudi_fast")``: options and requested columns.

::

    options ─► TableQuery ─► its columns as Spark's schema
                        └──► query_parts: plan of a snapshot, of a range, or of changes ─► parts

Translates filters that Spark pushes down to a Python data source.

::

    Filter ─┬─► Condition      skips files without matching rows
            └─► expression     drops other rows in the worker

Spark applies every filter again, so both may keep too many rows, but never too few. In Spark NaN is greater than any
other number and equal to itself, so filters on floating-point columns skip files but drop no rows; statistics of files
with NaN have no bounds.

The work of one read task, file slices of a scan or changes, as picklable values.

::

    ScanPlan ─► slices divided by weight ─► SlicesPart ──┐
    CdcPlan  ─► units divided by number  ─► ChangesPart ─┴─► part_batches ─► Arrow batches in Spark's types

``spark.read.format("hudi_fast")``: the driver plans parts, workers read them and return Arrow batches.

Filter pushdown is off by default (``hudi_fast.source.pushdown``): PySpark 4.1 to 4.3 reuse the parts planned for the
filters of an earlier query of the same DataFrame, so rows of a later query would be missing.

``spark.readStream.format("hudi_fast")``: each batch is an incremental query from one offset to the next.

::

    latestOffset   newest readable commit, or an earlier one if options limit a batch       StreamQuery.end_after
    partitions     (start, end] ─► incremental query ─► parts                               workers read them

For a stream that begins with the latest commit, the end offset of the first batch also stores the begin of that batch:
Spark keeps only end offsets, and after a crash the latest commit may be another one. PySpark before 4.2 does not pass
the current offset to a source, so batches cannot be limited there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.expressions.arrow_filters import parse_filter
from hudi_fast.expressions.conditions import And, Anything, Column, Compare, Condition, Constant
from hudi_fast.reading.incremental.cdc import CHANGE_SCHEMA, CdcPlan, plan_cdc, read_changes
from hudi_fast.reading.incremental.commit_range import FIRST, BatchLimits, StreamOffset, StreamQuery
from hudi_fast.reading.incremental.query import incremental_view, plan_view
from hudi_fast.reading.scan import ScanPlan, ScanQuery, plan_scan, readable_schema
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.reading.time_travel import state_for_query
from hudi_fast.spark.arrow import arrow_types, as_spark, spark_schema
from hudi_fast.spark.writing.columns import pack_bins
from hudi_fast.storage.base import Storage
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import load_state

__all__ = [
    "ChangesPart",
    "FilteringReader",
    "Part",
    "Pushed",
    "SlicesPart",
    "TableQuery",
    "TableReader",
    "TableStreamReader",
    "changes_parts",
    "check_columns",
    "part_batches",
    "query_parts",
    "slices_parts",
    "table_columns",
    "understand",
]

_PART_BYTES = 32 << 20
_PARTS_PER_CORE = 2


@dataclass(frozen=True)
class SlicesPart:
    """Slices to read.

    Attributes:
        scan: columns and filter for each slice.
        slices: of this part.
    """

    scan: SliceScan
    slices: tuple[FileSlice, ...]


@dataclass(frozen=True)
class ChangesPart:
    """Changes to read.

    Attributes:
        plan: with only the units of this part.
    """

    plan: CdcPlan


Part = SlicesPart | ChangesPart


def slices_parts(plan: ScanPlan) -> list[Part]:
    """Divide the slices of a plan: one part per 32 MiB, but several per processor if there are enough slices."""
    slices = [one for one in plan.slices if one.base_file is not None or plan.scan.merge is not None]
    if not slices:
        return []
    wanted = max(_PARTS_PER_CORE * (os.cpu_count() or 1), sum(one.weight for one in slices) // _PART_BYTES)
    bins = _dealt([one.weight for one in slices], wanted)
    return [SlicesPart(plan.scan, tuple(slices[number] for number in each)) for each in bins]


def changes_parts(plan: CdcPlan) -> list[Part]:
    """Divide the units of a plan."""
    bins = _dealt([1] * len(plan.units), _PARTS_PER_CORE * (os.cpu_count() or 1))
    return [ChangesPart(replace(plan, units=tuple(plan.units[number] for number in each))) for each in bins]


def part_batches(part: Part | None, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a part; no rows for None.

    Args:
        part: slices or changes.
        target: columns in Spark's types.
    """
    if part is None:
        return
    for batch in _read(part):
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays(as_spark(batch, target), schema=target)


def _read(part: Part) -> Iterator[pa.RecordBatch]:
    if isinstance(part, ChangesPart):
        for unit in part.plan.units:
            yield from read_changes(part.plan, unit)
        return
    for one in part.slices:
        yield from read_slice(part.scan, one)


def _dealt(weights: Sequence[int], parts: int) -> list[list[int]]:
    parts = min(len(weights), parts)
    bins: list[list[Any]] = [[] for _ in range(parts)]
    for number, bin_ in pack_bins({f"{number:09}": weight for number, weight in enumerate(weights)}, parts).items():
        bins[bin_].append(int(number))
    return bins


@dataclass(frozen=True)
class TableQuery:
    """A read. Picklable.

    Attributes:
        storage: the table's storage.
        settings: options of the read.
        options: as given.
    """

    storage: Storage
    settings: ReadOptions
    options: Mapping[str, Any]

    @property
    def is_cdc(self) -> bool:
        """Whether this is a CDC query."""
        return self.settings.query_type == "incremental" and self.settings.incremental_format == "cdc"


def table_columns(query: TableQuery) -> pa.Schema:
    """The columns of a read, in the table's types.

    Raises:
        HudiError: no table, or an unreadable table state.
    """
    if query.is_cdc:
        return CHANGE_SCHEMA
    if query.settings.as_of is None:
        return readable_schema(load_state(query.storage))
    return readable_schema(state_for_query(query.storage, query.settings.as_of, query.settings.metadata_enabled))


def check_columns(query: TableQuery, asked: Any) -> pa.Schema:
    """The Arrow form of the requested columns: a user's schema selects columns and cannot change types.

    Args:
        query: of the table.
        asked: ``StructType``.

    Raises:
        SchemaMismatchError: a requested column is missing, or has another type.
    """
    stored = {field.name: field.dataType for field in spark_schema(table_columns(query)).fields}
    for field in asked.fields:
        if stored.get(field.name) != field.dataType:
            has = "no such column" if field.name not in stored else stored[field.name].simpleString()
            raise SchemaMismatchError(
                f"The schema of the read asks for {field.name} {field.dataType.simpleString()}; {query.storage.uri} "
                f"has {has}. Use columns of the table with their own types: {', '.join(stored)}."
            )
    return arrow_types(asked)


def query_parts(
    query: TableQuery,
    columns: list[str],
    condition: Condition | None = None,
    expression: pc.Expression | None = None,
) -> list[Part]:
    """Plan the parts of a read.

    Args:
        query: of the table.
        columns: requested columns, in this order.
        condition: for data skipping.
        expression: row filter; None for all rows.

    Raises:
        HudiError: see :mod:`hudi_fast.errors`.
    """
    settings = query.settings
    if query.is_cdc:
        return changes_parts(plan_cdc(load_state(query.storage), settings))
    how = ScanQuery.from_options(settings, query.options)
    if settings.query_type == "incremental":
        view = incremental_view(query.storage, settings)
        rows = view.row_filter()
        if rows is not None:
            expression = rows if expression is None else rows & expression
        return slices_parts(plan_view(view, columns, expression, None, how, condition))
    state = state_for_query(query.storage, settings.as_of, settings.metadata_enabled)
    return slices_parts(plan_scan(state, columns, expression, None, how, condition))


_SIGNS: dict[type[Any], str] = {
    ds.EqualTo: "==",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_TEXTS = {
    ds.StringStartsWith: pc.starts_with,
    ds.StringEndsWith: pc.ends_with,
    ds.StringContains: pc.match_substring,
}


@dataclass(frozen=True)
class Pushed:
    """Translated filters.

    Attributes:
        condition: for data skipping.
        expression: keeps all matching rows, and perhaps others; None for all rows.
    """

    condition: Condition
    expression: pc.Expression | None


def understand(filters: Iterable[Any], schema: pa.Schema) -> Pushed:
    """Translate filters joined by ``and``.

    Args:
        filters: of :mod:`pyspark.sql.datasource`.
        schema: of the table.
    """
    conditions: list[Condition] = []
    expression: pc.Expression | None = None
    for one in filters:
        condition, keeps = _understand(one, schema)
        conditions.append(condition)
        if keeps is not None:
            expression = keeps if expression is None else expression & keeps
    return Pushed(And(tuple(conditions)) if conditions else Anything(), expression)


def _understand(one: Any, schema: pa.Schema) -> tuple[Condition, pc.Expression | None]:
    inner, negated = (one.child, True) if isinstance(one, ds.Not) else (one, False)
    kind = _type_of(schema, inner.attribute)
    if kind is None:
        return Anything(), None
    try:
        if pa.types.is_floating(kind) and not isinstance(inner, ds.IsNull | ds.IsNotNull):
            return (Anything() if negated else _floating(inner, kind)), None
        expression = _expression(inner, pc.field(*inner.attribute), kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return Anything(), None  # a value that the column cannot hold
    if expression is None:
        return Anything(), None
    expression = ~expression if negated else expression
    return parse_filter(expression), expression


def _expression(one: Any, field: pc.Expression, kind: pa.DataType) -> pc.Expression | None:
    """The Arrow expression, for columns whose values compare in Arrow as in Spark."""
    if isinstance(one, ds.IsNull):
        return field.is_null()
    if isinstance(one, ds.IsNotNull):
        return field.is_valid()
    if not _compares_alike(kind):
        return None
    if isinstance(one, ds.In):
        # With a null among the values Spark yields null for a value not found. Here it is false; negation keeps more.
        return field.isin(pa.array([value for value in one.value if value is not None], kind))
    if type(one) in _TEXTS and pa.types.is_string(kind):
        return _TEXTS[type(one)](field, one.value)
    if isinstance(one, ds.EqualNullSafe):
        return field.is_null() if one.value is None else field.isin(pa.array([one.value], kind))
    sign = _SIGNS.get(type(one))
    return None if sign is None or one.value is None else _compared(field, sign, pa.scalar(one.value, kind))


def _compared(field: pc.Expression, sign: str, value: pa.Scalar) -> pc.Expression:
    if sign == "==":
        return field == value
    if sign == ">":
        return field > value
    if sign == ">=":
        return field >= value
    return field < value if sign == "<" else field <= value


def _floating(one: Any, kind: pa.DataType) -> Condition:
    sign = _SIGNS.get(type(one))
    if sign is None or one.value is None or math.isnan(one.value):
        return Anything()
    return Compare(sign, Column(tuple(one.attribute)), Constant(pa.scalar(one.value, kind)))


def _type_of(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType | None:
    """Type of a column, or of a field inside structs; None for an unknown name."""
    fields: Any = schema
    for at, name in enumerate(path):
        found = fields.get_field_index(name)
        if found < 0:
            return None
        kind = fields.field(found).type
        if at < len(path) - 1 and not pa.types.is_struct(kind):
            return None
        fields = kind
    return kind if path else None


def _compares_alike(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal128(kind)
    )


class TableReader(DataSourceReader):  # type: ignore[misc]
    """Reads a table.

    Args:
        query: of the table.
        schema: ``StructType`` of the requested columns.
    """

    def __init__(self, query: TableQuery, schema: Any) -> None:
        self._query = query
        self._target = check_columns(query, schema)
        self._pushed = Pushed(Anything(), None)

    def partitions(self) -> Sequence[InputPartition]:
        """One partition for each part, with its scan: Spark has already pickled the reader."""
        parts = query_parts(self._query, self._target.names, self._pushed.condition, self._pushed.expression)
        return [InputPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return part_batches(partition.value, self._target)


class FilteringReader(TableReader):
    """Reads a table with filter pushdown."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Store the filters; Spark also applies all of them itself."""
        if not self._query.is_cdc:
            self._pushed = understand(filters, table_columns(self._query))
        return filters


try:
    from pyspark.sql.streaming import datasource as limits_of_spark
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.0 and 4.1
    limits_of_spark = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Placeholder for older releases."""


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads the commits to a table.

    Args:
        query: of the table.
        source: start offset and batch limits.
        schema: ``StructType`` of the requested columns.

    Raises:
        ConfigError: an option of a query of one range or one time.
        UnsupportedFeatureError: limits with PySpark before 4.2.
    """

    def __init__(self, query: TableQuery, source: SourceOptions, schema: Any) -> None:
        self._query = query
        self._source = source
        self._stream = StreamQuery(query.storage, query.settings, source)
        self._target = check_columns(query, schema)
        self._initial: str | None = None
        self._until: str | None = None
        if self._stream.limits.any and limits_of_spark is None:
            raise UnsupportedFeatureError(
                "hudi_fast.stream.max.commits and hudi_fast.stream.max.bytes need PySpark 4.2: older versions do "
                "not pass the current offset to a source. Leave them out: a batch then reads all new commits. Or use "
                "hudi_fast.stream_changes."
            )

    def initialOffset(self) -> dict[str, str]:
        """The first offset of the stream."""
        self._initial = self._stream.start()
        return StreamOffset(self._initial).stored()

    def getDefaultReadLimit(self) -> Any:
        """The kind of limit, if any; the numbers are in the options."""
        if self._source.max_bytes is not None:
            return limits_of_spark.ReadMaxBytes(self._source.max_bytes)
        if self._source.max_commits is not None:
            return limits_of_spark.ReadMaxFiles(self._source.max_commits)
        return limits_of_spark.ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:
        """The end offset of the next batch; ``start`` itself without new commits."""
        if start is None:  # PySpark before 4.2
            return self._ending(self._stream.newest() or self._initial or FIRST, self._initial)
        everything = limits_of_spark is not None and isinstance(limit, limits_of_spark.ReadAllAvailable)
        begin = StreamOffset.of(start).time
        end = self._stream.end_after(begin, BatchLimits() if everything else self._stream.limits, self._until)
        return dict(start) if end == begin else self._ending(end, begin)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the newest commit of this moment."""
        self._until = self._stream.newest() or FIRST

    def reportLatestOffset(self) -> dict[str, str] | None:
        """The newest available offset."""
        newest = self._stream.newest()
        return None if newest is None else StreamOffset(newest).stored()

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[InputPartition]:
        """The parts of the commits after ``start`` up to ``end``."""
        until = StreamOffset.of(end)
        begin = StreamOffset.of(start).time if until.begin is None else until.begin
        if until.time <= begin:
            return [InputPartition(None)]
        batch = replace(self._query, settings=self._stream.batch_settings(begin, until.time))
        return [InputPartition(part) for part in query_parts(batch, self._target.names)] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return part_batches(partition.value, self._target)

    def commit(self, end: Mapping[str, str]) -> None:
        """Do nothing: the source keeps no data of its own."""

    def stop(self) -> None:
        """Do nothing."""

    def _ending(self, end: str, begin: str | None) -> dict[str, str]:
        first = begin is not None and begin == self._initial and self._stream.starts_at_latest
        return StreamOffset(end, begin if first else None).stored()
