"""Rows of a table as objects of other libraries; each library is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError
from hudi_fast.reading.dataset import Scan
from hudi_fast.reading.polars_scan import lazy_frame
from hudi_fast.storage.extras import import_extra

__all__ = ["duckdb_relation", "pandas_chunks", "pandas_frame", "polars_frame"]


def pandas_frame(rows: pa.Table) -> Any:
    """A pandas DataFrame.

    Raises:
        ConfigError: pandas is not installed.
    """
    import_extra("pandas", "pandas", "to_pandas")
    return rows.to_pandas()


def pandas_chunks(batches: pa.RecordBatchReader, size: int) -> Iterator[Any]:
    """pandas DataFrames of ``size`` rows; the last may have fewer.

    Raises:
        ConfigError: pandas is not installed, or ``size`` is not a number, or below 1.
    """
    import_extra("pandas", "pandas", "to_pandas")
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ConfigError(f"chunksize takes a number of rows, 1 or more; got {size!r}.")
    return (pa.Table.from_batches(chunk, batches.schema).to_pandas() for chunk in _chunks(batches, size))


def _chunks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    chunk: list[pa.RecordBatch] = []
    left = size
    for batch in batches:
        while batch.num_rows >= left:
            yield [*chunk, batch.slice(0, left)]
            batch, chunk, left = batch.slice(left), [], size
        if batch.num_rows:
            chunk.append(batch)
            left -= batch.num_rows
    if chunk:
        yield chunk


def polars_frame(scan: Scan, lazy: bool) -> Any:
    """A polars DataFrame, or a LazyFrame that pushes columns, filters and numbers of rows down.

    Raises:
        ConfigError: polars is not installed.
    """
    polars = import_extra("polars", "polars", "to_polars")
    return lazy_frame(scan) if lazy else polars.from_arrow(scan.to_table())


def duckdb_relation(scan: Scan, connection: Any) -> Any:
    """A duckdb relation that pushes columns and filters down.

    Raises:
        ConfigError: duckdb is not installed.
    """
    duckdb = import_extra("duckdb", "sql", "to_duckdb")
    return (duckdb if connection is None else connection).from_arrow(scan)
