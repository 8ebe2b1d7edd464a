"""File slices as a Spark DataFrame.

::

    slices ─┬─ files that Spark reads as the table means them ──► Spark's vectorised Parquet scan ─┐
            └─ the others ──► the core's reader, in Python workers ────────────────────────────────┴─► union

The others: slices with log files to merge, all slices of a scan with a filter of ours, files from before a column
changed its type in a way that Spark's scan does not follow, columns of types that it lacks, files whose path Spark
would take for a pattern, and partition columns that are kept in paths which Spark cannot parse. The types in a file are
known from the footer of one file of each commit, because a commit writes one schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.parquet_base import open_base_file
from hudi_fast.keys.partition_path import partition_values
from hudi_fast.reading.slice_reader import SliceScan, read_slice
from hudi_fast.spark.arrow import parallelism, session_conf
from hudi_fast.view.slices import FileSlice

__all__ = ["scan_slices", "spark_schema"]

_FOOTER_THREADS = 8
_SCAN_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",  # Hudi's files hold the proleptic Gregorian calendar
    "int96RebaseMode": "CORRECTED",
}
_PATTERN = frozenset("{}[]*?\\")  # Spark takes a path with one of these for a pattern
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema (``StructType``) of a table: times of day as their numbers, fixed-size binary as binary."""
    return from_arrow_schema(_spark_arrow(schema), prefer_timestamp_ntz=True)


def scan_slices(spark: Any, scan: SliceScan, slices: Sequence[FileSlice], file_name: str | None = None) -> Any:
    """A lazy DataFrame of the columns of ``scan.output``.

    Args:
        spark: the session.
        scan: what is wanted of every slice.
        slices: at least one; without a base file only where log files are merged.
        file_name: name of a further column with the base file's name; None for none.
    """
    native = _read_natively(scan, slices)
    parts = []
    if chosen := [one for one in slices if one in native]:
        parts.append(_native_scan(spark, scan, chosen, file_name))
    if others := [one for one in slices if one not in native]:
        parts.append(_core_scan(spark, scan, others, file_name))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


# ---- Spark's own scan


def _native_scan(spark: Any, scan: SliceScan, slices: Sequence[FileSlice], file_name: str | None) -> Any:
    files = [scan.storage.absolute(one.base_file.path) for one in slices if one.base_file is not None]
    reader = spark.read.options(**_SCAN_OPTIONS).schema(spark_schema(scan.output))
    if _path_columns(scan.config, scan.output):
        reader = reader.option("basePath", scan.storage.uri)
    # Spark looks at each file; left alone it takes a task for each.
    with session_conf(spark, {_LISTING_TASKS: str(4 * parallelism(spark))}):
        frame = reader.parquet(*files)
    columns = [F.col(f"`{name}`") for name in scan.output.names]
    return frame.select(*columns, *([] if file_name is None else [F.col("_metadata.file_name").alias(file_name)]))


def _read_natively(scan: SliceScan, slices: Sequence[FileSlice]) -> frozenset[FileSlice]:
    """The slices that Spark's scan reads as the table means them."""
    if scan.filter is not None:
        return frozenset()
    slices = [one for one in slices if scan.merge is None or not one.log_files]
    from_path = _path_columns(scan.config, scan.output)
    slices = [one for one in slices if not _PATTERN & set(f"{scan.storage.uri}{one.partition}")]
    if from_path:
        slices = [one for one in slices if _spark_parses(scan.config, one.partition)]
    samples = {one.base_file.instant: one.base_file.path for one in slices if one.base_file is not None}
    wanted = pa.schema([field for field in scan.output if field.name not in from_path])

    def fits(path: str) -> bool:
        with open_base_file(scan.storage, path) as reader:
            return _fields_fit(reader.schema, wanted)

    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        fitting = dict(zip(samples, pool.map(fits, samples.values()), strict=True))
    return frozenset(one for one in slices if one.base_file is not None and fitting[one.base_file.instant])


def _path_columns(config: TableConfig, schema: pa.Schema) -> list[str]:
    """Columns that only the paths hold."""
    return [name for name in config.partition_fields if name in schema.names] if config.drop_partition_columns else []


def _spark_parses(config: TableConfig, partition: str) -> bool:
    """Whether Spark's partition discovery finds the values in a path that the table's writer put there."""
    values = partition_values(partition, config.partition_fields, config.hive_style, config.url_encode)
    simple = config.key_generator in ("SIMPLE", "COMPLEX") and config.hive_style and values is not None
    return simple and (config.url_encode or "%" not in partition)


def _fields_fit(stored: Iterable[pa.Field], wanted: Iterable[pa.Field]) -> bool:
    kinds = {field.name: field.type for field in stored}
    return all(field.name not in kinds or _fits(kinds[field.name], field.type) for field in wanted)


def _fits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark (3.5 and later) reads ``stored`` as ``wanted``."""
    if pa.types.is_dictionary(stored):
        return _fits(stored.value_type, wanted)
    if pa.types.is_time(wanted) or pa.types.is_fixed_size_binary(wanted):
        return False
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        return stored.unit in ("ms", "us") and (stored.tz is None) == (wanted.tz is None)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        shared = {field.name for field in stored} & {field.name for field in wanted}
        return bool(shared) and _fields_fit(stored, wanted)
    if pa.types.is_list(stored) and pa.types.is_list(wanted):
        return _fits(stored.value_type, wanted.value_type)
    if pa.types.is_map(stored) and pa.types.is_map(wanted):
        return _fits(stored.key_type, wanted.key_type) and _fits(stored.item_type, wanted.item_type)
    return bool(stored == wanted) or (stored == pa.int32() and wanted == pa.int64())


# ---- the core's reader


def _core_scan(spark: Any, scan: SliceScan, slices: Sequence[FileSlice], file_name: str | None) -> Any:
    target = _spark_arrow(scan.output)
    schema = spark_schema(scan.output)
    if file_name is not None:
        schema = schema.add(file_name, "string")
        target = target.append(pa.field(file_name, pa.string()))
    wanted = scan if scan.filter is not None else replace(scan, schema=scan.output)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for rows in read_slice(wanted, slices[number]):
                columns = [_as_spark(column, field.type) for column, field in zip(rows.columns, target, strict=False)]
                if file_name is not None:
                    columns.append(pa.repeat(slices[number].base_file.name, rows.num_rows))
                yield pa.RecordBatch.from_arrays(columns, schema=target)

    tasks = min(len(slices), 4 * parallelism(spark))
    return spark.range(0, len(slices), 1, tasks).mapInArrow(read, schema)


def _as_spark(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _spark_arrow(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _spark_kind(field.type)) for field in schema])


def _spark_kind(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _spark_kind(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _spark_kind(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _spark_kind(kind.item_type))
    return kind
