"""Between Spark DataFrames and Arrow, on PySpark 3.5 and 4.x, classic and Connect."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError

__all__ = [
    "ARROW_GROWTH",
    "arrow_batches_of",
    "arrow_schema",
    "arrow_types",
    "checked_arrow_types",
    "collect",
    "estimated_bytes",
    "is_local",
    "parallelism",
    "session_conf",
]

_BATCH_ROWS = 65536

ARROW_GROWTH = 2
"""How much larger rows are in memory than Spark's estimate, which for files is their size on disk."""
_REFUSED_TYPES = frozenset({"variant", "geometry", "geography"})  # they reach Python as structs


def arrow_schema(df: Any) -> pa.Schema:
    """The Arrow schema in which ``df``'s rows reach Python.

    Raises:
        UnsupportedFeatureError: a stream, or a type that would come back as another one.
    """
    if df.isStreaming:
        raise UnsupportedFeatureError(
            "A streaming DataFrame cannot be written at once; hand its batches over: "
            "stream.writeStream.foreachBatch(hudi_fast.sink(path, options)).start()."
        )
    return checked_arrow_types(df.schema)


def checked_arrow_types(struct: Any) -> pa.Schema:
    """The Arrow form of a Spark schema (``StructType``) in which its rows reach Python.

    Raises:
        UnsupportedFeatureError: a type that would come back as another one.
    """
    _refuse_types(struct, "")
    return arrow_types(struct)


def arrow_types(struct: Any) -> pa.Schema:
    """The Arrow form of a Spark schema (``StructType``); timestamps are in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    schema: pa.Schema = to_arrow_schema(struct, **zone)
    return schema


def _refuse_types(kind: Any, name: str) -> None:
    if kind.typeName() in _REFUSED_TYPES:
        raise UnsupportedFeatureError(f"Column {name!r} has Spark's type {kind.typeName()}; cast it to another type.")
    for field in getattr(kind, "fields", ()):
        _refuse_types(field.dataType, f"{name}.{field.name}" if name else field.name)
    for part in ("elementType", "keyType", "valueType"):
        if hasattr(kind, part):
            _refuse_types(getattr(kind, part), name)


def collect(df: Any) -> pa.Table:
    """All rows on the driver; the caller has bounded them."""
    with arrow_batches_of(df.sparkSession):
        if hasattr(df, "toArrow"):  # Spark 4
            return df.toArrow()
        batches = df._collect_as_arrow()
        return pa.Table.from_batches(batches, None if batches else arrow_schema(df))


def arrow_batches_of(spark: Any, rows: int = _BATCH_ROWS) -> AbstractContextManager[None]:
    """Let Arrow batches to Python hold that many rows; Spark's default of 10 000 doubles the cost of key columns."""
    return session_conf(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": str(rows)})


@contextmanager
def session_conf(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for the time of the block; afterwards they are as they were."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def estimated_bytes(df: Any) -> int | None:
    """What Spark's optimizer takes the rows' size to be.

    None where it cannot be asked (Spark Connect), or does not know: rows of Python, of an RDD or of a stream's batch
    count as ``spark.sql.defaultSizeInBytes``, eight exabytes.
    """
    jdf = getattr(df, "_jdf", None)
    if jdf is None:
        return None
    plan = jdf.queryExecution().optimizedPlan()
    unknown = int(df.sparkSession.conf.get("spark.sql.defaultSizeInBytes", str(2**63 - 1)))
    leaves = plan.collectLeaves()
    sizes = [int(str(leaves.apply(number).stats().sizeInBytes())) for number in range(leaves.size())]
    return None if any(size >= unknown for size in sizes) else int(str(plan.stats().sizeInBytes()))


def parallelism(spark: Any) -> int:
    """Tasks that run at once."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    return max(1, int(spark.conf.get("spark.default.parallelism", "2")))


def is_local(spark: Any) -> bool:
    """Whether the session has no executors but the driver."""
    return str(spark.conf.get("spark.master", "local")).startswith("local")
