"""Write options: operation, table, keys, merging, failed writes and engine.

Fields of :class:`hudi_fast.config.write_options.WriteOptions` are bound to these keys. Defaults are those of Apache
Hudi 1.2.0 (``DataSourceWriteOptions``, ``HoodieWriteConfig``, ``HoodieTableConfig``, ``KeyGeneratorOptions``), except
the codec (gzip in Hudi, zstd here) and the wait for clock skew.
"""

from __future__ import annotations

from hudi_fast.config.merge_mode import MERGE_MODES
from hudi_fast.config.option_descriptor import BOTH, Kind, Option
from hudi_fast.config.option_names import (
    BULK_SORT_MODES,
    KEY_GENERATOR_CLASSES,
    KEY_GENERATOR_TYPES,
    MERGER_CLASSES,
    OPERATIONS,
    PAYLOAD_CLASSES,
    SUPPORTED_KEY_GENERATOR_TYPES,
    TABLE_TYPES,
    TIMELINE_ZONES,
)

__all__ = [
    "DELETE_OTHER_FILES",
    "ENGINE_OPTIONS",
    "KEY_OPTIONS",
    "MERGE_OPTIONS",
    "OPERATION_OPTIONS",
    "TABLE_OPTIONS",
    "TIMEBASED_OPTIONS",
    "TRANSACTION_OPTIONS",
]

_WRITE = "hoodie.datasource.write."

DELETE_OTHER_FILES = "hudi_fast.delete.other.files"
"""Option that lets an overwrite or a drop delete files that no write to the table made."""

OPERATION_OPTIONS = (
    Option(
        f"{_WRITE}operation",
        Kind.ENUM,
        "upsert",
        "Write operation.",
        choices=(*OPERATIONS, "bootstrap"),
        supported=OPERATIONS,
    ),
    Option("hoodie.combine.before.insert", Kind.BOOL, False, "Inserts: merge rows of the batch that share a key."),
    Option(
        "hoodie.combine.before.upsert",
        Kind.BOOL,
        True,
        "Upserts: merge rows of the batch that share a key. They are merged with false, too: keys stay unique.",
    ),
    Option(
        "hoodie.combine.before.delete",
        Kind.BOOL,
        True,
        "Deletes: merge rows of the batch that share a key. They are merged with false, too.",
    ),
    Option(
        DELETE_OTHER_FILES,
        Kind.BOOL,
        False,
        "Overwriting or dropping a table deletes its folder, although it also holds files that no write to it made.",
    ),
    Option(
        "hoodie.datasource.insert.dup.policy",
        Kind.ENUM,
        "none",
        "Inserts of an existing key: store the row again, drop it, or fail.",
        choices=("none", "drop", "fail"),
    ),
    Option(
        f"{_WRITE}insert.drop.duplicates", Kind.BOOL, False, "Old form of `hoodie.datasource.insert.dup.policy=drop`."
    ),
    Option(
        "hoodie.merge.allow.duplicate.on.inserts",
        Kind.BOOL,
        True,
        "Append inserts to a small file without comparing keys. If false, an insert and the row of its key in that "
        "file become one. Enabled if the duplicate policy is none or drop.",
    ),
    Option(
        f"{_WRITE}partitions.to.delete",
        Kind.LIST,
        (),
        "Partition paths of delete_partition; `*` matches any text.",
    ),
    Option(
        "hoodie.datasource.overwrite.mode",
        Kind.ENUM,
        None,
        "Partitions that SQL's INSERT OVERWRITE replaces: those that receive rows (DYNAMIC), or all that match its "
        "PARTITION clause (STATIC). Default: `spark.sql.sources.partitionOverwriteMode`, else STATIC.",
        choices=("STATIC", "DYNAMIC"),
    ),
    Option(
        "hoodie.static.overwrite.partition.paths",
        Kind.LIST,
        (),
        "Partition paths that insert_overwrite replaces, instead of those that receive rows.",
    ),
    Option("hoodie.allow.empty.commit", Kind.BOOL, True, "Commit an empty batch."),
    Option(
        f"{_WRITE}commitmeta.key.prefix",
        Kind.TEXT,
        "_",
        "Options with this key prefix are stored in the extra metadata of the commit; empty = none.",
    ),
    Option(
        "hoodie.bulkinsert.sort.mode",
        Kind.ENUM,
        "NONE",
        "Distribution and order of rows in bulk_insert.",
        choices=BULK_SORT_MODES,
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        Kind.LIST,
        (),
        "Columns that bulk_insert sorts each partition by, dotted within structs, instead of the sort mode; each file, "
        "if it combines rows.",
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        Kind.TEXT,
        None,
        "Partitioner class; only Hudi's column sorters are supported.",
        supported=(
            "org.apache.hudi.execution.bulkinsert.RDDCustomColumnsSortPartitioner",
            "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner",
        ),
    ),
    Option(
        "hoodie.bulkinsert.sort.suffix.record_key",
        Kind.BOOL,
        False,
        "Sort by the record key after the sort columns.",
    ),
    Option(
        "hoodie.bulkinsert.shuffle.parallelism",
        Kind.INT,
        0,
        "Tasks that write a bulk_insert; 0 = chosen by the size of the input.",
        unit="tasks",
        minimum=0,
    ),
    *(
        Option(
            f"hoodie.{name}.shuffle.parallelism",
            Kind.INT,
            0,
            f"Spark tasks that write {which}; 0 = chosen by cores and size of the input.",
            unit="tasks",
            minimum=0,
        )
        for name, which in (("upsert", "an upsert"), ("insert", "an insert or overwrite"), ("delete", "a delete"))
    ),
)
"""Options of the operation."""

