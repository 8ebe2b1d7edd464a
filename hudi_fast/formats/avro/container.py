"""Avro object container files with exactly one record: the bodies of most instants.

Layout: ``Obj\\x01``, a map of metadata (``avro.schema`` alone), a 16-byte marker, then one block: record count (1),
byte count, record, marker. This module writes the frame itself, so that the header holds the given schema byte for byte
(fastavro rewrites names) and equal input gives equal bytes. fastavro encodes and decodes the records; it is imported on
first use. Source: Avro 1.11 specification, "Object Container Files"; TimelineMetadataUtils, Hudi 1.2.0.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import Any

from hudi_fast.errors import CorruptTableError

__all__ = ["AVRO_MAGIC", "is_avro_container", "read_single_record", "write_single_record"]

AVRO_MAGIC = b"Obj\x01"
"""First bytes of an Avro container file."""


def is_avro_container(data: bytes) -> bool:
    """Whether the bytes begin like an Avro object container file."""
    return data[:4] == AVRO_MAGIC


def write_single_record(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """Write an uncompressed container file with one record; missing fields take the schema's defaults."""
    import fastavro

    parsed = fastavro.parse_schema(dict(schema))
    encoded = io.BytesIO()
    fastavro.schemaless_writer(encoded, parsed, dict(record))
    body = encoded.getvalue()
    text = json.dumps(schema, separators=(",", ":")).encode()
    marker = hashlib.blake2b(text + body, digest_size=16).digest()
    header = b"".join((_long(1), _bytes(b"avro.schema"), _bytes(text), _long(0)))
    return b"".join((AVRO_MAGIC, header, marker, _long(1), _long(len(body)), body, marker))


def read_single_record(data: bytes, path: str | None = None) -> dict[str, Any]:
    """Read the record of a whole container file, decoded with the schema in its header.

    Raises:
        CorruptTableError: the file is not a container file, is cut off, or does not hold exactly one record.
    """
    import fastavro

    if not is_avro_container(data):
        raise CorruptTableError(f"Expected an Avro file (it begins with Obj\\x01), found {data[:4]!r}.", path, 0)
    try:
        records = list(fastavro.reader(io.BytesIO(data)))
    except Exception as error:  # fastavro does not wrap struct, key, index, zlib and JSON errors
        raise CorruptTableError(f"The Avro file of {len(data)} bytes cannot be decoded: {error!r}.", path) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTableError(f"Expected an Avro file with one record, found {len(records)}.", path)
    return records[0]


def _long(value: int) -> bytes:
    """Avro's variable-length zig-zag integer; for non-negative values."""
    remaining, out = value << 1, bytearray()
    while remaining > 0x7F:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value
