"""Blob columns of Apache Hudi 1.2.0: bytes within the row, or a reference to bytes of another file.

A value is a struct::

    type        INLINE or OUT_OF_LINE
    data        the bytes of an inline value
    reference   of other values: external_path, offset, length (both null for the whole file), managed

In Avro a blob is a record with the logical type ``blob``, in Parquet a group. A struct of exactly this form is a blob.

Source: RFC-100; ``HoodieSchema.Blob`` (Hudi 1.2.0).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["BLOB", "INLINE", "OUT_OF_LINE", "blob_avro", "has_form_of_blob", "is_blob"]

INLINE, OUT_OF_LINE = "INLINE", "OUT_OF_LINE"
"""Values of ``type``."""

_REFERENCE = pa.struct(
    [("external_path", pa.string()), ("offset", pa.int64()), ("length", pa.int64()), ("managed", pa.bool_())]
)
BLOB = pa.struct([("type", pa.string()), ("data", pa.binary()), ("reference", _REFERENCE)])
"""The Arrow type of blobs. All members are nullable: Arrow's Parquet writer needs this for members of a null blob."""


def is_blob(kind: pa.DataType) -> bool:
    """Whether a storable type is the type of blobs."""
    return bool(kind == BLOB)


def has_form_of_blob(kind: pa.DataType) -> bool:
    """Whether a struct has the members of a blob; some may be not nullable."""
    return [(one.name, one.type.id) for one in kind] == [(one.name, one.type.id) for one in BLOB]


def blob_avro() -> dict[str, Any]:
    """The Avro declaration of a blob, with Hudi's names."""
    reference = {
        "type": "record",
        "name": "reference",
        "fields": [
            {"name": "external_path", "type": "string"},
            {"name": "offset", "type": ["null", "long"]},
            {"name": "length", "type": ["null", "long"]},
            {"name": "managed", "type": "boolean"},
        ],
    }
    kinds = {"type": "enum", "name": "blob_storage_type", "symbols": [INLINE, OUT_OF_LINE]}
    return {
        "type": "record",
        "name": "blob",
        "namespace": "",
        "fields": [
            {"name": "type", "type": kinds},
            {"name": "data", "type": ["null", "bytes"], "default": None},
            {"name": "reference", "type": ["null", reference], "default": None},
        ],
        "logicalType": "blob",
    }
