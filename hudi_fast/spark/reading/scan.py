"""File slices as a Spark DataFrame.

::

    slices ─┬─ base files alone ─────────────────► Spark's vectorised Parquet scan ────────────────────────────┐
            ├─ skeletons, without meta columns ──► Spark's scan of their source files ─────────────────────────┼─► union
            └─ all others ───────────────────────► the core's reader, in Python workers ───────────────────────┘

All others: slices with log files, slices without base file, base files that Spark's scan cannot read correctly
(:mod:`hudi_fast.spark.reading.native_scan`), and all slices of a scan with a ``pyarrow.compute`` filter, of one that
reads partition columns from paths, or of a table that Spark itself does not reach (:mod:`hudi_fast.spark.storage`).

The workers make the columns that a query needs, and leave out rows that its filters drop
(:mod:`hudi_fast.spark.reading.python_scan`). Where they cannot learn these (Spark 3.5, Spark Connect), Spark scans the
base files of slices with a relatively small log, and of all slices whose logs are not merged:

::

    Spark's scan  ───┬─ base files ─► Spark's scan ──► left anti join ─► rows that the log does not change ─┐
                     │                                      ▲ broadcast                                     │
                     ├─ slices ─► hidden_rows: rows of both that are not rows of the slice                  ├─► union
                     │                                      ▼ broadcast                                     │
                     └─ slices ─► log_rows_of_slice ─► left anti join ─► rows of the log ───────────────────┘

Then only keys, ordering values and rows of the log pass through Python: Spark prunes columns, pushes filters down and
decodes with its vectorised reader. Pushed filters are correct because these rows are unchanged. The
keys of a base file are read once: where log rows may lose against stored ones, the hidden rows also list the losing log
rows. Every executor keeps the hidden rows of all slices in memory, as one long each: 32 bits of a hash of the base
file's name, and below 2**31 the row number in the file, which Spark's scan also provides, or above it an entry number
of the log. If several slices have names with one hash, only one of them is read this way. The hash is Spark's
``xxhash64``: it is computed for each row, and ``crc32`` copies the name first. Each branch reads a slice independently;
the branches agree because the table state pins the slice.

Compared with the core's reader a log row costs more, a base row less: :func:`beside_scan` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hudi_fast.errors import HudiError
from hudi_fast.events import warn, without_secrets
from hudi_fast.expressions.arrow_filters import RowFilter
from hudi_fast.expressions.conditions import Anything, Condition
from hudi_fast.kernels.hashes import xx_hash64
from hudi_fast.merging.rules import merge_schema
from hudi_fast.reading.slice_reader import SliceScan, hidden_rows, log_rows_of_slice, read_slice
from hudi_fast.spark.arrow import as_spark, numbers_of, parallelism, session_conf, spark_arrow, spark_schema
from hudi_fast.spark.reading.native_scan import (
    LISTING_TASKS,
    PATTERN,
    SCAN_OPTIONS,
    WORTH_NARROWING,
    NarrowSlices,
    fields_fit,
    native_scan,
    readable_by_spark,
)
from hudi_fast.spark.reading.python_scan import Query, UnitRows, prunes_columns, python_frame
from hudi_fast.spark.storage import reached_by_spark
from hudi_fast.storage.failures import told_while_read
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import folder_values, open_source
from hudi_fast.view.bootstrap_index import SourceFile
from hudi_fast.view.slices import FileSlice

__all__ = ["beside_scan", "core_scan", "scan_slices", "scan_with_logs", "spark_schema"]

_ROW = "__hudi_fast_row"
_ENTRY = 1 << 31
"""Flag of the numbers of log entries; numbers of base rows are below it."""

_SPARK_SEED = np.uint64(42)

_LOG_SHARE = 0.2
"""Maximum ratio of log bytes to base file bytes.

Spark's scan is faster for all columns at a ratio of 0.03, and for a single column up to 0.29."""
_LOG_BYTES = 128 << 20
_TASK_BYTES, _LIGHT_TASK_BYTES = 32 << 20, 128 << 20  # each Python task has an overhead of about 0.05 s

