"""Find columns of a Parquet file with a single text, by the statistics of their chunks: their pages need not be read.

Some of Hudi's meta columns are such columns: a base file has one partition path, one file name, and one commit time
until an update adds another. All batches share the memory of one repeated text.

Truncated bounds differ from each other, so equal bounds are the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["ConstantColumns"]

Statistics = Callable[[int, int], Any]


class ConstantColumns:
    """The constant text columns among some columns, and their arrays.

    Args:
        statistics: returns the statistics of a row group and a leaf column; None if they are unknown.
        numbers: numbers of the leaf columns, by dotted path.
        schema: schema of the file.
        columns: top-level columns, in the order of the batches.
        groups: row groups that are read.
    """

    def __init__(
        self,
        statistics: Statistics,
        numbers: Mapping[str, int],
        schema: pa.Schema,
        columns: Sequence[str],
        groups: Sequence[int],
    ) -> None:
        self._names = list(columns)
        self._rows = 0
        self._values: dict[str, pa.Scalar] = {}
        self._arrays: dict[str, pa.Array] = {}
        if not set(schema.names).issuperset(columns):  # leaves of nested columns have dotted names
            return
        self._schema = pa.schema([schema.field(name) for name in columns])
        for field in self._schema:
            number = numbers.get(field.name)  # None if a damaged footer has chunks with other names
            value = None if number is None or field.type != pa.string() else _value(statistics, number, groups)
            if value is not None:
                self._values[field.name] = value

    @property
    def others(self) -> list[str]:
        """The columns to read."""
        return [name for name in self._names if name not in self._values]

    def added_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """All columns in their order; ``batch`` has :attr:`others`."""
        if not self._values:
            return batch
        rows = batch.num_rows
        if rows > self._rows:
            self._rows = rows
            self._arrays = {name: pa.repeat(value, rows) for name, value in self._values.items()}
        arrays = [
            self._arrays[name].slice(0, rows) if name in self._arrays else batch.column(name) for name in self._names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _value(statistics: Statistics, column: int, groups: Sequence[int]) -> pa.Scalar | None:
    """The text of all rows in some row groups; None for several texts, for nulls, or without statistics."""
    found = None
    for group in groups:
        bounds = statistics(group, column)
        if bounds is None or not bounds.has_min_max or not bounds.has_null_count or bounds.null_count:
            return None
        if bounds.min_raw != bounds.max_raw or (found is not None and found != bounds.min_raw):
            return None
        found = bounds.min_raw
    try:
        return None if found is None else pa.scalar(found.decode(), pa.string())
    except UnicodeDecodeError:
        return None
