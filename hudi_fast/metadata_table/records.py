"""Records of the metadata table as flat typed tables.

Records of the metadata table: Avro values <-> flat typed tables, one schema per kind of partition.

::

    keys string, values binary (Avro)  ── decode_records ─►  FILES | COLUMN_STATS | BLOOM | RECORD_INDEX | SECONDARY
                                       ◄── encode_records ──

A value is a record with one member per kind; only one member is not null (``_Shape``). Only this module sees the stored
form: wrappers around values, empty keys, file ids as halves of UUIDs. Values are decoded with the schema stored in
their file, and encoded with the schema of Hudi 1.2. The schema of 0.15 lacks some of its fields.

The schemas are resource files of this package, copied from real tables byte for byte: five meta fields, then
HoodieMetadataRecord. Commits of the metadata table store the same text without the meta fields.

Source: metadata table reference, section 3; HoodieMetadataRecord and HoodieMetadataPayload, Hudi 0.15.0 and 1.2.0.

Schemas of decoded metadata-table records: one flat typed table per kind of partition.

All code outside ``records`` and ``stat_values`` sees records in these shapes only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import CorruptTableError, InvalidDataError, SchemaMismatchError, UnsupportedFeatureError
from hudi_fast.formats.avro.rows import AvroDecoder, AvroEncoder
from hudi_fast.formats.avro.schema import META_FIELDS
from hudi_fast.formats.avro.types import AvroType, optional_part, parse_record, union_members
from hudi_fast.formats.varlen import single_chunk, string_array, varlen_buffers
from hudi_fast.kernels.hudi_texts import format_file_ids, measure_file_ids, parse_file_ids
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.stat_values import STAT_VALUE
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.instants import instant_from_ms, ms_from_instant
from hudi_fast.values import dataclass

__all__ = [
    "ALL_PARTITIONS",
    "BLOOM",
    "COLUMN_STATS",
    "FILES",
    "RECORD_INDEX",
    "RECORD_SCHEMA",
    "RECORD_SCHEMA_0_15",
    "SECONDARY",
    "decode_records",
    "encode_file_ids",
    "encode_records",
    "file_id_texts",
    "flat_schema",
    "instant_millis",
    "instant_texts",
    "schema_of_commits",
]

ALL_PARTITIONS = "__all_partitions__"
"""Key of the record that lists all partitions."""

FILES = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("type", pa.int32(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("deleted", pa.bool_()),
    ]
)
"""One row per entry of a record's map, type 1 (partitions) or 2 (files); an empty map is one row of nulls."""

COLUMN_STATS = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("type", pa.int32(), nullable=False),
        pa.field("file_name", pa.string()),
        pa.field("column_name", pa.string()),
        pa.field("min", STAT_VALUE),
        pa.field("max", STAT_VALUE),
        pa.field("value_count", pa.int64()),
        pa.field("null_count", pa.int64()),
        pa.field("total_size", pa.int64()),
        pa.field("total_uncompressed_size", pa.int64()),
        pa.field("deleted", pa.bool_(), nullable=False),
        pa.field("tight", pa.bool_(), nullable=False),
        pa.field("value_type", pa.int32()),
        pa.field("value_type_info", pa.string()),
    ]
)
"""Statistics of a column in a file (type 3) or in a partition (type 6: ``file_name`` is the partition path).

:mod:`hudi_fast.metadata_table.stat_values` encodes and decodes ``min`` and ``max``; ``value_type`` is null for V1.
"""

BLOOM = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("timestamp", pa.string(), nullable=False),
        pa.field("filter", pa.binary(), nullable=False),
        pa.field("deleted", pa.bool_(), nullable=False),
    ]
)
"""A base file's bloom filter: ``kind`` DYNAMIC_V0 or SIMPLE, ``filter`` its base64 text as in the Parquet footer."""

RECORD_INDEX = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("partition", pa.string()),
        pa.field("file_id", pa.string()),
        pa.field("instant_ms", pa.int64()),
        pa.field("position", pa.int64()),
    ]
)
"""Location of a record key; ``instant_ms``: see :func:`hudi_fast.metadata_table.records.instant_texts`."""

