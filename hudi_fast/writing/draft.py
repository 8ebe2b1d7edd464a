"""Drafts the plan of a write or table service from the options, the pinned table and the incoming schema.

Raises all errors that do not depend on rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.file_options import LogOptions
from hudi_fast.config.merge_mode import DEFAULT_PAYLOAD
from hudi_fast.config.option_conflicts import check_against_table, effective_operation
from hudi_fast.config.table_config import WRITE_VERSIONS, TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, InvalidDataError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of, with_meta
from hudi_fast.formats.lance.base_file import LanceSettings, lance_files, map_columns
from hudi_fast.formats.log.cdc_records import check_cdc_mode
from hudi_fast.formats.logical_types import is_vector
from hudi_fast.formats.orc.write import OrcSettings
from hudi_fast.formats.parquet.base_file import ParquetSettings
from hudi_fast.formats.parquet.encryption import encryption_of
from hudi_fast.index.buckets import parse_bucket_expressions
from hudi_fast.index.tagging import BucketSettings, IndexSettings, file_keys
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merging.log_scan import HFILE_KEY_COLUMN
from hudi_fast.merging.rules import (
    CUSTOM,
    IGNORE_DEFAULTS,
    Merger,
    MergeRules,
    merge_rules_of,
    updates_on_same_ordering,
)
from hudi_fast.schema.history import schema_at
from hudi_fast.schema.internal import InternalSchema, evolved_ids, internal_schema
from hudi_fast.schema.names import find_dotted
from hudi_fast.storage.concurrency import max_threads
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import (
    TableState,
    column_defaults,
    commits_newest_first,
    stores_operations,
    table_schema,
)
from hudi_fast.writing.assign import average_record_size
from hudi_fast.writing.bucket import resolve_buckets
from hudi_fast.writing.dml_rows import ACTION, DML_COLUMNS
from hudi_fast.writing.indexed_keys import indexed_columns, key_limits
from hudi_fast.writing.table_schema import (
    BY_THIS_COMMIT,
    DELETES,
    changed_columns,
    known_columns,
    reconciled,
    stored_columns,
    with_stored_styles,
)
from hudi_fast.writing.whole_rows import partial_columns
from hudi_fast.writing.write_plan import (
    RECORD_KEY,
    FilePlan,
    FileSettings,
    TableSpec,
    WritePlan,
    stored_keys,
)

__all__ = ["draft_files", "draft_plan"]

_WITHOUT_KEYS = frozenset({"files", "column_stats", "partition_stats"})
"""Partitions of the metadata table without record keys."""

_TAGGED = frozenset({"upsert", "delete"})
_SORT_KEY = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
_RECORD_SIZE = "hoodie.copyonwrite.record.size.estimate"
_KEYLESS = frozenset({"insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete_partition"})

_WRITTEN_FORMATS = frozenset({"PARQUET", "ORC", "LANCE"})


def draft_plan(
    state: TableState, options: WriteOptions, incoming: pa.Schema, merger: Merger | None = None
) -> WritePlan:
    """The plan of a write that has not begun.

    Args:
        state: the pinned table.
        options: the user's options.
        incoming: columns of the rows.
        merger: merges rows of a table with the merge mode CUSTOM.

    Raises:
        ConfigError: options contradict the table, or name missing columns.
        SchemaMismatchError: the incoming schema cannot become the table's.
        UnsupportedFeatureError: the table, or the operation on it, is not supported.
    """
    config = state.config
    check_against_table(options, config)
    is_dml = ACTION in incoming.names
    has_keys = is_dml or "_hoodie_record_key" in incoming.names
    incoming = _without(incoming, DML_COLUMNS) if is_dml else incoming
    operation = effective_operation(options, config.record_key_fields, has_keys)
    _check_operation(state, options, operation)
    _check_encryption(state, options)
    _check_row_options(state, options)
    keys = _key_config(state, options)
    if operation in _TAGGED and not config.record_key_fields and RECORD_KEY in incoming.names:
        keys = stored_keys(keys)
    rules = _rules(state, options, merger or options.engine.merger)
    known, partial = known_columns(state, incoming), None
    if options.partial_update:
        partial = partial_columns(config, options, operation, rules, known, incoming)
    schema = reconciled(state, options, known, incoming, operation, partial is not None)
    _check_formats(state, options, schema)
    if not options.partitions_to_delete:
        _check_columns(config, keys, schema if partial is None else partial.schema, incoming, operation, is_dml)
    _check_sort_columns(options, operation, schema)
    return WritePlan(
        table=_table_spec(state, options, schema, keys, rules, options.table.operation_field),
        files=_file_settings(state, options),
        operation=operation,
        index=resolve_buckets(_index(options, config, keys), state, operation),
        combine=options.combine_before_write,
        duplicates=options.dup_policy,
        merges_inserts=operation == "insert" and not options.merge_allow_duplicate_on_inserts,
        sort_mode=options.bulk_insert_sort_mode,
        sort_columns=options.bulk_insert_sort_columns,
        sorts_by_key=options.bulk_insert_sort_suffix_record_key,
        partial=partial,
        is_dml=is_dml,
        rounds=options.schema.allow_rounding,
        schema_changes=() if known is None else changed_columns(state, options, known, schema),
        allows_clustering_updates=options.allows_clustering_updates,
    )


def draft_files(
    state: TableState, options: WriteOptions, merger: Merger | None = None, planned: str | None = None
) -> FilePlan:
    """The plan of a table service that rewrites stored rows; it has no instant yet.

    Args:
        state: the pinned table.
        options: how files are written.
        merger: merges rows of a table with the merge mode CUSTOM.
        planned: requested time of a service that was planned earlier. If the schema was altered since, files get the
            columns of that time, because their names carry that time. None for now.

    Raises:
        ConfigError: options contradict the table.
        UnsupportedFeatureError: the table is not supported.
    """
    state = _with_columns_of(state, planned)
    options = replace(options, index=replace(options.index, type="SIMPLE"))
    check_against_table(options, state.config)
    _check_table(state)
    rules = _rules(state, options, merger or options.engine.merger)
    if not rules.defaults and not rules.partial_payload:
        rules = replace(rules, defaults=column_defaults(state))
    known = table_schema(state)
    if known is None:
        raise ConfigError(f"{state.storage.uri} has no commit yet, so there are no files to work on.")
    schema = known if not state.config.drop_partition_columns else known_columns(state, known)
    assert schema is not None
    _check_formats(state, options, schema)
    return FilePlan(
        table=_table_spec(
            state,
            options,
            schema,
            _key_config(state, options),
            rules,
            options.table.operation_field or stores_operations(state),
        ),
        files=_file_settings(state, options),
    )


def _with_columns_of(state: TableState, planned: str | None) -> TableState:
    history = state.view.history
    if history is None or planned is None or schema_at(history, planned) is schema_at(history, None):
        return state
    return replace(state, view=replace(state.view, history=replace(history, as_of=planned)))


def _table_spec(
    state: TableState,
    options: WriteOptions,
    schema: pa.Schema,
    keys: KeyConfig,
    rules: MergeRules,
    operations: bool,
) -> TableSpec:
    config = state.config
    stored = stored_columns(schema, config)
    file_schema = with_meta(stored, operations)
    return TableSpec(
        storage=state.storage,
        config=config,
        view=state.view,
        schema=schema,
        file_schema=file_schema,
        avro_schema=arrow_to_avro(file_schema, *record_name_of(config.name), meta_fields=True),
        key_config=keys,
        rules=rules,
        internal=_internal(state, options, stored),
        cdc=check_cdc_mode(config.cdc_mode, state.storage.uri) if config.cdc_enabled else None,
        indexed_columns=indexed_columns(state, options),
    )


def _file_settings(state: TableState, options: WriteOptions) -> FileSettings:
    config = state.config
    sizing = replace(options.sizing, max_file_size=_max_file_size(options, config))
    is_given = _RECORD_SIZE in options.explicit
    commits = (
        metadata
        for instant, metadata in commits_newest_first(state)
        if instant.action != "replacecommit" and metadata.operation_type != "BOOTSTRAP"  # skeletons have no data
    )
    return FileSettings(
        sizing=sizing,
        average_record_size=average_record_size(commits, sizing, is_given),
        record_size_is_given=is_given,
        parquet=_parquet(options),
        other=_other(options, config),
        bloom=replace(options.bloom, enabled=options.writes_bloom_filter and config.populate_meta_fields),
        log=_log(options, config),
        threads=options.engine.threads or os.cpu_count() or 1,
        max_threads=options.engine.threads or max_threads(state.storage),
    )


def _internal(state: TableState, options: WriteOptions, stored: pa.Schema) -> InternalSchema | None:
    """The columns with ids, if the table has a schema history or this write begins one."""
    history = state.view.history
    before = None if history is None else schema_at(history, history.as_of)
    if before is not None:
        return evolved_ids(before, stored, BY_THIS_COMMIT)
    return internal_schema(stored, BY_THIS_COMMIT) if options.schema.on_read and options.schema.reconcile else None


def _without(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def _check_table(state: TableState) -> None:
    """Refuse a table that cannot be written."""
    config = state.config
    _refuse(
        state,
        {
            f"table version {config.version} (only {', '.join(map(str, WRITE_VERSIONS))} are written; upgrade the "
            "table with services.upgrade() or `hudi-fast upgrade`)": config.version not in WRITE_VERSIONS,
            f"base files in {config.base_file_format} (write its rows into a new table with PARQUET, ORC or LANCE)": (
                config.base_file_format not in _WRITTEN_FORMATS
            ),
            f"partition markers in {config.base_file_format} (hoodie.partition.metafile.use.base.format)": (
                config.partition_metafile_in_base_format and config.base_file_format in ("ORC", "LANCE")
            ),
            f"the key generator class {config.key_generator_class}": config.key_generator_class is not None,
        },
    )


def _check_operation(state: TableState, options: WriteOptions, operation: str) -> None:
    _check_table(state)
    _refuse(
        state,
        {
            "hoodie.datasource.overwrite.mode=STATIC, which SQL alone uses (name the partitions to replace in "
            "hoodie.static.overwrite.partition.paths, or use insert_overwrite_table to replace all)": operation
            == "insert_overwrite"
            and options.overwrite_mode == "STATIC"
            and not options.static_overwrite_partitions,
        },
    )


def _check_row_options(state: TableState, options: WriteOptions) -> None:
    """Refuse options of merging and of meta columns that the table cannot follow."""
    config = state.config
    if options.table.operation_field and config.cdc_enabled:
        raise UnsupportedFeatureError(
            f"Table {config.name} records changes (hoodie.table.cdc.enabled), which is not supported together with "
            "hoodie.allow.operation.metadata.field=true. Leave that option out."
        )
    if options.merging.same_ordering_updates or not updates_on_same_ordering(config):
        return
    option, problem = "hoodie.payload.update.on.same.ordering.field=false", None
    if config.merge_mode != CUSTOM or config.payload_class != DEFAULT_PAYLOAD:
        problem = f"{option} applies where DefaultHoodieRecordPayload decides; this table merges by {config.merge_mode}"
    elif config.is_mor:
        problem = f"readers of logs follow the table's property, which is not set, and not {option} of a write"
    if problem is not None:
        raise UnsupportedFeatureError(
            f"Table {config.name}: {problem}. Leave the option out: where merge modes decide, Apache Hudi 1.2.0 "
            "ignores it, too, and a row wins over a stored one with an equal ordering value."
        )


def _check_formats(state: TableState, options: WriteOptions, schema: pa.Schema) -> None:
    """Refuse columns that the formats of files cannot hold, and HFile blocks that Apache Hudi would not read.

    Hudi treats a column ``key`` as the key of an HFile's entry, and empties it (HFileUtils, 1.2.0).
    """
    format_ = _format(options, state.config)
    vectors, maps = [field.name for field in schema if is_vector(field.type)], map_columns(schema)
    _refuse(
        state,
        {
            f"vector columns in ORC base files ({vectors})": bool(vectors) and format_ == "ORC",
            f"map columns in Lance base files ({maps}), which Apache Hudi 1.2.0 cannot write either": bool(maps)
            and format_ == "LANCE",
        },
    )
    if options.log.block_format != "hfile" or not state.config.is_mor:
        return
    codec = options.log.hfile_codec
    _refuse(
        state,
        {
            f"HFile log blocks in a table with a column {HFILE_KEY_COLUMN!r}": HFILE_KEY_COLUMN in schema.names,
            f"HFile log blocks compressed with {codec}, which Apache Hudi 1.2.0 cannot read "
            "(hoodie.hfile.compression.algorithm)": codec not in ("gz", "none"),
        },
    )


def _check_encryption(state: TableState, options: WriteOptions) -> None:
    """Refuse a write that would store encrypted values a second time, in plain text."""
    config, encryption = state.config, encryption_of(state.storage)
    if encryption is None or not encryption.writes:
        return
    keys = any(encryption.hides(name) for name in (*config.record_key_fields, RECORD_KEY))
    named = not encryption.is_uniform and any(encryption.hides(name) for name in config.record_key_fields)
    present = {*options.metadata.wanted_partitions(config), *config.metadata_partitions} - _WITHOUT_KEYS
    asked = options.metadata.secondary_column or options.metadata.expression_column
    problems = {
        "log files (the table is MERGE_ON_READ)": config.is_mor,
        "change logs (hoodie.table.cdc.enabled)": config.cdc_enabled,
        f"indexes of the metadata table ({', '.join(sorted(present))})": bool(keys and present),
        f"base files in {_format(options, config)} (hoodie.table.base.file.format)": _format(options, config)
        != "PARQUET",
        f"an index of the column {asked}": asked is not None and (keys or encryption.hides(asked)),
        "plain footers with key ranges (parquet.encryption.plaintext.footer)": keys and encryption.plaintext_footer,
        f"the column {RECORD_KEY} (parquet.encryption.column.keys must name it, too)": named
        and config.populate_meta_fields
        and not encryption.hides(RECORD_KEY),
    }
    shown = [text for text, present in problems.items() if present]
    if shown:
        raise UnsupportedFeatureError(
            f"Writing to {state.storage.uri} with Parquet's encryption is not supported: encrypted values would be "
            f"stored in plain text in {'; '.join(shown)}."
        )


def _refuse(state: TableState, problems: Mapping[str, bool]) -> None:
    found = [text for text, present in problems.items() if present]
    if found:
        raise UnsupportedFeatureError(f"Writing to {state.storage.uri} is not supported: it needs {'; '.join(found)}.")


def _check_columns(
    config: TableConfig, keys: KeyConfig, schema: pa.Schema, incoming: pa.Schema, operation: str, changes: bool
) -> None:
    """Check that key, partition and ordering columns exist; nested names are looked up by their first part."""
    found_again = RECORD_KEY in keys.record_key_fields
    looked_up = incoming if operation in DELETES or found_again else schema
    partitioned = () if keys.kind in ("NON_PARTITION", "GLOBAL_DELETE") else keys.partition_fields
    roles = [("partition path", partitioned)]
    if operation != "delete_partition":
        roles.append(("record key", keys.record_key_fields))
    if operation not in DELETES:
        roles.append(("ordering", config.ordering_fields))
    for role, names in roles:
        missing = [name for name in names if name.split(".")[0] not in looked_up.names]
        if missing:
            raise InvalidDataError(
                f"The {role} field(s) {missing} of table {config.name} are not among the incoming columns "
                f"{looked_up.names}. Add them to the rows."
            )
    if not keys.record_key_fields and operation not in _KEYLESS and not changes:
        raise ConfigError(
            f"Table {config.name} generates its record keys, so {operation} cannot match rows by key. Use insert or "
            "bulk_insert; or read the rows from the table, change them, and leave _hoodie_record_key and "
            "_hoodie_partition_path in them; or name hoodie.datasource.write.recordkey.field when the table is created."
        )


def _check_sort_columns(options: WriteOptions, operation: str, schema: pa.Schema) -> None:
    """Refuse sort columns of a bulk insert that do not exist or have no order."""
    for name in options.bulk_insert_sort_columns if operation == "bulk_insert" else ():
        found = find_dotted(schema, name)
        if found is None:
            raise ConfigError(
                f"There is no column {name!r} to sort by; the rows have {', '.join(schema.names)}. Set {_SORT_KEY} to "
                "columns of the rows, dotted within structs."
            )
        if pa.types.is_nested(found[1]):
            raise UnsupportedFeatureError(
                f"Rows cannot be sorted by {name!r}, whose type is {found[1]}. Choose other columns for {_SORT_KEY}, "
                "for example a field of a struct as `column.field`."
            )


def _rules(state: TableState, options: WriteOptions, merger: Merger | None) -> MergeRules:
    config = state.config
    rules = merge_rules_of(
        config,
        options.merging.delete_field,
        options.merging.delete_marker,
        merger,
        same_ordering_updates=options.merging.same_ordering_updates,
    )
    if rules.partial_mode == IGNORE_DEFAULTS and not rules.partial_payload:
        rules = replace(rules, defaults=column_defaults(state))
    moves = options.index.is_global and options.index.updates_partition
    if rules.merger is not None and moves:
        raise UnsupportedFeatureError(
            f"Table {config.name} merges rows by a Python function (hudi_fast.merger), which is not supported with the "
            f"global index {options.index.type}, where the two rows may be in different partitions. Use an index that "
            "is not global, or switch off update.partition.path of that index."
        )
    return rules


def _key_config(state: TableState, options: WriteOptions) -> KeyConfig:
    config = state.config
    types = config.partition_types
    if config.key_generator == "CUSTOM" and not types:
        types = options.keys.partition_spec.types if options.keys.partition_spec is not None else ()
        if len(types) != len(config.partition_fields):
            raise ConfigError(
                f"Table {config.name} uses the custom key generator and does not store the types of its partition "
                f"fields; give hoodie.datasource.write.partitionpath.field as name:SIMPLE or name:TIMESTAMP for "
                f"{list(config.partition_fields)}."
            )
    keys = KeyConfig(
        kind=config.key_generator,
        record_key_fields=config.record_key_fields,
        partition_fields=config.partition_fields,
        partition_types=types,
        hive_style=config.hive_style,
        url_encode=config.url_encode,
        slash_separated_dates=config.slash_separated_dates or options.keys.slash_separated_dates,
        consistent_logical_timestamp=options.keys.consistent_logical_timestamp,
        single_key_prefixed=_prefixes_single_key(state, options),
        timebased={**options.timebased, **config.keygen_properties},
        limits=key_limits(state, options),
    )
    return with_stored_styles(keys, state)


def _prefixes_single_key(state: TableState, options: WriteOptions) -> bool:
    """How the complex key generator writes a single key field; releases differ, so stored keys decide."""
    config = state.config
    if config.key_generator != "COMPLEX" or len(config.record_key_fields) != 1:
        return True
    stored = next(_stored_keys(state), None)
    if stored is not None:
        return stored.startswith(f"{config.record_key_fields[0]}:")
    return config.version >= 9 or not options.keys.complex_new_encoding


def _stored_keys(state: TableState) -> Iterator[str]:
    for partition in state.view.lister.partitions():
        for slice_ in latest_slices(state.view, partition):
            if slice_.base_file is not None:
                with open_base(state.storage, slice_.base_file) as reader:
                    yield from (keys[0].as_py() for keys in file_keys(reader, None) if len(keys))


def _log(options: WriteOptions, config: TableConfig) -> LogOptions:
    """Options of log files. Blocks have row positions only with table version 8, an index that finds positions
    (``HoodieIndex``, Hudi 1.2.0), and Parquet base files: Hudi gets positions of stored rows from its Parquet reader.

    HFile blocks have no positions: Hudi sorts their rows by key after it has sorted the positions
    (HoodieHFileDataBlock).
    """
    positions = options.log.record_positions and config.version >= 8 and not options.index.is_global
    positions = positions and config.base_file_format == "PARQUET" and not config.has_several_formats
    return replace(options.log, record_positions=positions and options.log.block_format != "hfile")


def _index(options: WriteOptions, config: TableConfig, keys: KeyConfig) -> IndexSettings:
    if RECORD_KEY in keys.record_key_fields:  # such rows name their partition
        kind = "BLOOM" if options.index.type.endswith("BLOOM") else "SIMPLE"
        return IndexSettings(kind, options.index.prune_by_ranges, False, options.index.use_metadata)
    bucket = None
    if options.index.type == "BUCKET":
        bucket = BucketSettings(
            options.bucket.engine,
            options.bucket.count,
            options.bucket.hash_fields or config.record_key_fields,
            options.bucket.min_count or options.bucket.count,
            options.bucket.max_count or options.bucket.count,
            parse_bucket_expressions(options.bucket.expressions),
            "hoodie.bucket.index.num.buckets" in options.explicit,
            shared_buckets=options.lock.mode == "NON_BLOCKING_CONCURRENCY_CONTROL",
        )
    return IndexSettings(
        "SIMPLE" if options.index.type == "INMEMORY" else options.index.type,
        options.index.prune_by_ranges,
        options.index.updates_partition,
        options.index.use_metadata,
        bucket,
    )


def _format(options: WriteOptions, config: TableConfig) -> str:
    """The format of new base files."""
    given = config.has_several_formats and "hoodie.table.base.file.format" in options.explicit
    return options.table.base_file_format if given else config.base_file_format


def _other(options: WriteOptions, config: TableConfig) -> OrcSettings | LanceSettings | None:
    """Encoding of base files in ORC or Lance; None if new base files are Parquet."""
    format_ = _format(options, config)
    if format_ == "LANCE":
        lance_files()  # before anything is written
        return LanceSettings()
    return OrcSettings(options.orc.codec, options.orc.stripe_size) if format_ == "ORC" else None


def _max_file_size(options: WriteOptions, config: TableConfig) -> int:
    """Target size of new base files, in bytes."""
    own = {
        "ORC": ("hoodie.orc.max.file.size", options.orc.max_file_size),
        "LANCE": ("hoodie.lance.max.file.size", options.lance.max_file_size),
    }
    key, size = own.get(_format(options, config), ("", 0))
    return size if key in options.explicit else options.sizing.max_file_size


def _parquet(options: WriteOptions) -> ParquetSettings:
    return ParquetSettings(
        options.parquet.codec,
        options.parquet.compression_level,
        options.parquet.block_size,
        options.parquet.page_size,
        options.parquet.dictionary,
    )
