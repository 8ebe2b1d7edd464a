"""Conflicts between write options and a table, and the configuration of a new table from write options.

Data flow: :class:`WriteOptions` + :class:`TableConfig` -> :func:`check_against_table` -> a write; without a table,
:class:`WriteOptions` -> :func:`new_table_from_options` -> :class:`NewTable` -> ``create_table_layout``.

Sources: ``HoodieWriterUtils.validateTableConfig``, ``KeyGenUtils``, ``AutoRecordKeyGenerationUtils``,
``HoodieTableMetaClient.validateTableProperties`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from hudi_fast.config.merge_mode import translate_merge
from hudi_fast.config.metadata_options import FIRST_WITH_METADATA, MetadataOptions
from hudi_fast.config.new_table import NewTable
from hudi_fast.config.option_names import infer_key_generator
from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, UnsupportedFeatureError

__all__ = ["check_against_table", "effective_operation", "new_table_from_options"]

_W = "hoodie.datasource.write."
_UNPARTITIONED_GENERATORS = ("NON_PARTITION", "GLOBAL_DELETE")
_META_FREE_GENERATORS = ("SIMPLE", "COMPLEX", "NON_PARTITION")
_OPTIONS = {
    "RecordKey": f"key ({_W}recordkey.field)",
    "PreCombineKey": "order_by (hoodie.table.ordering.fields)",
    "KeyGenerator": f"{_W}keygenerator.class",
    "PartitionPath": f"partition_by ({_W}partitionpath.field)",
}
"""The options behind Apache Hudi's names of what differs."""

Conflict = tuple[str, object, object]


def check_against_table(options: WriteOptions, config: TableConfig) -> None:
    """Refuse given options that contradict the table; options that are not given take the table's settings.

    Raises:
        ConfigError: lists every conflict (``Config conflict(key<TAB>current value<TAB>existing value):`` and one line
            each), or names options that this kind of table does not allow.
    """
    finders = (_key_conflicts, _table_conflicts, _merge_conflicts)
    conflicts = [conflict for find in finders for conflict in find(options, config)]
    if conflicts:
        lines = [f"{name}:\t{_text(given)}\t{_text(existing)}" for name, given, existing in conflicts]
        raise ConfigError(
            "\n".join(["Config conflict(key\tcurrent value\texisting value):", *lines])
            + f"\nTable {config.name} keeps its settings. Leave out "
            + ", ".join(_OPTIONS.get(name, name) for name, _, _ in conflicts)
            + ", or write to another table."
        )
    if not config.record_key_fields:
        _check_auto_keys(options)
    _check_index(options, config)


def new_table_from_options(options: WriteOptions, path: str) -> NewTable:
    """The configuration of the table to create.

    Without a given key generator it is inferred: no partition column: NON_PARTITION; types in the partition columns:
    CUSTOM; one partition column and at most one key column: SIMPLE; otherwise COMPLEX.

    Args:
        options: of the write.
        path: base path, or present name, of the table: a table with record keys takes its name from it by default.

    Raises:
        ConfigError: no table name and no record key; meta columns disabled with a key generator that needs them;
            auto-generated keys with options that need key columns; a key generator that does not fit the columns.
    """
    folder = path.rstrip("/").rpartition("/")[2]
    name = options.table.name or (folder if options.keys.record_key_fields else "")
    if not name:
        raise ConfigError(
            f"There is no table at {path}. Check the path. For a new table give its record key: key=COLUMN, or the "
            "option hoodie.datasource.write.recordkey.field. For a new table without record keys 'hoodie.table.name' "
            "must be set, or name=NAME."
        )
    spec, keys = options.keys.partition_spec, options.keys.record_key_fields or ()
    fields, types = (spec.fields, spec.types) if spec is not None else ((), ())
    generator = options.keys.generator or infer_key_generator(keys, options.keys.partition_path_fields or ())
    if generator in _UNPARTITIONED_GENERATORS:
        fields, types = (), ()  # as in Apache Hudi: these key generators ignore the option
    _check_generator(options, generator, keys, fields, types)
    if not keys:
        _check_auto_keys(options)
    if not options.table.populate_meta_fields and generator not in _META_FREE_GENERATORS:
        raise ConfigError(
            "Only simple, non-partitioned or complex key generator are supported when meta-fields are disabled "
            f"(hoodie.populate.meta.fields=false). Used: {generator}."
        )
    return NewTable(
        name=name,
        database=options.table.database,
        table_type=options.table.type,
        version=options.table.version,
        record_key_fields=keys,
        partition_fields=fields,
        partition_types=types,
        ordering_fields=options.merging.ordering_fields or (),
        key_generator=generator,
        hive_style=options.keys.hive_style,
        url_encode=options.keys.url_encode,
        slash_separated_dates=options.keys.slash_separated_dates,
        populate_meta_fields=options.table.populate_meta_fields,
        drop_partition_columns=options.table.drop_partition_columns and options.table.type != "MERGE_ON_READ",
        base_file_format=options.table.base_file_format,
        has_several_formats=options.table.has_several_formats,
        merge_mode=options.merging.mode,
        payload_class=options.merging.payload_class,
        merge_strategy_id=options.merging.strategy_id,
        delete_field=options.merging.delete_field,
        delete_marker=options.merging.delete_marker,
        cdc_enabled=options.table.cdc_enabled,
        cdc_mode=options.table.cdc_mode,
        timezone=options.table.timezone,
        keygen_properties=dict(options.timebased),
    )


