"""Content of delete blocks, and positions of records in blocks.

Content of delete blocks <-> Arrow columns.

::

    int32 version | int32 n | n bytes: a list of (record key, partition path, ordering value)

Version 3 (Hudi 0.13 and later) is the Avro binary of that list, and the only version that this module writes. The file
does not store the Avro schema. Readers use a built-in schema, so the numbers of the union branches define the format;
:mod:`~hudi_fast.formats.log.delete_ordering` maps them to Arrow types.

Versions 1 and 2 (Hudi before 0.13) are Java objects that Kryo serialised: :mod:`~hudi_fast.formats.log.kryo_deletes`
reads them. Source: spec section 6.5; HoodieDeleteBlock and HoodieAvroWrapperUtils, Hudi 1.2.0.

Write the content of delete blocks of version 2: Java objects that Kryo serialises, for Apache Hudi 0.11 to 0.13.

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

The header RECORD_POSITIONS of a log block <-> row numbers in the base file.

::

    base64 of  uint64 number of buckets | per bucket, ascending: uint32 upper half of its numbers | 32-bit Roaring
    32-bit Roaring:  0x3b30 = flags: uint16 containers - 1 | 1 bit per container: has it runs
                     0x3a30         : uint32 containers
                     per container: uint16 key, uint16 numbers - 1
                     uint32 offset per container (no runs, or 4 containers and more)
                     per container: uint16 runs, then (first, further numbers) each
                                  | up to 4096 numbers as uint16
                                  | 65536 bits, for more                               all little endian

pyroaring writes the bitmap. This module reads it itself, container by container with numpy, because the text is
untrusted: every count is checked against the bytes before allocation, which pyroaring does not do. Source: spec
section 6.6; the Roaring format specification; LogReaderUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from hudi_fast.errors import CorruptTableError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.log.delete_ordering import (
    BlockPlace,
    checked,
    column_items,
    default_rows,
    null_rows,
    read_ordering,
    validity_of,
)
from hudi_fast.formats.log.kryo_deletes import read_kryo_deletes
from hudi_fast.formats.varint import varint, zigzag
from hudi_fast.formats.varlen import single_chunk, string_array, varlen_buffers
from hudi_fast.kernels import delete_records as reading
from hudi_fast.kernels import delete_records as writing
from hudi_fast.values import dataclass

__all__ = [
    "DELETE_BLOCK_VERSION",
    "KRYO_DELETE_BLOCK_VERSION",
    "DeleteRecords",
    "decode_delete_block",
    "decode_positions",
    "delete_block_of",
    "encode_delete_block",
    "encode_kryo_deletes",
    "encode_positions",
]

DELETE_BLOCK_VERSION = 3
"""Version of the blocks that are written (Hudi 0.13 and later)."""

_KRYO_VERSIONS = (1, 2)

_HEAD = struct.Struct(">ii")
_MAX_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class DeleteRecords:
    """The n entries of a delete block.

    Attributes:
        keys: string[n], record keys.
        partitions: string[n], partition paths; null if the entry has none.
        ordering: one column of n values per ordering value, in the Arrow type of the stored values (see the module);
            null if an entry has none. No columns if no entry has an ordering value.
        is_default: bool[n]: whether the entry has Hudi's default ordering value (the int 0, or null), so that it is a
            delete in commit-time order. Its values in ``ordering`` are null.
    """

    keys: pa.Array
    partitions: pa.Array
    ordering: tuple[pa.Array, ...]
    is_default: npt.NDArray[np.bool_]


# ---- reading


def decode_delete_block(content: pa.Buffer, path: str, offset: int) -> DeleteRecords:
    """Entries of a delete block, in block order. ``path`` and ``offset`` locate the content in messages.

    Raises:
        CorruptTableError: the bytes are not a list of deletes.
        UnsupportedFeatureError: entries have ordering values of different types, or a block of version 1 or 2 (Kryo)
            has a Java object of an unknown class.
    """
    place = BlockPlace(path, offset + _HEAD.size)
    version, data = _list_bytes(content, place)
    if version in _KRYO_VERSIONS:
        return DeleteRecords(*read_kryo_deletes(data, version, place))
    sizes = np.empty(3, np.int64)
    count = reading.measure_deletes(data, sizes)
    if count < 0:
        raise place.corrupt("Expected a delete entry with a record key, found other bytes.", -1 - int(count))
    if sizes[2] != data.size:
        raise place.corrupt(f"Expected the list of {count} deletes to end the block.", int(sizes[2]))
    return _read_entries(data, int(count), int(sizes[0]), int(sizes[1]), place)


def _list_bytes(content: pa.Buffer, place: BlockPlace) -> tuple[int, npt.NDArray[np.uint8]]:
    """The version of a block's content, and the bytes of its list."""
    if content.size < _HEAD.size:
        raise place.corrupt(f"Expected a delete block, found {content.size} bytes.", -_HEAD.size)
    version, size = _HEAD.unpack_from(memoryview(content))
    if version not in (*_KRYO_VERSIONS, DELETE_BLOCK_VERSION):
        raise place.corrupt(f"Expected delete block version 1, 2 or 3, found {version}.", -_HEAD.size)
    if size != content.size - _HEAD.size:
        raise place.corrupt(
            f"Expected {content.size - _HEAD.size} as length of the deletes, found {size}.", 4 - _HEAD.size
        )
    return version, np.frombuffer(content, np.uint8)[_HEAD.size :]


