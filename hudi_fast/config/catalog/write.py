"""The write options that hudi_fast honours: what to write, how rows are keyed and merged, how files come out.

One tuple per subject; the fields of :class:`hudi_fast.config.write_options.WriteOptions` name these keys. Defaults are
those of Apache Hudi 1.2.0 (``DataSourceWriteOptions``, ``HoodieWriteConfig``, ``HoodieTableConfig``,
``KeyGeneratorOptions``), but for the codec (gzip there, zstd here) and the wait for clock skew. File options are in
:mod:`hudi_fast.config.catalog.files`.
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
)

__all__ = [
    "ENGINE_OPTIONS",
    "KEY_OPTIONS",
    "MERGE_OPTIONS",
    "OPERATION_OPTIONS",
    "TABLE_OPTIONS",
    "TIMEBASED_OPTIONS",
    "TRANSACTION_OPTIONS",
]

_WRITE = "hoodie.datasource.write."

OPERATION_OPTIONS = (
    Option(
        f"{_WRITE}operation",
        Kind.ENUM,
        "upsert",
        "What to do with the rows.",
        choices=(*OPERATIONS, "bootstrap"),
        supported=OPERATIONS,
    ),
    Option("hoodie.combine.before.insert", Kind.BOOL, False, "Merge rows of the batch that share a key, on inserts."),
    Option("hoodie.combine.before.upsert", Kind.BOOL, True, "Merge rows of the batch that share a key, on upserts."),
    Option("hoodie.combine.before.delete", Kind.BOOL, True, "Merge rows of the batch that share a key, on deletes."),
    Option(
        "hoodie.datasource.insert.dup.policy",
        Kind.ENUM,
        "none",
        "What an insert does with a key that the table holds: store it again, drop the row, or fail.",
        choices=("none", "drop", "fail"),
    ),
    Option(f"{_WRITE}insert.drop.duplicates", Kind.BOOL, False, "Old form of the duplicate policy `drop`."),
    Option(
        "hoodie.merge.allow.duplicate.on.inserts",
        Kind.BOOL,
        True,
        "Append inserts to a small file without comparing keys; on whenever the duplicate policy is none or drop.",
    ),
    Option(
        f"{_WRITE}partitions.to.delete",
        Kind.LIST,
        (),
        "Partition paths for delete_partition; `*` stands for any text.",
    ),
    Option(
        "hoodie.datasource.overwrite.mode",
        Kind.ENUM,
        None,
        "Whether insert_overwrite replaces the partitions that got rows (DYNAMIC) or all that match (STATIC).",
        choices=("STATIC", "DYNAMIC"),
    ),
    Option("hoodie.allow.empty.commit", Kind.BOOL, True, "Make a commit for an empty batch too."),
    Option(
        f"{_WRITE}commitmeta.key.prefix",
        Kind.TEXT,
        "_",
        "Options whose key starts with this go into the commit's extra metadata, key and all; empty = none.",
    ),
    Option(
        "hoodie.bulkinsert.sort.mode",
        Kind.ENUM,
        "NONE",
        "How bulk_insert distributes and sorts rows.",
        choices=BULK_SORT_MODES,
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
        Kind.LIST,
        (),
        "Columns that bulk_insert sorts by, in place of the sort mode.",
    ),
    Option(
        "hoodie.bulkinsert.user.defined.partitioner.class",
        Kind.TEXT,
        None,
        "Named only to sort by columns; classes of users are not run.",
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
        "Tasks that write a bulk_insert; 0 = as many as the input has.",
        unit="tasks",
        minimum=0,
    ),
)

TABLE_OPTIONS = (
    Option(
        "hoodie.table.name",
        Kind.TEXT,
        None,
        "Name of the table; a new table needs one.",
        aliases=(f"{_WRITE}table.name",),
    ),
    Option("hoodie.database.name", Kind.TEXT, None, "Database of the table; part of the table's checksum."),
    Option(
        f"{_WRITE}table.type",
        Kind.ENUM,
        "COPY_ON_WRITE",
        "Whether updates rewrite base files or append log files.",
        aliases=(f"{_WRITE}storage.type", "hoodie.table.type"),
        choices=("COPY_ON_WRITE", "MERGE_ON_READ"),
    ),
    Option(
        "hoodie.write.table.version",
        Kind.INT,
        9,
        "Table version of a new table; an existing table keeps its own.",
        aliases=("hoodie.table.version",),
        supported=(6, 8, 9),
        minimum=0,
    ),
    Option(
        "hoodie.populate.meta.fields",
        Kind.BOOL,
        True,
        "Whether rows carry the five meta columns; cannot be turned on again.",
    ),
    Option(
        f"{_WRITE}drop.partition.columns",
        Kind.BOOL,
        False,
        "Leave the partition columns out of the files.",
    ),
    Option(
        "hoodie.table.timeline.timezone",
        Kind.ENUM,
        "LOCAL",
        "Zone of the instant times of a new table.",
        choices=("LOCAL", "UTC"),
    ),
    Option(f"{_WRITE}reconcile.schema", Kind.BOOL, False, "Take the table's schema where the rows fit (deprecated)."),
    Option(
        "hoodie.write.set.null.for.missing.columns",
        Kind.BOOL,
        False,
        "Fill columns that the rows lack with nulls.",
    ),
    Option(
        f"{_WRITE}schema.allow.auto.evolution.column.drop",
        Kind.BOOL,
        False,
        "Let columns that the rows lack vanish from the table's schema.",
    ),
    Option("hoodie.avro.schema.validate", Kind.BOOL, False, "Check the schemas as Avro does, record names included."),
)

KEY_OPTIONS = (
    Option(
        f"{_WRITE}recordkey.field",
        Kind.LIST,
        None,
        "Columns of the record key; absent = keys are made up.",
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
        "Key generator by class name; goes before the type.",
        aliases=("hoodie.table.keygenerator.class",),
        supported=KEY_GENERATOR_CLASSES,
    ),
    Option(
        f"{_WRITE}keygenerator.type",
        Kind.ENUM,
        None,
        "Key generator by kind; absent = inferred from the key and partition columns.",
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
        "Turn `-` in a date into folder levels.",
    ),
    Option(
        f"{_WRITE}keygenerator.consistent.logical.timestamp.enabled",
        Kind.BOOL,
        False,
        "Write timestamps in keys and paths as text in place of a number.",
    ),
    Option(
        "hoodie.write.complex.keygen.new.encoding",
        Kind.BOOL,
        False,
        "Complex key with one column on table versions 6 and 8: the bare value in place of `column:value`.",
    ),
    Option(
        "hoodie.write.complex.keygen.validation.enable",
        Kind.BOOL,
        True,
        "Refuse to go on with such a table unless told which encoding it has.",
    ),
)


def _timebased(name: str, doc: str, choices: tuple[str, ...] = ()) -> Option:
    kind = Kind.ENUM if choices else Kind.TEXT
    old = f"hoodie.deltastreamer.keygen.{name}"
    return Option(f"hoodie.keygen.{name}", kind, None, doc, aliases=(old,), choices=choices)


TIMEBASED_OPTIONS = (
    _timebased(
        "timebased.timestamp.type",
        "What the partition column holds, for timestamp partitions.",
        ("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR", "DATE_STRING", "MIXED"),
    ),
    _timebased(
        "timebased.timestamp.scalar.time.unit",
        "Unit of a SCALAR column; SECONDS when absent.",
        ("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    ),
    _timebased("timebased.input.dateformat", "Patterns that text is parsed by; the first that fits is taken."),
    _timebased("timebased.input.dateformat.list.delimiter.regex", "Separator of the input patterns; `,` when absent."),
    _timebased("timebased.input.timezone", "Zone of text without an offset."),
    _timebased("timebased.output.timezone", "Zone of the partition path."),
    _timebased("timebased.timezone", "Zone of both input and output."),
    _timebased("timebased.output.dateformat", "Pattern of the partition path; may hold `/`."),
    Option(
        "hoodie.keygen.datetime.parser.class",
        Kind.TEXT,
        None,
        "Parser class; classes of users are not run.",
        aliases=("hoodie.deltastreamer.keygen.datetime.parser.class",),
        supported=("org.apache.hudi.keygen.parser.HoodieDateTimeParser",),
    ),
)

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
        "How two rows with one key become one; absent = EVENT_TIME_ORDERING with an ordering field, "
        "else COMMIT_TIME_ORDERING.",
        aliases=("hoodie.record.merge.mode",),
        choices=MERGE_MODES,
    ),
    Option(
        f"{_WRITE}payload.class",
        Kind.TEXT,
        None,
        "Merging by payload class (deprecated); classes of users are not run.",
        aliases=("hoodie.compaction.payload.class",),
        supported=PAYLOAD_CLASSES,
    ),
    Option(
        "hoodie.write.record.merge.strategy.id",
        Kind.TEXT,
        None,
        "Merging by strategy id; with one that is not Hudi's own, hudi_fast.merger merges.",
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
        "Merger classes; classes of users are not run.",
        aliases=(f"{_WRITE}record.merger.impls",),
        supported=MERGER_CLASSES,
    ),
    Option(
        "hoodie.payload.delete.field",
        Kind.TEXT,
        None,
        "Column that marks a row as a delete; needs the marker.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.field",),
    ),
    Option(
        "hoodie.payload.delete.marker",
        Kind.TEXT,
        None,
        "Value of that column in a row that is a delete.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.marker",),
    ),
)

TRANSACTION_OPTIONS = (
    Option(
        "hoodie.clean.failed.writes.policy",
        Kind.ENUM,
        "EAGER",
        "When leftovers of failed writes are rolled back: at the start of a write, by the cleaner, or never.",
        aliases=("hoodie.cleaner.policy.failed.writes",),
        choices=("EAGER", "LAZY", "NEVER"),
    ),
)

ENGINE_OPTIONS = (
    Option(
        "hudi_fast.plan",
        Kind.ENUM,
        "auto",
        "Force the plan of a write on Spark; auto = by size, index and placement.",
        choices=("auto", "driver", "broadcast", "fused", "routed"),
    ),
    Option("hoodie.spark.sql.merge.into.partial.updates", Kind.BOOL, True, "Merges log only what they set."),
    Option("hudi_fast.partial.update", Kind.BOOL, False, "Upsert into MERGE_ON_READ: rows bring only columns to set."),
    Option(
        "hudi_fast.threads",
        Kind.INT,
        0,
        "Threads of the local engine; 0 = one per core.",
        unit="threads",
        minimum=0,
        families=BOTH,
    ),
    Option(
        "hudi_fast.driver.max.bytes",
        Kind.INT,
        64 * 1024 * 1024,
        "Largest input that the driver works off itself.",
        unit="bytes",
        minimum=0,
    ),
)
