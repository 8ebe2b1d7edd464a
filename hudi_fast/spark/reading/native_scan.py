"""Reads base files with Spark's vectorised Parquet scan, where its result equals the core's.

Excluded: files that are not Parquet, skeletons of a bootstrapped table, files older than a type change that Spark's
scan does not support, files with timestamps under a wrong label, columns of types that Spark lacks, files whose path
Spark interprets as a pattern, and partition columns stored only in paths that Spark cannot parse. The footer of one
file of each commit gives the types, because a commit writes one schema.

Files from before a column was renamed or dropped form a separate scan per set of old names. The core's reader reads
files with changed nested columns or types.

A partition column whose value follows from the path is a constant of a file, whatever the file stores. For Spark it is
a partition column; where Spark lists files itself, its values are joined by file name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from hudi_fast.config.table_config import TableConfig
from hudi_fast.expressions.conditions import Condition
from hudi_fast.formats.logical_types import is_vector
from hudi_fast.keys.partition_path import stored_values
from hudi_fast.reading.prune import known_partition_values
from hudi_fast.reading.slice_reader import SliceScan
from hudi_fast.schema.cast import counts_milliseconds
from hudi_fast.schema.history import stored_name
from hudi_fast.spark.arrow import frame_of, parallelism, session_conf, spark_schema
from hudi_fast.spark.reading.file_index import Narrow, PlannedFile, planned_frame
from hudi_fast.spark.storage import spark_uri
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.instants import ms_from_instant
from hudi_fast.view.base_files import RenamedBase, open_base
from hudi_fast.view.file_names import BaseFile
from hudi_fast.view.slices import FileSlice

__all__ = [
    "LISTING_TASKS",
    "PATTERN",
    "SCAN_OPTIONS",
    "WORTH_NARROWING",
    "NarrowSlices",
    "fields_fit",
    "native_scan",
    "readable_by_spark",
]

_FOOTER_THREADS = 8
_FIRST_WITH_HIVE_DEFAULT = 5
"""Before this table version the folder ``default`` holds nulls."""
SCAN_OPTIONS = {
    "datetimeRebaseMode": "CORRECTED",  # Hudi's files use the proleptic Gregorian calendar
    "int96RebaseMode": "CORRECTED",
}
PATTERN = frozenset("{}[]*?\\")  # Spark treats a path with one of these as a pattern
_FILE = "__hudi_fast_file"
WORTH_NARROWING = 8
"""Opening fewer files than this costs less than asking the metadata table about them."""

NarrowSlices = Callable[[Condition], Collection[FileSlice]]
"""The slices that may hold rows matching a condition."""

LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
"""Spark setting: number of tasks of a parallel file listing."""


def native_scan(
    spark: Any,
    scan: SliceScan,
    slices: Sequence[FileSlice],
    more: Mapping[str, Any] | None = None,
    narrow: NarrowSlices | None = None,
) -> Any:
    """A lazy DataFrame of ``scan.output`` and the columns ``more``: the rows of base files, ignoring logs.

    Args:
        spark: the session.
        scan: columns; without a filter.
        slices: at least one, all of :func:`readable_by_spark`.
        more: additional columns by name, which may use ``_metadata``.
        narrow: skips files by the filters that Spark pushes down; None to read all of them.
    """
    values = _values_of_paths(scan, {one.partition for one in slices})
    groups: dict[tuple[tuple[str | None, ...], frozenset[str]], list[FileSlice]] = {}
    of_commit: dict[str, tuple[str | None, ...]] = {}  # a commit writes one schema
    for one in slices:
        if one.base_file is None:
            continue
        stored = of_commit.get(one.base_file.instant)
        if stored is None:
            names = one.base_file.names
            stored = tuple(stored_name(names, name) for name in scan.output.names)
            of_commit[one.base_file.instant] = stored
        groups.setdefault((stored, frozenset(values[one.partition])), []).append(one)
    frames = []
    for (stored, given), some in groups.items():
        there = [None if name in given else at for name, at in zip(scan.output.names, stored, strict=True)]
        constants = [field for field in scan.output if field.name in given]
        files = _planned(scan, some, [[values[one.partition][field.name] for field in constants] for one in some])
        skips = None if narrow is None or len(some) < WORTH_NARROWING else _by_number(narrow, some)
        frames.append(_scan_files(spark, scan, files, there, pa.schema(constants), more or {}, skips))
    return reduce(lambda left, right: left.unionByName(right), frames)


def _values_of_paths(scan: SliceScan, partitions: Iterable[str]) -> dict[str, dict[str, str | None]]:
    """By partition path, the text of columns of ``scan.output`` that come from the path although files store them."""
    if scan.config.drop_partition_columns or not scan.from_path:
        return {path: {} for path in partitions}
    known = {path: known_partition_values(scan.config, scan.output, path) for path in partitions}
    return {
        path: {name: value.cast(pa.string()).as_py() for name, value in values.items() if name in scan.from_path}
        for path, values in known.items()
    }


def _scan_files(
    spark: Any,
    scan: SliceScan,
    files: Sequence[PlannedFile],
    stored: Sequence[str | None],
    of_path: pa.Schema,
    more: Mapping[str, Any],
    narrow: Narrow | None,
) -> Any:
    """Scan base files for ``scan.output`` and the columns ``more``.

    Args:
        spark: the session.
        scan: of the files.
        files: with the values of ``of_path``.
        stored: names in the files of the columns of ``scan.output``; None for a column that is not read from them.
        of_path: columns whose values paths give.
        more: as in :func:`native_scan`.
        narrow: numbers of ``files`` by the filters that Spark pushes down; None to read all of them.
    """
    named = list(zip(scan.output, stored, strict=True))
    there = spark_schema(pa.schema([field.with_name(name) for field, name in named if name is not None]))
    added = [column.alias(name) for name, column in more.items()]
    frame = None
    if not _path_columns(scan.config, scan.output):
        skips = None if any(name not in (None, field.name) for field, name in named) else narrow
        constants = spark_schema(of_path) if len(of_path) else None
        frame = planned_frame(spark, spark_uri(scan.storage), files, there, SCAN_OPTIONS, skips, constants)
    if frame is None:
        frame = _listed_by_spark(spark, scan, files, there, of_path, added)
        added = [F.col(f"`{name}`") for name in more]
    if frame.columns == scan.output.names:  # selecting each column takes calls of the JVM
        return frame.select("*", *added) if added else frame
    columns = []
    for field, name in zip(spark_schema(scan.output), stored, strict=True):
        name = field.name if field.name in of_path.names else name
        column = F.lit(None).cast(field.dataType) if name is None else F.col(f"`{name}`")
        columns.append(column if name == field.name else column.alias(field.name))
    return frame.select(*columns, *added)


def _listed_by_spark(
    spark: Any, scan: SliceScan, files: Sequence[PlannedFile], schema: Any, of_path: pa.Schema, added: Sequence[Any]
) -> Any:
    """The columns of ``schema``, ``of_path`` and ``added``, for sessions that do not accept a list of files."""
    reader = spark.read.options(**SCAN_OPTIONS).schema(schema)
    if _path_columns(scan.config, scan.output):
        reader = reader.option("basePath", spark_uri(scan.storage))
    frames = []
    for some in _of_distinct_names(files) if len(of_path) else [files]:
        # Spark lists each file; by default with one task per file.
        with session_conf(spark, {LISTING_TASKS: str(4 * parallelism(spark))}):
            frame = reader.parquet(*(spark_uri(scan.storage, file.path) for file in some))
        if len(of_path):
            names = pa.array([file.name for file in some], pa.string())
            columns = [pa.array(texts, pa.string()) for texts in zip(*(file.values for file in some), strict=True)]
            typed = {field.name: column.cast(field.type) for field, column in zip(of_path, columns, strict=True)}
            constants = F.broadcast(frame_of(spark, pa.table({_FILE: names, **typed})))
            named = frame.select("*", *added, F.col("_metadata.file_name").alias(_FILE))
            frames.append(named.join(constants, _FILE).drop(_FILE))
        else:
            frames.append(frame.select("*", *added) if added else frame)
    return reduce(lambda left, right: left.unionByName(right), frames)


def _of_distinct_names(files: Sequence[PlannedFile]) -> list[list[PlannedFile]]:
    """Files in lists in which no two have one name; file groups of different partitions may have the same id."""
    lists: list[list[PlannedFile]] = []
    seen: Counter[str] = Counter()
    for file in files:
        if seen[file.name] == len(lists):
            lists.append([])
        lists[seen[file.name]].append(file)
        seen[file.name] += 1
    return lists


def _planned(scan: SliceScan, slices: Sequence[FileSlice], values: Sequence[Sequence[str | None]]) -> list[PlannedFile]:
    bases = [one.base_file for one in slices if one.base_file is not None]
    times = {time: ms_from_instant(time, scan.config.timezone) for time in {base.instant for base in bases}}
    return [
        PlannedFile(base.path, base.size, times[base.instant], tuple(texts))
        for base, texts in zip(bases, values, strict=True)
    ]


def _by_number(narrow: NarrowSlices, slices: Sequence[FileSlice]) -> Narrow:
    def numbers(condition: Condition) -> list[int]:
        kept = narrow(condition)
        return [at for at, one in enumerate(slices) if one in kept]

    return numbers


def readable_by_spark(scan: SliceScan, slices: Sequence[FileSlice]) -> frozenset[FileSlice]:
    """The slices with a base file that Spark's scan reads correctly; reads one footer of each commit."""
    from_path = _path_columns(scan.config, scan.output)
    slices = [one for one in slices if not PATTERN & set(f"{scan.storage.uri}{one.partition}")]
    slices = [one for one in slices if one.base_file is None or _is_plain_parquet(one.base_file)]
    if from_path:
        slices = [one for one in slices if _spark_parses(scan.config, one.partition)]
    samples = {one.base_file.instant: one.base_file for one in slices if one.base_file is not None}
    wanted = pa.schema([field for field in scan.output if field.name not in from_path])

    def fits(base: BaseFile) -> bool:
        with open_base(scan.storage, base) as reader:
            present = [name for name in wanted.names if reader.has(name)]
            if isinstance(reader, RenamedBase) and not (present and reader.only_renamed.issuperset(present)):
                return False
            return fields_fit(reader.schema, wanted)

    with ThreadPool(_FOOTER_THREADS) as pool:
        fitting = dict(zip(samples, pool.map(fits, samples.values()), strict=True))
    return frozenset(one for one in slices if one.base_file is not None and fitting[one.base_file.instant])


