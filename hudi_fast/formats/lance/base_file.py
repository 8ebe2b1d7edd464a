"""Lance base files: types of their columns, reading and writing.

Types of the columns of Lance files, as Hudi's Spark writer stores them.

::

    table                                   Lance file
    fixed-size bytes                        binary
    time of day                             int32 (milliseconds), int64 (microseconds)
    timestamp in milliseconds               timestamp in microseconds
    vector                                  fixed-size list of nullable numbers
    dictionary-encoded text                 text
    map                                     none: Hudi's version of Lance has no maps
    all others                              the same

hudi_fast stores the Avro schema in the file's metadata (:data:`SCHEMA_KEY`), which restores the first three types.
Files of Apache Hudi have no Avro schema. Types that no table has, such as Arrow's large texts, are read as the table's
nearest type.

Source: ``HoodieSparkLanceWriter`` (Hudi 1.2.0), ``LanceArrowUtils`` (lance-spark 0.4.0).

Reads Lance base files: pylance decodes rows; the metadata of the file's schema has Hudi's keys.

::

    footer ─► columns, rows, keys        ranges of rows ─► pylance, in its own process ─► columns in types of the table

Lance has no row groups: it can read any range of rows. Here a row group is a range of rows of about
:data:`_GROUP_BYTES`, so that memory holds one range. Files hold no statistics of their columns.

pylance opens only files of the local disk. A file on other storage is first copied to a temporary file of this machine,
which is deleted on close.

Source: ``HoodieSparkLanceReader``, ``SparkLanceReaderBase`` (Hudi 1.2.0).

Writes Lance base files with Hudi's keys in the metadata of the schema.

::

    tables ─► types of Lance ─► pylance ─► local file ─► the table, if it is elsewhere

Apache Hudi 1.2.0 writes version 2.0 of the format, which loses nulls of structs, and can read 2.1. pylance collects
pages of each column; memory holds :data:`_CACHE_BYTES` of pages.

Source: ``HoodieBaseLanceWriter``, ``HoodieSparkLanceWriter`` (Hudi 1.2.0).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import avro_to_arrow
from hudi_fast.formats.base_file import (
    BaseFileFooter,
    BaseFileReader,
    file_errors,
    footer_of,
    key_pairs,
    rows_without_columns,
)
from hudi_fast.formats.lance.decoding import LocalInput, LocalOutput, describe_file, read_rows
from hudi_fast.formats.logical_types import VECTORS_KEY, is_vector, vector_type, vectors_text
from hudi_fast.formats.varlen import compact
from hudi_fast.storage.base import Storage
from hudi_fast.storage.extras import import_extra
from hudi_fast.values import dataclass

__all__ = [
    "SCHEMA_KEY",
    "LanceReader",
    "LanceSettings",
    "LanceWriter",
    "lance_files",
    "lance_schema",
    "lance_values",
    "map_columns",
    "open_lance_file",
    "table_schema",
    "table_values",
]

SCHEMA_KEY = b"hudi_fast.avro.schema"
"""Key of a file's metadata whose value is the Avro schema of its rows."""

_PLAIN = {
    **{kind: kind for kind in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    **{kind: kind for kind in (pa.string(), pa.binary(), pa.date32(), pa.time32("ms"), pa.time64("us"))},
    **{kind: pa.int32() for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())},
    **{kind: pa.string() for kind in (pa.large_string(), pa.string_view())},
    **{kind: pa.binary() for kind in (pa.large_binary(), pa.binary_view())},
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
}


# ---- reading


def table_schema(stored: pa.Schema, known: pa.Schema, where: str) -> pa.Schema:
    """The columns of a file in types of a table.

    Args:
        stored: the columns of the file.
        known: columns of the file's Avro schema; empty without one.
        where: the file, for messages.

    Raises:
        UnsupportedFeatureError: a column has a type that no table has.
    """
    fields = []
    for field in stored:
        kind = known.field(field.name).type if field.name in known.names else _table_type(field.type, field.name, where)
        fields.append(pa.field(field.name, kind, field.nullable))
    return pa.schema(fields)


def _table_type(kind: pa.DataType, name: str, where: str) -> pa.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_decimal128(kind) or pa.types.is_fixed_size_binary(kind):
        return kind
    if pa.types.is_dictionary(kind):
        return _table_type(kind.value_type, name, where)
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_table_type(one.type, f"{name}.{one.name}", where)) for one in _bare(kind)])
    if pa.types.is_fixed_size_list(kind) and kind.value_type in (pa.float32(), pa.float64(), pa.int8()):
        return vector_type(kind.list_size, kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _table_type(kind.value_type, f"{name}.element", where)
        return pa.list_(pa.field("element", inner, kind.value_field.nullable))
    if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.large_string()):
        inner = _table_type(kind.item_type, f"{name}.value", where)
        return pa.map_(pa.string(), pa.field("value", inner, kind.item_field.nullable))
    raise UnsupportedFeatureError(f"Column {name!r} of the Lance file {where} is of type {kind}, which is not read.")


