"""Spark columns for routing, exact shuffles, and casts in the session's time zone.

Spark columns for routing: partition path and record key as text, equal to the core's.

::

    strings, integers, dates, booleans ──► Spark's own expressions
    all others (doubles, timestamps, time-based partitions ...) ──► these columns as text ──► pandas UDF ──► the core

The text is used only for routing. It is null where the core refuses the row; a task then raises the error. Tasks
compute the final path and key again.

Columns are passed to the UDF as text because pandas has no other form that preserves nulls, large integers and old
dates independently of the session's time zone.

Sends rows to exact shuffle partitions, on every supported Spark.

Spark's ``repartition(n, column)`` puts a row into partition ``pmod(murmur3(column), n)``. A column with an integer that
hashes to a partition therefore addresses it (``Murmur3_x86_32`` with seed 42, as in Spark's ``HashPartitioning``).

Casts to the table's types on Spark, where the session has a time zone (``spark.sql.session.timeZone``).

Timestamps of a DataFrame take the kind that the table has, with zone or without, as Spark's ``CAST`` makes them. Values
of SQL, updates and merges are cast to any type, unless the cast would give them another meaning.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mmh3
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hudi_fast.errors import HudiError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.keys.key_generator import STAND_INS, KeyConfig, partition_paths, record_keys, refuse_stand_ins
from hudi_fast.keys.partition_path import encode
from hudi_fast.schema.assignment import require_assignable
from hudi_fast.schema.conform import conform
from hudi_fast.spark.arrow import arrow_types, spark_arrow
from hudi_fast.values import dataclass

__all__ = [
    "addresses",
    "arrow_type",
    "by_partition",
    "content_hash",
    "in_table_kinds",
    "key_column",
    "key_text",
    "nested_column",
    "pack_bins",
    "partition_text",
    "require_castable",
    "task_address",
]

_SPARK_SEED = 42


def addresses(partitions: int) -> list[int]:
    """For each of ``partitions`` shuffle partitions an int32 that Spark hashes into it."""
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < partitions:
        hashed = mmh3.hash(struct.pack("<i", candidate), _SPARK_SEED, signed=True)
        found.setdefault(hashed % partitions, candidate)
        candidate += 1
    return [found[number] for number in range(partitions)]


def pack_bins(weights: Mapping[str, int], bins: int) -> dict[str, int]:
    """Distribute named weights to bins of about equal sum: heaviest first, always to the lightest bin.

    Deterministic: equal weights are taken by name.
    """
    loads = [(0, number) for number in range(bins)]
    chosen: dict[str, int] = {}
    for name, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0])):
        load, number = heapq.heappop(loads)
        chosen[name] = number
        heapq.heappush(loads, (load + max(weight, 1), number))
    return chosen


Compute = Callable[[KeyConfig, pa.Table], pa.Array]

_INTEGERS = (T.IntegerType, T.LongType, T.ShortType, T.ByteType)
_AS_TEXT = (*_INTEGERS, T.StringType, T.BooleanType, T.TimestampNTZType, T.DecimalType)
_ESCAPED = [chr(code) for code in range(128) if encode(chr(code)) != chr(code)]
_NEEDS_ESCAPE = r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[^]"""


def partition_text(df: Any, config: KeyConfig, schema: pa.Schema) -> Any:
    """The partition path of each row, null for rows that the core refuses; None for a table without partitions.

    Args:
        df: has the partition columns.
        config: key generator settings.
        schema: the table's columns, for the stored types of incoming values.
    """
    if config.kind in ("NON_PARTITION", "GLOBAL_DELETE") or not config.partition_fields:
        return None
    if config.kind in ("SIMPLE", "COMPLEX") and _all_exact(df, schema, config.partition_fields):
        return F.concat_ws("/", *[_part(name, config) for name in config.partition_fields])
    return _computed(df, config, schema, config.partition_fields, _paths)


