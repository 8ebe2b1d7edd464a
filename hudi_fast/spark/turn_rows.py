"""Rows of a turn of a stream as a DataFrame: tasks read units of a source, and apply functions of Arrow batches.

::

    units: files, ranges of messages ─► range of numbers ─► mapInArrow: read each unit ─► DataFrame
    units ─► answers_of: one answer of each unit, on the driver
    DataFrame ─► mapped: a function of a stream of batches ─► DataFrame
    DataFrame ─► queried: a temporary view and Spark SQL ─► DataFrame

A DataFrame is evaluated more than once, so a unit gives the same rows each time. Errors of hudi_fast in tasks are text
inside Spark's own error; :func:`explained_task_errors` raises them again.
"""

from __future__ import annotations

import pickle
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import ArrayType, MapType, StructType

from hudi_fast import errors
from hudi_fast.errors import ConfigError, HudiError, UnsupportedFeatureError
from hudi_fast.spark.arrow import arrow_schema, as_spark, parallelism, spark_arrow, spark_schema
from hudi_fast.spark.job_errors import explained_job_errors
from hudi_fast.spark.jvm import java_class
from hudi_fast.spark.session import as_it_was, is_classic
from hudi_fast.spark.writing.tasks import ANSWER_SCHEMA

__all__ = ["answers_of", "explained_task_errors", "mapped", "no_rows", "queried", "require_query", "rows_of"]

_TASKS_PER_CORE = 4
_QUERY_WORDS = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:select|with|from|values|table)\b", re.IGNORECASE | re.DOTALL
)
_COMMANDS = tuple(
    f"org.apache.spark.sql.catalyst.plans.logical.{name}" for name in ("Command", "ParsedStatement", "V2WriteCommand")
)
_RAISED = re.compile(r"^ *hudi_fast\.errors\.(\w+): ([^\n]*)", re.MULTILINE)
"""Matches an error of hudi_fast at the end of a traceback."""

Unit = TypeVar("Unit")
Answer = TypeVar("Answer")
Batches = Iterator[pa.RecordBatch]


def rows_of(spark: Any, units: Sequence[Unit], read: Callable[[Unit], Batches], schema: pa.Schema, what: str) -> Any:
    """A lazy DataFrame of the rows of units.

    Args:
        spark: the session.
        units: what tasks read; picklable, one at least.
        read: the batches of a unit, in ``schema``; picklable.
        schema: of the rows.
        what: names the source, for errors.

    Raises:
        UnsupportedFeatureError: Spark has no such type, or would change it.
    """
    target, struct = spark_arrow(schema), _struct_of(schema, what)

    def run(batches: Batches) -> Batches:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for rows in read(units[number]):
                yield pa.RecordBatch.from_arrays(as_spark(rows, target), schema=target)

    return _numbers(spark, len(units)).mapInArrow(run, struct)


def answers_of(spark: Any, units: Sequence[Unit], function: Callable[[Unit], Answer]) -> list[Answer]:
    """The answer of a function for each unit, in their order; tasks call it.

    Args:
        spark: the session.
        units: picklable.
        function: picklable, and so is what it returns.

    Raises:
        HudiError: a task raised it.
    """
    if not units:
        return []

    def run(batches: Batches) -> Batches:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            answer = pickle.dumps((number, function(units[number])))
            yield pa.RecordBatch.from_arrays([pa.array([answer], pa.binary())], ["answer"])

    with explained_task_errors(spark):
        found = _numbers(spark, len(units)).mapInArrow(run, ANSWER_SCHEMA).collect()
    by_number = dict(pickle.loads(row[0]) for row in found)
    return [by_number[number] for number in range(len(units))]


def mapped(
    df: Any, function: Callable[[pa.RecordBatchReader], pa.RecordBatchReader], schema: pa.Schema, what: str
) -> Any:
    """A lazy DataFrame of what a function makes of the rows of each task.

    Args:
        df: the rows.
        function: takes and returns a stream of batches; picklable.
        schema: of the rows that it returns.
        what: names the function, for errors.

    Raises:
        UnsupportedFeatureError: as :func:`rows_of`.
    """
    given, target, struct = arrow_schema(df), spark_arrow(schema), _struct_of(schema, what)

    def run(batches: Batches) -> Batches:
        taken = (pa.RecordBatch.from_arrays(as_spark(batch, given), schema=given) for batch in batches)
        for made in function(pa.RecordBatchReader.from_batches(given, taken)):
            yield pa.RecordBatch.from_arrays(as_spark(made, target), schema=target)

    return df.mapInArrow(run, struct)


def no_rows(spark: Any, schema: pa.Schema) -> Any:
    """A DataFrame of the columns without rows."""
    return spark.createDataFrame([], spark_schema(schema))


