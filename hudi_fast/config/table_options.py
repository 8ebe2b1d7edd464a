"""Options of a table: what a new one is, its columns, its keys and partition paths, and how its rows merge.

Defaults are those of Apache Hudi 1.2.0 (``DataSourceWriteOptions``, ``HoodieTableConfig``, ``KeyGeneratorOptions``).
"""

from __future__ import annotations

from hudi_fast.config.merge_mode import MERGE_MODES
from hudi_fast.config.option_fields import BOTH, Kind, Option, OptionValues, normalise_fields, option, options_of
from hudi_fast.config.option_names import (
    KEY_GENERATOR_CLASSES,
    KEY_GENERATOR_TYPES,
    MERGER_CLASSES,
    PAYLOAD_CLASSES,
    SUPPORTED_KEY_GENERATOR_TYPES,
    TABLE_TYPES,
    TIMELINE_ZONES,
    key_generator_of_class,
    key_generator_of_type,
)
from hudi_fast.errors import ConfigError
from hudi_fast.values import dataclass

__all__ = [
    "KEY_OPTIONS",
    "MERGE_OPTIONS",
    "SCHEMA_OPTIONS",
    "TABLE_OPTIONS",
    "TIMEBASED_OPTIONS",
    "KeyOptions",
    "MergeOptions",
    "PartitionSpec",
    "SchemaOptions",
    "TableOptions",
]

_WRITE = "hoodie.datasource.write."


