"""Names of key generators: old tables store a Java class, new tables a type.

Both are mapped to the name of the ``KeyGeneratorType`` without ``_AVRO`` (the Avro variant builds the same keys).
Source: KeyGeneratorType and KeyGenUtils.inferKeyGeneratorType, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["class_of_key_generator", "infer_key_generator", "key_generator_of_class", "key_generator_of_type"]

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
