"""Modify the footer of a Parquet file: remove the bounds of chosen column chunks, add keys.

::

    FileMetaData ─ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData ─ 12 statistics
                 └ 5 key_value_metadata                              └ 6, 7 column index

Only the structs on this path are decoded and encoded (:mod:`hudi_fast.formats.parquet.thrift_compact`); all other bytes
are copied, including fields of later Parquet releases. Statistics without bounds still count nulls: Apache Hudi assumes
that a chunk without statistics has only nulls.

Source: parquet.thrift of Apache Parquet format 2.11; ``ParquetUtils`` of Hudi 1.2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from hudi_fast.formats.parquet.thrift_compact import (
    LIST,
    STRUCT,
    Change,
    ThriftReader,
    binary,
    fields_of,
    struct,
    struct_list,
    structs,
)

__all__ = ["change_footer"]

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
