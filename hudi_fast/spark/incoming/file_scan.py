"""A scan of Parquet files that tasks read themselves.

A scan of Parquet files as plain values, and its rows as Arrow batches.

::

    FileScan ── rows_of(task) ──► each split: open, compare with the plan, choose row groups, read, filter, project

A split is a range of bytes of a file. Its rows are those of the row groups whose middle lies in the range, as in
parquet-mr, so the splits of a file have each row once. Everything here is picklable and runs in tasks or in the driver.

Columns of a Parquet file that Arrow and Spark read alike: the table of rules.

Spark and Arrow give some stored values other meanings: timestamps of nanoseconds, or without the right zone; dates and
timestamps in the old calendar; unsigned integers; decimals as text; lists in two levels. Spark also reads files whose
columns are missing, have other types, or differ in upper and lower case. Such a file is refused, so Spark reads it.

Timestamps of 96 bits, which Spark writes by default, are in UTC and in the present calendar if Spark 3 or later wrote
them without the mark of the old calendar. Those of other writers are refused.

Source: ``ParquetToSparkSchemaConverter``, ``ParquetRowConverter``, ``ParquetVectorUpdaterFactory`` and
``DataSourceUtils.datetimeRebaseSpec`` of Spark 3.5 to 4.3.

Spark tasks that read the files of a scan: a DataFrame of their numbers, and functions from numbers to rows.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_fast.errors import HudiError, InvalidDataError
from hudi_fast.formats.base_file import rows_without_columns
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.schema.conform import plan_conform
from hudi_fast.spark.incoming.expressions import Expression, ScanRefusedError, evaluated
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.values import dataclass

__all__ = [
    "FIRST_DAY",
    "FIRST_TIME",
    "FileScan",
    "Leaves",
    "ReadRules",
    "ScanTasks",
    "ScannedFile",
    "Split",
    "is_readable",
    "leaves_to_read",
    "parts_of",
    "require_present_calendar",
    "rows_in_tasks",
]

_VERSION = b"org.apache.spark.version"
_LEGACY = b"org.apache.spark.legacyDateTime"
_LEGACY_96 = b"org.apache.spark.legacyINT96"
FIRST_DAY = datetime.date(1582, 10, 15)
"""The first day of the present calendar."""

FIRST_TIME = datetime.datetime(1900, 1, 2)
"""Before 1900 Spark may move timestamps that were written by others; a day later than its own bound."""

_FIRST_PROLEPTIC = 3
"""Spark 2 wrote dates in the old calendar."""

_STORED_AS: dict[pa.DataType, frozenset[str]] = {
    pa.bool_(): frozenset({"BOOLEAN"}),
    pa.int8(): frozenset({"INT32 Int(8)"}),
    pa.int16(): frozenset({"INT32 Int(16)"}),
    pa.int32(): frozenset({"INT32", "INT32 Int(32)"}),
    pa.int64(): frozenset({"INT64", "INT64 Int(64)"}),
    pa.float32(): frozenset({"FLOAT"}),
    pa.float64(): frozenset({"DOUBLE"}),
    pa.string(): frozenset({"BYTE_ARRAY String"}),
    pa.binary(): frozenset({"BYTE_ARRAY"}),
    pa.date32(): frozenset({"INT32 Date"}),
    pa.timestamp("us", "UTC"): frozenset({"INT64 Timestamp(microseconds, UTC)", "INT96"}),
    pa.timestamp("us"): frozenset({"INT64 Timestamp(microseconds)"}),
}
"""The forms in which a column of a type may be stored; :func:`_form` names them. Decimals are in :func:`_forms`."""

_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


@dataclass(frozen=True, slots=True)
class ReadRules:
    """Settings of the session's Parquet reader.

    Attributes:
        exact_names: whether upper and lower case differ in column names.
        calendar: of dates and timestamps in files that do not name Spark as their writer: ``CORRECTED``, the present
            one; ``LEGACY``, the old one; ``EXCEPTION``: Spark refuses values that may be in either.
    """

    exact_names: bool
    calendar: str


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf columns to read from a file.

    Attributes:
        paths: dotted paths.
        unzoned: columns with timestamps of 96 bits, which Arrow reads without their zone, UTC.
        dated: columns of dates and timestamps whose values must not be before :data:`FIRST_DAY` or :data:`FIRST_TIME`.
    """

    paths: list[str]
    unzoned: frozenset[str]
    dated: frozenset[str]


