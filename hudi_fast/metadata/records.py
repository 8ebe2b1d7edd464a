"""Records of the metadata table: Avro values <-> flat typed tables, one schema for each kind of partition.

::

    keys string, values binary (Avro)  ── decode_records ─►  FILES | COLUMN_STATS | BLOOM | RECORD_INDEX | SECONDARY
                                       ◄── encode_records ──

The stored form ends here: unions of wrappers, empty keys inside values, file ids as halves of UUIDs. Values are decoded
with the schema that stands in their file, and encoded with the one that the table has (0.15 lacks parts of 1.x's).

Source: metadata table reference, section 3; HoodieMetadataRecord and HoodieMetadataPayload, Hudi 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_fast.metadata.stat_values import STAT_VALUE

if TYPE_CHECKING:
    from hudi_fast.metadata.layout import PartitionKind

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
    "encode_records",
    "flat_schema",
    "instant_millis",
    "instant_texts",
]

ALL_PARTITIONS = "__all_partitions__"
"""The key of the record that names all partitions."""

RECORD_SCHEMA = ""
"""Avro JSON of the records, meta fields first, as Hudi 1.2 stores it."""

RECORD_SCHEMA_0_15 = ""
"""The same, as Hudi 0.15 stores it."""

FILES = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("type", pa.int32(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("deleted", pa.bool_()),
    ]
)
"""One row for each entry of a record's map, type 1 (partitions) or 2 (files); an empty map is one row of nulls."""

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

``min`` and ``max`` are made and understood by :mod:`hudi_fast.metadata.stat_values`; ``value_type`` is null for V1."""

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
"""Where a record key lives; ``instant_ms`` see :func:`instant_texts`."""

SECONDARY = pa.schema([pa.field("key", pa.string(), nullable=False), pa.field("deleted", pa.bool_(), nullable=False)])
"""That a secondary key (:func:`hudi_fast.metadata.keys.split_secondary_keys`) is there."""


def flat_schema(kind: PartitionKind) -> pa.Schema:
    """The schema of a kind's flat tables: one of FILES, COLUMN_STATS, BLOOM, RECORD_INDEX, SECONDARY.

    An expression index of bloom filters is decoded and encoded as ``BLOOM_FILTERS``, one of statistics as
    ``EXPRESSION_INDEX`` or ``COLUMN_STATS``.
    """
    raise NotImplementedError


def encode_records(kind: PartitionKind, rows: pa.Table, schema_json: str = RECORD_SCHEMA) -> tuple[pa.Array, pa.Array]:
    """Rows as the keys and Avro values that HFiles hold.

    Args:
        kind: of the partition.
        rows: of :func:`flat_schema`, any order. FILES: rows of one key need not stand together; they become one record.
        schema_json: Avro JSON of the records.

    Returns:
        Keys string[n], in the order of their first rows, and values binary[n], each with five null meta fields and an
        empty key.

    Raises:
        SchemaMismatchError: ``rows`` or ``schema_json`` do not belong to that kind.
        InvalidDataError: a null where the record takes none.
        UnsupportedFeatureError: ``schema_json`` (an old release's) has no place for such records.
    """
    raise NotImplementedError


def decode_records(kind: PartitionKind, keys: pa.Array, values: pa.Array, schema_json: str, where: str) -> pa.Table:
    """The keys and Avro values of HFiles as flat rows, in their order; keys are put back into the rows.

    Args:
        kind: of the partition.
        keys: string or binary[n].
        values: binary[n], none of them null or empty.
        schema_json: Avro JSON that stands in the file.
        where: the file, for messages.

    Returns:
        Rows of :func:`flat_schema`; for FILES more or fewer than n.

    Raises:
        CorruptTableError: a value that is not what the schema says, or a record of another kind.
    """
    raise NotImplementedError


def instant_texts(millis: pa.Array, zone: str) -> pa.Array:
    """Instants of record index rows as 17-digit texts: string[n].

    Args:
        millis: int64[n], since the epoch.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.
    """
    raise NotImplementedError


def instant_millis(times: pa.Array, zone: str) -> pa.Array:
    """Instants as record index rows hold them: int64[n], milliseconds since the epoch.

    Args:
        times: string[n], of 14 or 17 digits.
        zone: ``LOCAL`` or ``UTC``, the table's timeline zone.

    Raises:
        CorruptTableError: no instant time.
    """
    raise NotImplementedError
