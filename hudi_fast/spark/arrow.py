"""Convert between Spark DataFrames and Arrow, and table types to Spark's.

Converts between Spark DataFrames and Arrow, on PySpark 3.5 and 4.x, classic and Connect.

Times of day become numbers, timestamps count microseconds, fixed-size binary becomes binary, vectors become arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.column_limits import has_required_part
from hudi_fast.formats.logical_types import HUDI_TYPE, descriptor_of, is_blob, is_vector
from hudi_fast.schema.conform import conform

__all__ = [
    "ARROW_GROWTH",
    "BATCH_BYTES",
    "arrow_batches_of",
    "arrow_schema",
    "arrow_types",
    "as_spark",
    "checked_arrow_types",
    "collect",
    "estimated_bytes",
    "first_rows",
    "frame_of",
    "is_local",
    "names_are_exact",
    "numbers_of",
    "parallelism",
    "reads_files",
    "running_parallelism",
    "session_conf",
    "spark_arrow",
    "spark_schema",
    "with_properties",
]

Given = TypeVar("Given")
Result = TypeVar("Result")

_BATCH_ROWS = 65536
_FEWEST_ROWS = 64
BATCH_BYTES = 64 << 20
"""Approximate Arrow bytes of a batch sent to Python: a worker holds a few batches."""

_KNOWN_BYTES = 16 << 20
"""Approximate Arrow bytes of a batch that is bounded by its number of rows: some rows are wider than the average."""

ARROW_GROWTH = 2
"""Ratio of the size of rows in memory to Spark's estimate, which for files is their size on disk."""
_PYTHON_NODES = ("MapIn", "PythonMapIn", "FlatMapGroups", "FlatMapCoGroups", "MapPartitions", "MapElements")
"""First letters of plan nodes that apply a function: the optimizer assumes that it returns as many rows as it takes."""

_SCANNING_NODES = frozenset({"LogicalRelation", "RelationV2", "InMemoryRelation", "Project"})

_UNLIMITED = (1 << 31) - 1
"""Spark's value for "no limit", of executors and of bytes in a batch."""

_SHUFFLE_PARTITIONS = 200
"""Spark's default number of shuffle partitions."""

_COLUMN_BYTES = 12  # Spark's estimate is 8 for a number, 20 for text
_LONGEST_RANGE = 1 << 26

_REFUSED_TYPES = frozenset({"variant", "geometry", "geography"})  # they reach Python as structs


def arrow_schema(df: Any) -> pa.Schema:
    """The Arrow schema of ``df``'s rows in Python.

    Raises:
        UnsupportedFeatureError: a stream, or a type that does not survive the conversion.
    """
    if df.isStreaming:
        raise UnsupportedFeatureError(
            "A streaming DataFrame cannot be written directly; write its batches: "
            "stream.writeStream.foreachBatch(hudi_fast.sink(path, options)).start()."
        )
    return checked_arrow_types(df.schema)


def checked_arrow_types(struct: Any) -> pa.Schema:
    """The Arrow form of a Spark schema (``StructType``) for its rows in Python.

    Raises:
        UnsupportedFeatureError: a type that does not survive the conversion.
    """
    _refuse_types(struct, "")
    _refuse_unknown_types(struct)
    return arrow_types(struct)


def arrow_types(struct: Any) -> pa.Schema:
    """The Arrow form of a Spark schema (``StructType``); timestamps are in UTC.

    Columns keep the metadata that names one of Hudi's own types.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    columns = zip(to_arrow_schema(struct, **zone), struct.fields, strict=True)
    return pa.schema([_with_hudi_type(column, said.metadata or {}) for column, said in columns])


def _with_hudi_type(column: pa.Field, metadata: Mapping[str, Any]) -> pa.Field:
    return column.with_metadata({HUDI_TYPE: str(metadata[HUDI_TYPE])}) if HUDI_TYPE in metadata else column


def _refuse_unknown_types(struct: Any) -> None:
    """Refuse columns whose type has no Arrow form, such as intervals of months or ``array()``, by name."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.types import StructType

    for field in struct.fields:
        try:
            arrow_types(StructType([field]))
        except PySparkTypeError as error:
            raise UnsupportedFeatureError(
                f"Column {field.name!r} has Spark's type {field.dataType.simpleString()}, which a Hudi table cannot "
                "hold; cast it to another type."
            ) from error
        except ValueError as error:  # from Arrow: a void type in a place that allows no null
            raise UnsupportedFeatureError(
                f"Column {field.name!r} has Spark's type {field.dataType.simpleString()}, in which void is the type of "
                "no value: array() and map() have no types of their own. Cast it to the column's type, for example "
                "cast(array() as array<int>) or cast(map() as map<string,int>)."
            ) from error