def is_readable(kind: pa.DataType) -> bool:
    """Whether there are rules for a type."""
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(is_readable(field.type) for field in kind)
    if pa.types.is_map(kind):
        return is_readable(kind.key_type) and is_readable(kind.item_type)
    if pa.types.is_list(kind):
        return is_readable(kind.value_type)
    return bool(_forms(kind))


def leaves_to_read(metadata: pq.FileMetaData, stored: pa.Schema, wanted: pa.Schema, rules: ReadRules) -> Leaves:
    """The leaf columns that hold the wanted columns.

    Args:
        metadata: footer of the file.
        stored: columns of the file, as Arrow reads them.
        wanted: columns that Spark's scan would read, in their types; fields of structs may be missing.
        rules: of the session.

    Raises:
        ScanRefusedError: Spark might read other values than Arrow.
    """
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    by_path = {one.path: one for one in columns}
    if len(by_path) < len(columns):
        raise ScanRefusedError("two of its columns have one path")
    found = _Walk(by_path, rules)
    found.members("", stored, wanted)
    for path in found.paths:
        if any(other.startswith(f"{path}.") for other in by_path):
            raise ScanRefusedError(f"its column {path} has a dot in its name")
    pairs = metadata.metadata or {}
    dated: frozenset[str] = frozenset()
    if found.dated and _VERSION not in pairs and rules.calendar == "EXCEPTION":
        dated = frozenset(found.dated)
        if nested := sorted(name for name in dated if pa.types.is_nested(wanted.field(name).type)):
            raise ScanRefusedError(f"the dates or timestamps in its column {nested[0]} may be in the old calendar")
    elif found.dated and (not _is_proleptic(pairs, rules.calendar == "CORRECTED") or _LEGACY in pairs):
        raise ScanRefusedError("its dates or timestamps may be in the old calendar")
    if found.unzoned and (not _is_proleptic(pairs, False) or _LEGACY_96 in pairs):
        raise ScanRefusedError("its timestamps of 96 bits may be in the old calendar, or in another zone")
    return Leaves(found.paths, frozenset(found.unzoned), dated)


def require_present_calendar(rows: pa.RecordBatch, leaves: Leaves) -> None:
    """Refuse dates and timestamps that Spark refuses, because they may be in the old calendar."""
    for name in leaves.dated:
        column = rows.column(name)
        first: datetime.date = FIRST_DAY
        if pa.types.is_timestamp(column.type):
            first, column = FIRST_TIME, column.cast(pa.timestamp("us"))
        if pc.any(pc.less(column, pa.scalar(first, column.type))).as_py():
            raise ScanRefusedError(f"its column {name} has values before {first:%Y-%m-%d}")


