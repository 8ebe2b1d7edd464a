"""Rows of a table as objects of other libraries; each library is imported on first use."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.reading.dataset import Scan
from hudi_fast.storage.extras import import_extra

__all__ = ["duckdb_relation", "pandas_frame", "polars_frame"]


def pandas_frame(rows: pa.Table) -> Any:
    """A pandas DataFrame.

    Raises:
        ConfigError: pandas is not installed.
    """
    import_extra("pandas", "pandas", "to_pandas")
    return rows.to_pandas()


def polars_frame(scan: Scan, lazy: bool) -> Any:
    """A polars DataFrame, or a LazyFrame that pushes columns and filters down.

    Raises:
        ConfigError: polars is not installed.
    """
    polars = import_extra("polars", "polars", "to_polars")
    return polars.scan_pyarrow_dataset(scan) if lazy else polars.from_arrow(scan.to_table())


def duckdb_relation(scan: Scan, connection: Any) -> Any:
    """A duckdb relation that pushes columns and filters down.

    Raises:
        ConfigError: duckdb is not installed.
    """
    duckdb = import_extra("duckdb", "sql", "to_duckdb")
    return (duckdb if connection is None else connection).from_arrow(scan)
