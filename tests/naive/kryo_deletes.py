"""Lists of deletes as Kryo writes and reads them, object by object in plain Python.

An entry is (record key, partition path, ordering value), an ordering value (class, Python value) or None. As in Kryo,
the same Python string object is written once, and referred to later.
"""

from __future__ import annotations

import struct
from typing import Any

KEY = "org.apache.hudi.common.model.HoodieKey"
OLD_KEY = "com.uber.hoodie.common.model.HoodieKey"
RECORD = "org.apache.hudi.common.model.DeleteRecord"
UTF8, DECIMAL = "org.apache.avro.util.Utf8", "java.math.BigDecimal"
DATE, TIMESTAMP = "java.time.LocalDate", "java.sql.Timestamp"
REGISTERED = "Utf8"  # as Hudi 0.12 registers it
BUILT_IN = ["int", "String", "float", "boolean", "byte", "char", "short", "long", "double", "void", REGISTERED]
PLAIN = ("int", "long", "float", "double", "boolean")
FORMATS = {"float": ">f", "double": ">d", "boolean": ">?", "byte": ">b", "short": ">h", "char": ">H"}

Entry = tuple[str, str | None, tuple[str, Any] | None]


class Malformed(Exception):
    """The bytes are no such stream."""


# ---- writing


class Writer:
    """One stream. ``has_hash``: as Avro 1.10 and later declare Utf8."""

    def __init__(self, has_hash: bool = False) -> None:
        self.out = bytearray()
        self.names: list[str] = []
        self.objects: dict[int, tuple[int, Any]] = {}
        """By identity: the reference to an object, and the object, which keeps its identity as long as it lives."""
        self.has_hash = has_hash

    def number(self, value: int) -> None:
        """Up to nine bytes; the ninth has eight bits."""
        value &= 2**64 - 1
        for _ in range(8):
            if value < 0x80:
                break
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def signed(self, value: int, bits: int) -> None:
        self.number((value << 1 ^ value >> bits - 1) & (1 << bits) - 1)

    def kind(self, name: str | None) -> None:
        if name is None:
            self.number(0)
        elif name in BUILT_IN:
            self.number(BUILT_IN.index(name) + 2)
        else:
            self.number(1)
            known = name in self.names
            if not known:
                self.names.append(name)
            self.number(self.names.index(name))
            if not known:
                self.text(name)

    def text(self, value: str) -> None:
        if 1 < len(value) < 64 and value.isascii():
            raw = bytearray(value.encode())
            raw[-1] |= 0x80
            self.out += raw
            return
        units = struct.unpack(f">{len(value.encode('utf-16-be', 'surrogatepass')) // 2}H",
                              value.encode("utf-16-be", "surrogatepass"))  # fmt: skip
        rest = len(units) + 1
        first, rest = rest & 0x3F, rest >> 6
        self.out.append(first | 0x80 | (0x40 if rest else 0))
        while rest:
            byte, rest = rest & 0x7F, rest >> 7
            self.out.append(byte | (0x80 if rest else 0))
        for unit in units:
            self.out += chr(unit).encode("utf-8", "surrogatepass")

    def new(self, value: Any) -> bool:
        """The reference to an object; whether the object has to follow."""
        known = self.objects.get(id(value))
        if known is not None:
            self.number(known[0])
            return False
        self.objects[id(value)] = len(self.objects) + 2, value
        self.number(1)
        return True

    def string(self, value: str | None) -> None:
        if value is None:
            self.number(0)
        elif self.new(value):
            self.text(value)

    def key(self, key: str, partition: str | None, identity: Any = None) -> None:
        if self.new(identity or object()):
            self.string(partition)
            self.string(key)

    def ordering(self, value: tuple[str, Any] | None) -> None:
        name = None if value is None else value[0]
        self.kind(name)
        if name is None or value is None:
            return
        if name not in PLAIN and name != "String" and not self.new(value):
            return
        given = value[1]
        if name == "String":
            self.string(given)
        elif name in ("int", "long"):
            self.signed(given, 32 if name == "int" else 64)
        elif name in FORMATS:
            self.out += struct.pack(FORMATS[name], given)
        elif name == REGISTERED:
            self.number(len(given.encode()) + 1)
            self.out += given.encode()
        elif name == UTF8:
            raw = given.encode()
            self.new(object())
            self.number(len(raw) + 3)  # the array may be longer than the text
            self.out += raw + b"??"
            if self.has_hash:
                self.signed(0, 32)
            self.signed(len(raw), 32)
            self.string(None)
        elif name == DECIMAL:
            unscaled, scale = given
            size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
            self.number(size + 1)
            self.out += unscaled.to_bytes(size, "big", signed=True)
            self.signed(scale, 32)
        elif name == DATE:
            year, month, day = given
            self.number(year & 0xFFFFFFFF)
            self.out += bytes([month, day])
        elif name == TIMESTAMP:
            self.number(given)


def encode_keys(entries: list[Entry], name: str = KEY) -> bytes:
    """``HoodieKey[]``."""
    writer = Writer()
    writer.kind(f"[L{name};")
    writer.new(entries)
    writer.number(len(entries) + 1)
    for key, partition, _ in entries:
        writer.kind(name)
        writer.key(key, partition)
    return bytes(writer.out)


def encode_records(entries: list[Entry], has_hash: bool = False) -> bytes:
    """``DeleteRecord[]``; an entry that is the same object as an earlier one is a reference."""
    writer = Writer(has_hash)
    writer.kind(f"[L{RECORD};")
    writer.new(entries)
    writer.number(len(entries) + 1)
    for entry in entries:
        writer.kind(RECORD)
        if writer.new(entry):
            writer.kind(KEY)
            writer.key(entry[0], entry[1])
            writer.ordering(entry[2])
    return bytes(writer.out)


