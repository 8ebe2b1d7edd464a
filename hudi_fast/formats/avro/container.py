r"""Avro files of one record or many: the bodies of instants and archived instants.

Avro object container files with exactly one record: the bodies of most instants.

Layout: ``Obj\x01``, a map of metadata (``avro.schema`` alone), a 16-byte marker, then one block: record count (1),
byte count, record, marker. This module writes the frame itself, so that the header holds the given schema byte for byte
(fastavro rewrites names) and equal input gives equal bytes. It also reads the frame itself, because fastavro trusts
counts and compressed blocks in the file. fastavro encodes and decodes the records; it is imported on first use.
Source: Avro 1.11 specification, "Object Container Files"; TimelineMetadataUtils, Hudi 1.2.0.

Writes many Avro records of one schema: the bodies of instants, whose unions are all "null or one type".

A schema is compiled once, to nested functions from a value to its bytes. fastavro checks for every value of a union
which branch it fits, which takes most of the time of a commit with many files. The bytes equal those of fastavro's
``schemaless_writer``. Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.types import parse_record, walk_program
from hudi_fast.formats.varint import zigzag
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.values import dataclass

__all__ = [
    "AVRO_MAGIC",
    "compile_writer",
    "is_avro_container",
    "read_record",
    "read_single_record",
    "write_single_record",
]

Writer = Callable[[Any], bytes]

_SMALL = 8192


def compile_writer(schema: Any) -> Writer | None:
    """The function that writes values of a schema; None for a schema with other unions, enums or fixed values.

    Missing fields of a record take the schema's defaults. The function raises ``TypeError``, ``ValueError`` or
    ``KeyError`` for a value that does not fit.
    """
    try:
        return _writer(schema, {})
    except NotImplementedError:
        return None


def _writer(schema: Any, known: dict[str, Writer]) -> Writer:
    if isinstance(schema, list):
        return _union(schema, known)
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    if isinstance(schema, str):
        name = next(
            (one for one in known if one == schema or one.rpartition(".")[2] == schema.rpartition(".")[2]), None
        )
        if name is None:
            raise NotImplementedError(schema)
        return known[name]
    if kind == "record":
        return _record(schema, known)
    if kind == "array":
        return _array(_writer(schema["items"], known))
    if kind == "map":
        return _map(_writer(schema["values"], known))
    if isinstance(kind, Mapping | list):
        return _writer(kind, known)
    raise NotImplementedError(kind)


def _record(schema: Mapping[str, Any], known: dict[str, Writer]) -> Writer:
    fields: list[tuple[str, Any, Writer]] = []

    def write(record: Mapping[str, Any]) -> bytes:
        get = record.get
        return b"".join([one(get(name, default)) for name, default, one in fields])

    known[schema["name"]] = write
    fields += [(one["name"], one.get("default"), _writer(one["type"], known)) for one in schema["fields"]]
    return write


def _union(branches: list[Any], known: dict[str, Writer]) -> Writer:
    if len(branches) != 2 or "null" not in branches:
        raise NotImplementedError(branches)
    at = branches.index("null")
    absent, mark = _long(at), _long(1 - at)
    if branches[1 - at] in ("int", "long"):
        marked = _marked(mark)
        return lambda value: absent if value is None else marked[value] if 0 <= value < _SMALL else mark + zigzag(value)
    present = _writer(branches[1 - at], known)
    return lambda value: absent if value is None else mark + present(value)


def _array(item: Writer) -> Writer:
    return lambda values: b"".join([_long(len(values)), *map(item, values), b"\x00"]) if values else b"\x00"


def _map(value_of: Writer) -> Writer:
    def write(values: Mapping[str, Any]) -> bytes:
        if not values:
            return b"\x00"
        parts = [_long(len(values))]
        for key, value in values.items():
            parts.append(_text(key))
            parts.append(value_of(value))
        parts.append(b"\x00")
        return b"".join(parts)

    return write


# ---- primitive types


_LONGS = [zigzag(value) for value in range(_SMALL)]


@cache
def _marked(mark: bytes) -> list[bytes]:
    """The encoded small numbers, each after the mark of its branch; all nullable numbers share two such lists."""
    return [mark + one for one in _LONGS]


def _long(value: int) -> bytes:
    return _LONGS[value] if 0 <= value < _SMALL else zigzag(value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _long(len(data)) + data


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def _null(value: None) -> bytes:
    if value is not None:
        raise TypeError(f"expected null, found {value!r}")
    return b""


_PRIMITIVES: Mapping[Any, Writer] = {
    "null": _null,
    "int": _long,
    "long": _long,
    "string": _text,
    "bytes": _bytes,
    "boolean": _boolean,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
}


AVRO_MAGIC = b"Obj\x01"
"""First bytes of an Avro container file."""

_MARKER_SIZE = 16
_CACHED = 64
# Limits for a decompressed block: Hudi does not compress, and deflate makes real plans 20 to 50 times smaller.
_MAX_PLAIN, _MAX_RATIO = 32 << 20, 100


def is_avro_container(data: bytes) -> bool:
    """Whether the bytes begin like an Avro object container file."""
    return data[:4] == AVRO_MAGIC


def write_single_record(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Write an uncompressed container file with one record; missing fields take the schema's defaults.

    ``schema`` must not change afterwards: its parsed form is kept.
    """
    prepared = _PREPARED.get(id(schema))
    if prepared is None or prepared.schema is not schema:
        prepared = _prepare(schema)
    body = prepared.write(dict(record))
    marker = hashlib.blake2b(prepared.text + body, digest_size=16).digest()
    return b"".join((AVRO_MAGIC, prepared.header, marker, zigzag(1), zigzag(len(body)), body, marker))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A schema for writing: the function that encodes a record, its text, and the header of a file."""

    schema: Mapping[str, Any]
    write: Callable[[Any], bytes]
    text: bytes
    header: bytes


_PREPARED: dict[int, _Prepared] = {}
"""Prepared schemas by the identity of the schema. They are few, because schemas of instants are constants."""


def _prepare(schema: Mapping[str, Any]) -> _Prepared:
    text = json.dumps(schema, separators=(",", ":")).encode()
    header = b"".join((zigzag(1), _bytes(b"avro.schema"), _bytes(text), zigzag(0)))
    prepared = _Prepared(schema, compile_writer(schema) or _by_fastavro(schema), text, header)
    if len(_PREPARED) >= _CACHED:
        _PREPARED.clear()
    _PREPARED[id(schema)] = prepared
    return prepared


def _by_fastavro(schema: Mapping[str, Any]) -> Callable[[Any], bytes]:
    import fastavro

    parsed = fastavro.parse_schema(dict(schema))

    def write(record: Any) -> bytes:
        encoded = io.BytesIO()
        fastavro.schemaless_writer(encoded, parsed, record)
        return encoded.getvalue()

    return write


def read_single_record(data: bytes, path: str | None = None) -> dict[str, Any]:
    """Read the record of a whole container file, decoded with the schema in its header.

    The file is untrusted: memory use is bounded by the actual bytes, not by counts and lengths in the file.

    Raises:
        CorruptTableError: the file is not a container file, is cut off, or does not hold exactly one record.
        UnsupportedFeatureError: blocks are compressed with another codec than deflate, or the schema is recursive.
    """
    if not is_avro_container(data):
        raise CorruptTableError(f"Expected an Avro file (it begins with Obj\\x01), found {data[:4]!r}.", path, 0)
    try:
        header, at = _header(data)
        schema = header.get("avro.schema", b"").decode()
        count, body = _blocks(data, at, header.get("avro.codec", b"null"), path)
    except (ValueError, zlib.error) as error:
        raise CorruptTableError(f"The Avro file of {len(data)} bytes cannot be decoded: {error}.", path) from error
    if count != 1:
        raise CorruptTableError(f"Expected an Avro file with one record, found {count}.", path)
    return read_record(schema, body, path)


def read_record(schema: str, body: bytes, path: str | None = None) -> dict[str, Any]:
    """Decode one record, which takes all of ``body``; ``schema`` is the Avro JSON of its writer.

    Raises:
        CorruptTableError: schema or bytes are invalid.
        UnsupportedFeatureError: the schema is recursive, too large, or has arrays of items that take no bytes.
    """
    import fastavro

    source = io.BytesIO(body)
    try:
        record = fastavro.schemaless_reader(source, _parsed(schema))
    except (CorruptTableError, UnsupportedFeatureError) as error:
        raise type(error)(f"{error} [file {path}]") from error
    except Exception as error:  # fastavro does not wrap struct, key and index errors
        raise CorruptTableError(f"An Avro record of {len(body)} bytes cannot be decoded: {error!r}.", path) from error
    if not isinstance(record, dict) or source.tell() != len(body):
        raise CorruptTableError(f"Expected an Avro record of {len(body)} bytes, found {source.tell()}.", path)
    return record


@lru_cache(_CACHED)
def _parsed(schema: str) -> Any:
    """A schema for fastavro, after checking its size and depth: fastavro itself has no limits for hostile schemas."""
    import fastavro

    walk_program((parse_record(schema, "the file's header"),), "of the record", "the file's header")
    return fastavro.parse_schema(stored_json(schema))


def _header(data: bytes) -> tuple[dict[str, bytes], int]:
    """The metadata of a container file, and the position of its marker."""
    found: dict[str, bytes] = {}
    at = len(AVRO_MAGIC)
    while True:
        count, at = _read_long(data, at)
        if count < 0:
            _, at = _read_long(data, at)
        if not count:
            return found, at
        for _ in range(abs(count)):  # raises at the end of the bytes
            key, at = _read_bytes(data, at)
            value, at = _read_bytes(data, at)
            found[key.decode()] = value


def _blocks(data: bytes, at: int, codec: bytes, path: str | None) -> tuple[int, bytes]:
    """Number and bytes of the records of all blocks after the header, whose marker is at ``at``."""
    marker = data[at : at + _MARKER_SIZE]
    at += len(marker)
    if len(marker) < _MARKER_SIZE:
        raise ValueError("it ends in its header")
    records, body = 0, b""
    while at < len(data):
        count, at = _read_long(data, at)
        part, at = _read_bytes(data, at)
        if count < 0 or data[at : at + _MARKER_SIZE] != marker:
            raise ValueError(f"no block of records ends at byte {at}")
        at += _MARKER_SIZE
        records += count
        body += _plain(part, codec, path)
    return records, body


def _plain(part: bytes, codec: bytes, path: str | None) -> bytes:
    if codec == b"null":
        return part
    if codec != b"deflate":
        raise UnsupportedFeatureError(
            f"Expected an Avro file without compression or with deflate, found {codec[:40]!r} [file {path}]."
        )
    limit = _MAX_PLAIN + _MAX_RATIO * len(part)
    unpacked = zlib.decompressobj(-zlib.MAX_WBITS).decompress(part, limit)
    if len(unpacked) == limit:
        raise ValueError(f"{len(part)} compressed bytes become more than {limit}")
    return unpacked


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + index + 1
    raise ValueError(f"no number begins at byte {at}")


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise ValueError(f"{size} bytes begin at byte {at}, where {len(data) - at} are left")
    return data[at : at + size], at + size
