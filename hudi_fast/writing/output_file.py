"""Write a base file: its columns, rows and key metadata.

Writes a base file, the first one of a file group or a later version.

Key metadata of a base file's footer: bloom filter and key range, collected while rows are written.

A rewritten file keeps the filter of the old one and adds the new keys, because hashing all keys again is slow; without
new keys the filter is copied as text. A filter may hold deleted keys; it must hold every stored key.

The columns of a base file: Hudi's meta columns before the data columns (table format, section 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.config.file_options import BloomOptions
from hudi_fast.formats.base_file import BaseFileFooter, FileWriter
from hudi_fast.formats.bloom_filter import BloomFilter
from hudi_fast.formats.column_limits import null_array
from hudi_fast.formats.lance.base_file import LanceSettings, LanceWriter
from hudi_fast.formats.orc.write import OrcWriter
from hudi_fast.formats.parquet.base_file import BaseFileWriter
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, ranges_of_footer, with_nans
from hudi_fast.formats.parquet.leaf_columns import dictionary_columns
from hudi_fast.formats.varlen import gather_array, single_chunk, string_array, varlen_buffers
from hudi_fast.kernels.hudi_texts import format_sequence_numbers
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import base_file_name
from hudi_fast.writing.markers import create_marker
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, FilePlan, Incoming

__all__ = [
    "CONSTANT_META",
    "META_COLUMNS",
    "CarriedColumns",
    "KeyFooter",
    "OutputFile",
    "Rows",
    "carried_schema",
    "chunks",
    "constant_column",
    "dictionary_of",
    "new_meta_columns",
    "new_rows",
    "sequence_numbers",
    "with_new_meta",
    "writer_schema",
]

RECORD_KEY = "_hoodie_record_key"


@dataclass(frozen=True, slots=True)
class _Stored:
    """The bloom filter of the file that is rewritten.

    Attributes:
        footer: of that file.
        max_entries: growth limit for added keys.
        path: of that file.
    """

    footer: BaseFileFooter
    max_entries: int
    path: str

    def read(self) -> BloomFilter:
        text, kind = self.footer.bloom_filter, self.footer.bloom_type
        assert text is not None
        return BloomFilter.from_base64(text, kind, self.max_entries, where=self.path)


class KeyFooter:
    """Collects the footer of one file; mutable, lives as long as its writer.

    Args:
        bloom: filter to add new keys to; None when the file gets none.
        bloom_knows_carried: whether the filter holds the keys of carried rows already.
        enabled: whether the table stores record keys at all.
        stored: filter that becomes ``bloom`` with the first new key.
    """

    def __init__(
        self, bloom: BloomFilter | None, bloom_knows_carried: bool, enabled: bool, stored: _Stored | None = None
    ) -> None:
        self._bloom = bloom
        self._stored = stored
        self._bloom_knows_carried = bloom_knows_carried
        self._enabled = enabled
        self._low: str | None = None
        self._high: str | None = None

    @classmethod
    def for_new_file(cls, plan: FilePlan) -> KeyFooter:
        """The footer of the first file of a file group."""
        enabled = plan.config.populate_meta_fields
        return cls(_new_filter(plan.files.bloom) if enabled else None, False, enabled)

    @classmethod
    def for_rewritten_file(cls, plan: FilePlan, old: BaseFileFooter, path: str) -> KeyFooter:
        """The footer of a file that rewrites another."""
        if not plan.config.populate_meta_fields:
            return cls(None, False, False)
        if not plan.files.bloom.enabled or old.bloom_filter is None:
            return cls(_new_filter(plan.files.bloom), False, True)
        return cls(None, True, True, _Stored(old, plan.files.bloom.max_entries, path))

    def carry(self, keys: pa.ChunkedArray) -> None:
        """Add keys of rows of the old file, replaced or not."""
        if not self._enabled:
            return
        self._widen(keys)
        if self._bloom is not None and not self._bloom_knows_carried:
            for chunk in keys.chunks:
                self._bloom.add(chunk)

    def add(self, keys: pa.Array) -> None:
        """Add keys that are new to the file."""
        if not self._enabled:
            return
        self._widen(keys)
        if self._stored is not None and len(keys):
            self._bloom, self._stored = self._stored.read(), None
        if self._bloom is not None:
            self._bloom.add(keys)

    def finish(self) -> BaseFileFooter:
        """The footer keys."""
        if self._stored is not None:
            return replace(self._stored.footer, min_key=self._low, max_key=self._high)
        if self._bloom is None:
            return BaseFileFooter(min_key=self._low, max_key=self._high)
        return BaseFileFooter(self._bloom.to_base64(), self._bloom.type_code, self._low, self._high)

    def _widen(self, keys: pa.Array | pa.ChunkedArray) -> None:
        if len(keys) == 0:
            return
        low, high = _key_range(keys)
        self._low = low if self._low is None else min(self._low, low, key=_java_order)
        self._high = high if self._high is None else max(self._high, high, key=_java_order)


def _new_filter(bloom: BloomOptions) -> BloomFilter | None:
    return BloomFilter.create(bloom.entries, bloom.fpp, bloom.max_entries, bloom.type) if bloom.enabled else None


def _key_range(keys: pa.Array | pa.ChunkedArray) -> tuple[str, str]:
    """Smallest and largest key in the order of Java strings."""
    buffers = varlen_buffers(single_chunk(keys))
    used = buffers.data[buffers.offsets[0] : buffers.offsets[-1]]
    if len(used) and int(used.max()) >= 0xEE:  # beyond U+DFFF the order of UTF-16 units may differ from that of bytes
        texts = keys.to_pylist()
        return min(texts, key=_java_order), max(texts, key=_java_order)
    bounds = pc.min_max(keys).as_py()
    return bounds["min"], bounds["max"]


def _java_order(text: str) -> bytes:
    return text.encode("utf-16-be")


COMMIT_TIME = "_hoodie_commit_time"
COMMIT_SEQNO = "_hoodie_commit_seqno"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"

META_COLUMNS = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""The five meta columns, in stored order."""