# ---- reading


class Reader:
    """One stream, as Kryo reads it: builds every object."""

    def __init__(self, raw: bytes, has_hash: bool) -> None:
        self.raw, self.at = raw, 0
        self.names: list[str] = []
        self.objects: list[tuple[str, Any]] = []
        self.has_hash = has_hash

    def take(self, count: int) -> bytes:
        found = self.raw[self.at : self.at + count]
        if len(found) < count:
            raise Malformed
        self.at += count
        return found

    def number(self, limit: int = 5) -> int:
        value = 0
        for i in range(limit):
            byte = self.take(1)[0]
            if i == 8:
                return value | byte << 56
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return value
        raise Malformed

    def signed(self, limit: int = 5) -> int:
        bits = self.number(limit)
        return bits >> 1 ^ -(bits & 1)

    def kind(self) -> str | None:
        number = self.number()
        if number == 0:
            return None
        if number > 1:
            return BUILT_IN[number - 2] if number - 2 < len(BUILT_IN) else f"number {number - 2}"
        name = self.number()
        if name == len(self.names):
            self.names.append(self.text())
        if name >= len(self.names):
            raise Malformed
        return self.names[name]

    def text(self) -> str:
        byte = self.take(1)[0]
        if byte < 0x80:
            found = bytearray([byte])
            while found[-1] < 0x80:
                found += self.take(1)
            found[-1] &= 0x7F
            return found.decode()
        units, shift = byte & 0x3F, 6
        more = byte & 0x40
        while more:
            if shift > 27:
                raise Malformed
            byte = self.take(1)[0]
            units |= (byte & 0x7F) << shift
            shift, more = shift + 7, byte & 0x80
        if not units:
            raise Malformed
        found16 = b"".join(struct.pack(">H", self.unit()) for _ in range(units - 1))
        return found16.decode("utf-16-be", "surrogatepass")

    def unit(self) -> int:
        byte = self.take(1)[0]
        if byte < 0x80:
            return byte
        if byte >> 5 == 6:
            return (byte & 0x1F) << 6 | self.take(1)[0] & 0x3F
        if byte >> 4 == 14:
            second, third = self.take(2)
            return (byte & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F
        raise Malformed

    def object(self, kind: str, read: Any) -> Any:
        number = self.number()
        if number == 0:
            return None
        if number > 1:
            if number - 2 >= len(self.objects) or self.objects[number - 2][0] != kind:
                raise Malformed
            return self.objects[number - 2][1]
        place = len(self.objects)
        self.objects.append(("unfinished", None))
        found = read()
        self.objects[place] = (kind, found)
        return found

    def string(self) -> str | None:
        return self.object("String", self.text)

    def key(self) -> tuple[str | None, str | None]:
        partition = self.string()
        return self.string(), partition

    def record(self) -> Entry:
        if self.kind() != KEY:
            raise Malformed
        key, partition = self.present(KEY, self.key)
        return key, partition, self.ordering()

    def present(self, kind: str, read: Any) -> Any:
        found = self.object(kind, read)
        if found is None:
            raise Malformed
        return found

    def ordering(self) -> tuple[str, Any] | None:
        name = self.kind()
        if name is None:
            return None
        if name == "String":
            return name, self.present(name, self.text)
        if name in ("int", "long"):
            return name, self.signed(5 if name == "int" else 9)
        if name in PLAIN:
            return name, struct.unpack(FORMATS[name], self.take(struct.calcsize(FORMATS[name])))[0]
        read = {
            UTF8: self.utf8,
            REGISTERED: self.array,
            DECIMAL: self.decimal,
            DATE: self.date,
            TIMESTAMP: lambda: self.number(9),
        }
        if name not in read:
            raise Malformed
        return name, self.present(name, read[name])

    def array(self) -> str:
        held = self.number()
        if not held:
            raise Malformed
        return self.take(held - 1).decode()

    def utf8(self) -> str:
        raw = self.present("byte[]", lambda: self.take(self.number() - 1))
        if self.has_hash:
            self.signed()
        size = self.signed()
        self.string()
        if not 0 <= size <= len(raw):
            raise Malformed
        return raw[:size].decode()

    def decimal(self) -> tuple[int, int]:
        raw = self.take(self.number() - 1)
        if not raw:
            raise Malformed
        return int.from_bytes(raw, "big", signed=True), self.signed()

    def date(self) -> tuple[int, int, int]:
        year = self.number()
        month, day = self.take(2)
        return year - 2**32 if year >= 2**31 else year, month, day


def decode(raw: bytes, version: int, has_hash: bool = False) -> list[Entry]:
    """The entries of a stream; Malformed, or an error of Python, if it is none."""
    reader = Reader(raw, has_hash)
    name = reader.kind()
    if name not in ((f"[L{KEY};", f"[L{OLD_KEY};") if version == 1 else (f"[L{RECORD};",)):
        raise Malformed
    if reader.number() != 1:
        raise Malformed
    reader.objects.append(("array", None))
    count = reader.number() - 1
    if not 0 <= count <= len(raw):
        raise Malformed
    entries: list[Entry] = []
    for _ in range(count):
        kind = reader.kind()
        if kind not in ((KEY, OLD_KEY) if version == 1 else (RECORD,)):
            raise Malformed
        if version == 1:
            key, partition = reader.present(KEY, reader.key)
            entries.append((key, partition, None))
        else:
            entries.append(reader.present(RECORD, reader.record))
    if any(key is None for key, _, _ in entries) or reader.at != len(raw):
        raise Malformed
    return entries
