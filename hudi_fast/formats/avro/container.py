"""Avro object container files that hold exactly one record: the bodies of most instants on the timeline.

Layout: ``Obj\\x01``, a map of metadata (``avro.schema`` alone), a 16-byte marker, then one block: record count (1),
byte count, record, marker. The frame is written here, not by fastavro, so that the schema in the header is
byte for byte what was given (fastavro rewrites names) and equal input gives equal bytes; records are encoded and
decoded by fastavro, which is imported when it is first needed. Source: Avro 1.11 specification, "Object Container
Files"; TimelineMetadataUtils, Hudi 1.2.0.
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


def is_avro_container(data: bytes) -> bool:
    """Whether the bytes begin as an Avro object container file does."""
    return data[:4] == AVRO_MAGIC


def write_single_record(schema: Mapping[str, Any], record: Mapping[str, Any]) -> bytes:
    """A container file, not compressed, with one record; fields that are missing take the schema's defaults."""
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
    """The one record of a container file, decoded with the schema in its header.

    Args:
        data: the whole file.
        path: its path, for messages.

    Raises:
        CorruptTableError: not a container file, cut off, or not exactly one record.
    """
    import fastavro

    if not is_avro_container(data):
        raise CorruptTableError(f"Expected an Avro file (it begins with Obj\\x01), found {data[:4]!r}.", path, 0)
    try:
        records = list(fastavro.reader(io.BytesIO(data)))
    except Exception as error:  # fastavro lets struct, key, index, zlib and JSON errors through
        raise CorruptTableError(f"The Avro file of {len(data)} bytes cannot be decoded: {error!r}.", path) from error
    if len(records) != 1 or not isinstance(records[0], dict):
        raise CorruptTableError(f"Expected an Avro file with one record, found {len(records)}.", path)
    return records[0]


def _long(value: int) -> bytes:
    """Avro's variable-length zig-zag integer, for values that are not negative."""
    remaining, out = value << 1, bytearray()
    while remaining > 0x7F:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value