SECONDARY = pa.schema([pa.field("key", pa.string(), nullable=False), pa.field("deleted", pa.bool_(), nullable=False)])
"""Presence of a secondary key (:func:`hudi_fast.metadata_table.keys.split_secondary_keys`)."""

_SCHEMAS = {
    PartitionKind.FILES: FILES,
    PartitionKind.COLUMN_STATS: COLUMN_STATS,
    PartitionKind.PARTITION_STATS: COLUMN_STATS,
    PartitionKind.EXPRESSION_INDEX: COLUMN_STATS,
    PartitionKind.BLOOM_FILTERS: BLOOM,
    PartitionKind.RECORD_INDEX: RECORD_INDEX,
    PartitionKind.SECONDARY_INDEX: SECONDARY,
}


def flat_schema(kind: PartitionKind) -> pa.Schema:
    """The schema of a kind's flat tables.

    An expression index of bloom filters is decoded and encoded as ``BLOOM_FILTERS``, one of statistics as
    ``EXPRESSION_INDEX`` or ``COLUMN_STATS``.
    """
    return _SCHEMAS[kind]


def _resource(name: str) -> str:
    return files("hudi_fast.metadata_table").joinpath(name).read_text("utf-8").strip()


RECORD_SCHEMA = _resource("record_1_2.avsc")
"""Avro JSON of the records with meta fields first, as stored by Hudi 1.2 in tables of every version.

Metadata tables are written with it. Hudi 0.15 reads it too. Hudi 1.2 cannot load a metadata table as a table if its
newest commit has the schema of 0.15: ``HoodieMetadataPayload#getInsertValue`` takes any schema but its own for one with
meta fields.
"""

RECORD_SCHEMA_0_15 = _resource("record_0_15.avsc")
"""The same, as stored by Hudi 0.15: some fields are missing. It is read, and never written."""

_WHAT = "a metadata table"
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Shape:
    """Storage of the records of some kinds.

    Attributes:
        member: the record's field that is not null.
        type: type of that field.
        codes: valid values of the record's ``type``.
    """

    member: str
    type: pa.DataType
    codes: tuple[int, ...]


_FILE_INFO = pa.struct(
    [pa.field("size", pa.int64(), nullable=False), pa.field("isDeleted", pa.bool_(), nullable=False)]
)

_FILES = pa.map_(pa.string(), pa.field("value", _FILE_INFO, nullable=False))

_VALUE_TYPE = pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])

_STATS = pa.struct(
    [
        ("fileName", pa.string()),
        ("columnName", pa.string()),
        ("minValue", STAT_VALUE),
        ("maxValue", STAT_VALUE),
        ("valueCount", pa.int64()),
        ("nullCount", pa.int64()),
        ("totalSize", pa.int64()),
        ("totalUncompressedSize", pa.int64()),
        ("isDeleted", pa.bool_()),
        ("isTightBound", pa.bool_()),
        ("valueType", _VALUE_TYPE),
    ]
)

_BLOOM = pa.struct(
    [("type", pa.string()), ("timestamp", pa.string()), ("bloomFilter", pa.binary()), ("isDeleted", pa.bool_())]
)

_LOCATION = pa.struct(
    [
        ("partitionName", pa.string()),
        ("fileIdHighBits", pa.int64()),
        ("fileIdLowBits", pa.int64()),
        ("fileIndex", pa.int32()),
        ("fileId", pa.string()),
        ("fileIdEncoding", pa.int32()),
        ("instantTime", pa.int64()),
        ("position", pa.int64()),
    ]
)

_STATS_SHAPE = _Shape("ColumnStatsMetadata", _STATS, (3, 6))

