"""Base files: Parquet with Hudi's footer keys (``HoodieBloomFilterWriteSupport``, ``HoodieAvroWriteSupport``; 1.2.0).

Files are written by row group: :class:`BaseFileWriter` collects batches until a row group is full and encodes it at
once, so memory holds one row group of Arrow data and no encoded data. The footer's content (bloom filter, key range) is
known only at the end, and added on close.

NaN: Arrow omits it from the statistics that it writes, but Spark orders it above every number, so with such bounds
Spark would skip rows. :class:`ParquetStream` removes the bounds of column chunks with NaN, as Parquet's Java library
expects::

    row groups ─► which leaf columns hold NaN ─┬─ none: Arrow's footer, unchanged
                                               └─ some: Arrow's footer, and after it a copy without their bounds

The footer names Arrow's library, which does not remove such bounds. So the key ``hudi_fast.nan`` declares that bounds
in the file cover all values.

:func:`open_base_file` opens a file once for its schema, footer keys and batches. The common interface of readers of all
formats is :class:`hudi_fast.formats.base_file.BaseFileReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.base_file import (
    BaseFileFooter,
    BaseFileReader,
    ShortBounds,
    file_errors,
    footer_of,
    key_pairs,
)
from hudi_fast.formats.column_limits import without_hidden_nulls
from hudi_fast.formats.logical_types import VECTORS_KEY, stored_rows, stored_schema, vectors_text
from hudi_fast.formats.parquet.encryption import Encryption, encryption_of, without_keys
from hudi_fast.formats.parquet.footer import change_footer
from hudi_fast.formats.parquet.leaf_columns import ConstantColumns, leaf_columns, nan_columns
from hudi_fast.kernels.parquet_footer import chunk_faults
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import naming_file
from hudi_fast.values import cached_property, dataclass

__all__ = [
    "NAN_SAFE_BOUNDS",
    "BaseFileWriter",
    "ParquetReader",
    "ParquetSettings",
    "ParquetStream",
    "RowGroupWriter",
    "footer_pairs",
    "open_base_file",
]

NAN_SAFE_BOUNDS = (b"hudi_fast.nan", b"no bounds")
"""Footer pair of files that Arrow's library wrote without bounds for chunks with NaN."""

_OMITS_NAN = "parquet-cpp"

ROW_GROUP_MEMORY = 32 << 20
"""Maximum Arrow bytes that a row group may hold while it is collected."""

_MAGIC = b"PAR1"

Result = TypeVar("Result")

_READ_AHEAD = 64 << 10
"""Bytes of a column chunk that are read at once from local disk. From an object store the whole chunk is read."""

_HEAD_BYTES, _TAIL_BYTES = 4, 8
"""Bytes before and after the footer in a file without rows: the magic number; the footer's length and the magic number.
"""

_GROUP_ROWS = 64 << 20
"""Maximum rows that Arrow writes into one row group."""


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """Encoding of base files.

    Attributes:
        codec: ``zstd``, ``gzip``, ``snappy``, ``lz4`` or ``none``.
        level: compression level; None for the codec's default.
        row_group_bytes: Arrow bytes at which a row group is closed, at most :data:`ROW_GROUP_MEMORY`.
        page_bytes: target size of a data page.
        dictionary: whether to dictionary-encode columns with few distinct values.
    """

    codec: str = "zstd"
    level: int | None = 1
    row_group_bytes: int = ROW_GROUP_MEMORY
    page_bytes: int = 1 << 20
    dictionary: bool = True


def footer_pairs(avro_schema: str, footer: BaseFileFooter) -> dict[bytes, bytes]:
    """All key-value pairs in the footer of a base file: the Avro JSON of its columns, and Hudi's own keys."""
    pairs = {b"parquet.avro.schema": avro_schema.encode(), b"writer.model.name": b"avro", **key_pairs(footer)}
    if '"logicalType":"vector"' in avro_schema:
        pairs[VECTORS_KEY] = vectors_text(avro_to_arrow(avro_schema, "the table's schema")).encode()
    return pairs