TABLE_OPTIONS = (
    Option(
        "hoodie.table.name",
        Kind.TEXT,
        None,
        "Table name; required for a new table.",
        aliases=(f"{_WRITE}table.name",),
    ),
    Option("hoodie.database.name", Kind.TEXT, None, "Database name; part of the table's checksum."),
    Option(
        f"{_WRITE}table.type",
        Kind.ENUM,
        "COPY_ON_WRITE",
        "Table type: updates rewrite base files, or append log files.",
        aliases=(f"{_WRITE}storage.type", "hoodie.table.type"),
        choices=TABLE_TYPES,
    ),
    Option(
        "hoodie.table.base.file.format",
        Kind.ENUM,
        "PARQUET",
        "Format of a new table's base files. In a table with several formats: format of the files that this write "
        "makes.",
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
        choices=("PARQUET", "ORC", "HFILE", "LANCE"),
        supported=("PARQUET", "ORC", "LANCE"),
        instead="Tables with HFile base files are read only.",
    ),
    Option(
        "hoodie.table.multiple.base.file.formats.enable",
        Kind.BOOL,
        False,
        "Whether a new table may have base files of several formats.",
    ),
    Option(
        "hoodie.write.table.version",
        Kind.INT,
        9,
        "Table version of a new table; existing tables keep their version.",
        aliases=("hoodie.table.version",),
        supported=(5, 6, 8, 9),
        minimum=0,
    ),
    Option(
        "hoodie.skip.default.partition.validation",
        Kind.BOOL,
        False,
        "Upgrade a table of version 4 or older although it has the partition `default`, which means null there only.",
    ),
    Option(
        "hoodie.populate.meta.fields",
        Kind.BOOL,
        True,
        "Store the five meta columns; cannot be enabled again once disabled.",
    ),
    Option(
        f"{_WRITE}drop.partition.columns",
        Kind.BOOL,
        False,
        "Do not store the partition columns in data files.",
    ),
    Option(
        "hoodie.table.timeline.timezone",
        Kind.ENUM,
        "LOCAL",
        "Time zone of the instant times of a new table.",
        choices=TIMELINE_ZONES,
    ),
    Option(f"{_WRITE}reconcile.schema", Kind.BOOL, False, "Use the table's schema if the rows fit it (deprecated)."),
    Option(
        "hoodie.write.set.null.for.missing.columns",
        Kind.BOOL,
        False,
        "Fill missing columns of the rows with nulls.",
    ),
    Option(
        f"{_WRITE}schema.allow.auto.evolution.column.drop",
        Kind.BOOL,
        False,
        "Drop columns from the table's schema if they are missing in the rows.",
    ),
    Option(
        "hoodie.avro.schema.validate",
        Kind.BOOL,
        False,
        "Check schema compatibility by Avro's rules, including record names.",
    ),
)
"""Options of a new table."""

