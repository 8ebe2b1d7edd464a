"""Logical types of Apache Hudi 1.2.0: vectors and blobs.

Vector columns of Apache Hudi 1.2.0: fixed-size lists of numbers, stored as fixed-size bytes.

=====================  ==========================================================================================
in Arrow               ``fixed_size_list<float, n>``, or of ``double`` or ``int8``; elements are never null
in Avro                a fixed of all bytes, little endian, with the logical type ``vector``
in Parquet             FIXED_LEN_BYTE_ARRAY; the footer names the columns (``hoodie.vector.columns``)
in a descriptor        ``VECTOR(n)``, ``VECTOR(n, DOUBLE)``, ``VECTOR(n, INT8)``: value of a column's ``hudi_type``
=====================  ==========================================================================================

Source: RFC-99; ``HoodieSchema.Vector``, ``VectorConversionUtils`` (Hudi 1.2.0).

Blob columns of Apache Hudi 1.2.0: bytes within the row, or a reference to bytes of another file.

A value is a struct::

    type        INLINE or OUT_OF_LINE
    data        the bytes of an inline value
    reference   of other values: external_path, offset, length (both null for the whole file), managed

In Avro a blob is a record with the logical type ``blob``, in Parquet a group. A struct of exactly this form is a blob.

Source: RFC-100; ``HoodieSchema.Blob`` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import pyarrow as pa

from hudi_fast.errors import InvalidDataError, SchemaMismatchError, UnsupportedFeatureError

__all__ = [
    "BLOB",
    "HUDI_TYPE",
    "INLINE",
    "MAX_BYTES",
    "OUT_OF_LINE",
    "VECTORS_KEY",
    "blob_avro",
    "descriptor_of",
    "has_form_of_blob",
    "is_blob",
    "is_vector",
    "packed",
    "stored_rows",
    "stored_schema",
    "unpacked",
    "vector_avro",
    "vector_of_avro",
    "vector_of_descriptor",
    "vector_type",
    "vector_width",
    "vectors_text",
]

HUDI_TYPE = "hudi_type"
"""Key of a column's metadata whose value is a descriptor."""

VECTORS_KEY = b"hoodie.vector.columns"
"""Footer key that lists the vector columns of a base file."""

_ELEMENTS: Mapping[str, pa.DataType] = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_NAMES = {kind: name for name, kind in _ELEMENTS.items()}
_DESCRIPTOR = re.compile(r"\s*VECTOR\s*\(\s*(\d{1,9})\s*(?:,\s*(\w+)\s*)?(?:,\s*FIXED_BYTES\s*)?\)\s*", re.IGNORECASE)
MAX_BYTES = 1 << 16
"""Maximum bytes of a vector. A null takes the same bytes in Arrow."""

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def vector_type(dimension: int, element: pa.DataType) -> pa.DataType:
    """The Arrow type of vectors of ``dimension`` numbers of a type: float, double or int8.

    Elements have pyarrow's default name and are nullable: pickling a type loses other names and flags (pyarrow 26).
    """
    return pa.list_(element, dimension)


def is_vector(kind: pa.DataType) -> bool:
    """Whether a storable type is a type of vectors."""
    return bool(pa.types.is_fixed_size_list(kind)) and kind.value_type in _NAMES