def _is_plain_parquet(base: BaseFile) -> bool:
    return not base.is_skeleton and base.name.endswith(".parquet")


def _path_columns(config: TableConfig, schema: pa.Schema) -> list[str]:
    """Columns stored only in paths."""
    return [name for name in config.partition_fields if name in schema.names] if config.drop_partition_columns else []


def _spark_parses(config: TableConfig, partition: str) -> bool:
    """Whether Spark's partition discovery parses the partition values of a path correctly."""
    values = stored_values(partition, config)
    simple = config.key_generator in ("SIMPLE", "COMPLEX") and config.hive_style and values is not None
    old_null = config.version < _FIRST_WITH_HIVE_DEFAULT and values is not None and None in values.values()
    return simple and not old_null and (config.url_encode or "%" not in partition)


def fields_fit(stored: Iterable[pa.Field], wanted: Iterable[pa.Field]) -> bool:
    """Whether Spark reads the columns of a file in the requested types."""
    kinds = {field.name: field.type for field in stored}
    return all(field.name not in kinds or _fits(kinds[field.name], field.type) for field in wanted)


def _fits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark (3.5 and later) reads ``stored`` as ``wanted``."""
    if pa.types.is_dictionary(stored):
        return _fits(stored.value_type, wanted)
    if pa.types.is_time(wanted) or pa.types.is_fixed_size_binary(wanted) or is_vector(wanted):
        return False
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(wanted):
        if counts_milliseconds(stored, wanted):
            return False
        return stored.unit in ("ms", "us") and (stored.tz is None) == (wanted.tz is None)
    if pa.types.is_struct(stored) and pa.types.is_struct(wanted):
        shared = {field.name for field in stored} & {field.name for field in wanted}
        return bool(shared) and fields_fit(stored, wanted)
    if pa.types.is_list(stored) and pa.types.is_list(wanted):
        return _fits(stored.value_type, wanted.value_type)
    if pa.types.is_map(stored) and pa.types.is_map(wanted):
        return _fits(stored.key_type, wanted.key_type) and _fits(stored.item_type, wanted.item_type)
    return bool(stored == wanted) or (stored == pa.int32() and wanted == pa.int64())
