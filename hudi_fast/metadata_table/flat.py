"""Schemas of decoded metadata-table records: one flat typed table per kind of partition.

All code outside ``records`` and ``stat_values`` sees records in these shapes only.
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.stat_values import STAT_VALUE

__all__ = ["ALL_PARTITIONS", "BLOOM", "COLUMN_STATS", "FILES", "RECORD_INDEX", "SECONDARY", "flat_schema"]

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