def key_text(df: Any, config: KeyConfig, schema: pa.Schema, stored: bool = False) -> Any:
    """The record key of each row, null for rows that the core refuses.

    Args:
        df: has the key columns.
        config: key generator settings.
        schema: the table's columns, for the stored types of incoming values.
        stored: whether the rows are stored or only looked up; then texts that stand for missing values are keys.
    """
    fields = config.record_key_fields
    if not _all_exact(df, schema, fields):
        return _computed(df, config, schema, fields, record_keys if stored else _new_keys)
    texts = [F.nullif(nested_column(name).cast("string"), F.lit("")) for name in fields]
    if _is_one_text(config):
        return texts[0]
    parts = [F.concat(F.lit(f"{name}:"), _or_gap(name, text)) for name, text in zip(fields, texts, strict=True)]
    has_key = F.coalesce(*texts).isNotNull()
    for name, text in zip(fields, texts, strict=True) if len(fields) > 1 and not stored else ():
        if isinstance(_spark_type(df, name), T.StringType):
            has_key = has_key & ~F.coalesce(text.isin(*STAND_INS), F.lit(False))
    return F.when(has_key, F.concat_ws(",", *parts))


def key_column(df: Any, config: KeyConfig, schema: pa.Schema) -> str | None:
    """The column whose text is the record key, except for empty text; None if keys are computed from columns."""
    if not _is_one_text(config):
        return None
    (name,) = config.record_key_fields
    if name not in df.columns or {".", "`"} & set(name):
        return None
    return name if isinstance(_spark_type(df, name), T.StringType) and _all_exact(df, schema, [name]) else None


def by_partition(rows: Any, path: str) -> Any:
    """Rows of each task, sorted so that the rows of one partition follow each other.

    Sorts by a hash: Spark sorts one integer by radix, several times faster than text. Tasks refuse equal hashes of two
    paths, which the 64 bits make improbable.

    Args:
        rows: have the column ``path``.
        path: name of the column of partition paths.
    """
    return rows.sortWithinPartitions(F.xxhash64(path))


def content_hash(df: Any) -> Any:
    """A hash of each row's columns, to distribute rows without keys: equal whenever Spark computes the row again.

    Maps are left out, because Spark does not hash them.
    """
    hashed = [f"`{field.name}`" for field in df.schema.fields if not _holds_map(field.dataType)]
    return F.xxhash64(*hashed) if hashed else F.lit(0).cast("long")


def task_address(task: Any, tasks: int) -> Any:
    """A column of integers that ``repartition(tasks, column)`` sends to the given task.

    Args:
        task: column with the number of the task, from 0 to ``tasks - 1``.
        tasks: number of tasks.
    """
    numbers = F.array(*[F.lit(number) for number in addresses(tasks)])
    return F.element_at(numbers, (task + F.lit(1)).cast("int"))


def nested_column(name: str) -> Any:
    """The column called ``name``; a dot selects a field of a struct."""
    return F.col(".".join(f"`{part}`" for part in name.split(".")))


def _is_one_text(config: KeyConfig) -> bool:
    """Whether a record key is the text of one field, without the name of the field."""
    return len(config.record_key_fields) == 1 and config.kind != "GLOBAL_DELETE" and not _is_prefixed_complex(config)


def _holds_map(kind: Any) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds_map(field.dataType) for field in kind.fields)
    return isinstance(kind, T.MapType) or (isinstance(kind, T.ArrayType) and _holds_map(kind.elementType))


# ---- in Spark's expressions


def _is_prefixed_complex(config: KeyConfig) -> bool:
    return config.kind == "COMPLEX" and config.single_key_prefixed


def _or_gap(name: str, text: Any) -> Any:
    return F.coalesce(text, F.when(nested_column(name).isNull(), F.lit("__null__")).otherwise(F.lit("__empty__")))


def _part(name: str, config: KeyConfig) -> Any:
    text = F.coalesce(F.nullif(nested_column(name).cast("string"), F.lit("")), F.lit(config.null_partition))
    if config.url_encode:
        escaped = text
        for char in sorted(_ESCAPED, key="%".__ne__):  # the escape character itself must be first
            escaped = F.replace(escaped, F.lit(char), F.lit(encode(char)))
        text = F.when(text.rlike(_NEEDS_ESCAPE), escaped).otherwise(text)
    if config.hive_style:
        text = F.concat(F.lit(f"{name}="), text)
    if config.slash_separated_dates and len(config.partition_fields) == 1:
        text = F.when(text.startswith("-"), text).otherwise(F.replace(text, F.lit("-"), F.lit("/")))
    return text