class ParquetStream:
    """Writes Parquet to a sink, one row group at a time; the sink stays open.

    Arrow decides about statistics before the first row and writes the footer itself. If a chunk holds NaN, a footer
    without its bounds follows Arrow's footer, which becomes unused bytes: readers start at the end. Keys are added to
    the effective footer.

    Args:
        sink: an open output; the file begins at its current position.
        schema: all columns.
        settings: encoding.
        dictionary: columns (dotted Parquet paths) to dictionary-encode; None for all.
        encryption: encrypts the file; None for a plain file. The footer of an encrypted file cannot be changed, so NaN
            is refused there.
    """

    def __init__(
        self,
        sink: pa.NativeFile,
        schema: pa.Schema,
        settings: ParquetSettings,
        dictionary: Sequence[str] | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        self.nan_columns: set[str] = set()
        self._sink = sink
        schema = stored_schema(schema)
        leaves = leaf_columns(schema)
        self._numbers = {name: number for number, name in enumerate(leaves)}
        self._is_encrypted = encryption is not None and encryption.writes
        secret: dict[str, Any] = {}
        if encryption is not None and encryption.writes:
            secret = {"encryption_properties": encryption.for_writing(list(leaves))}
        self._groups = 0
        self._unbounded: set[tuple[int, int]] = set()
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            compression=settings.codec,
            compression_level=settings.level,
            use_dictionary=settings.dictionary and (dictionary is None or list(dictionary)),
            data_page_size=settings.page_bytes,
            store_schema=False,
            write_page_index=False,
            **secret,
        )

    @property
    def metadata(self) -> pq.FileMetaData:
        """Arrow's own footer, with bounds that omit NaN; available after close."""
        return self._writer.writer.metadata

    def write(self, table: pa.Table) -> None:
        """Write rows as one row group (several beyond 64 Mi rows); ``table`` has the stream's schema."""
        for start in range(0, table.num_rows, _GROUP_ROWS):
            group = without_hidden_nulls(stored_rows(table.slice(start, _GROUP_ROWS)))
            found = nan_columns(group)
            self.nan_columns |= found
            if found and self._is_encrypted:
                raise UnsupportedFeatureError(
                    f"NaN in encrypted base files is not supported: {min(found)} has some. Store null instead."
                )
            self._unbounded.update((self._groups, self._numbers[name]) for name in found)
            self._writer.write_table(group, row_group_size=group.num_rows)
            self._groups += 1

    def close(self, keys: Mapping[bytes, bytes]) -> None:
        """Write the footer with these key-value pairs."""
        if not self._unbounded:
            self._writer.add_key_value_metadata(dict(keys))
            self._writer.close()
            return
        self._writer.close()
        alone = pa.BufferOutputStream()
        self.metadata.write_metadata_file(alone)  # magic, footer, length of the footer, magic
        footer = alone.getvalue().to_pybytes()[len(_MAGIC) : -4 - len(_MAGIC)]
        changed = change_footer(footer, self._unbounded, keys)
        self._sink.write(changed + len(changed).to_bytes(4, "little") + _MAGIC)

    def abandon(self) -> None:
        """Discard the file: no footer is written."""
        self._writer.is_open = False  # otherwise Arrow writes the footer on garbage collection


class RowGroupWriter:
    """Collects rows, and encodes a row group when it is full.

    Args:
        sink: an open output; the file begins at its current position.
        schema: all columns, meta columns first.
        settings: encoding.
        dictionary: columns (dotted Parquet paths) to dictionary-encode.
        limit: Arrow bytes at which a row group is full; None for the limit in ``settings``.
        encryption: encrypts the file; None for a plain file.
    """

    def __init__(
        self,
        sink: pa.NativeFile,
        schema: pa.Schema,
        settings: ParquetSettings,
        dictionary: Sequence[str],
        limit: int | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        self.rows = 0
        self.row_groups = 0
        self._limit = min(settings.row_group_bytes, ROW_GROUP_MEMORY) if limit is None else limit
        self._waiting: list[pa.Table] = []
        self._waiting_bytes = 0
        self._sink = sink
        self._stream = ParquetStream(sink, schema, settings, dictionary, encryption)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer, with bounds that omit NaN; available after the end."""
        return self._stream.metadata

    @property
    def nan_columns(self) -> Set[str]:
        """Dotted names of the columns with NaN in the closed row groups."""
        return self._stream.nan_columns

    @property
    def bytes_buffered(self) -> int:
        """Arrow bytes of the row group in progress."""
        return self._waiting_bytes

    @property
    def bytes_encoded(self) -> int:
        """Bytes in the file."""
        return int(self._sink.tell())

    def write(self, table: pa.Table) -> None:
        """Append rows; ``table`` has exactly the writer's schema (columns may be dictionary-encoded)."""
        if table.num_rows == 0:
            return
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        self.rows += table.num_rows
        if self._waiting_bytes >= self._limit:
            self.flush()

    def flush(self) -> None:
        """Close the row group in progress."""
        if self._waiting:
            group = self._waiting[0] if len(self._waiting) == 1 else pa.concat_tables(self._waiting)
            self._waiting, self._waiting_bytes = [], 0
            self._stream.write(group)
            self.row_groups += 1

    def end(self, keys: Mapping[bytes, bytes]) -> None:
        """Write the footer with these key-value pairs; the sink stays open."""
        self.flush()
        self._stream.close(keys)

    def abandon(self) -> None:
        """Discard the rows: no footer is written."""
        self._waiting = []
        self._stream.abandon()


class BaseFileWriter(RowGroupWriter):
    """Writes one base file; must be closed or aborted.

    Args:
        storage: the table's storage.
        path: relative path of the file; its folder is created if needed.
        schema: all columns, meta columns first.
        settings: encoding.
        avro_schema: Avro JSON of ``schema`` for the footer.
        dictionary: columns (dotted Parquet paths) to dictionary-encode.
    """

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        settings: ParquetSettings,
        avro_schema: str,
        dictionary: Sequence[str],
    ) -> None:
        self.path = path
        self._storage = storage
        self._avro_schema = avro_schema
        encryption = encryption_of(storage)
        with naming_file(path):
            super().__init__(storage.open_output(path), schema, settings, dictionary, encryption=encryption)

    def flush(self) -> None:
        """See :class:`RowGroupWriter`."""
        with naming_file(self.path):
            super().flush()

    def close(self, footer: BaseFileFooter) -> int:
        """Write the footer and close; return the file's length in bytes."""
        with naming_file(self.path):
            self.end({**footer_pairs(self._avro_schema, footer), **dict([NAN_SAFE_BOUNDS])})
            length = int(self._sink.tell())
            self._sink.close()
        return length

    def abort(self) -> None:
        """Close the stream and delete the file."""
        self.abandon()
        try:
            self._sink.close()
        finally:
            self._storage.delete_file(self.path)