CONSTANT_META = (PARTITION_PATH, FILE_NAME)
"""Meta columns with one value per file; they are written as dictionary arrays of one entry."""

_CONSTANT = pa.dictionary(pa.int32(), pa.string())


def writer_schema(plan: FilePlan) -> pa.Schema:
    """The Arrow form of ``plan.file_schema`` for the Parquet writer."""
    if not plan.config.populate_meta_fields:
        return plan.file_schema
    return pa.schema(
        [field.with_type(_CONSTANT) if field.name in CONSTANT_META else field for field in plan.file_schema]
    )


def constant_column(value: str, count: int) -> pa.DictionaryArray:
    """A column of ``count`` equal texts."""
    indices = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


def sequence_numbers(instant: str, task: int, first: int, count: int) -> pa.Array:
    """``<instant>_<task>_<number>`` for ``count`` numbers from ``first`` on."""
    prefix = np.frombuffer(f"{instant}_{task}_".encode(), dtype=np.uint8)
    return string_array(*format_sequence_numbers(prefix, first, count))


def new_meta_columns(
    plan: FilePlan, keys: pa.Array, partition: str, file_name: str, task: int, first: int
) -> list[pa.Array]:
    """The five meta columns of rows that this write inserts or updates; all null when the table stores none."""
    count = len(keys)
    if not plan.config.populate_meta_fields:
        return [pa.nulls(count, pa.string())] * 5
    return [
        constant_column(plan.instant, count).cast(pa.string()),
        sequence_numbers(plan.instant, task, first, count),
        keys,
        constant_column(partition, count),
        constant_column(file_name, count),
    ]


def carried_schema(plan: FilePlan) -> pa.Schema:
    """The columns of stored rows that are copied into a new file.

    Leaves out meta columns with one value per file, and all meta columns when the table stores none.
    """
    left_out = CONSTANT_META if plan.config.populate_meta_fields else META_COLUMNS
    return pa.schema([field for field in plan.file_schema if field.name not in left_out])


@dataclass(frozen=True)
class CarriedColumns:
    """Settings for copying stored rows into a new file.

    Attributes:
        wanted: columns to read, see :func:`carried_schema`.
        schema: the writer's schema.
        constants: values of the columns with one value per file; empty when the table stores no meta columns.
    """

    wanted: pa.Schema
    schema: pa.Schema
    constants: dict[str, str]

    @classmethod
    def of(cls, plan: FilePlan, partition: str, file_name: str) -> Self:
        """The settings for a file of that name in a partition."""
        stored = plan.config.populate_meta_fields
        constants = dict(zip(CONSTANT_META, (partition, file_name), strict=True)) if stored else {}
        return cls(carried_schema(plan), writer_schema(plan), constants)

    def complete(self, table: pa.Table) -> pa.Table:
        """Rows of ``wanted`` with all columns of the file."""
        count, found = table.num_rows, dict(zip(table.column_names, table.columns, strict=True))
        columns = [
            found[field.name]
            if field.name in found
            else constant_column(self.constants[field.name], count)
            if field.name in self.constants
            else null_array(count, field.type)
            for field in self.schema
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)


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
