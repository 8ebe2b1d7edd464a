"""Decode and encode structs of Thrift's compact protocol field by field.

::

    bytes ── ThriftReader ─► fields_of ─► {number: (type, encoded value)} ── some changed ─► struct ─► bytes

Other values stay encoded, including unknown fields. Every length is checked against the available bytes.

Source: the compact protocol of Apache Thrift.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from hudi_fast.errors import CorruptTableError
from hudi_fast.formats.varint import varint, zigzag

__all__ = [
    "BINARY",
    "I16",
    "I32",
    "I64",
    "LIST",
    "STRUCT",
    "Change",
    "Fields",
    "ThriftReader",
    "binary",
    "elements",
    "fields_of",
    "integer",
    "integer_of",
    "struct",
    "struct_list",
    "structs",
]

I16, I32, I64 = 4, 5, 6
BINARY, LIST, STRUCT = 8, 9, 12
_SET, _MAP = 10, 11
_VARINTS = frozenset({I16, I32, I64})
_FIXED = {3: 1, 7: 8, 13: 16}
"""Types of a fixed length: byte, double, UUID."""
_BOOLS = frozenset({1, 2})
"""Types of true and false: the type of a field is its value; an element of a list is a byte."""

_MAX_DEPTH = 64
_LONGEST_VARINT = 10

Item = TypeVar("Item")

Fields: TypeAlias = dict[int, tuple[int, bytes]]
"""A struct: type and encoded value of each field, by field number."""

Change: TypeAlias = "tuple[int, Callable[[ThriftReader], bytes]]"
"""A field to decode: its type, and a function that reads its value and returns the new encoded value."""


# ---- decoding


def fields_of(reader: ThriftReader, known: Mapping[int, Change]) -> Fields:
    """The fields of the struct at the reader.

    Args:
        reader: is at the struct's first byte, and moves to its end.
        known: fields to change, by number.

    Raises:
        CorruptTableError: the struct is cut off, or a field of ``known`` has another type.
    """
    found: Fields = {}
    number = 0
    while kind := reader.field(number):
        number = reader.number
        if number in known:
            wanted, change = known[number]
            if kind != wanted:
                raise reader.unexpected(f"field {number} of type {wanted}", f"type {kind}")
            found[number] = kind, change(reader)
        else:
            found[number] = kind, b"" if kind in _BOOLS else reader.copy(kind)
    return found


def structs(reader: ThriftReader, changes: Mapping[int, Callable[[ThriftReader], bytes]], what: str) -> list[bytes]:
    """The encoded elements of the list of structs at the reader; the elements of ``changes`` are changed.

    Args:
        reader: is at the list's first byte, and moves to its end.
        changes: functions that read an element and return the new encoded element, by number of the element.
        what: the elements' name, for messages.

    Raises:
        CorruptTableError: the list is cut off or has no structs, or lacks an element of ``changes``.
    """
    kind, count = reader.list_head()
    if kind != STRUCT:
        raise reader.unexpected("a list of structs", f"elements of type {kind}")
    for number in changes:
        if not 0 <= number < count:
            raise reader.unexpected(f"{what} {number}", f"{count} of them")
    return [changes[number](reader) if number in changes else reader.copy(STRUCT) for number in range(count)]


def elements(reader: ThriftReader, parse: Callable[[ThriftReader], Item]) -> list[Item]:
    """Parse each element of the list of structs at the reader.

    Args:
        reader: is at the list's first byte, and moves to its end.
        parse: parses the struct at the reader and moves the reader to its end.

    Raises:
        CorruptTableError: the list is cut off or has no structs.
    """
    kind, count = reader.list_head()
    if kind != STRUCT and count:
        raise reader.unexpected("a list of structs", f"elements of type {kind}")
    return [parse(reader) for _ in range(count)]


class ThriftReader:
    """A position in encoded values; checks every length against the available bytes."""

    def __init__(self, content: bytes, path: str | None) -> None:
        self.at = 0
        self.number = 0
        self._content = content
        self._path = path

    def unexpected(self, expected: str, found: str) -> CorruptTableError:
        """The error to raise."""
        return CorruptTableError(
            f"The footer of a Parquet file cannot be decoded: expected {expected}, found {found}. The file is cut "
            "off or damaged; restore it, or write it again.",
            self._path,
        )

    def require(self, number: int, fields: Fields) -> None:
        """Raise unless the struct has the field."""
        if number not in fields:
            raise self.unexpected(f"field {number}", "none")

    def check_end(self) -> None:
        """Raise if bytes are left."""
        if self.at != len(self._content):
            raise self.unexpected("a struct", f"{len(self._content) - self.at} bytes after it")

    def copy(self, kind: int) -> bytes:
        """The encoded value at the reader; not for boolean fields."""
        start = self.at
        self.skip(kind)
        return self._content[start : self.at]

    def integer(self) -> int:
        """The integer of any width at the reader."""
        zigzag = self._varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def content(self) -> bytes:
        """The binary value or text at the reader."""
        count = self._varint()
        start = self.at
        self._move(count)
        return self._content[start : self.at]

    def field(self, before: int) -> int:
        """The type of the next field of a struct, 0 at its end; sets :attr:`number` to the field's number."""
        head = self._byte()
        if not head & 0x0F:
            if head:
                raise self.unexpected("the end of a struct", f"byte {head:#x}")
            return 0
        if head >> 4:
            self.number = before + (head >> 4)
        else:
            self.number = self.integer()
        return head & 0x0F

    def list_head(self) -> tuple[int, int]:
        """Type and number of a list's elements."""
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        self._check(count)  # an element has at least one byte
        return head & 0x0F, count

    def skip(self, kind: int, depth: int = 0) -> None:
        """Skip a value; not for boolean fields."""
        if depth > _MAX_DEPTH:
            raise self.unexpected(f"at most {_MAX_DEPTH} levels of structs and lists", "more")
        if kind in _VARINTS:
            self._varint()
        elif kind == BINARY:
            self._move(self._varint())
        elif kind == STRUCT:
            number = 0
            while inner := self.field(number):
                number = self.number
                if inner not in _BOOLS:
                    self.skip(inner, depth + 1)
        elif kind in (LIST, _SET):
            inner, count = self.list_head()
            pass_one = self._varint if inner in _VARINTS else None
            for _ in range(count):
                if pass_one is not None:
                    pass_one()
                else:
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
            raise self.unexpected("a type of Thrift's compact protocol", f"type {kind}")
        return _FIXED[kind]

    def _byte(self) -> int:
        try:
            byte = self._content[self.at]
        except IndexError:
            raise self.unexpected("1 more byte", "0") from None
        self.at += 1
        return byte

    def _varint(self) -> int:
        content, at = self._content, self.at
        value = content[at] if at < len(content) else self._byte()  # raises at the end of the bytes
        at += 1
        if value >= 0x80:
            value &= 0x7F
            for shift in range(7, 7 * _LONGEST_VARINT, 7):
                self.at = at
                byte = self._byte()
                value |= (byte & 0x7F) << shift
                at += 1
                if byte < 0x80:
                    break
            else:
                raise self.unexpected(f"a number of at most {_LONGEST_VARINT} bytes", "a longer one")
        self.at = at
        return value

    def _move(self, count: int) -> None:
        self._check(count)
        self.at += count

    def _check(self, count: int) -> None:
        if count > len(self._content) - self.at:
            raise self.unexpected(f"{count} more bytes", f"{len(self._content) - self.at}")


