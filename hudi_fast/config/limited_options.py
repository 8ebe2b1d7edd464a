"""Options of Apache Hudi that hudi_fast supports for certain values only, mostly the default.

Every other value is refused, because ignoring it could change the contents of the table or what others read from it.
"""

from __future__ import annotations

from typing import Any

from hudi_fast.config.option_descriptor import BOTH, WRITE, Kind, Option

__all__ = ["LIMITED_OPTIONS"]


def _off(key: str, doc: str, *aliases: str, families: tuple[str, ...] = WRITE) -> Option:
    """A boolean option that must be false."""
    return Option(key, Kind.BOOL, False, doc, aliases=aliases, supported=(False,), families=families)


def _never(key: str, doc: str, *aliases: str, instead: str = "") -> Option:
    """An option that is refused whenever it is given."""
    return Option(key, Kind.TEXT, None, doc, aliases=aliases, supported=(), instead=instead)


def _only(key: str, doc: str, *values: Any, aliases: tuple[str, ...] = (), instead: str = "") -> Option:
    """A text that must be one of ``values`` (ignoring case); the first is the default."""
    return Option(key, Kind.TEXT, values[0], doc, aliases=aliases, choices=values, supported=values, instead=instead)


_CAST = (
    "Cast the rows to that schema before the write: the table takes its columns from the rows. For rows with fewer "
    "columns than the table, set hoodie.write.set.null.for.missing.columns=true."
)


_SERVICES = (
    _off("hoodie.table.service.manager.enabled", "Delegate table services to a service manager."),
    _off(
        "hoodie.clean.delete.bootstrap.base.file",
        "Let cleaning delete files of the source folder of a bootstrap.",
        "hoodie.cleaner.delete.bootstrap.base.file",
    ),
)

_FORMATS = (
    _only("hoodie.table.log.file.format", "Log file format.", "HOODIE_LOG", aliases=("hoodie.table.rt.file.format",)),
    _off("hoodie.partition.metafile.use.base.format", "Write partition metafiles in the base file format."),
    _only(
        "hoodie.parquet.writelegacyformat.enabled",
        "Legacy Parquet encoding of decimals and lists.",
        "AUTO",
        "false",
        instead="Leave it out: decimals always have the legacy encoding, lists the standard one of three levels. For "
        "legacy lists use Apache Hudi.",
    ),
    _only("hoodie.table.format", "Table format.", "native"),
    _only("hoodie.storage.layout.type", "File layout.", "DEFAULT"),
    _never("hoodie.storage.layout.partitioner.class", "User-defined class for the file layout."),
    _never("hoodie.parquet.write.config.injector.class", "User-defined class for Parquet settings."),
    _never("hoodie.fileid.prefix.provider.class", "User-defined class for file ids."),
)

_ROWS = (
    _only(
        "hoodie.write.partial.update.unavailable.value",
        "Placeholder for a column value that the source did not send.",
        "__debezium_unavailable_value",
        aliases=("hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",),
    ),
    _never("hoodie.write.partial.update.schema", "Columns of a partial update."),
    _never("hoodie.avro.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.write.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.internal.schema", "Write schema, instead of the schema of the rows.", instead=_CAST),
    _never("hoodie.datasource.write.secondarykey.column", "Columns of a secondary key."),
    _only("hoodie.write.rolling.metadata.keys", "Keys of extra metadata to copy from earlier commits.", ""),
    _off("hoodie.errortable.enable", "Write failing rows to an error table."),
    _never("hoodie.bulkinsert.overwrite.operation.type", "Internal to Spark SQL."),
)

_SQL = (
    _only("hoodie.sql.insert.mode", "Key handling of SQL INSERT INTO.", "upsert"),
    _off("hoodie.sql.bulk.insert.enable", "Use bulk_insert for SQL INSERT INTO."),
    _only("hoodie.spark.sql.insert.into.operation", "Operation of SQL INSERT INTO.", "insert"),
    _off("_hoodie.spark.sql.writes.prepped", "Internal to Spark SQL."),
    _off("_hoodie.spark.sql.merge.into.prepped", "Internal to Spark SQL."),
)

_CONCURRENCY = (
    _only("hoodie.time.generator.type", "Generator of instant times.", "WAIT_TO_ADJUST_SKEW"),
    _only("hoodie.metadata.write.concurrency.mode", "Concurrency mode of the metadata table.", "SINGLE_WRITER"),
)

_HOOKS = (
    _only("hoodie.prewrite.validators", "Classes of checks before a write.", ""),
    _never("hoodie.client.init.callback.classes", "User-defined class to call at the start of a write."),
    _never("hoodie.index.class", "User-defined index class."),
    _off("hoodie.metaserver.enabled", "Store the timeline on a metadata server.", families=BOTH),
)

LIMITED_OPTIONS = _SERVICES + _FORMATS + _ROWS + _SQL + _CONCURRENCY + _HOOKS
"""Options of features that hudi_fast supports in part or not at all."""
