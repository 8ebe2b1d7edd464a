"""Join Parquet files without decoding: row groups are copied as bytes, footers are merged.

::

    footers ── read_footer ─► ParquetFooter ── join_obstacle ─► "" (or the reason why they cannot be joined)
                                 │
    row groups ── as bytes ──────┴─► JoinedFile ─► row groups at other offsets ─► one new footer

All column chunks of a row group are copied, from one file or from several files with the same rows. Columns with one
value per file are written anew, as a dictionary of one entry and runs of its number. Chunks keep their encoding and
compression, so a file may hold several codecs. Chunk metadata is kept as well, including statistics, with shifted
offsets. Page indexes and chunk filters are outside of row groups and are dropped.

Source: parquet.thrift of Apache Parquet format 2.11.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.parquet.footer import ColumnChunk, ParquetFooter, RowGroup, parse_footer
from hudi_fast.formats.parquet.thrift_compact import (
    I16,
    LIST,
    STRUCT,
    ThriftReader,
    binary,
    fields_of,
    integer,
    integer_of,
    struct,
    struct_list,
)
from hudi_fast.storage.base import Storage
from hudi_fast.storage.failures import naming_file

__all__ = ["JoinedFile", "SourceChunk", "join_obstacle"]

_MAGIC = b"PAR1"
_TAIL = 8

_SCHEMA, _ROWS, _GROUPS, _KEYS, _CREATED_BY, _ORDERS = range(2, 8)
_COLUMNS, _GROUP_BYTES, _GROUP_OFFSET, _GROUP_COMPRESSED, _ORDINAL = 1, 2, 5, 6, 7
_CHUNK_OFFSET, _META_DATA = 2, 3
_PAGE_INDEXES = (4, 5, 6, 7)
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 9, 10, 11
_CHUNK_FILTERS = (14, 15)
_ELEMENT_REPETITION, _ELEMENT_NAME = 3, 4
_OPTIONAL = 1

_MAX_ORDINAL = (1 << 15) - 1
_BUFFER = 1 << 20
"""Bytes copied at a time; they stay in the processor's cache between read and write."""


def join_obstacle(footers: Sequence[ParquetFooter]) -> str:
    """The reason why the row groups of these files cannot be joined; empty if they can."""
    for footer in footers:
        if footer.obstacle:
            return footer.obstacle
        if _columns_of(footer) != _columns_of(footers[0]):
            return "the Parquet schemas of the files differ"
        if footer.fields.get(_ORDERS) != footers[0].fields.get(_ORDERS):
            return "the files order their columns' values differently"
    return ""


class SourceChunk(NamedTuple):
    """A column chunk to copy.

    Attributes:
        source: the open file.
        path: path of the file, for messages.
        chunk: the chunk.
    """

    source: pa.NativeFile
    path: str
    chunk: ColumnChunk


class _Run(NamedTuple):
    """Bytes to copy: the open file, its path for messages, the first byte, and the byte after the last."""

    source: pa.NativeFile | None
    path: str
    start: int
    end: int


_NOTHING = _Run(None, "", 0, 0)