def _refuse_types(kind: Any, name: str) -> None:
    if kind.typeName() in _REFUSED_TYPES:
        raise UnsupportedFeatureError(f"Column {name!r} has Spark's type {kind.typeName()}; cast it to another type.")
    for field in getattr(kind, "fields", ()):
        if name and HUDI_TYPE in (field.metadata or {}):
            raise UnsupportedFeatureError(
                f"Column '{name}.{field.name}' has {HUDI_TYPE}={field.metadata[HUDI_TYPE]!r} in its metadata. Vectors "
                "and blobs are columns of their own; select the field as a column, or drop the metadata."
            )
        _refuse_types(field.dataType, f"{name}.{field.name}" if name else field.name)
    for part in ("elementType", "keyType", "valueType"):
        if hasattr(kind, part):
            _refuse_types(getattr(kind, part), name)


def collect(df: Any) -> pa.Table:
    """Collect all rows on the driver; the caller bounds them.

    Raises:
        InvalidDataError: a null in a part of a column that allows none.
    """
    with arrow_batches_of(df.sparkSession):
        schema = arrow_types(df.schema)
        if hasattr(df, "toArrow") and not any(has_required_part(field.type) for field in schema):  # Spark 4
            return df.toArrow()
        if hasattr(df, "_to_table"):  # Spark Connect
            rows = df._to_table()[0]
        else:
            batches = df._collect_as_arrow()
            rows = pa.Table.from_batches(batches, None if batches else arrow_schema(df))
    # `toArrow` casts, and Arrow casts no null struct with required fields
    return conform(rows, schema) if hasattr(df, "toArrow") else rows


def first_rows(df: Any, count: int) -> pa.Table:
    """Collect the first rows on the driver, at most ``count``.

    A limit starts all tasks of the DataFrame and shuffles their rows. Where the rows are only read from files, one task
    opens files until it has enough rows.
    """
    return collect((df.coalesce(1) if reads_files(df) else df).limit(count))


def frame_of(spark: Any, table: pa.Table) -> Any:
    """A DataFrame of a small table. Before Spark 4, Python workers convert it."""
    from pyspark.sql import DataFrame

    if hasattr(DataFrame, "toArrow"):  # Spark 4
        return spark.createDataFrame(table)

    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return spark.createDataFrame(list(rows), spark_schema(table.schema))


