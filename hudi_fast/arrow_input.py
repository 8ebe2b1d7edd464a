"""What a user hands in becomes an Arrow table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hudi_fast.errors import InvalidDataError

__all__ = ["to_arrow_table"]


def to_arrow_table(data: Any) -> pa.Table:
    """An Arrow table of anything that speaks the Arrow C stream protocol (pyarrow, pandas, polars, duckdb).

    Of a pandas index the levels that have a name become columns.

    Raises:
        InvalidDataError: ``data`` is something else, or values of one column are of several types.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    home = type(data).__module__.partition(".")[0]
    if home == "pyspark":
        raise InvalidDataError(
            "Rows of Spark go through the calls that take a session: hudi_fast.write, hudi_fast.merge(spark, ...). "
            f"To work in this process bring them here first (toArrow); got a PySpark {type(data).__name__}."
        )
    if home == "pandas" and hasattr(data, "columns"):
        return _converted(lambda: pa.Table.from_pandas(_with_index(data), preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return _converted(lambda: pa.Table.from_pylist(data))
    lazy = " Collect it first." if home == "polars" else ""
    raise InvalidDataError(
        f"Rows must come as a pyarrow Table, a pandas or polars DataFrame, a list of dicts, or anything else with "
        f"__arrow_c_stream__; got {type(data).__name__}.{lazy}"
    )


def _with_index(frame: Any) -> Any:
    """With the levels of its index that have a name as columns; a column of that name goes before."""
    named = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _converted(convert: Callable[[], pa.Table]) -> pa.Table:
    try:
        return convert()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        why = "; ".join(map(str, error.args))
        raise InvalidDataError(f"The rows cannot become Arrow columns: {why}. Give each column one type.") from error
