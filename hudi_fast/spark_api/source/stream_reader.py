"""``spark.readStream.format("hudi_fast")``: each batch is an incremental query from one offset to the next.

::

    latestOffset   newest readable commit, or an earlier one if options limit a batch       StreamQuery.end_after
    partitions     (start, end] ─► incremental query ─► parts                               workers read them

For a stream that begins with the latest commit, the end offset of the first batch also stores the begin of that batch:
Spark keeps only end offsets, and after a crash the latest commit may be another one. PySpark before 4.2 does not pass
the current offset to a source, so batches cannot be limited there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.reading.incremental.offsets import BatchLimits
from hudi_fast.reading.incremental.stream import FIRST, StreamOffset, StreamQuery
from hudi_fast.spark_api.source.parts import part_batches
from hudi_fast.spark_api.source.queries import TableQuery, check_columns, query_parts

try:
    from pyspark.sql.streaming import datasource as limits_of_spark
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # PySpark 4.0 and 4.1
    limits_of_spark = None

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Placeholder for older releases."""


__all__ = ["TableStreamReader"]


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
