"""A scan of Parquet files as plain values, and its rows as Arrow batches.

::

    FileScan ── rows_of(task) ──► each split: open, compare with the plan, choose row groups, read, filter, project

A split is a range of bytes of a file. Its rows are those of the row groups whose middle lies in the range, as in
parquet-mr, so the splits of a file have each row once. Everything here is picklable and runs in tasks or in the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from hudi_fast.errors import HudiError, InvalidDataError
from hudi_fast.formats.base_file import rows_without_columns
from hudi_fast.formats.parquet.base_file import ParquetReader, open_base_file
from hudi_fast.schema.conform import plan_conform
from hudi_fast.spark.incoming.expressions import Expression, evaluated
from hudi_fast.spark.incoming.parquet_columns import Leaves, ReadRules, leaves_to_read, require_present_calendar
from hudi_fast.spark.incoming.refusal import ScanRefusedError
from hudi_fast.storage.base import FileStat, Storage

__all__ = ["FileScan", "ScannedFile", "Split", "parts_of"]

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