KEY_OPTIONS = (
    Option(
        f"{_WRITE}recordkey.field",
        Kind.LIST,
        None,
        "Columns of the record key; default: auto-generated keys.",
        aliases=("hoodie.table.recordkey.fields",),
    ),
    Option(
        f"{_WRITE}partitionpath.field",
        Kind.LIST,
        None,
        "Columns of the partition path, `name` or `name:SIMPLE` / `name:TIMESTAMP`; empty = not partitioned.",
        aliases=("hoodie.table.partition.fields",),
    ),
    Option(
        f"{_WRITE}keygenerator.class",
        Kind.TEXT,
        None,
        "Key generator class; takes precedence over the type.",
        aliases=("hoodie.table.keygenerator.class",),
        supported=KEY_GENERATOR_CLASSES,
    ),
    Option(
        f"{_WRITE}keygenerator.type",
        Kind.ENUM,
        None,
        "Key generator type; default: inferred from the key and partition columns.",
        aliases=("hoodie.table.keygenerator.type",),
        choices=KEY_GENERATOR_TYPES,
        supported=SUPPORTED_KEY_GENERATOR_TYPES,
    ),
    Option(f"{_WRITE}hive_style_partitioning", Kind.BOOL, False, "Name partition folders `column=value`."),
    Option(f"{_WRITE}partitionpath.urlencode", Kind.BOOL, False, "Escape special characters in partition folders."),
    Option(
        f"{_WRITE}slash.separated.date.partitioning",
        Kind.BOOL,
        False,
        "Replace `-` in a date by `/`, one folder level per part.",
    ),
    Option(
        f"{_WRITE}keygenerator.consistent.logical.timestamp.enabled",
        Kind.BOOL,
        False,
        "Write timestamps in record keys and partition paths as text instead of a number.",
    ),
    Option(
        "hoodie.write.complex.keygen.new.encoding",
        Kind.BOOL,
        False,
        "Complex record key of one column, table versions 6 and 8: write `value` instead of `column:value`.",
    ),
    Option(
        "hoodie.write.complex.keygen.validation.enable",
        Kind.BOOL,
        True,
        "Refuse upgrades and downgrades of such a table between versions 8 and 9, where the encoding could change.",
    ),
)
"""Options of record keys and partition paths."""


def _timebased(name: str, doc: str, choices: tuple[str, ...] = ()) -> Option:
    kind = Kind.ENUM if choices else Kind.TEXT
    old = f"hoodie.deltastreamer.keygen.{name}"
    return Option(f"hoodie.keygen.{name}", kind, None, doc, aliases=(old,), choices=choices)


TIMEBASED_OPTIONS = (
    _timebased(
        "timebased.timestamp.type",
        "Type of the values of a timestamp partition column.",
        ("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED"),
    ),
    _timebased(
        "timebased.timestamp.scalar.time.unit",
        "Unit of a SCALAR column; default: SECONDS.",
        ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    ),
    _timebased("timebased.input.dateformat", "Patterns for parsing text; the first match is used."),
    _timebased("timebased.input.dateformat.list.delimiter.regex", "Separator of the input patterns; default: `,`."),
    _timebased("timebased.input.timezone", "Time zone of text without an offset."),
    _timebased("timebased.output.timezone", "Time zone of the partition path."),
    _timebased("timebased.timezone", "Time zone of both input and output."),
    _timebased("timebased.output.dateformat", "Pattern of the partition path; may contain `/`."),
    Option(
        "hoodie.keygen.datetime.parser.class",
        Kind.TEXT,
        None,
        "Parser class; user-defined classes are not supported.",
        aliases=("hoodie.deltastreamer.keygen.datetime.parser.class",),
        supported=("org.apache.hudi.keygen.parser.HoodieDateTimeParser",),
    ),
)
"""Options of timestamp partition columns."""

