"""Transformers of a turn on Spark: the functions of the one-process engine in tasks, and SQL by Spark.

::

    UnitRows: units, and how a task reads one ─► functions of batches are called where the unit is read
        └─► frame_of ─► DataFrame ─► Spark SQL ─► functions of batches by mapInArrow

So the rows that a function makes are those of the one-process engine. The columns that it makes are known from a call
without rows.

Source: ``SqlQueryBasedTransformer`` and ``ChainedTransformer`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_fast.errors import ConfigError, HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.streamer.transform import Transform, of_function, require_placeholder

__all__ = ["SparkTransform", "UnitRows", "by_batches", "by_function", "by_sql", "frame_of"]

SparkTransform = Callable[[Any], Any]
"""Takes and returns :class:`UnitRows` or a DataFrame."""


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Rows that tasks read, which no task has read yet.

    Attributes:
        units: what tasks read, such as files; picklable, one at least.
        read: the batches of a unit, in ``schema``; picklable.
        schema: of the rows.
        what: names the source, for errors.
    """

    units: Sequence[Any]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    what: str


def frame_of(spark: Any, rows: Any) -> Any:
    """A lazy DataFrame of rows.

    Args:
        spark: the session.
        rows: :class:`UnitRows`, or a DataFrame.

    Raises:
        ConfigError: they are something else.
        UnsupportedFeatureError: Spark does not have the type of a column.
    """
    if isinstance(rows, UnitRows):
        from hudi_fast.spark.turn_rows import rows_of

        return rows_of(spark, rows.units, rows.read, rows.schema, rows.what)
    if not hasattr(rows, "sparkSession"):
        raise ConfigError(
            f"With Spark as the engine, a source gives a DataFrame of Spark; got {type(rows).__name__}. Return one, "
            "or leave the session out."
        )
    return rows


def by_batches(spark: Any, transform: Transform) -> SparkTransform:
    """A function of a stream of batches, which tasks call.

    Args:
        spark: the session.
        transform: each batch that it returns depends on one batch; picklable.
    """
    return _in_tasks(spark, transform, lambda schema: transform(_empty(schema)).schema, "A transformer")


def by_function(spark: Any, function: Callable[[pa.RecordBatch], Any]) -> SparkTransform:
    """A function of the caller, which tasks call for each batch of rows.

    It is called on the driver without rows first, so that its columns are known.

    Args:
        spark: the session.
        function: as for :func:`~hudi_fast.streamer.transform.of_function`; picklable.

    Raises:
        ConfigError: it is not a function.
    """
    transform, name = of_function(function), getattr(function, "__name__", repr(function))

    def columns_of(schema: pa.Schema) -> pa.Schema:
        return _columns_of_function(function, name, schema)

    return _in_tasks(spark, transform, columns_of, f"The transformer {name}")


def by_sql(spark: Any, text: str) -> SparkTransform:
    """A query of Spark SQL over the rows of the turn.

    Args:
        spark: the session.
        text: a query, in which ``<SRC>`` stands for the rows.

    Raises:
        ConfigError: the text is not one query, or does not name the rows.
    """
    from hudi_fast.spark.turn_rows import queried, require_query

    placeholder = require_placeholder(text)
    query = text.strip().rstrip(";")
    require_query(spark, query.replace(placeholder, "hudi_fast_source"))
    return lambda rows: queried(frame_of(spark, rows), query, placeholder)


def _in_tasks(
    spark: Any, transform: Transform, columns_of: Callable[[pa.Schema], pa.Schema], what: str
) -> SparkTransform:
    def apply(rows: Any) -> Any:
        if isinstance(rows, UnitRows):
            given, made, read = rows.schema, columns_of(rows.schema), rows.read

            def read_and_transform(unit: Any) -> Iterator[pa.RecordBatch]:
                batches = pa.RecordBatchReader.from_batches(given, _plain(read(unit)))
                return _checked(transform(batches), made, what)

            return replace(rows, read=read_and_transform, schema=made)
        from hudi_fast.spark.arrow import arrow_schema
        from hudi_fast.spark.turn_rows import mapped

        frame = frame_of(spark, rows)
        made = columns_of(arrow_schema(frame))
        return mapped(frame, lambda batches: _checked_reader(transform(batches), made, what), made, what)

    return apply


def _plain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch.replace_schema_metadata(None) for batch in batches)


def _checked(batches: Any, schema: pa.Schema, what: str) -> Iterator[pa.RecordBatch]:
    """The batches, which have the columns that are known."""
    for batch in batches:
        if not batch.schema.equals(schema):
            raise InvalidDataError(
                f"{what} returned other columns than for a batch without rows: expected {_shown(schema)}; found "
                f"{_shown(batch.schema)}. Give its columns the same types for every batch."
            )
        yield batch


def _checked_reader(batches: Any, schema: pa.Schema, what: str) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, _checked(batches, schema, what))


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {one.type}" for one in schema)


def _columns_of_function(function: Callable[[pa.RecordBatch], Any], name: str, schema: pa.Schema) -> pa.Schema:
    way_out = "Let it return a batch without rows for one, or use a SQL transformer in its place."
    try:
        made = function(_no_batch(schema))
    except HudiError:
        raise
    except Exception as error:
        raise UnsupportedFeatureError(
            f"On Spark the transformer {name} gets a batch without rows first, so that its columns are known. It "
            f"failed: {type(error).__name__}: {error}. {way_out}"
        ) from error
    if not isinstance(made, pa.RecordBatch | pa.Table):
        raise UnsupportedFeatureError(
            f"On Spark the transformer {name} gets a batch without rows first, so that its columns are known. It "
            f"returned {type(made).__name__}. {way_out}"
        )
    return made.schema.remove_metadata()


def _no_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, [])