class JoinedFile:
    """A new Parquet file that row groups are copied into; a context manager that deletes the file if its body fails.

    Args:
        storage: the table's storage.
        path: path of the new file, relative to the table; its folder is created if needed.
        sources: footers of the files to copy from; they have no :func:`join_obstacle`.
        constants: top-level text columns that get one value in all rows, with that value.
    """

    def __init__(
        self, storage: Storage, path: str, sources: Sequence[ParquetFooter], constants: Mapping[str, str]
    ) -> None:
        self.path = path
        self.rows = 0
        self._storage = storage
        self._sources = sources
        self._constants = {name: (value, _is_optional(sources[0], name)) for name, value in constants.items()}
        self._made: dict[tuple[str, int], tuple[bytes, ColumnChunk]] = {}
        self._groups: list[bytes] = []
        self._buffer = memoryview(bytearray(_BUFFER))
        self._sink = storage.open_output(path)
        self._at = 0
        self._write(_MAGIC)

    @property
    def row_groups(self) -> int:
        """Number of row groups so far."""
        return len(self._groups)

    def copy(self, source: pa.NativeFile, footer: ParquetFooter, group: RowGroup) -> None:
        """Append a row group of the open file ``source``, which has the footer ``footer``.

        Raises:
            CorruptTableError: the file ends within the row group.
        """
        self.append(group, [SourceChunk(source, footer.path, chunk) for chunk in group.chunks])

    def append(self, group: RowGroup, chunks: Sequence[SourceChunk]) -> None:
        """Append a row group whose columns come from several files.

        Args:
            group: the row group; its number of rows is used, and its fields except columns, sizes and position.
            chunks: one per leaf column, in schema order, each with the rows of the group.

        Raises:
            CorruptTableError: a file ends within a chunk.
        """
        begin, columns, uncompressed = self._at, [], 0
        run = _NOTHING
        for source, path, chunk in chunks:
            content = b""
            if chunk.column in self._constants:
                content, chunk = self._constant(chunk.column, group.rows)
            if content or source is not run.source or chunk.start != run.end:
                self._copy_bytes(run)
                run = _Run(source, path, chunk.start, chunk.start)
            columns.append(_shifted_chunk(chunk, self._at + run.end - run.start - chunk.start))
            uncompressed += chunk.uncompressed
            if content:
                self._write(content)
                run = _NOTHING
            else:
                run = run._replace(end=run.end + chunk.length)
        self._copy_bytes(run)
        fields = group.fields | {
            _COLUMNS: (LIST, struct_list(columns)),
            _GROUP_BYTES: integer(uncompressed),
            _GROUP_OFFSET: integer(begin),
            _GROUP_COMPRESSED: integer(self._at - begin),
            _ORDINAL: integer(len(self._groups), I16),
        }
        if len(self._groups) > _MAX_ORDINAL:
            del fields[_ORDINAL]
        self._groups.append(struct(fields))
        self.rows += group.rows

    def close(self, keys: Mapping[bytes, bytes]) -> int:
        """Write the footer with these key-value pairs, and close; return the file's length in bytes."""
        first = self._sources[0]
        pairs = [struct({1: binary(key), 2: binary(value)}) for key, value in keys.items()]
        fields = first.fields | {
            _SCHEMA: (LIST, struct_list(first.schema)),
            _ROWS: integer(self.rows),
            _GROUPS: (LIST, struct_list(self._groups)),
            _KEYS: (LIST, struct_list(pairs)),
        }
        writer = _created_by(self._sources)
        if writer is not None:
            fields[_CREATED_BY] = binary(writer)
        footer = struct(fields)
        self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)
        with naming_file(self.path):
            self._sink.close()
        return self._at

    def abort(self) -> None:
        """Close the stream and delete the file."""
        try:
            self._sink.close()
        finally:
            self._storage.delete_file(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is not None:
            self.abort()

    def _constant(self, column: str, rows: int) -> tuple[bytes, ColumnChunk]:
        """The bytes of a chunk with one value, and its metadata."""
        if (column, rows) not in self._made:
            self._made[column, rows] = _constant_chunk(column, *self._constants[column], rows)
        return self._made[column, rows]

    def _write(self, content: bytes | memoryview) -> None:
        with naming_file(self.path):
            self._sink.write(content)
        self._at += len(content)

    def _copy_bytes(self, run: _Run) -> None:
        left = run.end - run.start
        if not left or run.source is None:
            return
        run.source.seek(run.start)
        while left:
            part = self._buffer[: min(left, _BUFFER)]
            count = run.source.readinto(part)
            if not count:
                raise CorruptTableError(f"The base file ends {left} bytes before the end of a row group.", run.path)
            self._write(part[:count])
            left -= count


# ---- schemas and writers


def _columns_of(footer: ParquetFooter) -> list[bytes]:
    """The schema's elements without the root's name, which depends on the writer."""
    root = fields_of(ThriftReader(footer.schema[0], footer.path), {})
    kept = {number: field for number, field in root.items() if number not in (_ELEMENT_REPETITION, _ELEMENT_NAME)}
    return [struct(kept), *footer.schema[1:]]


def _is_optional(footer: ParquetFooter, column: str) -> bool:
    """Whether a top-level column is nullable."""
    for element in footer.schema[1:]:
        fields = fields_of(ThriftReader(element, footer.path), {})
        if ThriftReader(fields[_ELEMENT_NAME][1], footer.path).content().decode() == column:
            return integer_of(fields, _ELEMENT_REPETITION) == _OPTIONAL
    raise CorruptTableError(f"The file has no column {column}, which every file of a Hudi table has.", footer.path)


def _created_by(sources: Sequence[ParquetFooter]) -> bytes | None:
    """The writer name of the new file: the writer of the sources with the weakest statistics.

    Bounds by Parquet's C++ library omit NaN, and readers detect such bounds by the writer's name.
    """
    names = [
        ThriftReader(one.fields[_CREATED_BY][1], one.path).content() for one in sources if _CREATED_BY in one.fields
    ]
    return next((name for name in names if name.startswith(b"parquet-cpp")), names[0] if names else None)


# ---- column chunks


def _shifted_chunk(chunk: ColumnChunk, shift: int) -> bytes:
    """``ColumnChunk`` of a chunk that moves by ``shift`` bytes."""
    metadata = {number: field for number, field in chunk.metadata.items() if number not in _CHUNK_FILTERS}
    for number in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
        offset = integer_of(metadata, number)
        if offset > 0:
            metadata[number] = integer(offset + shift)
    fields = {number: field for number, field in chunk.fields.items() if number not in _PAGE_INDEXES}
    offset = integer_of(fields, _CHUNK_OFFSET)
    fields[_CHUNK_OFFSET] = integer(offset + shift if offset > 0 else 0)
    fields[_META_DATA] = (STRUCT, struct(metadata))
    return struct(fields)


def _constant_chunk(column: str, value: str, optional: bool, rows: int) -> tuple[bytes, ColumnChunk]:
    """The bytes of a chunk that repeats one text ``rows`` times, and its location in a temporary file."""
    kind = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema([pa.field(column, kind, nullable=optional)])
    codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array([value], pa.string()))
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="none", store_schema=False) as writer:
        writer.write_table(pa.Table.from_arrays([codes], schema=schema), row_group_size=rows)
    content = sink.getvalue()
    begin = len(content) - _TAIL - int.from_bytes(content[-_TAIL : -len(_MAGIC)], "little")
    chunk = parse_footer(content[begin:-_TAIL], begin, column).groups[0].chunks[0]
    return content[chunk.start : chunk.start + chunk.length], chunk