def vector_width(kind: pa.DataType) -> int:
    """Bytes of a stored vector."""
    return int(kind.list_size * (kind.value_type.bit_width // 8))


def vector_of_descriptor(text: str, path: str) -> pa.DataType:
    """The type that a descriptor names.

    Raises:
        SchemaMismatchError: the text is not a descriptor; the message names the column ``path``.
    """
    found = _DESCRIPTOR.fullmatch(text)
    element = None if found is None else _ELEMENTS.get((found[2] or "FLOAT").upper())
    if found is None or element is None or not 0 < int(found[1]) * (element.bit_width // 8) <= MAX_BYTES:
        raise SchemaMismatchError(
            f"Column {path!r} has {HUDI_TYPE} {text!r}; expected VECTOR(n), VECTOR(n, DOUBLE) or VECTOR(n, INT8), with "
            f"at most {MAX_BYTES:,} bytes."
        )
    return vector_type(int(found[1]), element)


def descriptor_of(kind: pa.DataType) -> str:
    """The descriptor of a vector type."""
    element = _NAMES[kind.value_type]
    return f"VECTOR({kind.list_size})" if element == "FLOAT" else f"VECTOR({kind.list_size}, {element})"


def vectors_text(schema: pa.Schema) -> str:
    """The value of :data:`VECTORS_KEY` for a table's columns; empty without vector columns."""
    return ",".join(f"{field.name}:{descriptor_of(field.type)}" for field in schema if is_vector(field.type))


def vector_avro(kind: pa.DataType) -> dict[str, Any]:
    """The Avro declaration of a vector type, with Hudi's name."""
    element = _NAMES[kind.value_type]
    return {
        "type": "fixed",
        "name": f"vector_{element.lower()}_{kind.list_size}",
        "namespace": "",
        "size": vector_width(kind),
        "logicalType": "vector",
        "dimension": kind.list_size,
        "elementType": element,
        "storageBacking": "FIXED_BYTES",
    }


def vector_of_avro(avro: Mapping[str, Any]) -> pa.DataType | None:
    """The vector type of an Avro fixed with the logical type ``vector``; None if its members contradict each other."""
    dimension, element = avro.get("dimension"), _ELEMENTS.get(str(avro.get("elementType", "FLOAT")).upper())
    if not isinstance(dimension, int) or isinstance(dimension, bool) or element is None or dimension < 1:
        return None
    kind = vector_type(dimension, element)
    return kind if vector_width(kind) == avro.get("size") else None


def packed(vectors: pa.Array) -> pa.Array:
    """Vectors as stored, binary(width)[n], without a copy.

    Raises:
        InvalidDataError: an element is null.
    """
    kind, values = vectors.type, vectors.values
    if values.null_count and vectors.flatten().null_count:
        raise InvalidDataError(f"A vector has a null among its elements; {descriptor_of(kind)} allows none.")
    validity = vectors.buffers()[0]
    start = values.offset * (kind.value_type.bit_width // 8)
    data = values.buffers()[1] or pa.py_buffer(b"")
    return pa.Array.from_buffers(
        pa.binary(vector_width(kind)), len(vectors), [validity, data.slice(start)], vectors.null_count, vectors.offset
    )


def unpacked(stored: pa.Array, target: pa.DataType) -> pa.Array:
    """Stored vectors, binary(width)[n], as vectors of type ``target``, without a copy."""
    validity, data = stored.buffers()
    count = (stored.offset + len(stored)) * target.list_size
    values = pa.Array.from_buffers(target.value_type, count, [None, data or pa.py_buffer(b"")], 0)
    return pa.Array.from_buffers(target, len(stored), [validity], stored.null_count, stored.offset, [values])


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of a Parquet file for columns of a table.

    Raises:
        UnsupportedFeatureError: a vector is within another column.
    """
    inner = next((field.name for field in schema if not is_vector(field.type) and _holds_vector(field.type)), None)
    if inner is not None:
        raise UnsupportedFeatureError(f"Column {inner!r} has a vector within it, which hudi_fast does not write.")
    if not any(is_vector(field.type) for field in schema):
        return schema
    return pa.schema(
        [field.with_type(pa.binary(vector_width(field.type))) if is_vector(field.type) else field for field in schema]
    )


def _holds_vector(kind: pa.DataType) -> bool:
    if is_vector(kind):
        return True
    return pa.types.is_nested(kind) and any(_holds_vector(kind.field(at).type) for at in range(kind.num_fields))


def stored_rows(rows: Rows) -> Rows:
    """Rows of a table as a Parquet file stores them.

    Raises:
        InvalidDataError: an element of a vector is null.
    """
    for number, field in enumerate(rows.schema):
        if is_vector(field.type):
            kind = pa.binary(vector_width(field.type))
            column = rows.column(number)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            made = [packed(chunk) for chunk in chunks]
            whole = pa.chunked_array(made, kind) if isinstance(column, pa.ChunkedArray) else made[0]
            rows = rows.set_column(number, field.with_type(kind), whole)
    return rows


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