def integer_of(fields: Fields, number: int, default: int = 0) -> int:
    """An integer field's value; ``default`` if the struct lacks it.

    Raises:
        CorruptTableError: the field is not an integer.
    """
    if number not in fields:
        return default
    kind, content = fields[number]
    reader = ThriftReader(content, None)
    if kind not in _VARINTS:
        raise reader.unexpected(f"an integer as field {number}", f"type {kind}")
    return reader.integer()


# ---- encoding


def struct(fields: Fields) -> bytes:
    """Encode a struct."""
    parts = []
    before = 0
    for number, (kind, content) in sorted(fields.items()):
        step = number - before
        parts.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number))
        parts.append(content)
        before = number
    return b"".join([*parts, b"\0"])


def struct_list(parts: Sequence[bytes]) -> bytes:
    """Encode a list of encoded structs."""
    count = len(parts)
    head = bytes([count << 4 | STRUCT]) if count < 15 else bytes([0xF0 | STRUCT]) + varint(count)
    return head + b"".join(parts)


def binary(content: bytes) -> tuple[int, bytes]:
    """Encode a field of bytes or text."""
    return BINARY, varint(len(content)) + content


def integer(value: int, kind: int = I64) -> tuple[int, bytes]:
    """Encode an integer field of up to 64 bits: :data:`I16`, :data:`I32` or :data:`I64`."""
    return kind, zigzag(value)