@dataclass(frozen=True, slots=True, repr=False)
class TableOptions(OptionValues):
    """What a new table is, or must be."""

    name: str | None = option(
        "hoodie.table.name",
        Kind.TEXT,
        None,
        "Table name; required for a new table.",
        aliases=(f"{_WRITE}table.name",),
    )
    database: str | None = option(
        "hoodie.database.name", Kind.TEXT, None, "Database name; part of the table's checksum."
    )
    type: str = option(
        f"{_WRITE}table.type",
        Kind.ENUM,
        "COPY_ON_WRITE",
        "Table type: updates rewrite base files, or append log files.",
        aliases=(f"{_WRITE}storage.type", "hoodie.table.type"),
        choices=TABLE_TYPES,
    )
    base_file_format: str = option(
        "hoodie.table.base.file.format",
        Kind.ENUM,
        "PARQUET",
        "Format of a new table's base files. In a table with several formats: format of the files that this write "
        "makes.",
        aliases=("hoodie.base.file.format", "hoodie.table.ro.file.format"),
        choices=("PARQUET", "ORC", "HFILE", "LANCE"),
        supported=("PARQUET", "ORC", "LANCE"),
        instead="Tables with HFile base files are read only.",
    )
    has_several_formats: bool = option(
        "hoodie.table.multiple.base.file.formats.enable",
        Kind.BOOL,
        False,
        "Whether a new table may have base files of several formats.",
    )
    version: int = option(
        "hoodie.write.table.version",
        Kind.INT,
        9,
        "Table version of a new table; existing tables keep their version.",
        aliases=("hoodie.table.version",),
        supported=(5, 6, 8, 9),
        minimum=0,
    )
    skips_default_partition_check: bool = option(
        "hoodie.skip.default.partition.validation",
        Kind.BOOL,
        False,
        "Upgrade a table of version 4 or older although it has the partition `default`, which means null there only.",
    )
    populate_meta_fields: bool = option(
        "hoodie.populate.meta.fields",
        Kind.BOOL,
        True,
        "Store the five meta columns; cannot be enabled again once disabled.",
    )
    drop_partition_columns: bool = option(
        f"{_WRITE}drop.partition.columns",
        Kind.BOOL,
        False,
        "Do not store the partition columns in data files.",
    )
    timezone: str = option(
        "hoodie.table.timeline.timezone",
        Kind.ENUM,
        "LOCAL",
        "Time zone of the instant times of a new table.",
        choices=TIMELINE_ZONES,
    )
    cdc_enabled: bool = option(
        "hoodie.table.cdc.enabled",
        Kind.BOOL,
        False,
        "New tables: write a change log for each rewritten base file, for CDC queries.",
    )
    cdc_mode: str = option(
        "hoodie.table.cdc.supplemental.logging.mode",
        Kind.ENUM,
        "DATA_BEFORE_AFTER",
        "Contents of the change log per row: both images, the image before the change, or the key only.",
        choices=("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"),
    )
    operation_field: bool = option(
        "hoodie.allow.operation.metadata.field",
        Kind.BOOL,
        False,
        "Store the rows' column `_hoodie_operation` (I, -U, U, D) as a sixth meta column; D and -U are deletes.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class SchemaOptions(OptionValues):
    """How the columns of a table change with the incoming ones."""

    reconcile: bool = option(
        f"{_WRITE}reconcile.schema", Kind.BOOL, False, "Use the table's schema if the rows fit it (deprecated)."
    )
    null_for_missing_columns: bool = option(
        "hoodie.write.set.null.for.missing.columns",
        Kind.BOOL,
        False,
        "Fill missing columns of the rows with nulls.",
    )
    allow_column_drop: bool = option(
        f"{_WRITE}schema.allow.auto.evolution.column.drop",
        Kind.BOOL,
        False,
        "Drop columns from the table's schema if they are missing in the rows.",
    )
    validates: bool = option(
        "hoodie.avro.schema.validate",
        Kind.BOOL,
        False,
        "Check schema compatibility by Avro's rules, including record names.",
    )
    on_read: bool = option(
        "hoodie.schema.on.read.enable",
        Kind.BOOL,
        False,
        "Track columns by id. Tables with an altered schema always do. With "
        "`hoodie.datasource.write.reconcile.schema`, a write starts the schema history.",
        families=BOTH,
    )
    allow_rounding: bool = option(
        "hudi_fast.allow.rounding",
        Kind.BOOL,
        False,
        "Integers may meet floating-point numbers that round some of them, in rows or in a column, as in Apache Hudi.",
    )


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The columns of the partition path.

    Attributes:
        fields: column names, outermost folder first; empty = not partitioned.
        types: ``SIMPLE`` or ``TIMESTAMP`` per column, from ``name:TYPE``; empty if no types are given.
    """

    fields: tuple[str, ...]
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class KeyOptions(OptionValues):
    """Record keys and partition paths."""

    record_key_fields: tuple[str, ...] | None = option(
        f"{_WRITE}recordkey.field",
        Kind.LIST,
        None,
        "Columns of the record key; default: auto-generated keys.",
        aliases=("hoodie.table.recordkey.fields",),
    )
    partition_path_fields: tuple[str, ...] | None = option(
        f"{_WRITE}partitionpath.field",
        Kind.LIST,
        None,
        "Columns of the partition path, `name` or `name:SIMPLE` / `name:TIMESTAMP`; empty = not partitioned.",
        aliases=("hoodie.table.partition.fields",),
    )
    generator_class: str | None = option(
        f"{_WRITE}keygenerator.class",
        Kind.TEXT,
        None,
        "Key generator class; takes precedence over the type.",
        aliases=("hoodie.table.keygenerator.class",),
        supported=KEY_GENERATOR_CLASSES,
    )
    generator_type: str | None = option(
        f"{_WRITE}keygenerator.type",
        Kind.ENUM,
        None,
        "Key generator type; default: inferred from the key and partition columns.",
        aliases=("hoodie.table.keygenerator.type",),
        choices=KEY_GENERATOR_TYPES,
        supported=SUPPORTED_KEY_GENERATOR_TYPES,
    )
    hive_style: bool = option(
        f"{_WRITE}hive_style_partitioning", Kind.BOOL, False, "Name partition folders `column=value`."
    )
    url_encode: bool = option(
        f"{_WRITE}partitionpath.urlencode", Kind.BOOL, False, "Escape special characters in partition folders."
    )
    slash_separated_dates: bool = option(
        f"{_WRITE}slash.separated.date.partitioning",
        Kind.BOOL,
        False,
        "Replace `-` in a date by `/`, one folder level per part.",
    )
    consistent_logical_timestamp: bool = option(
        f"{_WRITE}keygenerator.consistent.logical.timestamp.enabled",
        Kind.BOOL,
        False,
        "Write timestamps in record keys and partition paths as text instead of a number.",
    )
    complex_new_encoding: bool = option(
        "hoodie.write.complex.keygen.new.encoding",
        Kind.BOOL,
        False,
        "Complex record key of one column, table versions 6 and 8: write `value` instead of `column:value`.",
    )
    complex_validation: bool = option(
        "hoodie.write.complex.keygen.validation.enable",
        Kind.BOOL,
        True,
        "Refuse upgrades and downgrades of such a table between versions 8 and 9, where the encoding could change.",
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        spec = self.partition_spec
        if spec is None:
            return
        wrong = [kind for kind in spec.types if kind not in ("SIMPLE", "TIMESTAMP")]
        if wrong or "" in spec.fields:
            raise ConfigError(
                f"hoodie.datasource.write.partitionpath.field={','.join(self.partition_path_fields or ())!r}: expected "
                "`name` for every column, or `name:SIMPLE` / `name:TIMESTAMP` for every column."
            )
        if spec.types and self.generator not in (None, "CUSTOM"):
            raise ConfigError(
                f"Partition columns have types ({','.join(self.partition_path_fields or ())}), which only the CUSTOM "
                f"key generator allows, but the key generator is {self.generator}."
            )

    @property
    def partition_spec(self) -> PartitionSpec | None:
        """Partition columns and their types; None if not given."""
        if self.partition_path_fields is None:
            return None
        parts = [part.partition(":") for part in self.partition_path_fields]
        types = tuple(part[2].upper() for part in parts) if any(part[1] for part in parts) else ()
        return PartitionSpec(tuple(part[0] for part in parts), types)

    @property
    def generator(self) -> str | None:
        """Kind of the given key generator without ``_AVRO`` (``SIMPLE``, ``COMPLEX`` ...), or None.

        The class takes precedence over the type.
        """
        if self.generator_class is not None:
            return key_generator_of_class(self.generator_class)
        return None if self.generator_type is None else key_generator_of_type(self.generator_type)


@dataclass(frozen=True, slots=True, repr=False)
class MergeOptions(OptionValues):
    """How rows with one key become one."""

    ordering_fields: tuple[str, ...] | None = option(
        f"{_WRITE}precombine.field",
        Kind.LIST,
        None,
        "Ordering fields: of two rows with one key, the one with the larger value wins.",
        aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
    )
    mode: str | None = option(
        "hoodie.write.record.merge.mode",
        Kind.ENUM,
        None,
        "How two rows with one key are merged; default: EVENT_TIME_ORDERING with an ordering field, "
        "otherwise COMMIT_TIME_ORDERING.",
        aliases=("hoodie.record.merge.mode",),
        choices=MERGE_MODES,
    )
    payload_class: str | None = option(
        f"{_WRITE}payload.class",
        Kind.TEXT,
        None,
        "Payload class that merges rows (deprecated); user-defined classes are not supported.",
        aliases=("hoodie.compaction.payload.class",),
        supported=PAYLOAD_CLASSES,
    )
    strategy_id: str | None = option(
        "hoodie.write.record.merge.strategy.id",
        Kind.TEXT,
        None,
        "Merge strategy id. For an id that is not Hudi's, `hudi_fast.merger` merges the rows.",
        aliases=(
            "hoodie.record.merge.strategy.id",
            f"{_WRITE}record.merger.strategy",
            "hoodie.compaction.record.merger.strategy",
        ),
    )
    delete_field: str | None = option(
        "hoodie.payload.delete.field",
        Kind.TEXT,
        None,
        "Column that marks deletes; requires `hoodie.payload.delete.marker`.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.field",),
    )
    delete_marker: str | None = option(
        "hoodie.payload.delete.marker",
        Kind.TEXT,
        None,
        "Value of the delete field that marks a row as a delete.",
        aliases=("hoodie.record.merge.property.hoodie.payload.delete.marker",),
    )
    same_ordering_updates: bool = option(
        "hoodie.payload.update.on.same.ordering.field",
        Kind.BOOL,
        True,
        "Tables whose payload class decides (merge mode CUSTOM): whether a row wins over a stored one with an equal "
        "ordering value.",
        aliases=("hoodie.record.merge.property.hoodie.payload.update.on.same.ordering.field",),
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if (self.delete_field is None) != (self.delete_marker is None):
            given, missing = ("marker", "field") if self.delete_field is None else ("field", "marker")
            raise ConfigError(
                f"hoodie.payload.delete.{given} needs hoodie.payload.delete.{missing}; give both or neither."
            )


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

TABLE_OPTIONS = options_of(TableOptions)
"""Options of a new table."""

SCHEMA_OPTIONS = options_of(SchemaOptions)
"""Options of the columns."""

KEY_OPTIONS = options_of(KeyOptions)
"""Options of record keys and partition paths."""

MERGE_OPTIONS = (
    *options_of(MergeOptions),
    Option(
        "hoodie.write.record.merge.custom.implementation.classes",
        Kind.LIST,
        (),
        "Merger classes; user-defined classes are not supported.",
        aliases=(f"{_WRITE}record.merger.impls",),
        supported=MERGER_CLASSES,
    ),
)
"""Options of merging."""
