"""Changing the footer of a Parquet file: bounds taken out of chosen column chunks, keys added.

::

    FileMetaData ─ 4 row_groups ─ RowGroup ─ 1 columns ─ ColumnChunk ─ 3 meta_data ─ ColumnMetaData ─ 12 statistics
                 └ 5 key_value_metadata                              └ 6, 7 column index

The structs of Thrift's compact protocol on that way are taken apart and put together again; all else is copied as it
stands, also what later releases of Parquet may add. Statistics without bounds still count nulls: Apache Hudi takes a
chunk that has no statistics at all for one of nulls alone.

Source: parquet.thrift of Apache Parquet format 2.11; the compact protocol of Apache Thrift; ``ParquetUtils`` of Hudi
1.2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from hudi_fast.errors import CorruptTableError

__all__ = ["change_footer"]

_BINARY, _LIST, _SET, _MAP, _STRUCT = 8, 9, 10, 11, 12
_VARINTS = frozenset({4, 5, 6})
_FIXED = {3: 1, 7: 8, 13: 16}
"""Types of a fixed length: byte, double, UUID."""
_BOOLS = frozenset({1, 2})
"""True and false: of a field the type is the value, of an element a byte is."""

_ROW_GROUPS, _KEY_VALUES = 4, 5
_COLUMNS = 1
_META_DATA, _COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH = 3, 6, 7
_STATISTICS = 12
_BOUNDS = frozenset({1, 2, 5, 6, 7, 8})
"""Fields of ``Statistics``: the deprecated max and min, those of now, and whether these are exact."""

_DEEPEST = 64
_LONGEST_VARINT = 10

_Fields: TypeAlias = dict[int, tuple[int, bytes]]
"""A struct: type and encoded value of each field, by its number."""


def change_footer(
    footer: bytes, unbounded: Collection[tuple[int, int]], keys: Mapping[bytes, bytes], path: str | None = None
) -> bytes:
    """A footer like ``footer``, without the bounds of some column chunks and with more keys.

    Args:
        footer: ``FileMetaData`` in Thrift's compact protocol, nothing before or behind it.
        unbounded: column chunks that must not have bounds: numbers of row group and of leaf column.
        keys: added to the file's key-value pairs.
        path: the file, for messages.

    Returns:
        ``FileMetaData`` in the same protocol.

    Raises:
        CorruptTableError: ``footer`` is cut short or no such struct, or lacks one of the column chunks.
    """
    fields = _fields(footer, path)
    by_group: dict[int, list[int]] = {}
    for group, column in unbounded:
        by_group.setdefault(group, []).append(column)
    if by_group:
        groups = _structs(fields, _ROW_GROUPS, path)
        for number, columns in by_group.items():
            groups[number] = _row_group(_at(groups, number, "row group", path), columns, path)
        fields[_ROW_GROUPS] = _list(groups)
    if keys:
        pairs = _structs(fields, _KEY_VALUES, path) if _KEY_VALUES in fields else []
        pairs += [_struct({1: _binary(key), 2: _binary(value)}) for key, value in keys.items()]
        fields[_KEY_VALUES] = _list(pairs)
    return _struct(fields)


def _row_group(content: bytes, columns: Collection[int], path: str | None) -> bytes:
    fields = _fields(content, path)
    chunks = _structs(fields, _COLUMNS, path)
    for number in columns:
        chunks[number] = _column_chunk(_at(chunks, number, "column", path), path)
    fields[_COLUMNS] = _list(chunks)
    return _struct(fields)


def _column_chunk(content: bytes, path: str | None) -> bytes:
    fields = _fields(content, path)
    column = _fields(_value(fields, _META_DATA, _STRUCT, path), path)
    if _STATISTICS in column:
        statistics = _fields(_value(column, _STATISTICS, _STRUCT, path), path)
        column[_STATISTICS] = _STRUCT, _struct({n: one for n, one in statistics.items() if n not in _BOUNDS})
    fields[_META_DATA] = _STRUCT, _struct(column)
    for number in (_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH):  # it holds bounds of pages
        fields.pop(number, None)
    return _struct(fields)


# ---- taking apart


def _fields(content: bytes, path: str | None) -> _Fields:
    """The fields of a struct that takes all of ``content``."""
    reader = _Reader(content, path)
    found: _Fields = {}
    number = 0
    while kind := reader.field(number):
        number, start = reader.number, reader.at
        if kind not in _BOOLS:
            reader.skip(kind)
        found[number] = kind, content[start : reader.at]
    if reader.at != len(content):
        raise _wrong("a struct", f"{len(content) - reader.at} bytes behind it", path)
    return found


def _structs(fields: _Fields, number: int, path: str | None) -> list[bytes]:
    """The elements of a field that is a list of structs."""
    content = _value(fields, number, _LIST, path)
    reader = _Reader(content, path)
    kind, count = reader.list_head()
    if kind != _STRUCT:
        raise _wrong(f"structs in field {number}", f"elements of type {kind}", path)
    found = []
    for _ in range(count):
        start = reader.at
        reader.skip(_STRUCT)
        found.append(content[start : reader.at])
    return found


def _value(fields: _Fields, number: int, kind: int, path: str | None) -> bytes:
    found, content = fields.get(number, (None, b""))
    if found != kind:
        raise _wrong(f"field {number} of type {kind}", "none" if found is None else f"type {found}", path)
    return content


def _at(parts: list[bytes], number: int, what: str, path: str | None) -> bytes:
    if not 0 <= number < len(parts):
        raise _wrong(f"{what} {number}", f"{len(parts)} of them", path)
    return parts[number]


class _Reader:
    """A place in encoded values; checks every length against what is there."""

    def __init__(self, content: bytes, path: str | None) -> None:
        self.at = 0
        self.number = 0
        self._content = content
        self._path = path

    def field(self, before: int) -> int:
        """The type of the next field of a struct, 0 at the struct's end; :attr:`number` is the field's."""
        head = self._byte()
        if not head & 0x0F:
            if head:
                raise _wrong("the end of a struct", f"byte {head:#x}", self._path)
            return 0
        if head >> 4:
            self.number = before + (head >> 4)
        else:
            zigzag = self._varint()
            self.number = (zigzag >> 1) ^ -(zigzag & 1)
        return head & 0x0F

    def list_head(self) -> tuple[int, int]:
        """Type and number of a list's elements."""
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        self._check(count)  # an element has a byte at least
        return head & 0x0F, count

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass a value that is no boolean field."""
        if depth > _DEEPEST:
            raise _wrong(f"at most {_DEEPEST} levels of structs and lists", "more", self._path)
        if kind in _VARINTS:
            self._varint()
        elif kind == _BINARY:
            self._move(self._varint())
        elif kind == _STRUCT:
            number = 0
            while inner := self.field(number):
                number = self.number
                if inner not in _BOOLS:
                    self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            inner, count = self.list_head()
            for _ in range(count):
                self._element(inner, depth)
        elif kind == _MAP:
            self._map(depth)
        else:
            self._move(self._fixed(kind))

    def _map(self, depth: int) -> None:
        count = self._varint()
        if count:
            kinds = self._byte()
            self._check(2 * count)
            for _ in range(count):
                self._element(kinds >> 4, depth)
                self._element(kinds & 0x0F, depth)

    def _element(self, kind: int, depth: int) -> None:
        if kind in _BOOLS:
            self._move(1)
        else:
            self.skip(kind, depth + 1)

    def _fixed(self, kind: int) -> int:
        if kind not in _FIXED:
            raise _wrong("a type of Thrift's compact protocol", f"type {kind}", self._path)
        return _FIXED[kind]

    def _byte(self) -> int:
        self._check(1)
        self.at += 1
        return self._content[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONGEST_VARINT, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _wrong(f"a number of at most {_LONGEST_VARINT} bytes", "a longer one", self._path)

    def _move(self, count: int) -> None:
        self._check(count)
        self.at += count

    def _check(self, count: int) -> None:
        if count > len(self._content) - self.at:
            raise _wrong(f"{count} more bytes", f"{len(self._content) - self.at}", self._path)


def _wrong(expected: str, found: str, path: str | None) -> CorruptTableError:
    return CorruptTableError(
        f"The footer of a Parquet file cannot be understood: expected {expected}, found {found}. The file is cut short "
        "or damaged; restore it, or write it again.",
        path,
    )


# ---- putting together


def _struct(fields: _Fields) -> bytes:
    parts = []
    before = 0
    for number, (kind, content) in sorted(fields.items()):
        step = number - before
        parts.append(
            bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _varint(number << 1 ^ number >> 63)
        )
        parts.append(content)
        before = number
    return b"".join([*parts, b"\0"])


def _list(structs: list[bytes]) -> tuple[int, bytes]:
    count = len(structs)
    head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
    return _LIST, head + b"".join(structs)


def _binary(content: bytes) -> tuple[int, bytes]:
    return _BINARY, _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