def arrow_batches_of(spark: Any, row_bytes: int = 0) -> AbstractContextManager[None]:
    """Set the size of Arrow batches to Python: at most 65 536 rows, and about :data:`BATCH_BYTES`.

    Spark's default of 10 000 rows doubles the cost of key columns. With a limit in bytes, Spark 4.1 and later add up
    the buffers of all columns after each row, which takes as long as scanning the row. So rows of a known size are only
    counted.

    Args:
        spark: the session.
        row_bytes: average Arrow size of a row; 0 if unknown.
    """
    rows, size = _BATCH_ROWS, BATCH_BYTES
    if row_bytes:
        rows, size = min(_BATCH_ROWS, max(_FEWEST_ROWS, _KNOWN_BYTES // row_bytes)), _UNLIMITED
    settings = {"maxRecordsPerBatch": rows, "maxBytesPerBatch": size}
    return session_conf(spark, {f"spark.sql.execution.arrow.{name}": str(value) for name, value in settings.items()})


@contextmanager
def session_conf(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for the duration of the block."""
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


def names_are_exact(spark: Any) -> bool:
    """Whether the session distinguishes upper and lower case in column names."""
    return str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"


def estimated_bytes(df: Any) -> int | None:
    """Size of the rows in bytes, as estimated by Spark's optimizer.

    None if unavailable (Spark Connect) or unknown: the optimizer assumes ``spark.sql.defaultSizeInBytes``, eight
    exabytes, for rows of Python, of an RDD or of a stream's batch. The size of rows that a function such as
    ``mapInArrow`` makes is unknown, too: Spark's estimate is the size of the rows that the function takes.
    """
    jdf = getattr(df, "_jdf", None)
    if jdf is None:
        return None
    plan = jdf.queryExecution().optimizedPlan()
    if _has_functions(plan):
        return None
    unknown = int(df.sparkSession.conf.get("spark.sql.defaultSizeInBytes", str(2**63 - 1)))
    leaves = plan.collectLeaves()
    sizes = [int(str(leaves.apply(number).stats().sizeInBytes())) for number in range(leaves.size())]
    return None if any(size >= unknown for size in sizes) else int(str(plan.stats().sizeInBytes()))


def reads_files(df: Any) -> bool:
    """Whether the DataFrame only reads files and projects their rows, so that its first rows cost little."""
    jdf = getattr(df, "_jdf", None)
    return jdf is not None and _is_scan(jdf.queryExecution().optimizedPlan())


def _is_scan(plan: Any) -> bool:
    children = plan.children()
    if str(plan.nodeName()) not in _SCANNING_NODES:
        return False
    return all(_is_scan(children.apply(number)) for number in range(children.size()))


def _has_functions(plan: Any) -> bool:
    """Whether a node of the plan applies a function to batches or groups of rows."""
    if str(plan.nodeName()).startswith(_PYTHON_NODES):
        return True
    children = plan.children()
    return any(_has_functions(children.apply(number)) for number in range(children.size()))


def numbers_of(spark: Any, count: int, tasks: int, size: int, columns: int) -> Any:
    """A DataFrame of the numbers from 0 to ``count - 1``, for a ``mapInArrow`` that makes many rows from each number.

    Spark assumes that ``mapInArrow`` returns as many rows as it takes, so it would broadcast the largest table in a
    join. It estimates a range by its length, even behind a filter. So the numbers are filtered from a range whose
    estimated size is ``size``. The longest range takes milliseconds; Spark estimates a few hundred MiB for it, too much
    to broadcast.

    Args:
        spark: the session.
        count: at least 1.
        tasks: at most ``count``.
        size: approximate bytes of the rows that are made from the numbers.
        columns: number of columns of these rows.
    """
    rows = min(2 * size // (8 + _COLUMN_BYTES * columns), _LONGEST_RANGE)  # Spark: 16 bytes for a row of one number
    step = 1 << max(0, (rows // count).bit_length() - 1)
    numbers = spark.range(0, count * step, 1, tasks)
    return numbers if step == 1 else numbers.where(f"id & {step - 1} = 0").selectExpr(f"id div {step} AS id")


def parallelism(spark: Any) -> int:
    """Number of tasks that run concurrently once the session has all executors that it may have.

    Counts executors that dynamic allocation may add, and executors that a new session still waits for. If their number
    is not limited, the result is the number of Spark's shuffle partitions.
    """
    running = running_parallelism(spark)
    if is_local(spark) or spark.conf.get("spark.default.parallelism", None):
        return running
    return max(running, _allowed_tasks(lambda name, default: str(spark.conf.get(name, default))))


def running_parallelism(spark: Any) -> int:
    """Number of tasks that the executors of the session run concurrently now."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    return max(1, int(spark.conf.get("spark.default.parallelism", "2")))


def _allowed_tasks(setting: Callable[[str, str], str]) -> int:
    """Number of concurrent tasks of the executors that the settings allow; 0 if no setting gives their number."""
    per_task = int(setting("spark.task.cpus", "1"))
    per_executor = int(setting("spark.executor.cores", "1")) // per_task
    total = int(setting("spark.executor.instances", "0")) * per_executor
    if setting("spark.dynamicAllocation.enabled", "false").lower() == "true":
        maximum = int(setting("spark.dynamicAllocation.maxExecutors", str(_UNLIMITED)))
        shuffled = setting("spark.sql.shuffle.partitions", str(_SHUFFLE_PARTITIONS))  # a vendor's may not be a number
        unlimited = int(shuffled) if shuffled.isdigit() else _SHUFFLE_PARTITIONS
        total = max(total, unlimited if maximum >= _UNLIMITED else maximum * per_executor)
    limit = setting("spark.cores.max", "")  # of an application on a standalone cluster
    return min(total, int(limit) // per_task) if limit else total


def with_properties(spark: Any, function: Callable[[Given], Result]) -> Callable[[Given], Result]:
    """A function for other threads, whose jobs have the group and the description of this thread's jobs.

    On Spark Connect they have no tags.
    """
    if getattr(spark, "_sc", None) is None:
        return function
    from pyspark import __version__, inheritable_thread_target

    takes_session = not __version__.startswith("3.")
    inheriting = inheritable_thread_target(spark)(function) if takes_session else inheritable_thread_target(function)
    return cast("Callable[[Given], Result]", inheriting)


def is_local(spark: Any) -> bool:
    """Whether the session has no executors but the driver."""
    master = str(spark.conf.get("spark.master", "local"))
    return master.startswith("local") and not master.startswith("local-cluster")


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema (``StructType``) of a table: times of day as their numbers, fixed-size binary as binary.

    Vectors are arrays. The column metadata ``hudi_type`` marks vectors and blobs, as in Apache Hudi 1.2, so a table
    created from such a DataFrame has the same types.
    """
    struct = from_arrow_schema(spark_arrow(schema), prefer_timestamp_ntz=True)
    for column, stored in zip(struct.fields, schema, strict=True):
        if is_vector(stored.type):
            column.metadata = {HUDI_TYPE: descriptor_of(stored.type)}
        elif is_blob(stored.type):
            column.metadata = {HUDI_TYPE: "BLOB"}
    return struct


def spark_arrow(schema: pa.Schema) -> pa.Schema:
    """The Arrow form of :func:`spark_schema`, for rows passed to Spark."""
    return pa.schema([pa.field(field.name, _spark_kind(field.type)) for field in schema])


def as_spark(batch: pa.RecordBatch, target: Iterable[pa.Field]) -> list[pa.Array]:
    """Cast the columns of ``batch`` to the types of ``target``, which may have further columns."""
    return [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, target, strict=False)
    ]


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    if is_vector(kind):
        return pa.list_(kind.value_type)
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_kind(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_kind(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _spark_kind(kind.item_type))
    return kind
