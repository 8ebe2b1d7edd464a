"""Writes a base file, the first one of a file group or a later version."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_fast.formats.base_file import FileWriter
from hudi_fast.formats.lance.write import LanceSettings, LanceWriter
from hudi_fast.formats.orc.write import OrcWriter
from hudi_fast.formats.parquet.base_file import BaseFileWriter
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, ranges_of_footer, with_nans
from hudi_fast.formats.parquet.dictionary import dictionary_columns
from hudi_fast.merging.gather import gather_array
from hudi_fast.view.file_names import base_file_name
from hudi_fast.writing.file_columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    CONSTANT_META,
    META_COLUMNS,
    RECORD_KEY,
    new_meta_columns,
    writer_schema,
)
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, FilePlan, Incoming

__all__ = ["OutputFile", "Rows", "chunks", "dictionary_of", "new_rows", "with_new_meta"]

Rows = npt.NDArray[np.int64]

_LEARN_FROM = 8
"""Share of a file's size, as a divisor, from which the compression of the rest is estimated."""

_NO_ROWS_YET = 16
"""Length of a Parquet file's leading magic; bytes beyond it are rows."""


class OutputFile:
    """Writer of one base file: announced by a marker, opened with its first rows.

    Args:
        plan: the write.
        work: has partition and write token.
        file_id: the file group.
        kind: marker type, ``CREATE`` or ``MERGE``.
        footer: collects the key metadata of the footer.
    """

    def __init__(self, plan: FilePlan, work: FileGroupWork, file_id: str, kind: str, footer: KeyFooter) -> None:
        self.name = base_file_name(file_id, str(work.token), plan.instant, plan.files.extension)
        self.path = f"{work.partition}/{self.name}" if work.partition else self.name
        self.rows = 0
        self.footer = footer
        self.ranges: ColumnRanges | None = None
        self._plan = plan
        self._arrow_bytes = 0
        self._writer: FileWriter | None = None
        create_marker(plan.storage, plan.instant, self.path, kind)

    def write(self, table: pa.Table) -> None:
        """Append rows in the writer's schema; the first ones decide which columns get a dictionary."""
        if self._writer is None:
            self._writer = self._open(table)
        self._writer.write(table)
        self.rows += table.num_rows
        self._arrow_bytes += table.nbytes

    def is_full(self, ceiling: float) -> bool:
        """Whether the file would have more than ``ceiling`` bytes if it ended now.

        Assumes that buffered rows compress like the written rows; the first row group is closed early to measure the
        compression.
        """
        if self._writer is None:
            return False
        if self._writer.bytes_encoded < _NO_ROWS_YET and self._writer.bytes_buffered > ceiling / _LEARN_FROM:
            self._writer.flush()
        encoded, waiting = self._writer.bytes_encoded, self._writer.bytes_buffered
        known = self._arrow_bytes - waiting
        return encoded + waiting * (encoded / known if known else 1.0) > ceiling

    def close(self) -> int:
        """Finish the file, which may be empty; returns its length in bytes and sets :attr:`ranges` of Parquet."""
        if self._writer is None:
            self._writer = self._open(writer_schema(self._plan).empty_table())
        size = self._writer.close(self.footer.finish())
        if self._plan.files.stats_columns and isinstance(self._writer, BaseFileWriter):
            found = ranges_of_footer(self._writer.metadata, self._plan.file_schema, self._plan.files.stats_columns)
            self.ranges = with_nans(found, self._writer.nan_columns, self._plan.file_schema)
        return size

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None and self._writer is not None:
            self._writer.abort()

    def _open(self, sample: pa.Table) -> FileWriter:
        plan = self._plan
        other = plan.files.other
        if isinstance(other, LanceSettings):
            return LanceWriter(plan.storage, self.path, writer_schema(plan), other, plan.avro_schema)
        if other is not None:
            return OrcWriter(plan.storage, self.path, writer_schema(plan), other, plan.avro_schema)
        return BaseFileWriter(
            plan.storage,
            self.path,
            writer_schema(plan),
            plan.files.parquet,
            plan.avro_schema,
            dictionary_of(sample),
        )


def dictionary_of(sample: pa.Table) -> list[str]:
    """The columns to dictionary-encode in a base file, from its first rows."""
    return dictionary_columns(sample, [COMMIT_TIME, *CONSTANT_META], [RECORD_KEY, COMMIT_SEQNO])


def new_rows(
    plan: FilePlan,
    work: FileGroupWork,
    incoming: Incoming,
    rows: Rows,
    file_name: str,
    first: int,
    schema: pa.Schema | None = None,
) -> pa.Table:
    """Incoming rows with new meta columns, in the writer's schema.

    Args:
        plan: the write.
        work: has partition and write token.
        incoming: rows of the write.
        rows: int64[n], positions in ``incoming``.
        file_name: the base file.
        first: sequence number of the first.
        schema: the columns to make; None for all of the writer's.
    """
    schema = writer_schema(plan) if schema is None else schema
    if not len(rows):  # a delete by key has no data columns
        return schema.empty_table()
    data = incoming.take(rows, [name for name in schema.names if name not in META_COLUMNS])
    return with_new_meta(plan, work, incoming, rows, file_name, first, data, schema)


def with_new_meta(
    plan: FilePlan,
    work: FileGroupWork,
    incoming: Incoming,
    rows: Rows,
    file_name: str,
    first: int,
    data: pa.Table,
    schema: pa.Schema,
) -> pa.Table:
    """Data columns of incoming rows with new meta columns, in the order of ``schema``.

    The other arguments are as in :func:`new_rows`; ``data`` has the data columns of ``schema``.
    """
    has_keys = RECORD_KEY in schema.names
    keys = gather_array(incoming.key_array(), rows) if has_keys else pa.nulls(len(rows), pa.string())
    meta = new_meta_columns(plan, keys, work.partition, file_name, work.token.task, first)
    made = dict(zip(META_COLUMNS, meta, strict=True)) | dict(zip(data.column_names, data.columns, strict=True))
    return pa.Table.from_arrays([made[name] for name in schema.names], schema=schema)


def chunks(rows: Rows, size: int = PART_ROWS) -> Iterator[Rows]:
    """``rows`` in parts of at most ``size``."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
