"""Names that options and arguments take as values: save modes, operations, query types, index types, key generators ...

The ``Literal`` types are for signatures: editors complete them, and type checkers refuse other texts.

Sources: ``WriteOperationType``, ``KeyGeneratorType``, ``RecordMergeMode``, ``HoodieRecordMerger`` (1.2.0).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

__all__ = [
    "BULK_SORT_MODES",
    "INDEX_KINDS",
    "INDEX_TYPES",
    "INDEX_WORDS",
    "KEY_GENERATOR_CLASSES",
    "KEY_GENERATOR_TYPES",
    "MERGER_CLASSES",
    "OPERATIONS",
    "PAYLOAD_CLASSES",
    "QUERY_TYPES",
    "ROW_FORMATS",
    "SAVE_MODES",
    "SUPPORTED_INDEX_TYPES",
    "SUPPORTED_KEY_GENERATOR_TYPES",
    "TABLE_TYPES",
    "TABLE_TYPE_WORDS",
    "TIMELINE_ZONES",
    "IndexWord",
    "Operation",
    "QueryType",
    "SaveMode",
    "SnapshotType",
    "TableType",
    "TableTypeWord",
]

Operation: TypeAlias = Literal[
    "upsert",
    "insert",
    "bulk_insert",
    "delete",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
]
"""A write operation, as ``hoodie.datasource.write.operation``."""

OPERATIONS: tuple[str, ...] = get_args(Operation)
"""Write operations that a caller may request."""

SaveMode: TypeAlias = Literal["append", "overwrite", "errorifexists", "ignore"]
"""What a write does if the table exists."""

SAVE_MODES: tuple[str, ...] = get_args(SaveMode)
"""All save modes."""

ROW_FORMATS = ("parquet", "csv", "json", "arrow", "feather", "orc")
"""Formats of files of rows to write, and the endings of their names."""

TableType: TypeAlias = Literal["COPY_ON_WRITE", "MERGE_ON_READ"]
"""How a table stores updates, as ``hoodie.datasource.write.table.type``."""

TABLE_TYPES: tuple[str, ...] = get_args(TableType)
"""All table types."""

TableTypeWord: TypeAlias = Literal["copy_on_write", "merge_on_read", "COPY_ON_WRITE", "MERGE_ON_READ"]
"""How a table stores updates: new files, or log files beside them."""

TABLE_TYPE_WORDS: tuple[str, ...] = get_args(TableTypeWord)[:2]
"""Words for table types."""

IndexWord: TypeAlias = Literal[
    "simple", "global_simple", "bloom", "global_bloom", "bucket", "record", "partitioned_record"
]
"""How a write finds the file of a key; ``record`` and ``partitioned_record`` also build the index."""

INDEX_WORDS: tuple[str, ...] = get_args(IndexWord)
"""Words for indexes."""

SnapshotType: TypeAlias = Literal["snapshot", "read_optimized"]
"""Query types that return the table as of one time."""

QueryType: TypeAlias = Literal["snapshot", "read_optimized", "incremental"]
"""A query type, as ``hoodie.datasource.query.type``."""

QUERY_TYPES: tuple[str, ...] = get_args(QueryType)
"""All query types."""

TIMELINE_ZONES = ("LOCAL", "UTC")
"""Zones of the times of a timeline; ``LOCAL`` is the zone of the writing process."""

INDEX_KINDS = (
    "files",
    "column_stats",
    "partition_stats",
    "bloom_filters",
    "record_index",
    "secondary_index",
    "expr_index",
)
"""Kinds of metadata-table partitions that a caller may request."""

BULK_SORT_MODES = (
    "NONE",
    "GLOBAL_SORT",
    "PARTITION_SORT",
    "PARTITION_PATH_REPARTITION",
    "PARTITION_PATH_REPARTITION_AND_SORT",
)
"""Sort modes of bulk inserts."""

SUPPORTED_INDEX_TYPES = (
    "SIMPLE",
    "GLOBAL_SIMPLE",
    "BLOOM",
    "GLOBAL_BLOOM",
    "BUCKET",
    "RECORD_LEVEL_INDEX",
    "GLOBAL_RECORD_LEVEL_INDEX",
    "RECORD_INDEX",
    "INMEMORY",
)
INDEX_TYPES = (
    *SUPPORTED_INDEX_TYPES,
    "FLINK_STATE",
    "HBASE",
)
"""Index types that hudi_fast supports, and all index types that Hudi knows."""

SUPPORTED_KEY_GENERATOR_TYPES = (
    "SIMPLE",
    "SIMPLE_AVRO",
    "COMPLEX",
    "COMPLEX_AVRO",
    "TIMESTAMP",
    "TIMESTAMP_AVRO",
    "CUSTOM",
    "CUSTOM_AVRO",
    "NON_PARTITION",
    "NON_PARTITION_AVRO",
    "GLOBAL_DELETE",
    "GLOBAL_DELETE_AVRO",
)
KEY_GENERATOR_TYPES = (
    *SUPPORTED_KEY_GENERATOR_TYPES,
    "AUTO_RECORD",
    "AUTO_RECORD_AVRO",
    "HOODIE_TABLE_METADATA",
    "SPARK_SQL",
    "SPARK_SQL_UUID",
    "SPARK_SQL_MERGE_INTO",
    "USER_PROVIDED",
)
"""Key generator types that hudi_fast supports, and all key generator types that Hudi knows."""

_KEYGEN = "org.apache.hudi.keygen."
KEY_GENERATOR_CLASSES = (
    f"{_KEYGEN}SimpleKeyGenerator",
    f"{_KEYGEN}SimpleAvroKeyGenerator",
    f"{_KEYGEN}ComplexKeyGenerator",
    f"{_KEYGEN}ComplexAvroKeyGenerator",
    f"{_KEYGEN}TimestampBasedKeyGenerator",
    f"{_KEYGEN}TimestampBasedAvroKeyGenerator",
    f"{_KEYGEN}CustomKeyGenerator",
    f"{_KEYGEN}CustomAvroKeyGenerator",
    f"{_KEYGEN}NonpartitionedKeyGenerator",
    f"{_KEYGEN}NonpartitionedAvroKeyGenerator",
    f"{_KEYGEN}GlobalDeleteKeyGenerator",
    f"{_KEYGEN}GlobalAvroDeleteKeyGenerator",
)
"""Classes of the key generators that the table format defines."""

_MODEL = "org.apache.hudi.common.model."
PAYLOAD_CLASSES = (
    f"{_MODEL}DefaultHoodieRecordPayload",
    f"{_MODEL}EventTimeAvroPayload",
    f"{_MODEL}OverwriteWithLatestAvroPayload",
    f"{_MODEL}OverwriteNonDefaultsWithLatestAvroPayload",
    f"{_MODEL}PartialUpdateAvroPayload",
    f"{_MODEL}AWSDmsAvroPayload",
    f"{_MODEL}debezium.PostgresDebeziumAvroPayload",
    f"{_MODEL}debezium.MySqlDebeziumAvroPayload",
)
"""Payload classes whose merge rules the table format defines."""

MERGER_CLASSES = (
    "org.apache.hudi.DefaultSparkRecordMerger",
    "org.apache.hudi.OverwriteWithLatestSparkRecordMerger",
    "org.apache.hudi.common.model.HoodieAvroRecordMerger",
    "org.apache.hudi.common.model.OverwriteWithLatestMerger",
)
"""Merger implementations of the merge modes; they differ only in the engine's row type."""