def effective_operation(options: WriteOptions, record_key_fields: tuple[str, ...], has_key_column: bool) -> str:
    """The operation to run: ``bulk_insert`` instead of the default ``upsert`` if the rows have no keys.

    Args:
        options: options of the write.
        record_key_fields: key columns of the table or the new table.
        has_key_column: whether the rows have a ``_hoodie_record_key`` column.
    """
    given = f"{_W}operation" in options.explicit
    keyless = not record_key_fields and not has_key_column
    return "bulk_insert" if keyless and not given and options.operation == "upsert" else options.operation


def _key_conflicts(options: WriteOptions, config: TableConfig) -> Iterator[Conflict]:
    if options.keys.record_key_fields is not None and options.keys.record_key_fields != config.record_key_fields:
        yield "RecordKey", options.keys.record_key_fields, config.record_key_fields
    if options.merging.ordering_fields is not None and options.merging.ordering_fields != config.ordering_fields:
        yield "PreCombineKey", options.merging.ordering_fields, config.ordering_fields
    if options.keys.generator is not None and options.keys.generator != config.key_generator:
        yield "KeyGenerator", options.keys.generator, config.key_generator_class or config.key_generator
    spec = options.keys.partition_spec
    if spec is not None and options.keys.generator not in _UNPARTITIONED_GENERATORS:
        types_differ = bool(spec.types and config.partition_types) and spec.types != config.partition_types
        if spec.fields != config.partition_fields or types_differ:
            yield "PartitionPath", options.keys.partition_path_fields, _typed(config)


def _table_conflicts(options: WriteOptions, config: TableConfig) -> Iterator[Conflict]:
    if options.table.name is not None and options.table.name.lower() != config.name.lower():
        yield "hoodie.table.name", options.table.name, config.name
    checked = (
        (f"{_W}table.type", options.table.type, config.table_type),
        (f"{_W}hive_style_partitioning", options.keys.hive_style, config.hive_style),
        (f"{_W}partitionpath.urlencode", options.keys.url_encode, config.url_encode),
        ("hoodie.populate.meta.fields", options.table.populate_meta_fields, config.populate_meta_fields),
        ("hoodie.table.timeline.timezone", options.table.timezone, config.timezone),
        ("hoodie.table.cdc.enabled", options.table.cdc_enabled, config.cdc_enabled),
        (
            "hoodie.table.multiple.base.file.formats.enable",
            options.table.has_several_formats,
            config.has_several_formats,
        ),
    )
    for key, given, existing in checked:
        if key in options.explicit and given != existing:
            yield key, given, existing
    key, wanted_format = "hoodie.table.base.file.format", options.table.base_file_format
    if key in options.explicit and not config.has_several_formats and wanted_format != config.base_file_format:
        yield key, wanted_format, config.base_file_format
    key = f"{_W}slash.separated.date.partitioning"  # Apache Hudi does not store it: every write gives the option
    if (
        key in options.explicit
        and key in config.raw
        and options.keys.slash_separated_dates != config.slash_separated_dates
    ):
        yield key, options.keys.slash_separated_dates, config.slash_separated_dates
    key = "hoodie.table.cdc.supplemental.logging.mode"
    if key in options.explicit and key in config.raw and options.table.cdc_mode != config.cdc_mode:
        yield key, options.table.cdc_mode, config.cdc_mode
    key = f"{_W}drop.partition.columns"
    wanted, existing_drop = options.table.drop_partition_columns, config.drop_partition_columns
    if key in options.explicit and not config.is_mor and wanted != existing_drop:
        yield key, wanted, existing_drop
    for key, value in options.timebased.items():
        stored = config.keygen_properties.get(key, value)
        if stored.lower() != value.lower():
            yield key, value, stored


