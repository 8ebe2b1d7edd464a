"""Footers of Parquet files as Thrift's compact protocol describes them: one value after the other, by recursion."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_fast.formats.varint import read_varint

_BINARY, _LIST, _SET, _STRUCT = 8, 9, 10, 12
_MOST_LEVELS = 16

Field = tuple[int, int]
"""Number and type."""


def foreign_chunk(footer: bytes, columns: int) -> int | None:
    """Row group times ``columns`` plus column of the first chunk with another type than its column.

    Raises:
        ValueError: the footer is malformed, or has another number of columns.
    """
    reader, types = _Reader(footer), None
    for number, kind in reader.fields():
        if (number, kind) == (2, _LIST):
            elements = [reader.integers({1, 5}) for _ in range(reader.structs())]
            types = [one[1] for one in elements[1:] if 1 in one and not one.get(5)]
            if len(types) != columns:
                raise ValueError("another number of columns")
        elif (number, kind) == (4, _LIST):
            if types is None:
                raise ValueError("row groups before the schema")
            for group in range(reader.structs()):
                wrong = _in_row_group(reader, types)
                if wrong is not None:
                    return group * columns + wrong
        else:
            reader.skip(kind)
    return None


def _in_row_group(reader: _Reader, types: list[int]) -> int | None:
    chunks = 0
    for number, kind in reader.fields():
        if (number, kind) != (1, _LIST):
            reader.skip(kind)
            continue
        chunks = reader.structs()
        for column in range(chunks):
            expected = types[column] if column < len(types) else None
            found, is_encrypted = _chunk_type(reader)
            if column >= len(types) or (found != expected and not is_encrypted):
                return column
    return None if chunks == len(types) else chunks


def _chunk_type(reader: _Reader) -> tuple[int | None, bool]:
    found, is_encrypted = None, False
    for number, kind in reader.fields():
        if (number, kind) == (3, _STRUCT):
            found = reader.integers({1}).get(1, found)
            is_encrypted = is_encrypted and found is None
        else:
            is_encrypted = is_encrypted or number in (8, 9)
            reader.skip(kind)
    return found, is_encrypted


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def fields(self) -> Iterator[Field]:
        """The fields of a struct; the caller reads or skips each value."""
        number = 0
        while True:
            head = self._byte()
            if not head & 15:
                return
            number = number + (head >> 4) if head >> 4 else self._signed()
            yield number, head & 15

    def integers(self, numbers: set[int]) -> dict[int, int]:
        """Some fields of a struct, if they have 32 bits."""
        found = {}
        for number, kind in self.fields():
            if kind == 5 and number in numbers:
                found[number] = self._signed()
            else:
                self.skip(kind)
        return found

    def structs(self) -> int:
        """How many structs a list has."""
        count, kind = self._head()
        if count and kind != _STRUCT:
            raise ValueError("no structs")
        return count

    def skip(self, kind: int, level: int = 0) -> None:
        """Skip the value of a field."""
        if kind > 2:
            self._skip(kind, level)

    def _skip(self, kind: int, level: int) -> None:
        if kind <= 3:
            self._move(1)
        elif kind <= 6:
            self._varint()
        elif kind == 7:
            self._move(8)
        elif kind == _BINARY:
            self._move(self._varint())
        elif kind in (_LIST, _SET, _STRUCT) and level + 1 < _MOST_LEVELS:
            if kind == _STRUCT:
                for _, inner in self.fields():
                    self.skip(inner, level + 1)
            else:
                count, inner = self._head()
                for _ in range(count):
                    self._skip(inner, level + 1)
        else:
            raise ValueError("an unknown type, or too many levels")

    def _head(self) -> Field:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        if count > len(self._content):
            raise ValueError("more elements than bytes")
        return count, head & 15

    def _byte(self) -> int:
        self._move(1)
        return self._content[self._at - 1]

    def _move(self, count: int) -> None:
        self._at += count
        if self._at > len(self._content):
            raise ValueError("cut off")

    def _varint(self) -> int:
        value, self._at = read_varint(self._content, self._at)
        return value

    def _signed(self) -> int:
        bits = self._varint()
        return bits >> 1 ^ -(bits & 1)
