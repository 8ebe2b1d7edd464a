"""What a user hands in becomes an Arrow table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_fast.errors import InvalidDataError

__all__ = ["to_arrow_table"]


def to_arrow_table(data: Any) -> pa.Table:
    """An Arrow table of anything that speaks the Arrow C stream protocol (pyarrow, pandas, polars, duckdb).

    Raises:
        InvalidDataError: ``data`` is something else.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return pa.Table.from_pylist(data)
    raise InvalidDataError(
        f"Rows must come as a pyarrow Table, a pandas or polars DataFrame, a list of dicts, or anything else with "
        f"__arrow_c_stream__; got {type(data).__name__}."
    )
