"""Avro records as plain Python values: encoded by hand, decoded by fastavro without logical types.

Plain values: numbers for dates, times and timestamps, the unscaled number for a decimal, text for an enum, a dict for a
map or a record. A value of a union of several types is a dict of its branches' names, all of them None but one.
"""

from __future__ import annotations

import io
import struct

import fastavro
import pyarrow as pa

FORMATS = {"float": "<f", "double": "<d"}


def block(records: list[bytes], version: int = 3) -> bytes:
    """The content of a data block."""
    framed = (struct.pack(">i", len(record)) + record for record in records)
    return struct.pack(">ii", version, len(records)) + b"".join(framed)


# ---- encoding


def varint(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def minimal(number: int) -> bytes:
    """Two's complement in as few bytes as it takes: Java's BigInteger.toByteArray."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(size, "big", signed=True)


def encode(avro, value, cut=None) -> bytes:
    """One value; ``cut`` takes the encoded items of a list and gives parts of them, with True for a size in bytes."""
    if isinstance(avro, list):
        if sum(each != "null" for each in avro) > 1 and value is not None:
            (name,) = (name for name, each in value.items() if each is not None)
            branch = next(i for i, each in enumerate(avro) if branch_name(each) == name)
            value = value[name]
        else:
            branch = next(i for i, each in enumerate(avro) if (each == "null") == (value is None))
        return varint(branch) + encode(avro[branch], value, cut)
    kind, about = (avro, {}) if isinstance(avro, str) else (avro["type"], avro)
    if about.get("logicalType") == "decimal":
        if kind == "fixed":
            return value.to_bytes(about["size"], "big", signed=True)
        value = minimal(value)
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([value])
    if kind in ("int", "long"):
        return varint(value)
    if kind in FORMATS:
        return struct.pack(FORMATS[kind], value)
    if kind in ("string", "bytes"):
        raw = value.encode() if isinstance(value, str) else value
        return varint(len(raw)) + raw
    if kind == "fixed":
        return value
    if kind == "enum":
        return varint(about["symbols"].index(value))
    if kind == "record":
        return b"".join(encode(each["type"], value[each["name"]], cut) for each in about["fields"])
    if kind == "array":
        return blocks([encode(about["items"], each, cut) for each in value], cut)
    return blocks([encode("string", key) + encode(about["values"], each, cut) for key, each in value.items()], cut)


def branch_name(avro) -> str:
    """What a branch of a union is called."""
    return avro if isinstance(avro, str) else avro.get("name", avro["type"]).rpartition(".")[2]


def blocks(items: list[bytes], cut=None) -> bytes:
    out = b""
    for part, sized in cut(items) if cut else [(items, False)]:
        if part and sized:
            out += varint(-len(part)) + varint(sum(map(len, part))) + b"".join(part)
        elif part:
            out += varint(len(part)) + b"".join(part)
    return out + b"\0"


# ---- decoding


def without_logical(avro):
    if isinstance(avro, list):
        return [without_logical(each) for each in avro]
    if not isinstance(avro, dict):
        return avro
    return {key: without_logical(value) for key, value in avro.items() if key != "logicalType"}


def decode(avro, records: list[bytes]) -> list[dict]:
    parsed = fastavro.parse_schema(without_logical(avro))
    return [plain(avro, fastavro.schemaless_reader(io.BytesIO(record), parsed, None)) for record in records]


def plain(avro, value):
    """Decimals as numbers in what fastavro read as bytes; for schemas that name no type twice."""
    if value is None:
        return None
    if isinstance(avro, list):
        return plain(next(each for each in avro if each != "null"), value)
    if not isinstance(avro, dict):
        return value
    if avro.get("logicalType") == "decimal":
        return int.from_bytes(value, "big", signed=True)
    if avro["type"] == "record":
        return {each["name"]: plain(each["type"], value[each["name"]]) for each in avro["fields"]}
    if avro["type"] == "array":
        return [plain(avro["items"], each) for each in value]
    if avro["type"] == "map":
        return {key: plain(avro["values"], each) for key, each in value.items()}
    return value


# ---- Arrow


def rows_of(batches: list[pa.RecordBatch]) -> list[dict]:
    """The rows of batches as plain values."""
    rows = []
    for batch in batches:
        columns = {name: values_of(batch.column(name)) for name in batch.schema.names}
        rows += [{name: column[row] for name, column in columns.items()} for row in range(batch.num_rows)]
    return rows


def values_of(array: pa.Array) -> list:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return values_of(array.dictionary_decode())
    if pa.types.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        columns = [values_of(array.field(i)) for i in range(kind.num_fields)]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)] or [{}] * len(array)
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        entries = (values_of(each.values) if each.is_valid else None for each in array)
        return [each if each is None else {entry["key"]: entry["value"] for entry in each} for each in entries]
    if pa.types.is_list(kind):
        return [values_of(each.values) if each.is_valid else None for each in array]
    if pa.types.is_decimal(kind):
        return [None if each is None else unscaled(each, kind.scale) for each in array.to_pylist()]
    if pa.types.is_temporal(kind):
        return array.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).to_pylist()
    return array.to_pylist()


def unscaled(number, scale: int) -> int:
    sign, digits, exponent = number.as_tuple()
    whole = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -whole if sign else whole