def _merge_conflicts(options: WriteOptions, config: TableConfig) -> Iterator[Conflict]:
    given = (options.merging.mode, options.merging.payload_class, options.merging.strategy_id)
    if any(value is not None for value in given):
        yield from _merge_rule_conflicts(options, config)
    if options.merging.delete_field is not None and config.version >= 8:
        for key, value, existing in (
            ("hoodie.payload.delete.field", options.merging.delete_field, config.delete_field),
            ("hoodie.payload.delete.marker", options.merging.delete_marker, config.delete_marker),
        ):
            if existing is not None and value != existing:
                yield key, value, existing


def _merge_rule_conflicts(options: WriteOptions, config: TableConfig) -> Iterator[Conflict]:
    """Compare the resulting merge rules; two names for the same rule do not conflict."""
    wanted = translate_merge(
        config.version,
        mode=options.merging.mode,
        payload_class=options.merging.payload_class,
        strategy_id=options.merging.strategy_id,
        ordering_fields=options.merging.ordering_fields or config.ordering_fields,
    )
    if wanted.mode != config.merge_mode:
        yield "hoodie.write.record.merge.mode", wanted.mode, config.merge_mode
    if options.merging.payload_class is not None:
        existing = config.payload_class or config.legacy_payload_class
        same_rule = (
            wanted.mode != "CUSTOM"
            and wanted.partial_update_mode == config.partial_update_mode
            and dict(wanted.properties) == dict(config.merge_properties)
        )
        if existing is not None and existing != options.merging.payload_class and not same_rule:
            yield f"{_W}payload.class", options.merging.payload_class, existing
        elif existing is None and wanted.partial_update_mode != config.partial_update_mode:
            yield f"{_W}payload.class", options.merging.payload_class, config.merge_mode


def _check_generator(
    options: WriteOptions, generator: str, keys: tuple[str, ...], fields: tuple[str, ...], types: tuple[str, ...]
) -> None:
    problem = None
    if generator in ("SIMPLE", "TIMESTAMP") and len(fields) != 1:
        problem = f"takes one partition column, got {len(fields)}"
    elif generator in ("SIMPLE", "TIMESTAMP") and len(keys) > 1:
        problem = f"takes one key column, got {len(keys)}"
    elif generator == "CUSTOM" and fields and not types:
        problem = "takes partition columns as name:SIMPLE or name:TIMESTAMP"
    elif (generator == "TIMESTAMP" or "TIMESTAMP" in types) and not options.timebased:
        problem = "needs hoodie.keygen.timebased.timestamp.type and its formats"
    if problem is not None:
        raise ConfigError(f"The key generator {generator} {problem} ({_W}keygenerator.type, {_W}partitionpath.field).")


def _check_auto_keys(options: WriteOptions) -> None:
    """Rules for a table without record key columns; the writer generates its keys."""
    if options.combine_before_insert:
        raise ConfigError(
            "Enabling hoodie.combine.before.insert is not supported with auto generation of record keys; set it to "
            f"false, or name key columns in {_W}recordkey.field."
        )
    if options.dup_policy != "none":
        raise ConfigError(
            "Dropping or refusing duplicates (hoodie.datasource.insert.dup.policy, "
            f"{_W}insert.drop.duplicates) is not supported with auto generation of record keys; name key columns in "
            f"{_W}recordkey.field."
        )
    if not options.table.populate_meta_fields:
        raise ConfigError(
            "Disabling hoodie.populate.meta.fields is not supported with auto generation of record keys; name key "
            f"columns in {_W}recordkey.field."
        )


