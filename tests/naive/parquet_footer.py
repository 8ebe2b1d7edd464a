"""Footers of Parquet files as Thrift's compact protocol describes them: one value after the other, by recursion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hudi_fast.formats.varint import read_varint

_BINARY, _LIST, _SET, _STRUCT = 8, 9, 10, 12
_MOST_LEVELS = 16
_MOST_GROUPS = 256
_BYTE_ARRAY, _FIXED = 6, 7
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}

Field = tuple[int, int]
"""Number and type."""


Short = set[int]
"""Row group times columns plus column of chunks with short bounds."""


def chunk_faults(footer: bytes, columns: int) -> tuple[int | None, Short]:
    """Row group times ``columns`` plus column of the first chunk that does not fit; chunks with short bounds.

    Raises:
        ValueError: the footer is malformed, or has another number of columns.
    """
    reader, leaves, short = _Reader(footer), None, set()
    for number, kind in reader.fields():
        if (number, kind) == (2, _LIST):
            elements = [reader.integers({1, 2, 3, 5}) for _ in range(reader.structs())]
            leaves = _leaves(elements)
            if len(leaves) != columns:
                raise ValueError("another number of columns")
        elif (number, kind) == (4, _LIST):
            if leaves is None:
                raise ValueError("row groups before the schema")
            for group in range(reader.structs()):
                wrong = _in_row_group(reader, leaves, short, group * columns)
                if wrong is not None:
                    return group * columns + wrong, short
        else:
            reader.skip(kind)
    return None, short


class _Leaf(NamedTuple):
    """Type, most repetitions, most definitions, and bytes of a value of a column."""

    kind: int
    repeats: int
    defines: int
    width: int


def _leaves(elements: list[dict[int, int]]) -> list[_Leaf]:
    """The columns of a schema whose elements come parents first."""
    found: list[_Leaf] = []
    rest = elements[1:]

    def read(children: int, repeats: int, defines: int, level: int) -> None:
        if level >= _MOST_GROUPS or children < 0:
            raise ValueError("too many groups in each other")
        for _ in range(children):
            if not rest:
                return  # fewer elements than there ought to be
            one = rest.pop(0)
            below = repeats + (one.get(3) == 2), defines + (one.get(3) in (1, 2))
            count = one.get(5, 0)
            if count == 0 and 1 in one:
                found.append(_Leaf(one[1], *below, one.get(2, 0) if one[1] == _FIXED else _WIDTHS.get(one[1], 0)))
            if count > 0:
                read(count, *below, level + 1)

    if elements:
        read(elements[0].get(5, 0), 0, 0, 0)
    if rest:
        raise ValueError("elements without a parent")
    return found


def _in_row_group(reader: _Reader, leaves: list[_Leaf], short: Short, first: int) -> int | None:
    chunks = 0
    for number, kind in reader.fields():
        if (number, kind) != (1, _LIST):
            reader.skip(kind)
            continue
        chunks = reader.structs()
        for column in range(chunks):
            if column >= len(leaves):
                reader.skip(_STRUCT)
            elif not _fits(reader, leaves[column], short, first + column):
                return column
    return chunks if chunks < len(leaves) else None


def _fits(reader: _Reader, leaf: _Leaf, short: Short, chunk: int) -> bool:
    is_typed, fits, is_encrypted = False, True, False
    for number, kind in reader.fields():
        if (number, kind) != (3, _STRUCT):
            is_encrypted = is_encrypted or number in (8, 9)
            reader.skip(kind)
            continue
        for inner, inner_kind in reader.fields():
            if (inner, inner_kind) == (16, _STRUCT):
                fits = _sizes_fit(reader, leaf) and fits
            elif (inner, inner_kind) == (12, _STRUCT):
                short |= set() if _bounds_fit(reader, leaf) else {chunk}
            elif (inner, inner_kind) == (1, 5):
                is_typed, fits = True, reader.integer() == leaf.kind and fits
            else:
                reader.skip(inner_kind)
    return is_encrypted or (is_typed and fits)


def _bounds_fit(reader: _Reader, leaf: _Leaf) -> bool:
    fits = True
    for number, kind in reader.fields():
        if kind == _BINARY and number in (1, 2, 5, 6):
            fits = not 0 < reader.length() < leaf.width and fits
        reader.skip(kind)
    return fits


def _sizes_fit(reader: _Reader, leaf: _Leaf) -> bool:
    fits = True
    for number, kind in reader.fields():
        if kind == _LIST and number in (2, 3):
            fits = reader.count() in (0, leaf[number - 1] + 1) and fits
        elif number == 1 and leaf.kind != _BYTE_ARRAY:
            fits = False
        reader.skip(kind)
    return fits


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

    def count(self) -> int:
        """How many elements the list has that is next; stays there."""
        place = self._at
        count, _ = self._head()
        self._at = place
        return count

    def length(self) -> int:
        """How many bytes the text has that is next; stays there."""
        place = self._at
        size = self._varint()
        self._at = place
        return size

    def integer(self) -> int:
        """A signed number."""
        return self._signed()

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