def require_query(spark: Any, text: str) -> None:
    """Check that a text is one query, which changes nothing.

    Args:
        spark: the session.
        text: of Spark SQL.

    Raises:
        ConfigError: it cannot be parsed, or is a command.
    """
    is_query = _QUERY_WORDS.match(text) is not None
    if is_query and is_classic(spark):
        try:
            plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
        except PySparkException as error:
            raise ConfigError(f"The SQL of a transformer cannot be parsed: {_first_line(error)}") from error
        is_query = not _has_command(spark, plan)
    if not is_query:
        raise ConfigError(f"The SQL of a transformer is one query (SELECT or WITH); got {text!r}.")


def queried(df: Any, text: str, placeholder: str) -> Any:
    """A lazy DataFrame of a query.

    Args:
        df: the rows.
        text: of Spark SQL.
        placeholder: stands for the rows in it.

    Raises:
        ConfigError: Spark refuses the query.
    """
    spark, view = df.sparkSession, f"hudi_fast_source_{uuid.uuid4().hex}"
    df.createOrReplaceTempView(view)
    try:
        return as_it_was(type(spark).sql)(spark, text.replace(placeholder, view))
    except PySparkException as error:
        said = _first_line(error).replace(view, placeholder)
        raise ConfigError(f"The SQL of a transformer failed: {said}") from error
    finally:
        if is_classic(spark):  # a query of Spark Connect looks for the view when it runs
            spark.catalog.dropTempView(view)


@contextmanager
def explained_task_errors(spark: Any) -> Iterator[None]:
    """Raise errors of hudi_fast that tasks of the block raised, in place of Spark's errors around them.

    Raises:
        HudiError: a task raised it.
    """
    try:
        with explained_job_errors(spark):
            yield
    except PySparkException as error:
        found = _raised_in(str(error))
        if found is None:
            raise
        raise found from error


def _raised_in(text: str) -> HudiError | None:
    """The last error of hudi_fast in the traceback of a task."""
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, HudiError):
            return kind(message.strip())
    return None


def _numbers(spark: Any, count: int) -> Any:
    """The numbers of units, in so many tasks that each has few of them."""
    return spark.range(0, count, 1, min(count, _TASKS_PER_CORE * parallelism(spark)))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _has_command(spark: Any, plan: Any) -> bool:
    """Whether a parsed plan, or a part of it, is a command: an INSERT may stand behind a WITH."""
    loader, class_of = plan.getClass().getClassLoader(), java_class(spark._jvm, "java.lang.Class").forName
    kinds = [class_of(name, True, loader) for name in _COMMANDS]
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if any(kind.isInstance(node) for kind in kinds):
            return True
        children = node.children()
        nodes += [children.apply(number) for number in range(children.size())]
    return False


# ---- types


def _struct_of(schema: pa.Schema, what: str) -> Any:
    """The Spark schema of rows, whose required fields stay required."""
    for one in schema:
        _require_known(one.type, one.name, what)
    try:
        struct = spark_schema(schema)
    except PySparkException as error:
        raise UnsupportedFeatureError(
            f"{what} has a column whose type Spark does not have: {_first_line(error)}. Give the column another type "
            "in a schema (hoodie.streamer.schemaprovider.source.schema.file), or leave the Spark engine out."
        ) from error
    for one, given in zip(struct.fields, schema, strict=True):
        one.nullable = given.nullable
        _require_parts(one.dataType, given.type)
    return struct


def _require_known(kind: pa.DataType, name: str, what: str) -> None:
    """Refuse types that Spark would change: the table would have another type than the one-process engine gives it."""
    is_fixed = pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind)
    if pa.types.is_time(kind) or pa.types.is_null(kind) or is_fixed:
        raise UnsupportedFeatureError(
            f"{what}: the column {name!r} has the type {kind}, which Spark does not have. Give it another type in a "
            "schema (hoodie.streamer.schemaprovider.source.schema.file), or leave the Spark engine out."
        )
    if pa.types.is_struct(kind):
        for one in kind:
            _require_known(one.type, f"{name}.{one.name}", what)
    elif pa.types.is_map(kind):
        _require_known(kind.item_type, f"{name}.value", what)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _require_known(kind.value_type, f"{name}.element", what)


def _require_parts(struct: Any, kind: pa.DataType) -> None:
    """Mark the parts of a Spark type that are required in Arrow."""
    if isinstance(struct, StructType):
        for one, given in zip(struct.fields, kind, strict=True):
            one.nullable = given.nullable
            _require_parts(one.dataType, given.type)
    elif isinstance(struct, ArrayType):
        struct.containsNull = kind.value_field.nullable
        _require_parts(struct.elementType, kind.value_type)
    elif isinstance(struct, MapType):
        struct.valueContainsNull = kind.item_field.nullable
        _require_parts(struct.valueType, kind.item_type)