MERGE_OPTIONS = (
    Option(
        f"{_WRITE}precombine.field",
        Kind.LIST,
        None,
        "Ordering fields: of two rows with one key, the one with the larger value wins.",
        aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
    ),
    Option(
        "hoodie.write.record.merge.mode",
        Kind.ENUM,
        None,
        "How two rows with one key are merged; default: EVENT_TIME_ORDERING with an ordering field, "
        "otherwise COMMIT_TIME_ORDERING.",
        aliases=("hoodie.record.merge.mode",),
        choices=MERGE_MODES,
    ),
    Option(
        f"{_WRITE}payload.class",
        Kind.TEXT,
        None,
        "Payload class that merges rows (deprecated); user-defined classes are not supported.",
        aliases=("hoodie.compaction.payload.class",),
        supported=PAYLOAD_CLASSES,
    ),
    Option(
        "hoodie.write.record.merge.strategy.id",
        Kind.TEXT,
        None,
        "Merge strategy id. For an id that is not Hudi's, `hudi_fast.merger` merges the rows.",
        aliases=(
            "hoodie.record.merge.strategy.id",
            f"{_WRITE}record.merger.strategy",
            "hoodie.compaction.record.merger.strategy",
        ),
    ),
    Option(
        "hoodie.write.record.merge.custom.implementation.classes",
        Kind.LIST,
        (),
        "Merger classes; user-defined classes are not supported.",
        aliases=(f"{_WRITE}record.merger.impls",),
        supported=MERGER_CLASSES,
    ),
    Option(
        "hoodie.payload.delete.field",
        Kind.TEXT,
        None,
        "Column that marks deletes; requires `hoodie.payload.delete.marker`.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.field",),
    ),
    Option(
        "hoodie.payload.delete.marker",
        Kind.TEXT,
        None,
        "Value of the delete field that marks a row as a delete.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.marker",),
    ),
    Option(
        "hoodie.payload.update.on.same.ordering.field",
        Kind.BOOL,
        True,
        "Tables whose payload class decides (merge mode CUSTOM): whether a row wins over a stored one with an equal "
        "ordering value.",
        aliases=("hoodie.record.merge.property.hoodie.payload.update.on.same.ordering.field",),
    ),
    Option(
        "hoodie.allow.operation.metadata.field",
        Kind.BOOL,
        False,
        "Store the rows' column `_hoodie_operation` (I, -U, U, D) as a sixth meta column; D and -U are deletes.",
    ),
)
"""Options of merging rows with one key."""

TRANSACTION_OPTIONS = (
    Option(
        "hoodie.clean.failed.writes.policy",
        Kind.ENUM,
        "EAGER",
        "When failed writes are rolled back: at the start of the next write, by cleaning, or never.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    ),
)
"""Options of failed writes."""

ENGINE_OPTIONS = (
    Option(
        "hudi_fast.plan",
        Kind.ENUM,
        "auto",
        "Physical plan of a write on Spark; auto = chosen by size, index and placement.",
        choices=("auto", "driver", "broadcast", "fused", "routed"),
    ),
    Option("hoodie.spark.sql.merge.into.partial.updates", Kind.BOOL, True, "Merges log only the columns they set."),
    Option(
        "hudi_fast.partial.update",
        Kind.BOOL,
        False,
        "Upserts of stored rows: rows hold only the key, the ordering fields and the columns to set.",
    ),
    Option(
        "hudi_fast.fsync",
        Kind.BOOL,
        True,
        "Files of local tables are on the disk before their write is acknowledged. Without it, a loss of power may "
        "take the writes of the last half minute.",
    ),
    Option(
        "hudi_fast.allow.rounding",
        Kind.BOOL,
        False,
        "Integers may meet floating-point numbers that round some of them, in rows or in a column, as in Apache Hudi.",
    ),
    Option(
        "hudi_fast.threads",
        Kind.INT,
        0,
        "Threads of the local engine; 0 = one per core, more for small files of an object store.",
        unit="threads",
        minimum=0,
        families=BOTH,
    ),
    Option(
        "hudi_fast.driver.max.bytes",
        Kind.INT,
        64 * 1024 * 1024,
        "Largest input that the driver writes itself.",
        unit="bytes",
        minimum=0,
    ),
    Option(
        "hoodie.memory.merge.max.size",
        Kind.INT,
        1 << 30,
        "Writes without Spark: memory for the rows of a stream. A stream with more than half of it in Arrow bytes goes "
        "through temporary files. No effect on tables in memory and on Spark.",
        unit="bytes",
        minimum=1,
        families=BOTH,
    ),
    Option(
        "hoodie.memory.spillable.map.path",
        Kind.TEXT,
        None,
        "Writes without Spark: local folder for the temporary files of a stream that is larger than memory; it is made "
        "if it does not exist. Default: `TMPDIR`, or the system's folder for temporary files.",
        families=BOTH,
    ),
)
"""Options of the engine and its physical plans."""
