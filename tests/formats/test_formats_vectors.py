"""Vectors and blobs: types, bytes, declarations. Module hudi_fast.formats.logical_types, too."""

from __future__ import annotations

import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from hudi_fast.errors import InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder
from hudi_fast.formats.avro.schema import arrow_to_avro, avro_to_arrow
from hudi_fast.formats.logical_types import (
    BLOB,
    descriptor_of,
    packed,
    stored_rows,
    stored_schema,
    unpacked,
    vector_of_descriptor,
    vector_type,
)

KINDS = {
    "VECTOR(3)": vector_type(3, pa.float32()),
    "VECTOR(2, DOUBLE)": vector_type(2, pa.float64()),
    "VECTOR(4, INT8)": vector_type(4, pa.int8()),
}


@pytest.mark.parametrize("text", KINDS)
def test_descriptors_name_types(text: str) -> None:
    assert vector_of_descriptor(text, "c") == KINDS[text]
    assert descriptor_of(KINDS[text]) == text
    assert vector_of_descriptor(f" {text.lower()} ", "c") == KINDS[text]


@pytest.mark.parametrize("text", ["VECTOR", "VECTOR()", "VECTOR(0)", "VECTOR(3, FLOAT16)", "VECTOR(999999999)", "x"])
def test_other_descriptors_are_refused(text: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"Column 'c' has hudi_type .*; expected VECTOR\(n\)"):
        vector_of_descriptor(text, "c")


@pytest.mark.parametrize("kind", KINDS.values())
def test_bytes_and_vectors_are_the_same_memory(kind: pa.DataType) -> None:
    size = kind.list_size
    values = [None if row % 3 == 1 else list(range(row, row + size)) for row in range(7)]
    vectors = pa.array(values, kind)
    for part in (vectors, vectors.slice(2), vectors.slice(1, 3), vectors.slice(0, 0)):
        stored = packed(part)
        assert stored.type == pa.binary(size * kind.value_type.bit_width // 8)
        assert unpacked(stored, kind).to_pylist() == part.to_pylist()
        assert unpacked(stored.slice(1), kind).to_pylist() == part.to_pylist()[1:]
    rows = stored_rows(pa.table({"a": range(7), "v": vectors}))
    assert rows.schema == stored_schema(pa.schema([("a", pa.int64()), ("v", kind)]))


def test_nulls_in_vectors_and_vectors_in_columns_are_not_stored() -> None:
    loose = pa.list_(pa.float32(), 2)
    with pytest.raises(InvalidDataError, match="null among its elements"):
        packed(pa.array([[1.0, None]], loose))
    assert packed(pa.array([[1.0, 2.0], None], loose)).null_count == 1
    with pytest.raises(UnsupportedFeatureError, match="Column 's' has a vector within it"):
        stored_schema(pa.schema([("s", pa.struct([("v", KINDS["VECTOR(3)"])]))]))


@pytest.mark.parametrize("times", [1, 2])
def test_avro_holds_vectors_and_blobs(times: int) -> None:
    kinds = [*KINDS.values(), BLOB] * times
    schema = pa.schema([pa.field(f"c{at}", kind) for at, kind in enumerate(kinds)])
    text = arrow_to_avro(schema, "t_record", "hoodie.t")
    assert avro_to_arrow(text, "here").equals(schema)
    assert text.count('"size"') == 3  # a second column of a type refers to the first one, as in Java's Avro
    reference = {"external_path": "/f", "offset": 1, "length": None, "managed": True}
    blob = {"type": "OUT_OF_LINE", "data": None, "reference": reference}
    whole = {f"c{at}": blob if kind == BLOB else list(range(kind.list_size)) for at, kind in enumerate(kinds)}
    rows = [whole, dict.fromkeys(schema.names)]
    batch = pa.RecordBatch.from_pylist(rows, schema)
    values = AvroEncoder.compile(schema, text).encode_values(batch).to_pylist()
    data, bounds = np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)])
    decoded = AvroDecoder.compile(text, schema, "here").decode_records(data, bounds[:-1], bounds[1:], "file", 0)
    assert decoded.to_pylist() == rows
    if times == 1:  # fastavro does not find a name without a namespace
        parsed = fastavro.parse_schema(json.loads(text))
        theirs = [fastavro.schemaless_reader(io.BytesIO(value), parsed, None) for value in values]
        assert theirs[1] == rows[1]
        assert theirs[0]["c3"] == blob
        assert theirs[0]["c0"] == packed(batch.column(0))[0].as_py()  # vectors are bytes to it
