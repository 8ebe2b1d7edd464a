"""Write the content of delete blocks of version 2: Java objects that Kryo serialises, for Apache Hudi 0.11 to 0.13.

::

    int32 version (2) | int32 n | n bytes:
        DeleteRecord[]: class ─► number of entries + 1 ─► entries
        DeleteRecord:   class ─► HoodieKey: class ─► partition path ─► record key
                              └► ordering value: class ─► value

A class is its registered number plus 2 (Java's own classes), or 1, the number of its name, and, at its first use, the
name. An object begins with 1 (it is new, not a reference to an earlier object), except for Java's wrappers of numbers.
Releases before 0.13 register no class of Hudi; later releases read names, too. Writing is a loop over rows, because
only tables of version 5 need it.

Source: HoodieDeleteBlock, DeleteRecord, HoodieKey and SerializationUtils, releases 0.12.3 and 0.13.1; Kryo 4.0.2
(DefaultClassResolver, FieldSerializer, Output).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.log.delete_block import DeleteRecords, encode_delete_block
from hudi_fast.formats.varint import varint, zigzag

__all__ = ["KRYO_DELETE_BLOCK_VERSION", "delete_block_of", "encode_kryo_deletes"]

KRYO_DELETE_BLOCK_VERSION = 2
"""Version of the blocks that :func:`encode_kryo_deletes` writes."""

_FIRST_WITH_AVRO = 6
_HEAD = struct.Struct(">ii")
_PACKAGE = "org.apache.hudi.common.model."
_NEW = b"\x01"
_BY_NAME = b"\x01"
_SHORT = 64
_DEFAULT = b"\x02\x00"
"""Hudi's default ordering value: the Integer 0."""


def delete_block_of(table_version: int, records: DeleteRecords) -> pa.Buffer:
    """Content of a delete block that the releases of a table version read.

    Args:
        table_version: version of the table.
        records: the entries.

    Raises:
        InvalidDataError: an entry cannot be stored.
        UnsupportedFeatureError: the ordering values have a type that cannot be stored.
    """
    return encode_delete_block(records) if table_version >= _FIRST_WITH_AVRO else encode_kryo_deletes(records)


def encode_kryo_deletes(records: DeleteRecords) -> pa.Buffer:
    """Content of a delete block of version 2.

    Timestamps are written as longs, as in later versions.

    Raises:
        UnsupportedFeatureError: there are several ordering columns, or one that has no numbers, booleans or timestamps:
            Hudi compares a delete with a row only if both values have one Java class, and the class of text, dates and
            decimals depends on the release.
    """
    ordering = _ordering(records)
    record, key = (_named(number, f"{_PACKAGE}{name}") for number, name in ((1, "DeleteRecord"), (2, "HoodieKey")))
    parts = [_named(0, f"[L{_PACKAGE}DeleteRecord;"), _NEW, varint(len(records.keys) + 1)]
    texts = zip(records.partitions.to_pylist(), records.keys.to_pylist(), ordering, strict=True)
    for number, (partition, text, value) in enumerate(texts):
        if number == 1:
            record, key = _BY_NAME + b"\x01", _BY_NAME + b"\x02"
        path = b"\x00" if partition is None else _NEW + _text(partition)
        parts.append(record + _NEW + key + _NEW + path + _NEW + _text(text) + value)
    body = b"".join(parts)
    return pa.py_buffer(_HEAD.pack(KRYO_DELETE_BLOCK_VERSION, len(body)) + body)


# ---- ordering values


def _ordering(records: DeleteRecords) -> list[bytes]:
    """The class and value of each entry's ordering value."""
    if not records.ordering:
        return [_DEFAULT] * len(records.keys)
    if len(records.ordering) > 1:
        raise UnsupportedFeatureError("Deletes with several ordering values need table version 9.")
    column = records.ordering[0]
    stored, encode = _encoder(column.type)
    values = pa.array(column).cast(stored).to_pylist() if stored != column.type else column.to_pylist()
    return [
        _DEFAULT if default or value is None else encode(value)
        for value, default in zip(values, records.is_default.tolist(), strict=True)
    ]


def _encoder(kind: pa.DataType) -> tuple[pa.DataType, Callable[[Any], bytes]]:
    """The Arrow type to cast the values to, and the function that encodes a value with its class."""
    if pa.types.is_boolean(kind):
        return kind, lambda value: b"\x05" + bytes([value])
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64(), _long
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return (pa.int64(), _long) if kind in (pa.int64(), pa.uint32()) else (pa.int32(), _int)
    if pa.types.is_float32(kind):
        return kind, lambda value: b"\x04" + struct.pack(">f", value)
    if pa.types.is_float64(kind):
        return kind, lambda value: b"\x0a" + struct.pack(">d", value)
    raise UnsupportedFeatureError(
        f"Deletes in the log of a table of version 5 cannot have an ordering value of type {kind}; upgrade the table "
        "to version 6 or later with services.upgrade()."
    )


def _int(value: int) -> bytes:
    return b"\x02" + zigzag(value)


def _long(value: int) -> bytes:
    number = value << 1 ^ value >> 63
    return b"\x09" + (varint(number) if number < 1 << 56 else _long_tail(number))


# ---- Kryo's numbers and text


def _named(number: int, name: str) -> bytes:
    return _BY_NAME + varint(number) + _text(name)


def _long_tail(value: int) -> bytes:
    """Encode a number of more than 56 bits: the ninth byte has eight bits."""
    head = bytes(value >> 7 * at & 0x7F | 0x80 for at in range(8))
    return head + bytes([value >> 56])


def _text(text: str) -> bytes:
    """Encode a text. Short ASCII ends with a set high bit; other text begins with its length in UTF-16 units plus 1."""
    if text.isascii() and 1 < len(text) < _SHORT:
        data = text.encode("ascii")
        return data[:-1] + bytes([data[-1] | 0x80])
    units = text.encode("utf-16-be", "surrogatepass")
    body = bytearray()
    for at in range(0, len(units), 2):
        body += chr(int.from_bytes(units[at : at + 2], "big")).encode("utf-8", "surrogatepass")
    return _length(len(units) // 2 + 1) + bytes(body)


def _length(value: int) -> bytes:
    """Encode the length of a text: six bits and a mark in the first byte, then seven bits in each byte."""
    if value < _SHORT:
        return bytes([value | 0x80])
    return bytes([value & 0x3F | 0xC0]) + varint(value >> 6)