Read = Callable[[int], Iterator[pa.RecordBatch]]


def beside_scan(scan: SliceScan, slices: Sequence[FileSlice]) -> frozenset[FileSlice]:
    """The slices with base and log files for :func:`scan_with_logs`; the others are for :func:`core_scan`.

    A slice is selected if its log has at most a fifth of its base file's bytes. All selected logs together have at most
    128 MiB, smallest shares first: the hidden rows must fit into the memory of every executor. If logs are not merged,
    all slices are selected.
    """
    if scan.unmerged:
        return frozenset(slices)
    chosen: dict[int, FileSlice] = {}
    room = _LOG_BYTES
    for share, _, log_bytes, one in sorted(map(_log_share, slices), key=lambda each: each[:2]):
        code = _file_code(one)
        if share > _LOG_SHARE or log_bytes > room:
            break
        if code not in chosen:
            chosen[code] = one
            room -= log_bytes
    return frozenset(chosen.values())


def scan_with_logs(
    spark: Any,
    scan: SliceScan,
    slices: Sequence[FileSlice],
    file_name: str | None = None,
    narrow: NarrowSlices | None = None,
) -> Any:
    """A lazy DataFrame of the columns of ``scan.output``: unchanged rows by Spark's scan, the others by the core.

    Args:
        spark: the session.
        scan: columns of every slice; without a filter.
        slices: at least one, of :func:`beside_scan`.
        file_name: name of an additional column with the base file's name; None to omit it.
        narrow: as in :func:`hudi_fast.spark.reading.native_scan.native_scan`.
    """
    more = {} if file_name is None else {file_name: F.col("_metadata.file_name")}
    if scan.unmerged:
        brought = core_scan(spark, replace(scan, base_rows=False), slices, file_name)
        return native_scan(spark, scan, slices, more, narrow).unionByName(brought)
    code = F.shiftleft(F.xxhash64(F.col("_metadata.file_name")), 32)
    numbered = {**more, _ROW: code.bitwiseOR(F.col("_metadata.row_index"))}
    base = native_scan(spark, scan, slices, numbered, narrow)
    hidden = F.broadcast(_hidden(spark, scan, slices))
    brought = _brought(spark, scan, slices, file_name)
    if scan.merge is not None and scan.merge.rules.compares:  # else no row of the log loses
        brought = brought.join(hidden, _ROW, "left_anti")
    return base.join(hidden, _ROW, "left_anti").unionByName(brought).drop(_ROW)


def core_scan(
    spark: Any,
    scan: SliceScan,
    slices: Sequence[FileSlice],
    file_name: str | None = None,
    narrow: NarrowSlices | None = None,
    needs_all: bool = False,
) -> Any:
    """A lazy DataFrame of the columns of ``scan.output``, read by the core in Python workers.

    Args:
        spark: the session.
        scan: columns and filter of every slice.
        slices: at least one.
        file_name: name of an additional column with the base file's name; None to omit it.
        narrow: skips slices by the filters of a query when Spark plans it; None to read all of them.
        needs_all: whether the query needs all columns of all rows.
    """
    return python_frame(spark, _SliceRows(scan, slices, file_name, narrow), needs_all)


