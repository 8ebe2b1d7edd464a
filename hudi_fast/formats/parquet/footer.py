"""Read and modify the footer of a Parquet file.

Modify the footer of a Parquet file: remove the bounds of chosen column chunks, add keys.

::

    FileMetaData ─ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData ─ 12 statistics
                 └ 5 key_value_metadata                              └ 6, 7 column index

Only the structs on this path are decoded and encoded (:mod:`hudi_fast.formats.parquet.thrift_compact`); all other bytes
are copied, including fields of later Parquet releases. Statistics without bounds still count nulls: Apache Hudi assumes
that a chunk without statistics has only nulls.

Source: parquet.thrift of Apache Parquet format 2.11; ``ParquetUtils`` of Hudi 1.2.0.

Decode the footer of a Parquet file as far as the positions of row groups require.

::

    FileMetaData ─ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData ─ pages, sizes

All other fields stay encoded. Positions are checked: a chunk must lie between the first bytes of the file and its
footer.

Source: parquet.thrift of Apache Parquet format 2.11.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.parquet.thrift_compact import (
    LIST,
    STRUCT,
    Change,
    Fields,
    ThriftReader,
    binary,
    elements,
    fields_of,
    integer_of,
    struct,
    struct_list,
    structs,
)
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import is_failure
from hudi_fast.values import dataclass

__all__ = ["ColumnChunk", "ParquetFooter", "RowGroup", "change_footer", "parse_footer", "read_footer"]

_ROW_GROUPS, _KEY_VALUES = 4, 5
_COLUMNS = 1
_META_DATA, _COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH = 3, 6, 7
_STATISTICS = 12
_BOUNDS = frozenset({1, 2, 5, 6, 7, 8})
"""Fields of ``Statistics``: the deprecated bounds, the current bounds, and whether the current bounds are exact."""


def change_footer(
    footer: bytes, unbounded: Collection[tuple[int, int]], keys: Mapping[bytes, bytes], path: str | None = None
) -> bytes:
    """Remove the bounds of some column chunks from a footer, and add keys.

    Args:
        footer: exactly one ``FileMetaData`` in Thrift's compact protocol.
        unbounded: column chunks to remove the bounds of: numbers of row group and of leaf column.
        keys: pairs to add to the file's key-value pairs.
        path: the file, for messages.

    Returns:
        ``FileMetaData`` in the same protocol.

    Raises:
        CorruptTableError: ``footer`` is cut off or malformed, or lacks one of the column chunks.
    """
    by_group: dict[int, set[int]] = {}
    for group, column in unbounded:
        by_group.setdefault(group, set()).add(column)
    known: dict[int, Change] = {}
    if by_group:
        groups = {number: partial(_row_group, columns=columns) for number, columns in by_group.items()}
        known[_ROW_GROUPS] = LIST, lambda reader: struct_list(structs(reader, groups, "row group"))
    if keys:
        pairs = [struct({1: binary(key), 2: binary(value)}) for key, value in keys.items()]
        known[_KEY_VALUES] = LIST, lambda reader: struct_list([*structs(reader, {}, "key"), *pairs])
    reader = ThriftReader(footer, path)
    fields = fields_of(reader, known)
    if by_group:
        reader.require(_ROW_GROUPS, fields)
    if keys and _KEY_VALUES not in fields:
        fields[_KEY_VALUES] = LIST, struct_list(pairs)
    reader.check_end()
    return struct(fields)


def _row_group(reader: ThriftReader, columns: Collection[int]) -> bytes:
    chunks = dict.fromkeys(columns, _column_chunk)
    fields = fields_of(reader, {_COLUMNS: (LIST, lambda inner: struct_list(structs(inner, chunks, "column")))})
    reader.require(_COLUMNS, fields)
    return struct(fields)


def _column_chunk(reader: ThriftReader) -> bytes:
    fields = fields_of(reader, {_META_DATA: (STRUCT, _column_meta_data)})
    reader.require(_META_DATA, fields)
    for number in (_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH):  # the column index holds bounds of pages
        fields.pop(number, None)
    return struct(fields)


def _column_meta_data(reader: ThriftReader) -> bytes:
    return struct(fields_of(reader, {_STATISTICS: (STRUCT, _statistics)}))


def _statistics(reader: ThriftReader) -> bytes:
    return struct({number: field for number, field in fields_of(reader, {}).items() if number not in _BOUNDS})


_MAGIC = b"PAR1"
_MAGIC_ENCRYPTED = b"PARE"
_TAIL = 8
_FIRST_READ = 64 << 10

_SCHEMA, _GROUPS, _KEYS, _ENCRYPTION, _SIGNING = 2, 4, 5, 8, 9
_GROUP_ROWS = 3
_FOREIGN = frozenset({1, 8, 9})
"""Fields that only chunks in another file and encrypted chunks have."""

_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 10, 11


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """A column chunk.

    Attributes:
        column: dotted Parquet path.
        start: first byte in the file.
        length: number of bytes.
        uncompressed: number of bytes before compression.
        fields: the encoded fields of ``ColumnChunk`` without its metadata.
        metadata: the encoded fields of ``ColumnMetaData``.
    """

    column: str
    start: int
    length: int
    uncompressed: int
    fields: Fields
    metadata: Fields


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group.

    Attributes:
        number: number of the row group in the file, from 0.
        rows: number of rows.
        chunks: one per leaf column, in schema order.
        fields: the encoded fields of ``RowGroup``.
    """

    number: int
    rows: int
    chunks: tuple[ColumnChunk, ...]
    fields: Fields

    @property
    def size(self) -> int:
        """Bytes of all chunks."""
        return sum(chunk.length for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """A footer, decoded as far as joining requires.

    Attributes:
        path: the file.
        schema: the encoded elements of the schema; the first one is the root.
        groups: the non-empty row groups.
        fields: the other encoded fields of ``FileMetaData``, without the key-value pairs.
        obstacle: the reason why row groups cannot be copied; empty if they can.
    """

    path: str
    schema: tuple[bytes, ...]
    groups: tuple[RowGroup, ...]
    fields: Fields
    obstacle: str


def read_footer(storage: Storage, path: str, size: int | None = None) -> ParquetFooter:
    """Read the footer of a Parquet file; its ``size`` in bytes, if known, saves a request to an object store.

    Raises:
        CorruptTableError: the file is missing, cut off or not Parquet.
    """
    try:
        with storage.open_input(path, size) as source:
            content, end = _footer_bytes(source, path)
    except (pa.ArrowException, OSError) as error:
        if is_failure(error):
            raise
        raise CorruptTableError(f"The base file cannot be read as Parquet ({error}). Restore it.", path) from error
    return parse_footer(content, end, path)


def parse_footer(content: bytes, end: int, path: str) -> ParquetFooter:
    """Decode a footer: exactly one ``FileMetaData`` in Thrift's compact protocol, at position ``end`` of the file.

    Raises:
        CorruptTableError: the footer is cut off or malformed, or a column chunk is outside the file.
    """
    reader = ThriftReader(content, path)
    schema: list[bytes] = []
    groups: list[RowGroup] = []

    def read_schema(inner: ThriftReader) -> bytes:
        schema.extend(structs(inner, {}, "element"))
        return b""

    def read_groups(inner: ThriftReader) -> bytes:
        found = elements(inner, lambda one: _decoded_group(one, end))
        groups.extend(replace(one, number=number) for number, one in enumerate(found))
        return b""

    fields = fields_of(reader, {_SCHEMA: (LIST, read_schema), _GROUPS: (LIST, read_groups)})
    reader.check_end()
    reader.require(_SCHEMA, fields)
    reader.require(_GROUPS, fields)
    for number in (_SCHEMA, _GROUPS, _KEYS):
        fields.pop(number, None)
    foreign = any(_FOREIGN & chunk.fields.keys() for group in groups for chunk in group.chunks)
    encrypted = _ENCRYPTION in fields or _SIGNING in fields
    obstacle = "a file is encrypted" if encrypted else "columns are encrypted or in other files" if foreign else ""
    return ParquetFooter(path, tuple(schema), tuple(one for one in groups if one.rows), fields, obstacle)


# ---- internals


def _footer_bytes(source: pa.NativeFile, path: str) -> tuple[bytes, int]:
    """The encoded footer, and its position."""
    size = source.size()
    tail = source.read_at(min(size, _FIRST_READ), max(0, size - _FIRST_READ))
    length = int.from_bytes(tail[-_TAIL : -len(_MAGIC)], "little")
    if len(tail) < _TAIL or tail[-len(_MAGIC) :] not in (_MAGIC, _MAGIC_ENCRYPTED) or length + _TAIL > size:
        raise CorruptTableError("A Parquet file must end with its footer and the text PAR1; this one does not.", path)
    begin = size - _TAIL - length
    if length + _TAIL <= len(tail):
        return tail[-_TAIL - length : -_TAIL], begin
    return source.read_at(length, begin), begin


def _decoded_group(reader: ThriftReader, end: int) -> RowGroup:
    """The row group at the reader, without its number."""
    chunks: list[ColumnChunk] = []

    def read_chunks(inner: ThriftReader) -> bytes:
        chunks.extend(elements(inner, lambda one: _chunk(one, end)))
        return b""

    fields = fields_of(reader, {_COLUMNS: (LIST, read_chunks)})
    reader.require(_COLUMNS, fields)
    reader.require(_GROUP_ROWS, fields)
    return RowGroup(0, integer_of(fields, _GROUP_ROWS), tuple(chunks), fields)


def _chunk(reader: ThriftReader, end: int) -> ColumnChunk:
    found: Fields = {}

    def read_metadata(inner: ThriftReader) -> bytes:
        found.update(fields_of(inner, {_PATH: (LIST, lambda path: path.copy(LIST))}))
        return b""

    fields = fields_of(reader, {_META_DATA: (STRUCT, read_metadata)})
    if _META_DATA not in fields and _FOREIGN & fields.keys():
        return ColumnChunk("", 0, 0, 0, fields, found)
    reader.require(_META_DATA, fields)
    for number in (_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE):
        reader.require(number, found)
    first = [integer_of(found, number) for number in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE) if number in found]
    start = min((offset for offset in first if offset > 0), default=0)
    length = integer_of(found, _COMPRESSED)
    if start < len(_MAGIC) or length < 0 or start + length > end:
        raise reader.unexpected(f"a column chunk within the first {end} bytes", f"{length} bytes from {start} on")
    return ColumnChunk(_dotted(found[_PATH][1]), start, length, integer_of(found, _UNCOMPRESSED), fields, found)


def _dotted(encoded: bytes) -> str:
    reader = ThriftReader(encoded, None)
    _, count = reader.list_head()
    return ".".join(reader.content().decode(errors="replace") for _ in range(count))