class ParquetReader(BaseFileReader):
    """One open base file.

    Args:
        path: path of the file, for messages.
        file: the open file.
        location: storage of the file, and its path there; None if no caller needs it.
        short_bounds: column chunks whose statistics cannot be decoded.
    """

    def __init__(
        self,
        path: str,
        file: pq.ParquetFile,
        location: tuple[Storage, str] | None = None,
        short_bounds: ShortBounds = frozenset(),
    ) -> None:
        self.path = path
        self._file = file
        self._location = location
        self._short_bounds = short_bounds
        self._schema: pa.Schema = file.schema_arrow.remove_metadata()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.metadata.num_rows)

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return int(self.metadata.num_row_groups)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer as Arrow represents it."""
        return self._file.metadata

    @cached_property
    def column_numbers(self) -> dict[str, int]:
        """The number of each leaf column, by its dotted Parquet path."""
        return {path: number for number, (path, _) in enumerate(self.leaves)}

    @cached_property
    def leaves(self) -> list[tuple[str, str]]:
        """Dotted path and physical type of each leaf column, in their order in the file."""
        metadata = self.metadata
        numbers = range(metadata.num_columns)
        with self._explained():
            if metadata.num_row_groups:
                chunks = metadata.row_group(0)
                return [(one.path_in_schema, one.physical_type) for one in map(chunks.column, numbers)]
            # Use `schema` only here: it and the footer refer to each other, so the footer, with its bloom filter, stays
            # in memory until Python next collects cycles.
            return [(one.path, one.physical_type) for one in map(metadata.schema.column, numbers)]

    @property
    def location(self) -> tuple[Storage, str]:
        """The file that holds the row groups: its storage, and its path there."""
        assert self._location is not None
        return self._location

    @property
    def stored_bytes(self) -> int:
        """Bytes of all rows before compression."""
        return sum(self.metadata.row_group(number).total_byte_size for number in range(self.num_row_groups))

    @property
    def has_labels(self) -> bool:
        """True: timestamps are numbers with a label."""
        return True

    def footer(self) -> BaseFileFooter:
        """Hudi's footer keys.

        Raises:
            CorruptTableError: a value is not UTF-8.
        """
        with self._explained():
            return footer_of(self._file.metadata.metadata or {})

    @property
    def has_nan_safe_bounds(self) -> bool:
        """Whether bounds in the footer cover all values: chunks with NaN have no bounds."""
        with self._explained():
            writer = str(self.metadata.created_by or "")
        return not writer.startswith(_OMITS_NAN) or NAN_SAFE_BOUNDS in (self.metadata.metadata or {}).items()

    @property
    def short_bounds(self) -> ShortBounds:
        """Column chunks whose statistics pyarrow cannot decode."""
        return self._short_bounds

    def row_group_rows(self) -> list[int]:
        """Number of rows of each row group."""
        return [self._file.metadata.row_group(i).num_rows for i in range(self.num_row_groups)]

    def statistics(self, row_group: int, column: int) -> Any:
        """``pyarrow.parquet.Statistics`` of a column chunk; None if they are missing or cannot be decoded."""
        if (row_group, column) in self._short_bounds:
            return None
        return self.metadata.row_group(row_group).column(column).statistics

    def text_bounds(self, column: str) -> list[tuple[bytes, bytes] | None]:
        """Smallest and largest value of a text column in each row group, in UTF-8; None where unknown."""
        number = self.column_numbers.get(column)
        if number is None:
            return [None] * self.num_row_groups
        found = (self.statistics(group, number) for group in range(self.num_row_groups))
        return [None if one is None or not one.has_min_max else (one.min_raw, one.max_raw) for one in found]

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read whole columns, of all or some row groups."""
        with self._explained():
            if row_groups is None:
                return self._reread(lambda: self._file.read(list(columns), use_threads=False))
            return self._reread(lambda: self._file.read_row_groups(list(row_groups), list(columns), use_threads=False))

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time. Columns with a single text are not read."""
        groups = list(range(self.num_row_groups)) if row_groups is None else list(row_groups)
        constant = ConstantColumns(self.statistics, self.column_numbers, self.schema, columns, groups)
        for batch in self.stored_batches(constant.others, batch_rows, groups):
            yield constant.added_to(batch)

    def stored_batches(
        self, columns: Sequence[str], batch_rows: int, row_groups: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Like :meth:`batches`, but each column is read: for files whose statistics are not trusted."""
        done = 0
        rest: Iterator[pa.RecordBatch] | None = None

        def following() -> pa.RecordBatch | None:
            nonlocal rest
            if rest is None:
                rest = self._batches_after(done, columns, batch_rows, list(row_groups))
            try:
                return next(rest, None)
            except OSError:
                rest = None
                raise

        while True:
            with self._explained():
                batch = self._reread(following)
            if batch is None:
                return
            done += batch.num_rows
            yield batch

    def _batches_after(
        self, done: int, columns: Sequence[str], batch_rows: int, groups: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """Batches of row groups, without the first ``done`` rows."""
        rows, at = self.row_group_rows() if done else [], 0
        while done and at < len(groups) and done >= rows[groups[at]]:
            done, at = done - rows[groups[at]], at + 1
        for batch in self._file.iter_batches(batch_rows, groups[at:], list(columns), use_threads=False):
            skipped = min(done, batch.num_rows)
            done -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)

    def _explained(self) -> AbstractContextManager[None]:
        return _explained(self.path, None if self._location is None else self._location[0])

    def _reread(self, read: Callable[[], Result]) -> Result:
        if self._location is None:
            return read()
        storage, path = self._location
        return storage.reread(path, read)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> ParquetReader:
        return self