@dataclass(frozen=True)
class _SliceRows:
    """The rows of slices, for :func:`~hudi_fast.spark.reading.python_scan.python_frame`.

    Attributes:
        scan: columns and filter of every slice.
        slices: at least one.
        file_name: name of an additional column with the base file's name; None to omit it.
        narrow: skips slices by the filters of a query; None to read all of them.
    """

    scan: SliceScan
    slices: Sequence[FileSlice]
    file_name: str | None
    narrow: NarrowSlices | None

    @property
    def name(self) -> str:
        return f"hudi_fast {without_secrets(self.scan.storage.uri)}"

    @property
    def schema(self) -> pa.Schema:
        return _shown(self.scan, self.file_name)

    @property
    def filterable(self) -> pa.Schema:
        return self.scan.output

    @property
    def size(self) -> int:
        return sum(one.weight if self.scan.base_rows else _log_bytes(one) for one in self.slices)

    def rows(self, query: Query) -> UnitRows:
        names = [name for name in query.columns if name != self.file_name]
        scan, form = _of_query(self.scan, names, query.filter), _Form.of(self.schema, query.columns, self.file_name)
        slices = self._kept(query.condition)

        def read(one: FileSlice) -> Iterator[pa.RecordBatch]:
            for rows in told_while_read(read_slice(scan, one), scan.storage.uri):
                yield form.batch(rows, one)

        few_rows = scan.filter is not None or not scan.base_rows
        share = max(1, len(names)) / max(1, len(self.scan.output))
        weights = [int(one.weight * share) for one in slices]
        return UnitRows(slices, weights, _LIGHT_TASK_BYTES if few_rows else _TASK_BYTES, read)

    def _kept(self, condition: Condition) -> Sequence[FileSlice]:
        """The slices that may hold rows matching a condition; all of them if that is not known."""
        if self.narrow is None or len(self.slices) < WORTH_NARROWING or condition == Anything():
            return self.slices
        try:
            kept = self.narrow(condition)
        except (HudiError, OSError, pa.ArrowException) as error:
            warn(f"{without_secrets(self.scan.storage.uri)}: no file slice is skipped: {error}")
            return self.slices
        return [one for one in self.slices if one in kept]


def _shown(scan: SliceScan, file_name: str | None) -> pa.Schema:
    """The columns of a DataFrame, in the table's types."""
    return scan.output if file_name is None else scan.output.append(pa.field(file_name, pa.string()))


def _of_query(scan: SliceScan, columns: Sequence[str], condition: pc.Expression | None) -> SliceScan:
    """A scan of some of the columns and rows of ``scan``; ``condition`` is on the columns of its output."""
    conditions = [] if scan.filter is None else [scan.filter.expression]
    if condition is not None:
        conditions.append(condition)
    row_filter = RowFilter.of(reduce(and_, conditions), scan.schema) if conditions else None
    used = frozenset() if row_filter is None else row_filter.columns
    output = pa.schema([scan.schema.field(name) for name in columns])
    schema = pa.schema([*output, *(one for one in scan.schema if one.name in used and one.name not in output.names)])
    merge_columns = scan.merge_columns
    if scan.merge is not None and merge_columns is not None:
        merge_columns = merge_schema(scan.merge, schema, merge_columns)
    return replace(scan, schema=schema, output=output, filter=row_filter, merge_columns=merge_columns)


def _brought(spark: Any, scan: SliceScan, slices: Sequence[FileSlice], file_name: str | None) -> Any:
    """The rows of the logs, with :data:`_ROW`: null for rows that do not lose against stored ones."""
    form = _Form.of(_shown(scan, file_name), None, file_name)
    target = form.target.append(pa.field(_ROW, pa.int64()))
    schema = spark_schema(_shown(scan, file_name)).add(_ROW, "long")
    wanted = replace(scan, schema=scan.output)

    def read(number: int) -> Iterator[pa.RecordBatch]:
        for rows, entries in log_rows_of_slice(wanted, slices[number]):
            made = form.batch(rows, slices[number])
            row = pa.nulls(rows.num_rows, pa.int64()) if entries is None else _codes(slices[number], entries + _ENTRY)
            yield pa.RecordBatch.from_arrays([*made.columns, row], schema=target)

    size = sum(map(_log_bytes, slices))
    return _in_workers(spark, scan.storage.uri, slices, _LIGHT_TASK_BYTES, read, schema, size)


