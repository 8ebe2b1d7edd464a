"""``spark.readStream.format("hudi_fast")``: each batch is an incremental query from one offset to the next.

::

    latestOffset   newest commit that can be read, or fewer as the options limit a batch    next_offset
    partitions     (start, end] ─► incremental query ─► parts                               workers read them

An offset is Apache Hudi's own, ``{"offsetCommitTime": "<time>"}``: completion time of a commit, of table versions
before 8, and of changes (cdc), its requested time. A checkpoint location can be taken over from Hudi's source. The end
of the first batch of a stream that begins with the latest commit also says where that batch began: Spark keeps ends
only, and when the batch is run again after a crash the latest commit is another one.

Sources: ``HoodieSourceOffset``, ``HoodieStreamSourceV2`` (1.2.0). PySpark before 4.2 does not tell a source where it
is, so that batches cannot be limited there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hudi_fast.config.read_options import EARLIEST, normalise_instant
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
        """Nothing, there."""


__all__ = ["TableStreamReader"]

_TIME = "offsetCommitTime"
_BEGIN = "begin"
_FIRST = "00000000000000"
"""Before all commits, as Apache Hudi spells it."""
_START_KEY = "hoodie.datasource.streaming.startOffset"


class TableStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads what is committed to a table.

    Args:
        query: of the table.
        source: where to begin, and how much a batch brings.
        schema: ``StructType`` of the columns that are wanted.

    Raises:
        UnsupportedFeatureError: limits, and PySpark before 4.2.
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
                "hudi_fast.stream.max.commits and hudi_fast.stream.max.bytes need PySpark 4.2: before it a source does "
                "not learn where its stream is. Leave them out: a batch then brings all that there is."
            )

    def initialOffset(self) -> dict[str, str]:
        """Where the stream begins."""
        start = self._source.start
        if start.lower() == "earliest":
            self._initial = _FIRST
        elif start.lower() == "latest":
            newest = newest_readable(load_state(self._query.storage), self._settings)
            self._initial = _FIRST if newest is None else newest
        else:
            self._initial = normalise_instant(start, _START_KEY)
        return {_TIME: self._initial}

    def getDefaultReadLimit(self) -> Any:
        """That there is one, if there is one: the numbers are in the options."""
        if self._source.max_bytes is not None:
            return limits_of_spark.ReadMaxBytes(self._source.max_bytes)
        if self._source.max_commits is not None:
            return limits_of_spark.ReadMaxFiles(self._source.max_commits)
        return limits_of_spark.ReadAllAvailable()

    def latestOffset(self, start: Mapping[str, str] | None = None, limit: Any = None) -> dict[str, str]:
        """Where the next batch ends; ``start`` itself when there is nothing new."""
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
        """Go no further than what is there now."""
        state = load_state(self._query.storage)
        self._until = newest_readable(state, self._settings) or _FIRST

    def reportLatestOffset(self) -> dict[str, str] | None:
        """How far the stream could be."""
        newest = newest_readable(load_state(self._query.storage), self._settings)
        return None if newest is None else {_TIME: newest}

    def partitions(self, start: Mapping[str, str], end: Mapping[str, str]) -> Sequence[InputPartition]:
        """What was committed after ``start`` up to ``end``."""
        begin, until = end.get(_BEGIN, _time_of(start)), _time_of(end)
        if until <= begin:
            return [InputPartition(None)]
        parts = query_parts(between(self._query, _bound(begin), until), self._target.names)
        return [InputPartition(part) for part in parts] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        return part_batches(partition.value, self._target)

    def commit(self, end: Mapping[str, str]) -> None:
        """Nothing: what the stream has read belongs to the table."""

    def stop(self) -> None:
        """Nothing."""

    def _ending(self, end: str, begin: str | None) -> dict[str, str]:
        first = begin is not None and begin == self._initial and self._source.start.lower() == "latest"
        return {_TIME: end, _BEGIN: str(begin)} if first else {_TIME: end}


def _time_of(offset: Mapping[str, str]) -> str:
    if _TIME not in offset:
        raise CorruptTableError(f"The offset {dict(offset)} of the stream's checkpoint has no {_TIME}.")
    return offset[_TIME]


def _bound(time: str) -> str:
    """A time as ranges have their begin."""
    return time if time.strip("0") else EARLIEST