def _all_exact(df: Any, schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether Spark's text of these columns equals the core's text of the stored values."""
    return all(_is_exact(_spark_type(df, name), arrow_type(schema, name)) for name in names)


def _is_exact(incoming: Any, stored: pa.DataType) -> bool:
    if isinstance(incoming, _INTEGERS):
        return bool(pa.types.is_integer(stored) or pa.types.is_string(stored))
    if isinstance(incoming, T.DateType):
        return bool(pa.types.is_date(stored))
    if isinstance(incoming, T.BooleanType):
        return bool(pa.types.is_boolean(stored))
    return isinstance(incoming, T.StringType) and bool(pa.types.is_string(stored))


# ---- by the core


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One column passed to the core: its dotted name, incoming type and stored type."""

    name: str
    incoming: pa.DataType
    stored: pa.DataType

    def parse(self, texts: pa.Array) -> pa.Array:
        """Values from their text."""
        if pa.types.is_binary(self.incoming):
            return pa.array([None if text is None else bytes.fromhex(text) for text in texts.to_pylist()], pa.binary())
        if pa.types.is_date(self.incoming):
            return texts.cast(pa.int32()).cast(self.incoming)
        if pa.types.is_timestamp(self.incoming) and self.incoming.tz is not None:
            return texts.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
        if pa.types.is_float32(self.incoming):
            return texts.cast(pa.float64()).cast(pa.float32())
        return texts.cast(self.incoming)


def _computed(df: Any, config: KeyConfig, schema: pa.Schema, names: Sequence[str], compute: Compute) -> Any:
    """A pandas UDF over ``names``, as text; the core does the work, on Arrow."""
    import pandas as pd

    kinds = {name: _spark_type(df, name) for name in names}
    incoming = arrow_types(T.StructType([T.StructField(name, kind) for name, kind in kinds.items()]))
    leaves = [_Leaf(name, incoming.field(name).type, arrow_type(schema, name)) for name in kinds]

    def texts(columns: Any) -> Any:
        arrays = [pa.array(columns[f"c{number}"], pa.string()) for number in range(len(leaves))]
        return pd.Series(_texts_of(config, compute, leaves, arrays), dtype=object)

    texts.__annotations__ = {"columns": pd.DataFrame, "return": pd.Series}
    as_text = [_transport(name, kind).alias(f"c{number}") for number, (name, kind) in enumerate(kinds.items())]
    return F.pandas_udf(texts, "string")(F.struct(*as_text))


def _transport(name: str, kind: Any) -> Any:
    """A column as lossless text."""
    column = nested_column(name)
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column).cast("string")
    if isinstance(kind, T.DateType):
        return F.unix_date(column).cast("string")
    if isinstance(kind, T.BinaryType):
        return F.hex(column)
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return column.cast("double").cast("string")
    if isinstance(kind, _AS_TEXT):
        return column.cast("string")
    raise UnsupportedFeatureError(
        f"The column {name!r} has Spark's type {kind.simpleString()}, which cannot be part of a record key or "
        "partition path; cast it to a string."
    )