@dataclass(frozen=True)
class _Form:
    """The form of rows that return to Spark.

    Attributes:
        target: the columns in Arrow.
        file_name: name of the column with the base file's name; None to omit it.
    """

    target: pa.Schema
    file_name: str | None

    @classmethod
    def of(cls, schema: pa.Schema, columns: Sequence[str] | None, file_name: str | None) -> Self:
        """The form of some columns of ``schema``; None for all of them."""
        chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        return cls(spark_arrow(chosen), file_name if file_name in chosen.names else None)

    def batch(self, rows: pa.RecordBatch, slice_: FileSlice) -> pa.RecordBatch:
        """Rows of a slice in this form; they have all its columns but the file's name, in its order."""
        columns = as_spark(rows, [field for field in self.target if field.name != self.file_name])
        if self.file_name is not None:
            name = None if slice_.base_file is None else slice_.base_file.name
            names = pa.repeat(pa.scalar(name, pa.string()), rows.num_rows)
            columns.insert(self.target.get_field_index(self.file_name), names)
        return pa.RecordBatch.from_arrays(columns, schema=self.target)


def _hidden(spark: Any, scan: SliceScan, slices: Sequence[FileSlice]) -> Any:
    def read(number: int) -> Iterator[pa.RecordBatch]:
        stored, logged = hidden_rows(scan, slices[number])
        yield pa.record_batch([_codes(slices[number], np.concatenate([stored, logged + _ENTRY]))], names=[_ROW])

    return _in_workers(spark, scan.storage.uri, slices, _LIGHT_TASK_BYTES, read, StructType().add(_ROW, "long"), 0)


def _in_workers(
    spark: Any, uri: str, slices: Sequence[FileSlice], task_bytes: int, read: Read, schema: Any, size: int
) -> Any:
    """Apply ``read`` to the numbers of the slices, in tasks of that many bytes, but at least one for each processor.

    ``size``: of the rows in bytes, for Spark's optimizer.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            yield from told_while_read(read(number), uri)

    processors, count = parallelism(spark), len(slices)
    tasks = min(count, 4 * processors, max(processors, sum(one.weight for one in slices) // task_bytes))
    return numbers_of(spark, count, tasks, size, len(schema)).mapInArrow(run, schema)


def _log_bytes(one: FileSlice) -> int:
    return sum(log.size for log in one.log_files)


def _codes(one: FileSlice, numbers: npt.NDArray[np.int64]) -> pa.Array:
    """Numbers below 2**32 of a slice, as numbers of the table."""
    codes = numbers.view(np.uint64) | np.uint64(_file_code(one) << 32)
    return pa.array(codes.view(np.int64))


def _file_code(one: FileSlice) -> int:
    """The low 32 bits of what Spark's ``xxhash64`` makes of the base file's name."""
    assert one.base_file is not None
    name, found = np.frombuffer(one.base_file.name.encode(), np.uint8), np.empty(1, np.uint64)
    xx_hash64(np.array([0, name.size], np.int32), name, _SPARK_SEED, found)
    return int(found[0]) & 0xFFFF_FFFF


def _log_share(one: FileSlice) -> tuple[float, str, int, FileSlice]:
    """Ratio of log bytes to base file bytes, the base file, and bytes of the log."""
    assert one.base_file is not None
    log_bytes = _log_bytes(one)
    return log_bytes / max(1, one.base_file.size), one.base_file.path, log_bytes, one


def scan_slices(
    spark: Any,
    scan: SliceScan,
    slices: Sequence[FileSlice],
    file_name: str | None = None,
    narrow: NarrowSlices | None = None,
    needs_all: bool = False,
) -> Any:
    """A lazy DataFrame of the columns of ``scan.output``.

    Args:
        spark: the session.
        scan: columns and filter of every slice.
        slices: at least one; without a base file only where log files are merged.
        file_name: name of an additional column with the base file's name; None to omit it.
        narrow: skips base files by the filters of a query when Spark plans it; None to read all of them.
        needs_all: whether the query is known to need all columns of all rows.
    """
    native = scan.filter is None and not scan.values_from_path and reached_by_spark(spark, scan.storage)
    readable = readable_by_spark(scan, slices) if native else frozenset()
    logged = frozenset() if scan.merge is None else frozenset(one for one in readable if one.log_files)
    beside: frozenset[FileSlice] = frozenset()
    if logged and (scan.unmerged or not (needs_all or prunes_columns(spark))):
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
        parts.append(core_scan(spark, scan, others, file_name, narrow, needs_all))
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
