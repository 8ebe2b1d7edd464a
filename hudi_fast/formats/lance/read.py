"""Reads Lance base files: pylance decodes rows; the metadata of the file's schema has Hudi's keys.

::

    footer ─► columns, rows, keys        ranges of rows ─► pylance, in its own process ─► columns in types of the table

Lance has no row groups: it can read any range of rows. Here a row group is a range of rows of about
:data:`_GROUP_BYTES`, so that memory holds one range. Files hold no statistics of their columns.

pylance opens only files of the local disk. A file on other storage is first copied to a temporary file of this machine,
which is deleted on close.

Source: ``HoodieSparkLanceReader``, ``SparkLanceReaderBase`` (Hudi 1.2.0).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.base_file import BaseFileFooter, BaseFileReader, file_errors, footer_of, rows_without_columns
from hudi_fast.formats.lance.decoding import describe_file, read_rows
from hudi_fast.formats.lance.local_file import LocalInput
from hudi_fast.formats.lance.types import SCHEMA_KEY, table_schema, table_values
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra

__all__ = ["LanceReader", "lance_files", "open_lance_file"]

_GROUP_BYTES = 16 << 20
"""Approximate bytes of rows that are read at once."""

_GROUP_ROWS = 1 << 17
"""Maximum rows that are read at once."""

_ENCODED = 3
"""Approximate bytes of rows for each encoded byte of a file."""

_TEXT_WIDTH = 16
"""Approximate bytes of a text: repeated long texts are small in the file, so the file's size does not tell."""

_FOOTER_BYTES = 40
_MAGIC = b"LANC"


