"""Write options that Apache Hudi has and hudi_fast takes at some values only (mostly: at their default).

Ignoring any other value could change what the table holds or what others read from it, so it is refused by name.
"""

from __future__ import annotations

from typing import Any

from hudi_fast.config.option_descriptor import BOTH, WRITE, Kind, Option

__all__ = ["LIMITED_OPTIONS"]


def _off(key: str, doc: str, *aliases: str, families: tuple[str, ...] = WRITE) -> Option:
    """A switch that must stay off."""
    return Option(key, Kind.BOOL, False, doc, aliases=aliases, supported=(False,), families=families)


def _on(key: str, doc: str, *aliases: str) -> Option:
    """A switch that must stay on."""
    return Option(key, Kind.BOOL, True, doc, aliases=aliases, supported=(True,))


def _never(key: str, doc: str, *aliases: str) -> Option:
    """An option that may not be given at all."""
    return Option(key, Kind.TEXT, None, doc, aliases=aliases, supported=())


def _only(key: str, doc: str, *values: Any, aliases: tuple[str, ...] = ()) -> Option:
    """A text that must be one of ``values``, the first of them the default; compared without regard to case."""
    return Option(key, Kind.TEXT, values[0], doc, aliases=aliases, choices=values, supported=values)


_SERVICES = (
    _off("hoodie.partition.ttl.inline", "Drop old partitions after a write."),
    _off("hoodie.table.service.manager.enabled", "Hand table services to a manager."),
    _off(
        "hoodie.clean.delete.bootstrap.base.file",
        "Let cleaning delete files of the folder that a table was bootstrapped from.",
        "hoodie.cleaner.delete.bootstrap.base.file",
    ),
)

_FORMATS = (
    _only(
        "hoodie.table.base.file.format",
        "Format of base files.",
        "PARQUET",
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
    ),
    _only("hoodie.table.log.file.format", "Log file format.", "HOODIE_LOG", aliases=("hoodie.table.rt.file.format",)),
    _off("hoodie.table.multiple.base.file.formats.enable", "Base files of several formats in one table."),
    _off("hoodie.partition.metafile.use.base.format", "Partition markers in the format of the base files."),
    _only("hoodie.parquet.outputtimestamptype", "Type of timestamps in base files.", "TIMESTAMP_MICROS"),
    _only("hoodie.parquet.writelegacyformat.enabled", "Old Parquet form of decimals and lists.", "AUTO", "false"),
    _only("hoodie.table.format", "Format of the table.", "native"),
    _only("hoodie.storage.layout.type", "Layout of the files.", "DEFAULT"),
    _never("hoodie.storage.layout.partitioner.class", "Layout of the files by a user's class."),
    _never("hoodie.parquet.write.config.injector.class", "Parquet settings by a user's class."),
    _never("hoodie.fileid.prefix.provider.class", "File ids by a user's class."),
)

_ROWS = (
    _off("hoodie.allow.operation.metadata.field", "Keep the operation of a row in a column of its own."),
    _on("hoodie.payload.update.on.same.ordering.field", "Of two rows with equal ordering values the newer wins."),
    _only(
        "hoodie.write.partial.update.unavailable.value",
        "Value that stands for a column the source did not send.",
        "__debezium_unavailable_value",
        aliases=("hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",),
    ),
    _never("hoodie.write.partial.update.schema", "Columns of a partial update."),
    _never("hoodie.avro.schema", "Schema to write with, in place of that of the rows."),
    _never("hoodie.write.schema", "Schema to write with, in place of that of the rows."),
    _never("hoodie.internal.schema", "Schema to write with, in place of that of the rows."),
    _never("hoodie.datasource.write.secondarykey.column", "Columns of a secondary key."),
    _only("hoodie.write.rolling.metadata.keys", "Extra metadata carried over from earlier commits.", ""),
    _off("hoodie.errortable.enable", "Put rows that fail into another table."),
    _never("hoodie.bulkinsert.overwrite.operation.type", "Internal to Spark SQL."),
    _never("hoodie.static.overwrite.partition.paths", "Internal to Spark SQL."),
)

_SQL = (
    _only("hoodie.sql.insert.mode", "What SQL INSERT INTO does about keys.", "upsert"),
    _off("hoodie.sql.bulk.insert.enable", "SQL INSERT INTO by bulk_insert."),
    _only("hoodie.spark.sql.insert.into.operation", "Operation of SQL INSERT INTO.", "insert"),
    _off("_hoodie.spark.sql.writes.prepped", "Internal to Spark SQL."),
    _off("_hoodie.spark.sql.merge.into.prepped", "Internal to Spark SQL."),
)

_CONCURRENCY = (
    _only("hoodie.time.generator.type", "How instant times are made.", "WAIT_TO_ADJUST_SKEW"),
    _only("hoodie.metadata.write.concurrency.mode", "Whether others write the metadata table.", "SINGLE_WRITER"),
)

_HOOKS = (
    _only("hoodie.prewrite.validators", "Checks before a write, by class.", ""),
    _only("hoodie.precommit.validators", "Checks before a commit, by class.", ""),
    _off("hoodie.write.commit.callback.on", "Call a service after a commit."),
    _never("hoodie.client.init.callback.classes", "Call a user's class at the start of a write."),
    _off("hoodie.datasource.hive_sync.enable", "Sync the table to a Hive metastore after a write."),
    _off("hoodie.datasource.meta.sync.enable", "Sync a catalogue after a write.", "hoodie.meta.sync.enabled"),
    _never("hoodie.meta.sync.client.tool.class", "Sync the table to a catalogue by class."),
    _never("hoodie.index.class", "Index by a user's class."),
    _off("hoodie.metaserver.enabled", "Keep the timeline on a server.", families=BOTH),
)

LIMITED_OPTIONS = _SERVICES + _FORMATS + _ROWS + _SQL + _CONCURRENCY + _HOOKS
