"""Between Spark DataFrames and Arrow, on PySpark 3.5 and 4.x, classic and Connect."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

__all__ = ["arrow_batches_of", "arrow_schema", "collect", "estimated_bytes", "parallelism"]

_BATCH_ROWS = 65536


def arrow_schema(df: Any) -> pa.Schema:
    """The Arrow schema in which ``df``'s rows reach Python."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    schema: pa.Schema = to_arrow_schema(df.schema, **zone)
    return schema


def collect(df: Any) -> pa.Table:
    """All rows on the driver; the caller has bounded them."""
    with arrow_batches_of(df.sparkSession):
        if hasattr(df, "toArrow"):  # Spark 4
            return df.toArrow()
        schema = arrow_schema(df)
        return pa.Table.from_batches(df._collect_as_arrow(), schema)


@contextmanager
def arrow_batches_of(spark: Any, rows: int = _BATCH_ROWS) -> Iterator[None]:
    """Let Arrow batches to Python hold that many rows; Spark's default of 10 000 doubles the cost of key columns."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    spark.conf.set(key, str(rows))
    try:
        yield
    finally:
        spark.conf.set(key, before)


def estimated_bytes(df: Any) -> int | None:
    """What Spark's optimizer takes the rows' size to be; None where it cannot be asked (Spark Connect)."""
    jdf = getattr(df, "_jdf", None)
    if jdf is None:
        return None
    return int(str(jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def parallelism(spark: Any) -> int:
    """Tasks that run at once."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    return max(1, int(spark.conf.get("spark.default.parallelism", "2")))