def _read_entries(
    data: npt.NDArray[np.uint8], count: int, key_bytes: int, partition_bytes: int, place: BlockPlace
) -> DeleteRecords:
    key_offsets, partition_offsets = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    keys, partitions = np.empty(key_bytes, np.uint8), np.empty(partition_bytes, np.uint8)
    has_partition, is_default = np.empty(count, np.bool_), np.empty(count, np.bool_)
    branch, value_at, items = np.empty(count, np.int32), np.empty(count, np.int64), np.empty(count, np.int64)
    reading.read_deletes(
        data, key_offsets, keys, partition_offsets, partitions, has_partition, is_default, branch, value_at, items
    )
    validity, nulls = validity_of(has_partition)
    return DeleteRecords(
        checked(string_array(key_offsets, keys), "record keys", place),
        checked(string_array(partition_offsets, partitions, None, validity, nulls), "partition paths", place),
        read_ordering(data, branch, value_at, items, ~is_default, place),
        is_default,
    )


# ---- writing


def encode_delete_block(records: DeleteRecords) -> pa.Buffer:
    """Content of a delete block of version 3; several ordering columns become an ArrayWrapper (table version 9 only).

    A single null ordering value is written as Hudi's default. Values of date columns are written as ints, values of
    time and timestamp columns as longs, in the column's unit (see ``delete_ordering``). Hudi reads the int 0 as its
    default, even if it is a value of an int or date column.

    Raises:
        InvalidDataError: a record key is null, one of several ordering values is null (Hudi 1.2 cannot read that), a
            decimal has more than 15 digits before the point, or the block has more than 2 GiB.
        UnsupportedFeatureError: an ordering column has another type, or decimals have more than 15 digits after the
            point.
    """
    rows = len(records.keys)
    is_default = np.ascontiguousarray(records.is_default, np.bool_)
    if len(records.partitions) != rows or is_default.size != rows or any(len(c) != rows for c in records.ordering):
        raise ValueError("the columns of delete records differ in length")
    keys, partitions = _strings(records.keys), _strings(records.partitions)
    if keys.null_count:
        raise InvalidDataError(f"A delete needs a record key; {keys.null_count} of {rows} are null.")
    ordering = [single_chunk(column) for column in records.ordering]
    is_default = default_rows(is_default, ordering, keys)
    items = [column_items(column, ~is_default) for column in ordering]
    base = np.cumsum([0, *(len(data) for _, data in items)])
    offsets = [part + start for (part, _), start in zip(items, base[:-1], strict=True)]
    key_buffers, partition_buffers = varlen_buffers(keys), varlen_buffers(partitions)
    has_partition = ~null_rows(partitions)
    limit = 11 + 23 * rows + keys.nbytes + partitions.nbytes + int(base[-1])
    out = np.empty(_HEAD.size + limit, np.uint8)
    size = int(
        writing.assemble_deletes(
            *key_buffers,
            *partition_buffers,
            has_partition,
            is_default,
            np.concatenate(offsets) if offsets else np.empty(0, np.int64),
            np.concatenate([data for _, data in items]) if items else np.empty(0, np.uint8),
            len(items),
            out[_HEAD.size :],
        )
    )
    if size > _MAX_BYTES - (1 << 20):  # leaves room for the headers of the block
        raise InvalidDataError(f"A delete block of {size} bytes is too large for Hudi; write fewer deletes at once.")
    out[: _HEAD.size] = np.frombuffer(_HEAD.pack(DELETE_BLOCK_VERSION, size), np.uint8)
    return pa.py_buffer(out).slice(0, _HEAD.size + size)


def _strings(column: pa.Array) -> pa.Array:
    array = single_chunk(column)
    return array if array.type == pa.string() else array.cast(pa.string())


KRYO_DELETE_BLOCK_VERSION = 2
"""Version of the blocks that :func:`encode_kryo_deletes` writes."""

_FIRST_WITH_AVRO = 6
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


_BUCKETS = struct.Struct("<Q")
_BUCKET = struct.Struct("<IHH")  # upper half, cookie, and the upper bytes of the cookie
_RUNS, _NO_RUNS = 0x303B, 0x303A
_OFFSETS_FROM = 4
_MAX_LISTED = 4096
_CONTAINER_SIZE = 1 << 16