def _bare(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(at).remove_metadata() for at in range(kind.num_fields)]


def table_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a file in a type of :func:`table_schema`.

    Raises:
        pa.ArrowInvalid: a value does not fit.
        pa.ArrowNotImplementedError: the file holds another type.
    """
    if values.type == kind:
        return values
    if is_vector(kind) and pa.types.is_fixed_size_list(values.type):
        if values.type.list_size != kind.list_size or values.type.value_type != kind.value_type:
            raise pa.ArrowNotImplementedError(f"{values.type} cannot be read as {kind}")
        return pa.Array.from_buffers(
            kind, len(values), [values.buffers()[0]], values.null_count, values.offset, [values.values]
        )
    return values.cast(kind)


# ---- writing


def map_columns(schema: pa.Schema) -> list[str]:
    """The columns that hold maps at any depth."""
    return [field.name for field in schema if _holds_map(field.type)]


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return pa.types.is_nested(kind) and any(_holds_map(kind.field(at).type) for at in range(kind.num_fields))


def lance_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a file for columns of a table."""
    return pa.schema([field.with_type(_lance_type(field.type)).remove_metadata() for field in schema])


def _lance_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _lance_type(kind.value_type)
    if is_vector(kind):
        return pa.list_(pa.field("element", kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_lance_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_lance_type(kind.value_type)))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def lance_values(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a table in a type of :func:`lance_schema`."""
    if values.type == kind:
        return values
    if is_vector(values.type):
        return pa.Array.from_buffers(
            kind, len(values), [values.buffers()[0]], values.null_count, values.offset, [values.values]
        )
    return values.cast(kind)


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


_BATCH_ROWS = 1 << 14
"""Rows that are passed to pylance at once."""

_CACHE_BYTES = 32 << 20
"""Bytes of pages that pylance collects before it writes them."""

FORMAT_VERSION = "2.1"
"""The first version of the file format that keeps nulls of structs."""


@dataclass(frozen=True, slots=True)
class LanceSettings:
    """Encoding of Lance base files.

    Attributes:
        version: version of the file format.
    """

    version: str = FORMAT_VERSION
    extension: ClassVar[str] = "lance"


class LanceWriter:
    """Writes one base file; must be closed or aborted.

    Args:
        storage: the table's storage.
        path: relative path of the file; its folder is created if needed.
        schema: all columns, meta columns first.
        settings: encoding.
        avro_schema: Avro JSON of ``schema`` for the metadata.

    Raises:
        ConfigError: pylance is not installed.
    """

    def __init__(
        self, storage: Storage, path: str, schema: pa.Schema, settings: LanceSettings, avro_schema: str
    ) -> None:
        files = lance_files()
        self.path = path
        self._avro_schema = avro_schema
        self._vectors = vectors_text(schema)
        self._schema = lance_schema(schema)
        self._written = 0
        self._local = LocalOutput(storage, path)
        self._writer = files.LanceFileWriter(
            self._local.path, self._schema, data_cache_bytes=_CACHE_BYTES, version=settings.version
        )

    @property
    def bytes_buffered(self) -> int:
        """Always 0: rows that pylance still holds count as encoded."""
        return 0

    @property
    def bytes_encoded(self) -> int:
        """Bytes of the rows before encoding, as Apache Hudi measures the size of a Lance file."""
        return self._written

    def write(self, table: pa.Table) -> None:
        """Append rows; ``table`` has exactly the writer's schema (columns may be dictionary-encoded)."""
        for batch in table.to_batches(_BATCH_ROWS):
            arrays = [_values(batch.column(at), one.type) for at, one in enumerate(self._schema)]
            made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
            self._writer.write_batch(made)
            self._written += made.nbytes

    def flush(self) -> None:
        """Does nothing: pylance writes a page when it is full."""

    def close(self, footer: BaseFileFooter) -> int:
        """Write the footer and close; return the file's length in bytes."""
        pairs = {**key_pairs(footer), SCHEMA_KEY: self._avro_schema.encode()}
        if self._vectors:
            pairs[VECTORS_KEY] = self._vectors.encode()
        for key, value in pairs.items():
            self._writer.add_schema_metadata(key.decode(), value.decode())
        self._writer.close()
        return self._local.finish()

    def abort(self) -> None:
        """Delete the written file."""
        del self._writer
        self._local.discard()


def _values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    values = lance_values(column, kind)
    return compact(values) if pa.types.is_struct(kind) or pa.types.is_list(kind) else values