_SHAPES: Mapping[PartitionKind, _Shape] = {
    PartitionKind.FILES: _Shape("filesystemMetadata", _FILES, (1, 2)),
    PartitionKind.COLUMN_STATS: _STATS_SHAPE,
    PartitionKind.PARTITION_STATS: _STATS_SHAPE,
    PartitionKind.EXPRESSION_INDEX: _STATS_SHAPE,
    PartitionKind.BLOOM_FILTERS: _Shape("BloomFilterMetadata", _BLOOM, (4,)),
    PartitionKind.RECORD_INDEX: _Shape("recordIndexMetadata", _LOCATION, (5,)),
    PartitionKind.SECONDARY_INDEX: _Shape("SecondaryIndexMetadata", pa.struct([("isDeleted", pa.bool_())]), (7,)),
}


# ---- decoding


def decode_records(kind: PartitionKind, keys: pa.Array, values: pa.Array, schema_json: str, where: str) -> pa.Table:
    """Decode keys and Avro values of HFiles to flat rows, in their order; each row has its key.

    Args:
        kind: kind of the partition.
        keys: string or binary[n].
        values: binary[n], without nulls or empty values.
        schema_json: Avro JSON stored in the file.
        where: the file, for messages.

    Returns:
        Rows of :func:`flat_schema`, in columns of one chunk; for FILES more or fewer than n.

    Raises:
        CorruptTableError: a value does not match the schema, or a record has another kind.
        UnsupportedFeatureError: the schema has records that this release does not support.
    """
    if len(keys) != len(values):
        raise ValueError(f"Expected as many values as keys, got {len(values)} and {len(keys)}.")
    shape, schema = _SHAPES[kind], flat_schema(kind)
    if not len(keys):
        return schema.empty_table()
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptTableError(f"A key of the metadata table is not UTF-8: {error}.", where) from error
    try:
        decoder = _decoder(kind, schema_json)
    except (CorruptTableError, SchemaMismatchError) as error:
        raise CorruptTableError(f"The Avro schema of the records is damaged: {error}", where) from error
    buffers = varlen_buffers(values)
    bounds = buffers.offsets.astype(np.int64)
    tables, first = [], 0
    while first < len(keys):
        after = int(np.searchsorted(bounds, bounds[first] + _BATCH_BYTES))
        after = max(min(after, first + _BATCH_ROWS, len(keys)), first + 1)
        batch = decoder.decode_records(buffers.data, bounds[first:after], bounds[first + 1 : after + 1], where)
        _check(batch, shape, kind, texts, first, where)
        tables.append(_flatten(schema, texts.slice(first, after - first), batch, where))
        first = after
    if len(tables) == 1:
        return tables[0]
    return pa.Table.from_arrays([single_chunk(each) for each in pa.concat_tables(tables).columns], schema=schema)


@lru_cache(maxsize=32)
def _decoder(kind: PartitionKind, schema_json: str) -> AvroDecoder:
    shape = _SHAPES[kind]
    reader = pa.schema([("type", pa.int32()), (shape.member, shape.type)])
    return AvroDecoder.compile(schema_json, reader, _WHAT)


def _check(batch: pa.RecordBatch, shape: _Shape, kind: PartitionKind, keys: pa.Array, first: int, where: str) -> None:
    """Check that each record has the kind ``kind``."""
    codes = batch.column(0).to_numpy()
    wrong = ~np.isin(codes, shape.codes)
    if batch.column(1).null_count:
        wrong |= batch.column(1).is_null().to_numpy(zero_copy_only=False)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise CorruptTableError(
            f"The record {keys[first + row].as_py()!r} in {kind.value} has type {codes[row]}; expected "
            f"{' or '.join(map(str, shape.codes))} with {shape.member}.",
            where,
        )


def _flatten(schema: pa.Schema, keys: pa.Array, batch: pa.RecordBatch, where: str) -> pa.Table:
    codes, stored = batch.columns
    if schema is FILES:
        return _flat_files(keys, codes, stored)
    members = {stored.type.field(i).name: stored.field(i) for i in range(stored.type.num_fields)}
    if schema is BLOOM or schema is SECONDARY:
        return pa.Table.from_arrays([keys, *members.values()], schema=schema)
    if schema is RECORD_INDEX:
        try:
            names = ("fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")
            file_ids = file_id_texts(*(members[name] for name in names))
        except CorruptTableError as error:
            raise CorruptTableError(str(error), where) from error
        columns = [keys, members["partitionName"], file_ids, members["instantTime"], members["position"]]
        return pa.Table.from_arrays(columns, schema=schema)
    value_type = members.pop("valueType")
    members["isTightBound"] = members["isTightBound"].fill_null(False)
    return pa.Table.from_arrays([keys, codes, *members.values(), *value_type.flatten()], schema=schema)


