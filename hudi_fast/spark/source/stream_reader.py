"""``spark.readStream.format("hudi_fast")``: each batch is an incremental query from one offset to the next.

::

    latestOffset   newest readable commit, or an earlier one if options limit a batch       next_offset
    partitions     (start, end] ─► incremental query ─► parts                               workers read them

An offset is Apache Hudi's own, ``{"offsetCommitTime": "<time>"}``: the completion time of a commit; before table
version 8, and for CDC queries, its requested time. A checkpoint location of Hudi's source can be reused. For a stream
that begins with the latest commit, the end offset of the first batch also stores the begin of that batch: Spark keeps
only end offsets, and after a crash the latest commit may be another one.

Sources: ``HoodieSourceOffset``, ``HoodieStreamSourceV2`` (1.2.0). PySpark before 4.2 does not pass the current offset
to a source, so batches cannot be limited there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hudi_fast.config.moments import normalise_instant, timeline_zone
from hudi_fast.config.read_options import EARLIEST
from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.reading.incremental.offsets import BatchLimits, newest_readable, next_offset
from hudi_fast.spark.source.parts import part_batches
from hudi_fast.spark.source.queries import TableQuery, between, check_columns, query_parts
from hudi_fast.view.table_state import load_state

try:
    from pyspark.sql.streaming import datasource as limits_of_spark
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.0 and 4.1
    limits_of_spark = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Placeholder for older releases."""


__all__ = ["TableStreamReader"]

_TIME = "offsetCommitTime"
_BEGIN = "begin"
_FIRST = "00000000000000"
"""Apache Hudi's offset before all commits."""
_START_KEY = "hoodie.datasource.streaming.startOffset"


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads the commits to a table.

    Args:
        query: of the table.
        source: start offset and batch limits.
        schema: ``StructType`` of the requested columns.

    Raises:
        UnsupportedFeatureError: limits with PySpark before 4.2.
    """

    def __init__(self, query: TableQuery, source: SourceOptions, schema: Any) -> None:
        self._query = query
        self._settings = replace(query.settings, incremental_table_version=6) if query.is_cdc else query.settings
        self._source = source
        self._limits = BatchLimits(source.max_commits, source.max_bytes)
        self._target = check_columns(query, schema)
        self._initial: str | None = None
        self._until: str | None = None
        if self._limits.any and limits_of_spark is None:
            raise UnsupportedFeatureError(
                "hudi_fast.stream.max.commits and hudi_fast.stream.max.bytes need PySpark 4.2: older versions do "
                "not pass the current offset to a source. Leave them out: a batch then reads all new commits."
            )

    def initialOffset(self) -> dict[str, str]:
        """The first offset of the stream."""
        start = self._source.start
        if start.lower() == "earliest":
            self._initial = _FIRST
        elif start.lower() == "latest":
            newest = newest_readable(load_state(self._query.storage), self._settings)
            self._initial = _FIRST if newest is None else newest
        else:
            self._initial = normalise_instant(start, _START_KEY, timeline_zone(self._query.storage))
        return {_TIME: self._initial}

    def getDefaultReadLimit(self) -> Any:
        """The kind of limit, if any; the numbers are in the options."""
        if self._source.max_bytes is not None:
            return limits_of_spark.ReadMaxBytes(self._source.max_bytes)
        if self._source.max_commits is not None:
            return limits_of_spark.ReadMaxFiles(self._source.max_commits)
        return limits_of_spark.ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:
        """The end offset of the next batch; ``start`` itself without new commits."""
        state = load_state(self._query.storage)
        if start is None:  # PySpark before 4.2
            newest = newest_readable(state, self._settings) or self._initial or _FIRST
            return self._ending(newest, self._initial)
        everything = limits_of_spark is not None and isinstance(limit, limits_of_spark.ReadAllAvailable)
        limits = BatchLimits() if everything else self._limits
        begin = _time_of(start)
        end = next_offset(state, _bound(begin), limits, self._settings, self._until)
        return dict(start) if end == _bound(begin) else self._ending(end, begin)

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the newest commit of this moment."""
        state = load_state(self._query.storage)
        self._until = newest_readable(state, self._settings) or _FIRST

    def reportLatestOffset(self) -> dict[str, str] | None:
        """The newest available offset."""
        newest = newest_readable(load_state(self._query.storage), self._settings)
        return None if newest is None else {_TIME: newest}

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[InputPartition]:
        """The parts of the commits after ``start`` up to ``end``."""
        begin, until = end.get(_BEGIN, _time_of(start)), _time_of(end)
        if until <= begin:
            return [InputPartition(None)]
        parts = query_parts(between(self._query, _bound(begin), until), self._target.names)
        return [InputPartition(part) for part in parts] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return part_batches(partition.value, self._target)

    def commit(self, end: Mapping[str, str]) -> None:
        """Do nothing: the source keeps no data of its own."""

    def stop(self) -> None:
        """Do nothing."""

    def _ending(self, end: str, begin: str | None) -> dict[str, str]:
        first = begin is not None and begin == self._initial and self._source.start.lower() == "latest"
        return {_TIME: end, _BEGIN: str(begin)} if first else {_TIME: end}


def _time_of(offset: Mapping[str, str]) -> str:
    if _TIME not in offset:
        raise CorruptTableError(f"The offset {dict(offset)} of the stream's checkpoint has no {_TIME}.")
    return offset[_TIME]


def _bound(time: str) -> str:
    """A time as the begin of a range."""
    return time if time.strip("0") else EARLIEST