class _Walk:
    """Collects the leaf columns of wanted columns."""

    def __init__(self, by_path: Mapping[str, Any], rules: ReadRules) -> None:
        self.paths: list[str] = []
        self.unzoned: set[str] = set()
        self.dated: set[str] = set()
        self._by_path, self._rules = by_path, rules
        self._root = ""

    def members(self, path: str, stored: Sequence[pa.Field], wanted: Sequence[pa.Field]) -> None:
        """The members of a struct, or the columns of a file."""
        names = [field.name for field in stored]
        same = Counter(names if self._rules.exact_names else [name.lower() for name in names])
        positions = []
        for field in wanted:
            name = f"{path}{field.name}"
            self._root = self._root if path else name
            if field.name not in names:
                raise ScanRefusedError(f"it has no column {name}")
            if same[field.name if self._rules.exact_names else field.name.lower()] > 1:
                raise ScanRefusedError(f"its column {name} has the name of another, in upper or lower case")
            positions.append(names.index(field.name))
            self._column(name, stored[positions[-1]].type, field.type)
        if path and positions != sorted(positions):
            raise ScanRefusedError(f"the fields of its column {path[:-1]} have another order")

    def _column(self, path: str, stored: pa.DataType, wanted: pa.DataType) -> None:
        if pa.types.is_struct(wanted) and pa.types.is_struct(stored):
            self.members(f"{path}.", list(stored), list(wanted))
        elif pa.types.is_map(wanted) and pa.types.is_map(stored):
            self._column(f"{path}.key_value.key", stored.key_type, wanted.key_type)
            self._column(f"{path}.key_value.value", stored.item_type, wanted.item_type)
        elif pa.types.is_list(wanted) and pa.types.is_list(stored):
            self._column(f"{path}.list.element", stored.value_type, wanted.value_type)
        else:
            self._leaf(path, wanted)

    def _leaf(self, path: str, wanted: pa.DataType) -> None:
        if path not in self._by_path:
            raise ScanRefusedError(f"its column {path} is not stored as {wanted}")
        form = _form(self._by_path[path])
        if form not in _forms(wanted):
            raise ScanRefusedError(f"its column {path} is stored as {form}, and read as {wanted}")
        self.paths.append(path)
        if form == "INT96":
            self.unzoned.add(self._root)
        elif pa.types.is_date(wanted) or pa.types.is_timestamp(wanted):
            self.dated.add(self._root)


def _forms(kind: pa.DataType) -> frozenset[str]:
    if pa.types.is_decimal128(kind):
        return frozenset(f"{physical} Decimal({kind.precision}, {kind.scale})" for physical in _DECIMALS)
    return _STORED_AS.get(kind, frozenset())


def _form(column: Any) -> str:
    """How a leaf column is stored: its physical type, and the meaning of its values."""
    said = json.loads(column.logical_type.to_json())
    kind = said["Type"]
    if kind in ("None", "Undefined"):
        return str(column.physical_type)
    details = {
        "Int": lambda: f"({said['bitWidth']})" if said["isSigned"] else f"({said['bitWidth']}, unsigned)",
        "Decimal": lambda: f"({said['precision']}, {said['scale']})",
        "Timestamp": lambda: f"({said['timeUnit']}{', UTC' if said['isAdjustedToUTC'] else ''})",
    }
    return f"{column.physical_type} {kind}{details[kind]() if kind in details else ''}"


def _is_proleptic(pairs: Mapping[bytes, bytes], otherwise: bool) -> bool:
    """Whether the writer is a Spark that uses the present calendar; ``otherwise`` for other writers."""
    version = pairs.get(_VERSION)
    if version is None:
        return otherwise
    major = version.partition(b".")[0]
    return major.isdigit() and int(major) >= _FIRST_PROLEPTIC


_BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """A file of a scan.

    Attributes:
        uri: as Spark names it, with percent-encoding.
        size: bytes, when Spark listed the file.
        modified_ms: its time then; milliseconds since 1970.
        values: of the partition columns.
    """

    uri: str
    size: int
    modified_ms: int
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file.

    Attributes:
        file: its number among the files of the scan.
        start: first byte.
        end: the byte after the last.
    """

    file: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FileScan:
    """Rows of Parquet files.

    Attributes:
        files: of the scan.
        tasks: the splits of each task of Spark, in its order.
        columns: that are read from the files, as Spark's scan reads them.
        constants: the partition columns; the files have their values.
        filters: conditions on ``columns`` followed by ``constants``; a row is kept if all of them are true.
        outputs: expressions over the same columns, one for each column of ``schema``.
        schema: of the rows.
        rules: of the session's Parquet reader.
        options: storage options by the scheme and host of a file.
    """

    files: tuple[ScannedFile, ...]
    tasks: tuple[tuple[Split, ...], ...]
    columns: pa.Schema
    constants: pa.Schema
    filters: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    schema: pa.Schema
    rules: ReadRules
    options: Mapping[str, Mapping[str, str]]

    def in_tasks(self, count: int) -> list[list[Split]]:
        """The splits of at most ``count`` tasks: neighbours together, as Spark's ``coalesce`` joins them."""
        count = max(1, min(count, len(self.tasks)))
        bounds = [number * len(self.tasks) // count for number in range(count + 1)]
        return [[split for task in self.tasks[first:last] for split in task] for first, last in pairwise(bounds)]

    def of_columns(self, names: Sequence[str]) -> FileScan:
        """A scan of some columns of :attr:`schema`, which reads no others."""
        outputs = tuple(self.outputs[self.schema.get_field_index(name)] for name in names)
        used = {number for one in (*outputs, *self.filters) for number in one.columns}
        width = len(self.columns)
        kept = [number for number in range(width + len(self.constants)) if number >= width or number in used]
        places = {number: at for at, number in enumerate(kept)}
        return replace(
            self,
            columns=pa.schema([self.columns.field(number) for number in kept if number < width]),
            filters=tuple(one.moved(places) for one in self.filters),
            outputs=tuple(one.moved(places) for one in outputs),
            schema=pa.schema([self.schema.field(name) for name in names]),
        )

    def read(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows of splits, in :attr:`schema`.

        Raises:
            InvalidDataError: a file is gone or has changed.
            ScanRefusedError: Spark has to read the rows.
        """
        for split in splits:
            with self.open(split.file) as file:
                yield from self._rows(file, split)

    def open(self, number: int) -> ParquetReader:
        """Open a file, after it is compared with the plan.

        Raises:
            InvalidDataError: the file is gone or has changed.
            ScanRefusedError: it cannot be decoded.
        """
        file = self.files[number]
        try:
            found = self.stat(number)
            if found is None or (found.size, found.modified_ms) != (file.size, file.modified_ms):
                raise _changed(file, found)
            storage, name = _place(file.uri, self.options)
            return open_base_file(storage, name, file.uri, file.size)
        except InvalidDataError:
            raise
        except HudiError as error:
            raise ScanRefusedError(f"{file.uri} cannot be opened: {error}") from error

    def stat(self, number: int) -> FileStat | None:
        """What storage says about a file now; None if it is gone."""
        storage, name = _place(self.files[number].uri, self.options)
        return storage.stat(name)

    def leaves(self, number: int, reader: ParquetReader) -> Leaves:
        """The leaf columns to read from an open file.

        Raises:
            ScanRefusedError: Arrow might read other values than Spark.
        """
        try:
            return leaves_to_read(reader.metadata, reader.schema, self.columns, self.rules)
        except ScanRefusedError as error:
            raise ScanRefusedError(f"{self.files[number].uri}: {error.reason}") from None

    def _rows(self, reader: ParquetReader, split: Split) -> Iterator[pa.RecordBatch]:
        file = self.files[split.file]
        leaves = self.leaves(split.file, reader)
        groups = [number for number, middle in enumerate(_middles(reader, file)) if split.start <= middle < split.end]
        if not groups:
            return
        try:
            for batch in self._stored(reader, leaves, groups):
                made = self._projected(batch, file)
                if made.num_rows:
                    yield made
        except (HudiError, pa.ArrowException) as error:
            raise ScanRefusedError(f"{file.uri} cannot be read: {error}") from error

    def _stored(self, reader: ParquetReader, leaves: Leaves, groups: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Batches of :attr:`columns`."""
        if not leaves.paths:
            for rows in (reader.row_group_rows()[number] for number in groups):
                yield from (rows_without_columns(min(_BATCH_ROWS, rows - at)) for at in range(0, rows, _BATCH_ROWS))
            return
        plan = None
        for batch in reader.stored_batches(leaves.paths, _BATCH_ROWS, groups):
            for name in leaves.unzoned:
                at = batch.schema.get_field_index(name)
                field = self.columns.field(name)
                batch = batch.set_column(at, field, batch.column(at).cast(field.type))
            if plan is None:
                plan = plan_conform(batch.schema, self.columns)
            made = plan.apply(batch)
            require_present_calendar(made, leaves)
            yield made

    def _projected(self, batch: pa.RecordBatch, file: ScannedFile) -> pa.RecordBatch:
        columns = [*batch.columns]
        for field, value in zip(self.constants, file.values, strict=True):
            columns.append(pa.repeat(pa.scalar(value, field.type), batch.num_rows))
        rows = batch.num_rows
        if self.filters:
            masks = [evaluated(one, columns, rows) for one in self.filters]
            kept = pa.RecordBatch.from_arrays([*columns, *masks], names=[str(at) for at in range(len(columns + masks))])
            for at in range(len(masks)):
                kept = kept.filter(kept.column(len(columns) + at))
            columns, rows = kept.columns[: len(columns)], kept.num_rows
        if not self.outputs:
            return rows_without_columns(rows)
        made = [evaluated(one, columns, rows) for one in self.outputs]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)


@lru_cache(maxsize=64)
def _opened(root: str, options: tuple[tuple[str, str], ...]) -> Storage:
    return Storage(root, dict(options))


def _place(uri: str, options: Mapping[str, Mapping[str, str]]) -> tuple[Storage, str]:
    """The storage of a file, and the file's path there."""
    scheme, host, path = parts_of(uri)
    if scheme == "file":
        folder, _, name = path.rpartition("/")
        return Storage(folder or "/"), name
    first, _, rest = path.lstrip("/").partition("/")
    root = f"{scheme}://{host}/{first}"
    return _opened(root, tuple(sorted(options.get(f"{scheme}://{host}", {}).items()))), rest


def parts_of(uri: str) -> tuple[str, str, str]:
    """Scheme, host and decoded path of a file; Spark writes ``file:/folder`` or ``file:///folder``."""
    scheme, _, rest = uri.partition(":")
    host = ""
    if rest.startswith("//"):
        host, _, rest = rest[2:].partition("/")
        rest = f"/{rest}"
    return scheme.lower(), host, unquote(rest)


def _middles(reader: ParquetReader, file: ScannedFile) -> list[int]:
    """The byte in the middle of each row group."""
    found = []
    for number in range(reader.num_row_groups):
        group = reader.metadata.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        starts = [chunks[0].data_page_offset, chunks[0].dictionary_page_offset]
        start = min((one for one in starts if one is not None and one > 0), default=file.size)
        found.append(start + sum(one.total_compressed_size for one in chunks) // 2)
    if any(not 0 <= middle < file.size for middle in found):
        raise ScanRefusedError(f"{file.uri}: its footer names row groups outside of the file")
    return found


def _changed(file: ScannedFile, found: FileStat | None) -> InvalidDataError:
    what = "is gone" if found is None else f"has {found.size} bytes of the time {found.modified_ms}"
    return InvalidDataError(
        f"The file {unquote(file.uri)}, which the DataFrame reads, {what}; when Spark planned the scan it had "
        f"{file.size} bytes of the time {file.modified_ms} (milliseconds since 1970). Nothing was written. After the "
        "change is complete make the DataFrame again (first REFRESH TABLE for a table of the catalog), and write it."
    )


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ScanTasks:
    """The rows of a scan, in tasks.

    Attributes:
        numbers: a DataFrame with the number of each task, in a partition of its own.
        files: the scan.
        count: number of tasks.
    """

    numbers: Any
    files: FileScan
    count: int

    def reading(self, work: Callable[[Iterator[pa.RecordBatch]], Result]) -> Callable[[Iterable[Any]], Result]:
        """A function over batches of :attr:`numbers`, from a function over batches of rows."""
        files, count = self.files, self.count

        def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from files.read(files.in_tasks(count)[number])

        return lambda batches: work(rows(batches))


def rows_in_tasks(spark: Any, files: FileScan, tasks: int) -> ScanTasks:
    """The rows of a scan.

    Args:
        spark: the session.
        files: the scan.
        tasks: maximum number of tasks.
    """
    count = len(files.in_tasks(tasks))
    return ScanTasks(spark.range(count, numPartitions=count), files, count)
