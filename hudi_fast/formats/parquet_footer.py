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

from collections.abc import Callable, Collection, Mapping
from functools import partial
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

_Known: TypeAlias = "tuple[int, Callable[[_Reader], bytes]]"
"""A field that is looked into: its type, and what makes its value from the one that begins at a reader."""


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
    by_group: dict[int, set[int]] = {}
    for group, column in unbounded:
        by_group.setdefault(group, set()).add(column)
    known: dict[int, _Known] = {}
    if by_group:
        groups = {number: partial(_row_group, columns=columns) for number, columns in by_group.items()}
        known[_ROW_GROUPS] = _LIST, lambda reader: _list(_structs(reader, groups, "row group"))
    if keys:
        pairs = [_struct({1: _binary(key), 2: _binary(value)}) for key, value in keys.items()]
        known[_KEY_VALUES] = _LIST, lambda reader: _list([*_structs(reader, {}, "key"), *pairs])
    reader = _Reader(footer, path)
    fields = _fields(reader, known)
    if by_group:
        reader.need(_ROW_GROUPS, fields)
    if keys and _KEY_VALUES not in fields:
        fields[_KEY_VALUES] = _LIST, _list(pairs)
    reader.check_end()
    return _struct(fields)


def _row_group(reader: _Reader, columns: Collection[int]) -> bytes:
    chunks = dict.fromkeys(columns, _column_chunk)
    fields = _fields(reader, {_COLUMNS: (_LIST, lambda inner: _list(_structs(inner, chunks, "column")))})
    reader.need(_COLUMNS, fields)
    return _struct(fields)


def _column_chunk(reader: _Reader) -> bytes:
    fields = _fields(reader, {_META_DATA: (_STRUCT, _column_meta_data)})
    reader.need(_META_DATA, fields)
    for number in (_COLUMN_INDEX_OFFSET, _COLUMN_INDEX_LENGTH):  # it holds bounds of pages
        fields.pop(number, None)
    return _struct(fields)


def _column_meta_data(reader: _Reader) -> bytes:
    return _struct(_fields(reader, {_STATISTICS: (_STRUCT, _statistics)}))


def _statistics(reader: _Reader) -> bytes:
    return _struct({number: field for number, field in _fields(reader, {}).items() if number not in _BOUNDS})


# ---- taking apart


def _fields(reader: _Reader, known: Mapping[int, _Known]) -> _Fields:
    """The fields of the struct that begins here; those that are known have the given type and are changed."""
    found: _Fields = {}
    number = 0
    while kind := reader.field(number):
        number = reader.number
        if number in known:
            wanted, change = known[number]
            if kind != wanted:
                raise reader.wrong(f"field {number} of type {wanted}", f"type {kind}")
            found[number] = kind, change(reader)
        else:
            found[number] = kind, b"" if kind in _BOOLS else reader.copy(kind)
    return found


def _structs(reader: _Reader, changes: Mapping[int, Callable[[_Reader], bytes]], what: str) -> list[bytes]:
    """The elements of the list of structs that begins here, some of them changed."""
    kind, count = reader.list_head()
    if kind != _STRUCT:
        raise reader.wrong("a list of structs", f"elements of type {kind}")
    for number in changes:
        if not 0 <= number < count:
            raise reader.wrong(f"{what} {number}", f"{count} of them")
    return [changes[number](reader) if number in changes else reader.copy(_STRUCT) for number in range(count)]


class _Reader:
    """A place in encoded values; checks every length against what is there."""

    def __init__(self, content: bytes, path: str | None) -> None:
        self.at = 0
        self.number = 0
        self._content = content
        self._path = path

    def wrong(self, expected: str, found: str) -> CorruptTableError:
        """The error to raise."""
        return CorruptTableError(
            f"The footer of a Parquet file cannot be understood: expected {expected}, found {found}. The file is cut "
            "short or damaged; restore it, or write it again.",
            self._path,
        )

    def need(self, number: int, fields: _Fields) -> None:
        """Raise unless the field is there."""
        if number not in fields:
            raise self.wrong(f"field {number}", "none")

    def check_end(self) -> None:
        """Raise if there is more."""
        if self.at != len(self._content):
            raise self.wrong("a struct", f"{len(self._content) - self.at} bytes behind it")

    def copy(self, kind: int) -> bytes:
        """The value that begins here, as it is encoded; of a field that is no boolean."""
        start = self.at
        self.skip(kind)
        return self._content[start : self.at]

    def field(self, before: int) -> int:
        """The type of the next field of a struct, 0 at the struct's end; :attr:`number` is the field's."""
        head = self._byte()
        if not head & 0x0F:
            if head:
                raise self.wrong("the end of a struct", f"byte {head:#x}")
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
            raise self.wrong(f"at most {_DEEPEST} levels of structs and lists", "more")
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
            raise self.wrong("a type of Thrift's compact protocol", f"type {kind}")
        return _FIXED[kind]

    def _byte(self) -> int:
        try:
            byte = self._content[self.at]
        except IndexError:
            raise self.wrong("1 more byte", "0") from None
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = self._byte()
        if value < 0x80:
            return value
        value &= 0x7F
        for shift in range(7, 7 * _LONGEST_VARINT, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.wrong(f"a number of at most {_LONGEST_VARINT} bytes", "a longer one")

    def _move(self, count: int) -> None:
        self._check(count)
        self.at += count

    def _check(self, count: int) -> None:
        if count > len(self._content) - self.at:
            raise self.wrong(f"{count} more bytes", f"{len(self._content) - self.at}")


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


def _list(structs: list[bytes]) -> bytes:
    count = len(structs)
    head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
    return head + b"".join(structs)


def _binary(content: bytes) -> tuple[int, bytes]:
    return _BINARY, _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
