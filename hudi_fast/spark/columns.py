"""Spark columns that place rows: partition path and record key as text, in Spark's own expressions where those serve.

Where they are not (doubles, timestamps, time-based partitions ...) a pandas UDF runs the core's key generator, so that
only the columns it needs cross to Python. The text serves for routing: equal paths give equal text. It is not stored;
tasks compute the real path and key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, ByteType, DateType, IntegerType, LongType, ShortType, StringType

from hudi_fast.keys.key_generator import KeyConfig, partition_paths, record_keys
from hudi_fast.keys.partition_path import DEFAULT_PARTITION, decode

__all__ = ["key_text", "partition_text", "route_name"]

_EXACT = (StringType, IntegerType, LongType, ShortType, ByteType, DateType, BooleanType)


def partition_text(df: Any, config: KeyConfig, schema: pa.Schema) -> Any:
    """A string column that is equal for two rows whose partition paths are equal; None without partitions."""
    if config.kind in ("NON_PARTITION", "GLOBAL_DELETE") or not config.partition_fields:
        return None
    if config.kind in ("SIMPLE", "COMPLEX") and _all_exact(df, config.partition_fields):
        parts = [_part(name, config) for name in config.partition_fields]
        return F.concat_ws("/", *parts)
    return _computed(df, config, schema, config.partition_fields, _paths)


def key_text(df: Any, config: KeyConfig, schema: pa.Schema) -> Any:
    """The record key as a string column."""
    single = len(config.record_key_fields) == 1 and config.kind not in ("COMPLEX", "GLOBAL_DELETE")
    if single and _all_exact(df, config.record_key_fields):
        return F.col(_quoted(config.record_key_fields[0])).cast("string")
    return _computed(df, config, schema, config.record_key_fields, record_keys)


def route_name(config: KeyConfig, partition: str) -> str:
    """What :func:`partition_text` gives for rows of an existing partition path."""
    parts = partition.split("/")
    if config.hive_style:
        parts = [part.partition("=")[2] for part in parts]
    return "/".join(decode(part) for part in parts) if config.url_encode else "/".join(parts)


def _part(name: str, config: KeyConfig) -> Any:
    text = F.col(_quoted(name)).cast("string")
    text = F.coalesce(F.nullif(text, F.lit("")), F.lit(DEFAULT_PARTITION))
    return F.regexp_replace(text, "-", "/") if config.slash_separated_dates else text


def _all_exact(df: Any, names: Sequence[str]) -> bool:
    fields = {field.name: field.dataType for field in df.schema.fields}
    return all(name in fields and type(fields[name]) in _EXACT for name in names)


def _quoted(name: str) -> str:
    return f"`{name}`"


def _paths(config: KeyConfig, table: pa.Table) -> pa.Array:
    return partition_paths(config, table).cast(pa.string())


def _computed(df: Any, config: KeyConfig, schema: pa.Schema, names: Sequence[str], compute: Any) -> Any:
    """A pandas UDF over the columns that ``names`` begin with; the core does the work, on Arrow."""
    roots = list(dict.fromkeys(name.split(".")[0] for name in names))
    fields = pa.schema([schema.field(name) for name in roots])

    def texts(columns: Any) -> Any:
        from hudi_fast.schema.conform import conform

        table = pa.Table.from_pandas(columns, preserve_index=False)
        return compute(config, conform(table, fields)).to_pandas()

    import pandas as pd

    texts.__annotations__ = {"columns": pd.DataFrame, "return": pd.Series}
    udf = F.pandas_udf(texts, "string")
    return udf(F.struct(*[F.col(_quoted(name)) for name in roots]))