def _check_index(options: WriteOptions, config: TableConfig) -> None:
    """Rules for the index type and the indexes of the metadata table."""
    metadata = options.metadata
    if config.version < FIRST_WITH_METADATA:
        _refuse_metadata(metadata, config)
    if metadata.has_record_index and not config.populate_meta_fields:
        raise ConfigError(
            "A record index (hoodie.metadata.global.record.level.index.enable, hoodie.metadata.record.level.index."
            f"enable, or that index type) is not supported when meta fields are disabled: table {config.name} has "
            "hoodie.populate.meta.fields=false. Use another index."
        )
    if metadata.has_record_index or options.index.type == "BUCKET":
        if not config.record_key_fields:
            raise ConfigError(
                f"The index of table {config.name} needs record keys, but the table has no key columns (auto "
                f"generation of record keys). Leave out hoodie.index.type={options.index.type} and record indexes."
            )
    has_records = metadata.has_record_index or "record_index" in config.metadata_partitions
    if metadata.enabled and metadata.secondary_column is not None and not has_records:
        raise ConfigError(
            f"A secondary index (hoodie.metadata.index.secondary.column={metadata.secondary_column}) needs a record "
            "index; set hoodie.metadata.global.record.level.index.enable=true."
        )
    if options.index.type == "INMEMORY" and config.is_mor:
        raise UnsupportedFeatureError(
            f"hoodie.index.type=INMEMORY is not supported for MERGE_ON_READ tables such as {config.name}: Apache Hudi "
            "may have logged new rows, which other processes do not find. Use GLOBAL_RECORD_LEVEL_INDEX, which builds "
            "an index of all keys, or Apache Hudi."
        )
    if options.index.type == "BUCKET":
        _check_buckets(options, config)
    elif options.bucket.expressions:
        raise ConfigError(
            f"hoodie.bucket.index.partition.expressions={options.bucket.expressions!r} needs hoodie.index.type=BUCKET; "
            f"the index of this write is {options.index.type}."
        )


def _refuse_metadata(metadata: MetadataOptions, config: TableConfig) -> None:
    asked = {
        "hoodie.metadata.enable": metadata.enabled,
        "hoodie.metadata.index.column.stats.enable": metadata.column_stats,
        "hoodie.metadata.index.bloom.filter.enable": metadata.bloom_filters,
        "hoodie.metadata.global.record.level.index.enable": metadata.record_index,
        "hoodie.metadata.record.level.index.enable": metadata.partitioned_record_index,
    }
    named = [key for key, is_set in asked.items() if is_set and key in metadata.explicit]
    if named:
        raise UnsupportedFeatureError(
            f"Table {config.name} has version {config.version}, whose metadata table hudi_fast does not write (it is "
            f"deleted, and Apache Hudi builds it again). Leave {named[0]} out, or upgrade the table to version "
            f"{FIRST_WITH_METADATA} or later with services.upgrade()."
        )


def _check_buckets(options: WriteOptions, config: TableConfig) -> None:
    if options.bucket.engine == "CONSISTENT_HASHING" and not config.is_mor:
        raise ConfigError(
            "Consistent hashing bucket index does not work with COPY_ON_WRITE tables: table "
            f"{config.name}; use hoodie.index.bucket.engine=SIMPLE or a MERGE_ON_READ table."
        )
    if options.bucket.expressions and (options.bucket.engine != "SIMPLE" or not config.is_partitioned):
        raise ConfigError(
            f"hoodie.bucket.index.partition.expressions={options.bucket.expressions!r} needs a partitioned table and "
            f"hoodie.index.bucket.engine=SIMPLE; table {config.name} has "
            + (f"the engine {options.bucket.engine}." if config.is_partitioned else "no partitions.")
        )
    others = sorted(set(options.bucket.hash_fields or ()) - set(config.record_key_fields))
    if others:
        raise ConfigError(
            f"hoodie.bucket.index.hash.field names {', '.join(others)}, which are not record key columns of table "
            f"{config.name}; expected some of its key columns: {', '.join(config.record_key_fields)}."
        )


def _typed(config: TableConfig) -> tuple[str, ...]:
    if not config.partition_types:
        return config.partition_fields
    return tuple(f"{name}:{kind}" for name, kind in zip(config.partition_fields, config.partition_types, strict=True))


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