class LanceReader(BaseFileReader):
    """One open Lance file; a row group is a range of rows.

    Args:
        storage: storage of the file.
        path: path of the file in the storage, also for messages.
        local: the file on the local disk; closed with the reader.
    """

    def __init__(self, storage: Storage, path: str, local: LocalInput) -> None:
        self.path = path
        self._storage = storage
        self._local = local
        found = describe_file(local.path)
        self._rows = found.rows
        self._data_bytes = found.data_bytes
        self._stored: pa.Schema = found.schema.remove_metadata()
        self._pairs: dict[bytes, bytes] = dict(found.schema.metadata or {})
        self._schema = _schema_of(self._stored, self._pairs.get(SCHEMA_KEY), path)
        self._starts = _starts(self._rows, max(1, self.stored_bytes // max(1, self._rows)))

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._rows

    @property
    def num_row_groups(self) -> int:
        """Number of ranges of rows."""
        return len(self._starts) - 1

    @property
    def location(self) -> tuple[Storage, str]:
        """The storage of the file, and its path there."""
        return self._storage, self.path

    @property
    def stored_bytes(self) -> int:
        """Approximate bytes of all rows before encoding."""
        return max(self._data_bytes * _ENCODED, self._rows * sum(map(_least_width, self._schema.types)))

    def footer(self) -> BaseFileFooter:
        """Hudi's keys in the metadata of the schema.

        Raises:
            CorruptTableError: a value is not UTF-8.
        """
        with file_errors(self.path, self._storage, "Lance"):
            return footer_of(self._pairs)

    def row_group_rows(self) -> list[int]:
        """Number of rows of each range."""
        return [end - start for start, end in pairwise(self._starts)]

    def read(self, columns: Sequence[str], row_groups: Sequence[int] | None = None) -> pa.Table:
        """Read whole columns, of all or some ranges of rows."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        batches = list(self.batches(columns, _GROUP_ROWS, row_groups))
        return pa.Table.from_batches(batches, schema) if batches else schema.empty_table()

    def batches(
        self, columns: Sequence[str], batch_rows: int = 65536, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows in file order, at most ``batch_rows`` at a time."""
        groups = range(self.num_row_groups) if row_groups is None else row_groups
        ranges = [(self._starts[one], self._starts[one + 1] - self._starts[one]) for one in groups]
        if columns:
            yield from self._decoded(columns, ranges, batch_rows)
            return
        for _, rows in ranges:
            for at in range(0, rows, batch_rows):
                yield rows_without_columns(min(batch_rows, rows - at))

    def close(self) -> None:
        """Close the file."""
        self._local.close()

    def _decoded(
        self, columns: Sequence[str], ranges: Sequence[tuple[int, int]], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows of some ranges; raises if their number is wrong."""
        schema = pa.schema([self._schema.field(name) for name in columns])
        stream = read_rows(self._local.path, columns, ranges, batch_rows)
        expected, found = sum(rows for _, rows in ranges), 0
        while True:
            with file_errors(self.path, self._storage, "Lance"):
                batch = next(stream, None)
                if batch is None:
                    break
                batch.validate(full=True)  # pylance does not check texts and offsets of damaged files
                found += batch.num_rows
                if found > expected:
                    break
                arrays = [table_values(batch.column(field.name), field.type) for field in schema]
                made = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield made
        if found != expected:
            raise CorruptTableError(
                f"The Lance file gives {found} rows, expected {expected}. It is damaged; restore it, or restore the "
                "table to a savepoint.",
                self.path,
            )


def open_lance_file(storage: Storage, path: str, size: int | None = None) -> LanceReader:
    """Open a Lance file.

    Args:
        storage: storage of the file.
        path: path of the file in the storage.
        size: size of the file in bytes, if known; saves a request to an object store.

    Raises:
        ConfigError: pylance is not installed.
        FileGoneError: the file is missing.
        CorruptTableError: the file is cut off, or not a Lance file.
        UnsupportedFeatureError: a column has a type that no table has.
    """
    _require_lance()
    with file_errors(path, storage, "Lance"):
        local = LocalInput(storage, path, size)
        try:
            _check_end(local.path)
            return LanceReader(storage, path, local)
        except BaseException:
            local.close()
            raise


def _check_end(place: str) -> None:
    """Check that a file is long enough and ends like a Lance file; pylance's own error is less clear.

    Raises:
        pa.ArrowInvalid: the check fails.
    """
    with open(place, "rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - _FOOTER_BYTES))
        footer = file.read()
    if len(footer) < _FOOTER_BYTES or not footer.endswith(_MAGIC):
        raise pa.ArrowInvalid(f"it has {length} bytes and ends with {footer[-len(_MAGIC) :]!r}, expected {_MAGIC!r}")


def _schema_of(stored: pa.Schema, avro: bytes | None, path: str) -> pa.Schema:
    """The columns, in the types of the file's Avro schema if it has one.

    Raises:
        CorruptTableError: the Avro schema is invalid, or two columns have the same name.
    """
    if len(set(stored.names)) < len(stored.names):
        raise CorruptTableError(f"Columns of the Lance file have one name: {stored.names}. Restore the file.", path)
    known = pa.schema([]) if avro is None else avro_to_arrow(avro.decode(), path)
    return table_schema(stored, known, path)


def _starts(rows: int, width: int) -> list[int]:
    """The first row of each range, and the number of rows."""
    step = max(1, min(_GROUP_ROWS, _GROUP_BYTES // width))
    return [*range(0, rows, step), rows] if rows else [0]


def _least_width(kind: pa.DataType) -> int:
    """Minimum bytes of a value; a guess for texts and lists."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _TEXT_WIDTH


# ---- the package pylance, which tables with Lance files need


_WHAT = "A table with Lance base files"


def lance_files() -> Any:
    """pylance's module for single Lance files.

    Raises:
        ConfigError: pylance is not installed.
    """
    return import_extra("lance.file", "lance", _WHAT)


def _require_lance() -> None:
    """Check that pylance is installed, without loading it.

    Raises:
        ConfigError: pylance is not installed.
    """
    if find_spec("lance") is None:
        lance_files()