def _texts_of(
    config: KeyConfig, compute: Compute, leaves: Sequence[_Leaf], arrays: Sequence[pa.Array]
) -> list[str | None]:
    """The core's results; after an error, null for the refused row, so that a task raises the error."""
    try:
        flat = pa.table([leaf.parse(array) for leaf, array in zip(leaves, arrays, strict=True)], _names(leaves))
        stored = conform(flat, pa.schema([pa.field(leaf.name, leaf.stored) for leaf in leaves]))
        made = compute(config, _nested(dict(zip(_names(leaves), stored.columns, strict=True))))
        texts: list[str | None] = made.cast(pa.string()).to_pylist()
        return texts
    except HudiError:
        count = len(arrays[0])
        if count == 1:
            return [None]
        first = _texts_of(config, compute, leaves, [array.slice(0, count // 2) for array in arrays])
        if None in first:
            return [*first, *[""] * (count - len(first))]
        return first + _texts_of(config, compute, leaves, [array.slice(count // 2) for array in arrays])


def _names(leaves: Sequence[_Leaf]) -> list[str]:
    return [leaf.name for leaf in leaves]


def _nested(columns: dict[str, Any]) -> pa.Table:
    """Build structs from columns with dotted names."""
    return pa.Table.from_struct_array(pa.chunked_array([_struct(columns)]))


def _struct(columns: dict[str, Any]) -> pa.StructArray:
    names = list(dict.fromkeys(name.split(".")[0] for name in columns))
    arrays = []
    for name in names:
        inner = {other[len(name) + 1 :]: array for other, array in columns.items() if other.startswith(f"{name}.")}
        arrays.append(_struct(inner) if inner else columns[name].combine_chunks())
    return pa.StructArray.from_arrays(arrays, names)


def _new_keys(config: KeyConfig, table: pa.Table) -> pa.Array:
    refuse_stand_ins(config, table)
    return record_keys(config, table)


def _paths(config: KeyConfig, table: pa.Table) -> pa.Array:
    return partition_paths(config, table)


def _spark_type(df: Any, name: str) -> Any:
    kind: Any = df.schema
    for part in name.split("."):
        if part not in getattr(kind, "names", ()):
            raise InvalidDataError(f"The field {name!r} does not exist in the input, whose columns are {df.columns}.")
        kind = kind[part].dataType
    return kind


def arrow_type(schema: pa.Schema, name: str) -> pa.DataType:
    """The type of a column, or of a struct field by dotted name."""
    first, *inner = name.split(".")
    kind = schema.field(first).type
    for part in inner:
        kind = kind.field(part).type
    return kind


def in_table_kinds(df: Any, table: pa.Schema | None) -> Any:
    """``df`` with each timestamp cast to the kind of its column, nested ones too; ``df`` itself where all are equal.

    Args:
        df: the rows.
        table: columns of the table; None for a new one.
    """
    known = {} if table is None else {field.name: field.type for field in table}
    kinds = [_kind(field.dataType, known.get(field.name)) for field in df.schema.fields]
    if all(kind == field.dataType for kind, field in zip(kinds, df.schema.fields, strict=True)):
        return df
    columns = []
    for kind, field in zip(kinds, df.schema.fields, strict=True):
        column = F.col(f"`{field.name}`")
        columns.append(column if kind == field.dataType else column.cast(kind).alias(field.name))
    return df.select(*columns)


def require_castable(given: Mapping[str, Any], table: pa.Schema, where: str) -> None:
    """Refuse values whose cast to the type of their column would give them another meaning.

    Args:
        given: Spark types of the values, by column of the table.
        table: columns of the table.
        where: statement or clause, for the message.

    Raises:
        SchemaMismatchError: there is such a value; the message has both types, and the cast to write.
    """
    wanted = spark_arrow(table)
    for name, kind in given.items():
        try:
            value = arrow_types(T.StructType([T.StructField("it", kind)]))[0].type
        except (
            PySparkTypeError,
            ValueError,
        ):  # a type without an Arrow form, such as `array()`: the cast itself decides
            continue
        require_assignable(wanted.field(name).type, value, name, where, has_zone=True)


def _kind(given: Any, stored: pa.DataType | None) -> Any:
    """The Spark type ``given`` with the timestamps of ``stored``."""
    if stored is None:
        return given
    if isinstance(given, (T.TimestampType, T.TimestampNTZType)) and pa.types.is_timestamp(stored):
        return T.TimestampNTZType() if stored.tz is None else T.TimestampType()
    if isinstance(given, T.StructType) and pa.types.is_struct(stored):
        inner: Mapping[str, pa.DataType] = {field.name: field.type for field in stored}
        fields = [
            T.StructField(one.name, _kind(one.dataType, inner.get(one.name)), one.nullable, one.metadata)
            for one in given.fields
        ]
        return T.StructType(fields)
    if isinstance(given, T.ArrayType) and pa.types.is_list(stored):
        return T.ArrayType(_kind(given.elementType, stored.value_type), given.containsNull)
    if isinstance(given, T.MapType) and pa.types.is_map(stored):
        return T.MapType(given.keyType, _kind(given.valueType, stored.item_type), given.valueContainsNull)
    return given
