"""Reads HFile base files: Avro records by their record key, in key order.

::

    file info ─► Avro schema, key range        meta block ─► bloom filter
    data blocks ─► keys, records ─► AvroDecoder ─► columns

The whole file is one row group, because records hold all columns of a row. A column named ``key`` is empty in the
records: its value is the entry's key.

Source: ``HoodieAvroHFileWriter`` (0.15.0, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.rows import AvroDecoder
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader, file_errors, rows_without_columns
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.varlen import varlen_buffers
from hudi_fast.storage.base import Storage

__all__ = ["HFileBaseReader", "open_hfile"]

_KEY = "key"
_RECORD_BYTES = 4
"""Approximate bytes of records for each byte of a compressed file."""


class HFileBaseReader(BaseFileReader):
    """One open HFile of a table's rows.

    Args:
        storage: storage of the file.
        path: path of the file in the storage, also for messages.
        source: the open file.

    Raises:
        CorruptTableError: the file is not an HFile of rows, or is damaged.
    """

    def __init__(self, storage: Storage, path: str, source: pa.NativeFile) -> None:
        self.path = path
        self._storage = storage
        self._source = source
        self._file = storage.reread(path, lambda: HFileReader.open(source, path))
        if self._file.schema is None:
            raise CorruptTableError("An HFile base file has the schema of its rows; this one has none.", path)
        self._avro = self._file.schema
        self._schema = avro_to_arrow(self._avro, path)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._file.entry_count

    @property
    def num_row_groups(self) -> int:
        """1, or 0 for a file without rows."""
        return 1 if self.num_rows else 0

    @property
    def location(self) -> tuple[Storage, str]:
        """The storage of the file, and its path there."""
        return self._storage, self.path

    @property
    def stored_bytes(self) -> int:
        """Approximate bytes of all records."""
        return int(self._source.size()) * _RECORD_BYTES

    @property
    def has_labels(self) -> bool:
        """True: timestamps are numbers with a label."""
        return True

    def footer(self) -> BaseFileFooter:
        """Hudi's keys, from the file info and a meta block.

        Raises:
            CorruptTableError: a value is not UTF-8.
        """
        with file_errors(self.path, self._storage, "HFile"):
            info, content = self._file.file_info, self._file.meta("bloomFilter")
            kind = info.get("bloomFilterTypeCode", b"").decode()
            low, high = (info.get(name, b"").decode() or None for name in ("minRecordKey", "maxRecordKey"))
            return BaseFileFooter(
                None if content is None else content.decode(), kind if kind.startswith("DYNAMIC") else None, low, high
            )

    def row_group_rows(self) -> list[int]:
        """Number of rows of the row group."""
        return [self.num_rows] if self.num_rows else []

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read columns of all rows; of no rows if ``row_groups`` is empty."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        batches = list(self.batches(columns, self.num_rows, row_groups))
        return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        if row_groups is not None and not len(row_groups):
            return
        if not columns:
            for start in range(0, self.num_rows, batch_rows):
                yield rows_without_columns(min(batch_rows, self.num_rows - start))
            return
        wanted = pa.schema([self._schema.field(name) for name in columns])
        decoder = AvroDecoder.compile(self._avro, wanted, self.path)
        with file_errors(self.path, self._storage, "HFile"):
            for keys, values in self._file.scan():
                buffers = varlen_buffers(values)
                bounds = buffers.offsets.astype(np.int64)
                rows = decoder.decode_records(buffers.data, bounds[:-1], bounds[1:], self.path, 0)
                rows = _with_keys(rows, keys)
                for start in range(0, rows.num_rows, batch_rows):
                    yield rows.slice(start, batch_rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._source.close()


def open_hfile(storage: Storage, path: str, size: int | None = None) -> HFileBaseReader:
    """Open an HFile of a table's rows.

    Args:
        storage: storage of the file.
        path: path of the file in the storage.
        size: size of the file in bytes, if known; saves a request to an object store.

    Raises:
        FileGoneError: the file is missing.
        CorruptTableError: the file is cut off, or is not an HFile of rows.
        UnsupportedFeatureError: the file has another compression than GZ, or columns of an unsupported type.
    """
    with file_errors(path, storage, "HFile"):
        return HFileBaseReader(storage, path, storage.open_input(path, size))


def _with_keys(rows: pa.RecordBatch, keys: pa.Array) -> pa.RecordBatch:
    """Rows with the keys of their entries in the column ``key``, if there is such a column."""
    at = rows.schema.get_field_index(_KEY)
    if at < 0 or rows.schema.field(at).type != pa.string():
        return rows
    return rows.set_column(at, rows.schema.field(at), keys.cast(pa.string()))
