"""Conversion of user input to Arrow tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hudi_fast.errors import InvalidDataError

__all__ = ["to_arrow_table"]


def to_arrow_table(data: Any) -> pa.Table:
    """Convert rows to an Arrow table.

    Args:
        data: a pyarrow table or record batch, a pandas DataFrame (named index levels become columns), a non-empty list
            of dicts, or any object with ``__arrow_c_stream__`` (polars, duckdb ...).

    Raises:
        InvalidDataError: ``data`` is of another type, or a column mixes types.
    """
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    home = type(data).__module__.partition(".")[0]
    if home == "pyspark":
        raise InvalidDataError(
            "This call takes local rows. Pass Spark rows to the calls that take a session: hudi_fast.write, "
            "hudi_fast.merge(spark, ...); or collect them into this process first (toArrow). "
            f"Got a PySpark {type(data).__name__}."
        )
    if home == "pandas" and hasattr(data, "columns"):
        return _converted(lambda: pa.Table.from_pandas(_with_index(data), preserve_index=False))
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return _converted(lambda: pa.Table.from_pylist(data))
    lazy = " Collect it first." if home == "polars" else ""
    raise InvalidDataError(
        f"Rows must be a pyarrow Table, a pandas or polars DataFrame, a list of dicts, or an object with "
        f"__arrow_c_stream__; got {type(data).__name__}.{lazy}"
    )


def _with_index(frame: Any) -> Any:
    """Turn named index levels into columns; an existing column of the same name wins."""
    named = [name for name in frame.index.names if isinstance(name, str) and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def _converted(convert: Callable[[], pa.Table]) -> pa.Table:
    try:
        return convert()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError) as error:
        why = "; ".join(map(str, error.args))
        raise InvalidDataError(
            f"The rows cannot be converted to Arrow columns: {why}. Give each column one type."
        ) from error