def open_base_file(
    storage: Storage, path: str, display_path: str | None = None, size: int | None = None
) -> ParquetReader:
    """Open a Parquet file.

    Args:
        storage: storage of the file.
        path: path of the file in the storage.
        display_path: path of the file in messages; None for ``path``.
        size: size of the file in bytes, if known; saves a request to an object store.

    Raises:
        FileGoneError: the file is missing.
        CorruptTableError: the file is cut off, or not a Parquet file.
        ConfigError: the file is encrypted, and the settings have no keys.
    """
    display_path = display_path or path
    encryption = encryption_of(storage)
    keys = without_keys() if encryption is None else encryption.for_reading()
    with _explained(display_path, storage):
        source = storage.open_input(path, size)
        buffered = _READ_AHEAD if storage.is_local else 0
        file = storage.reread(
            path,
            lambda: pq.ParquetFile(
                source,
                buffer_size=buffered,
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",
                decryption_properties=keys,
            ),
        )
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise pa.ArrowInvalid(f"columns have one name: {names}")
        if encryption is not None:
            encryption.check_keys(file)
            return ParquetReader(display_path, file, (storage, path))
        return ParquetReader(display_path, file, (storage, path), _check_chunks(file.metadata))


def _check_chunks(metadata: pq.FileMetaData) -> ShortBounds:
    """Check that each column chunk fits its column: reading a chunk that does not makes pyarrow 26 end the process.

    Returns:
        The chunks whose bounds are shorter than values.

    Raises:
        pa.ArrowInvalid: a chunk is missing, or its type or levels differ from its column's.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    groups, columns = metadata.num_row_groups, metadata.num_columns
    footer = np.frombuffer(sink.getvalue(), np.uint8)[_HEAD_BYTES:-_TAIL_BYTES]
    found = chunk_faults(footer, groups, columns)
    if found.unfit is not None:
        group, column = divmod(found.unfit, columns)
        raise pa.ArrowInvalid(f"column {column} of row group {group} is missing, or does not fit the schema")
    return frozenset(zip(*map(np.ndarray.tolist, np.nonzero(found.short)), strict=True))


@contextmanager
def _explained(path: str, storage: Storage | None) -> Iterator[None]:
    """Raise Arrow's errors as errors of the file."""
    with file_errors(path, storage, "Parquet"):
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            if "crypt" not in str(error) or isinstance(error, FileNotFoundError):
                raise
            raise ConfigError(
                f"The base file {path} is encrypted and cannot be decrypted ({error}). Pass the settings that it was "
                "written with, parquet.crypto.factory.class and parquet.encryption.*, as storage options or in the "
                "Spark session."
            ) from error
