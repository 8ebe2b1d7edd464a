"""Names that options and arguments take as values: save modes, operations, query types, index types, key generators ...

The ``Literal`` types are for signatures: editors complete them, and type checkers refuse other texts.

Sources: ``WriteOperationType``, ``KeyGeneratorType``, ``RecordMergeMode``, ``HoodieRecordMerger`` (1.2.0).

Names of key generators: old tables store a Java class, new tables a type.

Both are mapped to the name of the ``KeyGeneratorType`` without ``_AVRO`` (the Avro variant builds the same keys).
Source: KeyGeneratorType and KeyGenUtils.inferKeyGeneratorType, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    "class_of_key_generator",
    "infer_key_generator",
    "key_generator_of_class",
    "key_generator_of_type",
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


_PACKAGE = "org.apache.hudi.keygen."
_CLASSES = {
    "SIMPLE": _PACKAGE + "SimpleKeyGenerator",
    "COMPLEX": _PACKAGE + "ComplexKeyGenerator",
    "TIMESTAMP": _PACKAGE + "TimestampBasedKeyGenerator",
    "CUSTOM": _PACKAGE + "CustomKeyGenerator",
    "NON_PARTITION": _PACKAGE + "NonpartitionedKeyGenerator",
    "GLOBAL_DELETE": _PACKAGE + "GlobalDeleteKeyGenerator",
    "AUTO_RECORD": _PACKAGE + "AutoRecordGenWrapperKeyGenerator",
    "HOODIE_TABLE_METADATA": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "SPARK_SQL": "org.apache.spark.sql.hudi.command.SqlKeyGenerator",
    "SPARK_SQL_UUID": "org.apache.spark.sql.hudi.command.UuidKeyGenerator",
    "SPARK_SQL_MERGE_INTO": "org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator",
}
_AVRO_CLASSES = {
    "SIMPLE": _PACKAGE + "SimpleAvroKeyGenerator",
    "COMPLEX": _PACKAGE + "ComplexAvroKeyGenerator",
    "TIMESTAMP": _PACKAGE + "TimestampBasedAvroKeyGenerator",
    "CUSTOM": _PACKAGE + "CustomAvroKeyGenerator",
    "NON_PARTITION": _PACKAGE + "NonpartitionedAvroKeyGenerator",
    "GLOBAL_DELETE": _PACKAGE + "GlobalAvroDeleteKeyGenerator",
    "AUTO_RECORD": _PACKAGE + "AutoRecordGenWrapperAvroKeyGenerator",
}
_BY_CLASS = {class_name: name for names in (_CLASSES, _AVRO_CLASSES) for name, class_name in names.items()}


def key_generator_of_class(class_name: str) -> str | None:
    """The generator of one of Hudi's classes; None for another class."""
    return _BY_CLASS.get(class_name)


def key_generator_of_type(type_name: str) -> str | None:
    """The generator of a KeyGeneratorType name (any case, with or without ``_AVRO``); None if unknown."""
    name = type_name.strip().upper().removesuffix("_AVRO")
    return name if name in _CLASSES or name == "USER_PROVIDED" else None


def class_of_key_generator(name: str) -> str | None:
    """Hudi's class of a generator; None for ``USER_PROVIDED``."""
    return _CLASSES.get(name)


def infer_key_generator(record_key_fields: Sequence[str], partition_fields: Sequence[str]) -> str:
    """The generator of a table that stores none; ``partition_fields`` may end in ``:SIMPLE`` or ``:TIMESTAMP``."""
    if not partition_fields:
        return "NON_PARTITION"
    if ":" in partition_fields[0]:
        return "CUSTOM"
    return "SIMPLE" if len(partition_fields) == 1 and len(record_key_fields) <= 1 else "COMPLEX"