def decode_positions(
    text: str, max_count: int = 2**31 - 1, path: str | None = None, offset: int | None = None
) -> npt.NDArray[np.int64]:
    """Positions in the base file, int64[n], ascending. The i-th position belongs to the i-th record of the block.

    Args:
        text: value of the header.
        max_count: maximum number of positions, for example the number of records in the block.
        path: the log file, for messages.
        offset: byte position of the block, for messages.

    Raises:
        CorruptTableError: the text is not base64, is not such a bitmap, or has more than ``max_count`` positions.
    """
    try:
        return _decode(base64.b64decode(text, validate=True), max_count)
    except (_BadBitmapError, binascii.Error, ValueError) as error:
        raise CorruptTableError(
            f"Expected the record positions of a log block (a base64 text of a Roaring bitmap), found that {error}.",
            path,
            offset,
        ) from error


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode positions in the base file as the header's value; int64[n], distinct, not negative, in any order.

    Raises:
        ValueError: a position is negative, or occurs twice (Hudi then omits the header).
    """
    if positions.size and int(positions.min()) < 0:
        raise ValueError(f"record positions must not be negative; found {int(positions.min())}")
    bitmap = BitMap64(positions.astype(np.uint64))
    if len(bitmap) != positions.size:
        raise ValueError(f"record positions must be distinct; found {positions.size - len(bitmap)} repeated")
    bitmap.run_optimize()
    return base64.b64encode(bitmap.serialize()).decode()


class _BadBitmapError(Exception):
    """An invalid bitmap; converted to a CorruptTableError."""


def _decode(raw: bytes, max_count: int) -> npt.NDArray[np.int64]:
    found: list[npt.NDArray[np.int64]] = []
    buckets = _BUCKETS.unpack(_take(raw, 0, _BUCKETS.size))[0]
    at = _BUCKETS.size
    previous = -1
    for _ in range(buckets):  # raises at the end of the bytes
        upper = int.from_bytes(_take(raw, at, 4), "little")
        if upper <= previous or upper >= 1 << 31:
            raise _BadBitmapError(f"bucket {upper} follows bucket {previous}")
        previous = upper
        first = len(found)
        at = _read_bucket(raw, at, upper << 32, max_count, found)
        max_count -= sum(part.size for part in found[first:])
    if at != len(raw):
        raise _BadBitmapError(f"it has {len(raw)} bytes where its bitmap ends after {at}")
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _take(raw: bytes, at: int, length: int) -> bytes:
    part = raw[at : at + length]
    if len(part) != length:
        raise _BadBitmapError(f"it ends after {len(raw)} bytes where {at + length} are needed")
    return part


def _read_bucket(raw: bytes, start: int, base: int, max_count: int, found: list[npt.NDArray[np.int64]]) -> int:
    """Append the numbers of the bucket at ``start`` to ``found``; return the bucket's end."""
    _, cookie, high = _BUCKET.unpack(_take(raw, start, _BUCKET.size))
    at = start + _BUCKET.size
    if cookie == _RUNS:
        count = high + 1
        flags = np.frombuffer(_take(raw, at, (count + 7) // 8), np.uint8)
        has_runs = np.unpackbits(flags, bitorder="little")[:count]
        at += flags.size
    elif cookie == _NO_RUNS and high == 0:
        count = int.from_bytes(_take(raw, at, 4), "little")
        if count > _CONTAINER_SIZE:
            raise _BadBitmapError(f"a bitmap of {count} containers begins at byte {start}")
        has_runs = np.zeros(count, np.uint8)
        at += 4
    else:
        raise _BadBitmapError(f"no bitmap begins at byte {start + 4}")
    described = np.frombuffer(_take(raw, at, 4 * count), "<u2").astype(np.int64).reshape(count, 2)
    at += 4 * count
    keys, sizes = described[:, 0], described[:, 1] + 1
    if (np.diff(keys) <= 0).any():
        raise _BadBitmapError("its containers are out of order")
    if int(sizes.sum()) > max_count:
        raise _BadBitmapError(f"it has {int(sizes.sum())} positions or more, where {max_count} are expected")
    if cookie == _NO_RUNS or count >= _OFFSETS_FROM:
        at += len(_take(raw, at, 4 * count))  # offsets are not needed: containers follow each other
    for key, size, runs in zip(keys.tolist(), sizes.tolist(), has_runs.tolist(), strict=True):
        values, at = _read_container(raw, at, size, bool(runs))
        found.append(values + (base + (key << 16)))
    return at


def _read_container(raw: bytes, at: int, size: int, has_runs: bool) -> tuple[npt.NDArray[np.int64], int]:
    """The ``size`` numbers below 65536 of the container at ``at``, and its end."""
    if has_runs:
        count = int.from_bytes(_take(raw, at, 2), "little")
        runs = np.frombuffer(_take(raw, at + 2, 4 * count), "<u2").astype(np.int64).reshape(count, 2)
        values = _expand_runs(runs[:, 0], runs[:, 1] + 1, size)
        at += 2 + 4 * count
    elif size <= _MAX_LISTED:
        values = np.frombuffer(_take(raw, at, 2 * size), "<u2").astype(np.int64)
        at += 2 * size
    else:
        bits = np.frombuffer(_take(raw, at, _CONTAINER_SIZE // 8), np.uint8)
        values = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        at += bits.size
    if values.size != size or (np.diff(values) <= 0).any() or (size and values[-1] >= _CONTAINER_SIZE):
        raise _BadBitmapError(f"the container that ends at byte {at} is malformed")
    return values, at


def _expand_runs(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """The numbers of runs; empty if their count is not ``size``."""
    if int(lengths.sum()) != size:
        return np.empty(0, np.int64)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(size)
