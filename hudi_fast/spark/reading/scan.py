"""File slices as a Spark DataFrame.

::

    slices ─┬─ base files alone ─────────────────► Spark's vectorised Parquet scan ────────────────────────────┐
            ├─ skeletons, without meta columns ──► Spark's scan of their source files ─────────────────────────┤
            ├─ with a relatively small log ──────► Spark's scan without rows that the log changes; log rows ───┼─► union
            └─ all others ───────────────────────► the core's reader, in Python workers ───────────────────────┘

All others: slices with large logs, slices without base file, base files that Spark's scan cannot read correctly
(:mod:`hudi_fast.spark.reading.native_scan`), and all slices of a scan with a ``pyarrow.compute`` filter, of one that
reads partition columns from paths, or of a table that Spark itself does not reach (:mod:`hudi_fast.spark.storage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.reading.slice_reader import SliceScan
from hudi_fast.spark.arrow import parallelism, session_conf
from hudi_fast.spark.reading.merged_scan import beside_scan, core_scan, scan_with_logs
from hudi_fast.spark.reading.native_scan import (
    LISTING_TASKS,
    PATTERN,
    SCAN_OPTIONS,
    NarrowSlices,
    fields_fit,
    native_scan,
    readable_by_spark,
)
from hudi_fast.spark.storage import reached_by_spark
from hudi_fast.spark.table_types import spark_schema
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.view.base_files import folder_values, open_source
from hudi_fast.view.bootstrap_index import SourceFile
from hudi_fast.view.slices import FileSlice

__all__ = ["scan_slices", "spark_schema"]


def scan_slices(
    spark: Any,
    scan: SliceScan,
    slices: Sequence[FileSlice],
    file_name: str | None = None,
    narrow: NarrowSlices | None = None,
) -> Any:
    """A lazy DataFrame of the columns of ``scan.output``.

    Args:
        spark: the session.
        scan: columns and filter of every slice.
        slices: at least one; without a base file only where log files are merged.
        file_name: name of an additional column with the base file's name; None to omit it.
        narrow: skips base files by the filters of a query when Spark plans it; None to read all of them.
    """
    native = scan.filter is None and not scan.values_from_path and reached_by_spark(spark, scan.storage)
    readable = readable_by_spark(scan, slices) if native else frozenset()
    logged = frozenset() if scan.merge is None else frozenset(one for one in readable if one.log_files)
    beside = beside_scan(scan, sorted(logged, key=lambda one: (one.partition, one.file_id)))
    alone = readable - logged
    parts = []
    if chosen := [one for one in slices if one in alone]:
        more = {} if file_name is None else {file_name: F.col("_metadata.file_name")}
        parts.append(native_scan(spark, scan, chosen, more, narrow))
    if chosen := [one for one in slices if one in beside]:
        parts.append(scan_with_logs(spark, scan, chosen, file_name, narrow))
    others = [one for one in slices if one not in alone and one not in beside]
    direct = _source_scan(spark, scan, others) if native and file_name is None else None
    if direct is not None:
        parts.append(direct.frame)
        others = [one for one in others if one not in direct.slices]
    if others:
        parts.append(core_scan(spark, scan, others, file_name))
    return reduce(lambda left, right: left.unionByName(right), parts)


# ---- scans the source files of skeletons with Spark, for queries without meta columns
#
# Excluded: files older than a schema change, files with types that Spark's scan does not support (each may have its
# own schema), and folder names that Spark's partition discovery parses differently from the table.


_FOOTER_THREADS = 16
_META_PREFIX = "_hoodie_"


@dataclass(frozen=True)
class _SourceScan:
    """Slices read from their source files.

    Attributes:
        slices: the slices.
        frame: their rows, with the columns of ``scan.output``.
    """

    slices: frozenset[FileSlice]
    frame: Any


def _source_scan(spark: Any, scan: SliceScan, slices: Sequence[FileSlice]) -> _SourceScan | None:
    """The rows of slices by Spark's scan of their source files; None when there are no such slices.

    Args:
        spark: the session.
        scan: columns of every slice.
        slices: of the table; unsuitable ones are ignored.

    Raises:
        CorruptTableError: a source file is missing or was changed, or the bootstrap index is damaged.
    """
    output = scan.output
    bare = [one for one in slices if not one.log_files and _is_plain_skeleton(one)]
    if not bare or not len(output) or scan.filter is not None or _has_meta(output):
        return None
    named = [(one, one.base_file.source) for one in bare if one.base_file is not None and one.base_file.source]
    with ThreadPool(_FOOTER_THREADS) as pool:
        fits = list(pool.map(lambda pair: _fits(scan, pair[1]), named))
    chosen = [pair for pair, fit in zip(named, fits, strict=True) if fit]
    if not chosen:
        return None
    reader = spark.read.options(**SCAN_OPTIONS).schema(spark_schema(output))
    if any(name in output.names for name in scan.config.partition_fields):
        reader = reader.option("basePath", _base(chosen[0][1]))
    with session_conf(spark, {LISTING_TASKS: str(4 * parallelism(spark))}):
        frame = reader.parquet(*(source.uri for _, source in chosen))
    return _SourceScan(frozenset(one for one, _ in chosen), frame.select(*(f"`{name}`" for name in output.names)))


def _is_plain_skeleton(one: FileSlice) -> bool:
    """Whether its base file is a skeleton whose columns have their current names."""
    return one.base_file is not None and one.base_file.is_skeleton and one.base_file.names is None


def _has_meta(schema: pa.Schema) -> bool:
    return any(name.startswith(_META_PREFIX) for name in schema.names)


def _base(source: SourceFile) -> str:
    """The folder that was bootstrapped."""
    folder = source.uri.rpartition("/")[0]
    return folder.removesuffix(f"/{source.source_partition}") if source.source_partition else folder


def _fits(scan: SliceScan, source: SourceFile) -> bool:
    """Whether Spark reads the file correctly."""
    if PATTERN & set(source.uri):
        return False
    wanted = [name for name in scan.config.partition_fields if name in scan.output.names]
    with open_source(scan.storage, source) as reader:
        if any(kind == "INT96" for _, kind in reader.leaves):
            return False
        stored = reader.schema
    if wanted:  # Spark reads all of them from the path, and none from the file
        parts = source.source_partition.split("/") if source.source_partition else []
        known = folder_values(source.source_partition, scan.config.partition_fields)
        discovered = all("=" in part for part in parts) and all(name in known for name in wanted)
        if not discovered or any(name in stored.names for name in wanted):
            return False
    return fields_fit(stored, [field for field in scan.output if field.name not in wanted])
