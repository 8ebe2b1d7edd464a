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
from functools import reduce
from typing import Any

from pyspark.sql import functions as F

from hudi_fast.reading.slice_reader import SliceScan
from hudi_fast.spark.reading.merged_scan import beside_scan, core_scan, scan_with_logs
from hudi_fast.spark.reading.native_scan import NarrowSlices, native_scan, readable_by_spark
from hudi_fast.spark.reading.source_scan import source_scan
from hudi_fast.spark.storage import reached_by_spark
from hudi_fast.spark.table_types import spark_schema
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
    direct = source_scan(spark, scan, others) if native and file_name is None else None
    if direct is not None:
        parts.append(direct.frame)
        others = [one for one in others if one not in direct.slices]
    if others:
        parts.append(core_scan(spark, scan, others, file_name))
    return reduce(lambda left, right: left.unionByName(right), parts)