def _flat_files(keys: pa.Array, codes: pa.Array, maps: pa.MapArray) -> pa.Table:
    offsets = maps.offsets.to_numpy()
    lengths = np.diff(offsets)
    entries = maps.items.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    names = maps.keys.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    columns = [names, entries.field(0), entries.field(1)]
    if (lengths == 0).any():
        rows = np.maximum(lengths, 1)
        empty = np.repeat(lengths == 0, rows)
        places = pa.array(np.cumsum(~empty) - 1, pa.int64(), mask=empty)
        columns = [each.take(places) for each in columns]
        lengths = rows
    of_row = pa.array(np.repeat(np.arange(len(keys)), lengths))
    return pa.Table.from_arrays([keys.take(of_row), codes.take(of_row), *columns], schema=FILES)


# ---- encoding


def encode_records(
    kind: PartitionKind, rows: pa.Table, schema_json: str = RECORD_SCHEMA, file_id_encoding: int = 0
) -> tuple[pa.Array, pa.Array]:
    """Encode rows to keys and Avro values for HFiles.

    Args:
        kind: kind of the partition.
        rows: rows of :func:`flat_schema`, in any order. FILES: all rows of one key become one record.
        schema_json: Avro JSON of the records.
        file_id_encoding: encoding of file ids in RECORD_INDEX: 0 as numbers where they are UUIDs, 1 as text.

    Returns:
        Keys string[n], in the order of their first rows, and values binary[n], each with five null meta fields and an
        empty key.

    Raises:
        SchemaMismatchError: ``rows`` do not have the columns of that kind.
        InvalidDataError: a null in a required field, or rows of one key that contradict each other.
        UnsupportedFeatureError: ``schema_json`` (of an old release) lacks a field that the rows need; or the values
            take 2 GiB or more.
    """
    schema, shape = flat_schema(kind), _SHAPES[kind]
    if rows.schema.names != schema.names or rows.schema.types != schema.types:
        raise SchemaMismatchError(f"Expected rows of {kind.value}\n{schema}\nfound\n{rows.schema}")
    columns = {name: single_chunk(rows.column(name)) for name in schema.names}
    for field in schema:
        if not field.nullable and columns[field.name].null_count:
            raise InvalidDataError(f"A row for {kind.value} of the metadata table has no {field.name}.")
    if schema is FILES:
        keys, codes, stored = _nested_files(columns)
    else:
        keys, codes = columns["key"], columns.get("type")
        if codes is None:
            codes = pa.array(np.full(len(keys), shape.codes[0], np.int32))
        stored = _nested(schema, shape, columns, file_id_encoding)
    writer = _writer(schema_json)
    members = {each.name: each.type for each in writer.fields}
    if shape.member not in members:
        raise UnsupportedFeatureError(
            f"The metadata table's record schema has no {shape.member}, which {kind.value} needs: an older release of "
            "Hudi wrote the table."
        )
    empty = string_array(np.zeros(len(keys) + 1, np.int32), np.empty(0, np.uint8))
    stored = _known_part(stored, members[shape.member], shape.member)
    batch = pa.RecordBatch.from_arrays([empty, codes, stored], names=["key", "type", shape.member])
    return keys, _encoder(batch.schema, schema_json).encode_values(batch)


@lru_cache(maxsize=8)
def _writer(schema_json: str) -> AvroType:
    return parse_record(schema_json, _WHAT)


@lru_cache(maxsize=32)
def _encoder(schema: pa.Schema, schema_json: str) -> AvroEncoder:
    return AvroEncoder.compile(schema, schema_json)


