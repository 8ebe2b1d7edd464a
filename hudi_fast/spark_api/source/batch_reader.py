"""``spark.read.format("hudi_fast")``: the driver plans parts, workers read them and return Arrow batches.

Filter pushdown is off by default (``hudi_fast.source.pushdown``): PySpark 4.1 to 4.3 reuse the parts planned for the
filters of an earlier query of the same DataFrame, so rows of a later query would be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from hudi_fast.expressions.conditions import Anything
from hudi_fast.spark_api.source.filters import Pushed, understand
from hudi_fast.spark_api.source.parts import part_batches
from hudi_fast.spark_api.source.queries import TableQuery, check_columns, query_parts, table_columns

__all__ = ["FilteringReader", "TableReader"]


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