def _nested(schema: pa.Schema, shape: _Shape, columns: Mapping[str, pa.Array], file_id_encoding: int) -> pa.StructArray:
    fields = [shape.type.field(i) for i in range(shape.type.num_fields)]
    if schema is RECORD_INDEX:
        file_ids = encode_file_ids(columns["file_id"], file_id_encoding)
        members = [columns["partition"], *file_ids, columns["instant_ms"], columns["position"]]
    elif schema is COLUMN_STATS:
        types = [columns["value_type"], columns["value_type_info"]]
        value_type = pa.StructArray.from_arrays(types, fields=list(_VALUE_TYPE), mask=types[0].is_null())
        members = [*(columns[name] for name in COLUMN_STATS.names[2:-2]), value_type]
    else:
        members = [columns[name] for name in schema.names[1:]]
    return pa.StructArray.from_arrays(members, fields=fields)


def _nested_files(columns: Mapping[str, pa.Array]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Keys, types and maps of records, from rows in any order."""
    found = columns["key"].dictionary_encode()
    record, count = found.indices.to_numpy(), len(found.dictionary)
    order = np.argsort(record, kind="stable")
    codes = columns["type"].to_numpy()[order]
    sizes = np.bincount(record, minlength=count)
    firsts = np.cumsum(sizes) - sizes
    if (codes != np.repeat(codes[firsts], sizes)).any():
        raise InvalidDataError("Rows of one key of the files partition have different types.")
    named = columns["name"].is_valid().to_numpy(zero_copy_only=False)[order]
    lengths = np.bincount(record[order][named], minlength=count)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    kept = pa.array(order[named])
    infos = [columns["size"].take(kept), columns["deleted"].take(kept)]
    if infos[0].null_count or infos[1].null_count:
        raise InvalidDataError("A row of the files partition names a file without its size or its deleted flag.")
    entries = pa.StructArray.from_arrays(infos, fields=list(_FILE_INFO))
    maps = pa.MapArray.from_arrays(pa.array(offsets), columns["name"].take(kept), entries)
    return found.dictionary, pa.array(codes[firsts]), maps


def _known_part(stored: pa.Array, writer: AvroType, path: str) -> pa.Array:
    """The members of a struct that the writer's schema has; all others must be null or false."""
    if not pa.types.is_struct(stored.type):
        return stored
    members = union_members(writer) if writer.kind == "union" else []
    if len(members) > 1:
        known = dict(members)
    else:
        known = {each.name: each.type for each in optional_part(writer, path, _WHAT)[1].fields}
    kept: list[pa.Array] = []
    fields: list[pa.Field] = []
    for place in range(stored.type.num_fields):
        field, values = stored.type.field(place), stored.field(place)
        if field.name in known:
            values = _known_part(values, known[field.name], f"{path}.{field.name}")
            kept.append(values)
            fields.append(field.with_type(values.type))
        elif _has_values(values):
            raise UnsupportedFeatureError(
                f"The metadata table's record schema, of an older release, has no field {path}.{field.name}."
            )
    if len(kept) == stored.type.num_fields and all(a.type == f.type for a, f in zip(kept, stored.type, strict=True)):
        return stored
    return pa.StructArray.from_arrays(kept, fields=fields, mask=stored.is_null() if stored.null_count else None)


def _has_values(values: pa.Array) -> bool:
    """Whether a value is neither null nor false."""
    if pa.types.is_boolean(values.type):
        return bool(pc.any(values).as_py())
    return bool(values.null_count < len(values))


# ---- the schema in commits


def schema_of_commits(schema_json: str = RECORD_SCHEMA) -> str:
    """The schema as stored in commit metadata: the same text without the meta fields."""
    schema = stored_json(schema_json)
    schema["fields"] = [each for each in schema["fields"] if each["name"] not in META_FIELDS]
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


# ---- locations of the record index: file ids as numbers, instants as milliseconds
#
# Encoding 0 stores a file id as the halves of its UUID and the number after it (-1 for none); encoding 1 stores its
# text. A file id that is not such a UUID is always stored as text.
#
# Source: metadata table reference, section 3.8; HoodieMetadataPayload.createRecordIndexUpdate, Hudi 1.2.0.


def encode_file_ids(file_ids: pa.Array, encoding: int) -> list[pa.Array]:
    """Encode file ids.

    Args:
        file_ids: string[n].
        encoding: 0 for numbers where the file ids are UUIDs, 1 for text.

    Returns:
        fileIdHighBits int64, fileIdLowBits int64, fileIndex int32, fileId string and fileIdEncoding int32, n each.

    Raises:
        InvalidDataError: a file id is null.
    """
    if file_ids.null_count:
        raise InvalidDataError("A row of the record index has no file id.")
    count = len(file_ids)
    high, low = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    index, parsed = np.full(count, -1, np.int32), np.zeros(count, np.uint8)
    if encoding == 0:
        parse_file_ids(*varlen_buffers(file_ids), high, low, index, parsed)
    texts = file_ids
    if parsed.all():
        texts = string_array(np.zeros(count + 1, np.int32), np.empty(0, np.uint8))
    elif parsed.any():
        texts = pc.if_else(pa.array(parsed.astype(np.bool_)), "", file_ids)
    return [pa.array(high), pa.array(low), pa.array(index), texts, pa.array(1 - parsed.astype(np.int32))]


def file_id_texts(high: pa.Array, low: pa.Array, index: pa.Array, texts: pa.Array, encoding: pa.Array) -> pa.Array:
    """Decode file ids: string[n].

    Args:
        high: int64[n], fileIdHighBits.
        low: int64[n], fileIdLowBits.
        index: int32[n], fileIndex.
        texts: string[n], fileId.
        encoding: int32[n], fileIdEncoding.

    Raises:
        CorruptTableError: an unknown encoding, or a null value that the encoding requires.
    """
    as_text = encoding.to_numpy() == 1
    if not as_text.all() and (encoding.to_numpy()[~as_text] != 0).any():
        raise CorruptTableError(f"Expected file ids in encoding 0 or 1, found {pc.unique(encoding).to_pylist()}.")
    if as_text.all():
        if texts.null_count:
            raise CorruptTableError("A record of the record index has no file id.")
        return texts
    numbers = pc.and_(pc.is_valid(high), pc.and_(pc.is_valid(low), pc.is_valid(index)))
    if not pc.all(pc.if_else(pa.array(as_text), pc.is_valid(texts), numbers)).as_py():
        raise CorruptTableError("A record of the record index has no file id.")
    index_values, flags = index.fill_null(-1).to_numpy(), as_text.astype(np.uint8)
    stored = varlen_buffers(texts)
    offsets = np.empty(len(texts) + 1, np.int32)
    total = int(measure_file_ids(index_values, flags, stored.offsets, offsets))
    if total < 0:
        raise InvalidDataError(f"The file ids of {len(texts)} records take 2 GiB or more; read fewer at once.")
    out = np.empty(total, np.uint8)
    halves = (high.fill_null(0).to_numpy(), low.fill_null(0).to_numpy())
    format_file_ids(*halves, index_values, flags, stored.offsets, stored.data, offsets, out)
    return string_array(offsets, out)


def instant_texts(millis: pa.Array, zone: str) -> pa.Array:
    """Decode instants of record index rows to 17-digit texts: string[n].

    Args:
        millis: int64[n], since the epoch.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.
    """
    found = millis.dictionary_encode()
    texts = [None if each is None else instant_from_ms(each, zone) for each in found.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(found.indices)


def instant_millis(times: pa.Array, zone: str) -> pa.Array:
    """Encode instants for record index rows: int64[n], milliseconds since the epoch.

    Args:
        times: string[n], of 14 or 17 digits.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.

    Raises:
        CorruptTableError: an invalid instant time.
    """
    found = times.dictionary_encode()
    millis = [None if each is None else ms_from_instant(each, zone) for each in found.dictionary.to_pylist()]
    return pa.array(millis, pa.int64()).take(found.indices)
