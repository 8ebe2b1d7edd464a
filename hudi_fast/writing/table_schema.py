"""The schema and the partition style of a table after a write.

The columns of a table after a write; refuses rows that do not fit them.

::

    table's columns + incoming columns + options ─► reconciled ─► the columns of the write, or SchemaMismatchError
                                                      └► changed_columns ─► what the write changes, for its result

The schema in commit metadata, and the schema commit of tables with a schema history.

::

    FilePlan ─► extra metadata: ``schema`` (Avro), ``latest_schema`` (internal)
         └─────► .hoodie/.schema/<instant>: all internal schemas, newest first; before the commit is visible

Every commit stores the whole history, so it remains after the commits that altered the schema are archived.

Source: ``BaseHoodieWriteClient.saveInternalSchema``, ``FileBasedInternalSchemaStorageManager`` (Hudi 1.2.0).

How a table's partition paths write times. No property records it, so the stored paths decide.

======================================  ========================================  ==========================
a timestamp column is written as        by Apache Hudi                            here
======================================  ========================================  ==========================
``1704477600789000``                    DataFrames                                by default
``2024-01-05 18:00:00.789``             DataFrames, with the option               with the option
                                        ``consistent.logical.timestamp.enabled``
``2024-01-05 18%3A00%3A00``             SQL                                       if the table has such paths
======================================  ========================================  ==========================

If a row's path were written in another way, its key would be stored in two partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError, SchemaMismatchError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of
from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.keys.partition_path import stored_values
from hudi_fast.schema.evolution import (
    ORDERING,
    EvolutionRules,
    SchemaChange,
    deduce_writer_schema,
    require_fit,
    schema_changes,
)
from hudi_fast.schema.history import schema_at
from hudi_fast.schema.internal import InternalSchema, replaced_ids, schema_json, versions_json
from hudi_fast.schema.normalize import normalize_input_schema
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State, instant_file_name
from hudi_fast.view.schema_history import SCHEMA_COMMIT, SCHEMA_FOLDER, newest_schema_commit
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.write_plan import FilePlan

__all__ = [
    "BY_THIS_COMMIT",
    "DELETES",
    "avro_of_columns",
    "changed_columns",
    "known_columns",
    "overwritten_ids",
    "reconciled",
    "record_schema",
    "schema_metadata",
    "stored_columns",
    "with_stored_styles",
]

DELETES = frozenset({"delete", "delete_partition"})
"""Operations whose rows only name keys or partitions."""


def known_columns(state: TableState, incoming: pa.Schema) -> pa.Schema | None:
    """The table's columns; None for a table without any.

    Args:
        state: the table.
        incoming: columns of the rows, from which columns stored only in the path get their types.
    """
    known = table_schema(state)
    if known is None or not state.config.drop_partition_columns:
        return known
    given = normalize_input_schema(incoming, known)
    named = [given.field(name).with_nullable(True) for name in state.config.partition_fields if name in given.names]
    return pa.schema([*(field for field in known if field.name not in state.config.partition_fields), *named])


def reconciled(
    state: TableState,
    options: WriteOptions,
    known: pa.Schema | None,
    incoming: pa.Schema,
    operation: str,
    partial: bool,
) -> pa.Schema:
    """The columns of the table after a write.

    Args:
        state: the table.
        options: of the write.
        known: :func:`known_columns`.
        incoming: columns of the rows.
        operation: of the write.
        partial: whether rows have only some of the columns.

    Raises:
        ConfigError: a delete from a table without columns.
        SchemaMismatchError: the rows do not fit.
    """
    rules = _rules(state, options)
    try:
        if operation not in DELETES and not partial:
            return deduce_writer_schema(known, incoming, rules)
        if known is None:
            raise ConfigError(f"There is nothing to delete: {state.storage.uri} has no commit yet.")
        roots = {name.split(".")[0] for name in rules.roles}
        require_fit(known, incoming if partial else pa.schema([one for one in incoming if one.name in roots]), rules)
        return known
    except SchemaMismatchError as error:
        raise SchemaMismatchError(f"{error}\nTable {state.config.name} ({state.storage.uri}) is as before.") from error


def changed_columns(
    state: TableState, options: WriteOptions, known: pa.Schema, schema: pa.Schema
) -> tuple[SchemaChange, ...]:
    """The changes that a write makes to the columns of a table.

    Args:
        state: the table.
        options: of the write.
        known: :func:`known_columns`.
        schema: :func:`reconciled`.
    """
    config = state.config
    if config.drop_partition_columns:
        known = pa.schema([one for one in known if one.name in schema.names or one.name not in config.partition_fields])
    return schema_changes(known, schema, _rules(state, options).refuses_missing)


def _rules(state: TableState, options: WriteOptions) -> EvolutionRules:
    return EvolutionRules(
        options.schema.reconcile,
        options.schema.validates,
        options.schema.allow_column_drop,
        options.schema.null_for_missing_columns,
        state.config.partition_fields,
        state.config.drop_partition_columns,
        state.view.history is not None,
        options.schema.allow_rounding,
        _roles(state.config),
    )


def _roles(config: TableConfig) -> Mapping[str, str]:
    partitioned = config.partition_fields if config.is_partitioned else ()
    return {
        **dict.fromkeys(config.ordering_fields, ORDERING),
        **dict.fromkeys(partitioned, "partition path"),
        **dict.fromkeys(config.record_key_fields, "record key"),
    }


BY_THIS_COMMIT = -1
"""Version of an internal schema of a commit without an instant yet."""

_LATEST = "latest_schema"


def stored_columns(schema: pa.Schema, config: TableConfig) -> pa.Schema:
    """The columns in data files. A table may keep its partition columns in the path only."""
    dropped = config.partition_fields if config.drop_partition_columns else ()
    return pa.schema([field for field in schema if field.name not in dropped])


def avro_of_columns(columns: pa.Schema, table_name: str) -> str:
    """The Avro JSON that a commit records as the table's schema, without meta columns."""
    return arrow_to_avro(columns, *record_name_of(table_name))


def overwritten_ids(plan: FilePlan, state: TableState) -> InternalSchema | None:
    """The columns with their ids after a write that replaces the table; None without a schema history.

    Args:
        plan: of the write: the new columns.
        state: the table before it.
    """
    history = state.view.history
    before = None if history is None else schema_at(history, history.as_of)
    if before is None:
        return plan.table.internal
    columns = table_schema(state)
    if columns is not None and columns.equals(plan.schema):
        return before
    return replaced_ids(before, stored_columns(plan.schema, plan.config), BY_THIS_COMMIT)


def schema_metadata(plan: FilePlan) -> dict[str, str]:
    """The schema entries of a commit's extra metadata.

    Args:
        plan: of the write or service, with its instant.
    """
    known = {"schema": avro_of_columns(stored_columns(plan.schema, plan.config), plan.config.name)}
    internal = _internal(plan)
    return known if internal is None else {**known, _LATEST: schema_json(internal)}


def record_schema(state: TableState, plan: FilePlan, clock: InstantClock) -> None:
    """Write the schema commit of a write right before it becomes visible; does nothing without a schema history.

    Deletes schema commits of failed writes, and old ones: each schema commit holds the whole history.

    Args:
        state: the table before the write.
        plan: of the write, with its instant.
        clock: source of the completion time.
    """
    internal = _internal(plan)
    if internal is None:
        return
    history = state.view.history
    versions = () if history is None else history.versions
    newer = [] if any(one.version == internal.version for one in versions) else [internal]
    body = versions_json([*newer, *reversed(versions)]).encode()
    _clean(state)
    instant, layout = Instant(plan.instant, SCHEMA_COMMIT, State.REQUESTED), state.config.layout_version
    _write(state.storage, instant, layout, b"")
    _write(state.storage, Instant(plan.instant, SCHEMA_COMMIT, State.INFLIGHT), layout, b"")
    completion = clock.next_time(plan.instant)
    _write(state.storage, Instant(plan.instant, SCHEMA_COMMIT, State.COMPLETED, completion), layout, body)


def _internal(plan: FilePlan) -> InternalSchema | None:
    made = plan.table.internal
    if made is None or made.version != BY_THIS_COMMIT:
        return made
    return InternalSchema(int(plan.instant), made.max_column_id, made.record)


def _write(storage: Storage, instant: Instant, layout: int, body: bytes) -> None:
    storage.write_bytes(f"{SCHEMA_FOLDER}/{instant_file_name(instant, layout)}", body)


def _clean(state: TableState) -> None:
    """Delete obsolete schema commits; keep the newest valid one."""
    complete = {instant.requested for instant in state.timeline.writes()}
    newest = newest_schema_commit(state.storage, state.config, state.timeline)
    for entry in state.storage.list_dir(SCHEMA_FOLDER):
        requested = entry.name.lstrip(".").partition(".")[0].partition("_")[0]
        if not entry.is_dir and requested not in complete and entry.path != newest:
            state.storage.delete_file(entry.path)


_OPTION = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
_NUMBER, _TEXT, _SQL = "the stored number", "date, time and fraction", "date and time, as Spark SQL writes them"
_FORMS = {
    _NUMBER: re.compile(r"-?\d+"),
    _TEXT: re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+"),
    _SQL: re.compile(r"\d{4}-\d\d-\d\d \d\d(:|%3A)\d\d(:|%3A)\d\d"),
}


def with_stored_styles(keys: KeyConfig, state: TableState) -> KeyConfig:
    """The settings of paths that fit the partitions of a table.

    Args:
        keys: by the table's properties and the user's options.
        state: the table.

    Raises:
        ConfigError: the paths of the table hold timestamps as text but the option is off, or the other way round.
    """
    if not keys.partition_fields or keys.kind == "NON_PARTITION":
        return keys
    schema = table_schema(state) or pa.schema([])
    typed = [name for name in keys.partition_fields if name in schema.names]
    if any(pa.types.is_string(schema.field(name).type) and keys.is_timestamp_field(name) for name in typed):
        keys = replace(keys, numbers_as_text=True)
    times = [name for name in typed if _is_instant(schema.field(name).type) and not keys.is_timestamp_field(name)]
    found = set(_styles(state, times)) if times else set()
    if found == {_SQL}:
        return replace(keys, sql_timestamps=True)
    wanted = _TEXT if keys.consistent_logical_timestamp else _NUMBER
    if found and wanted not in found:
        raise ConfigError(
            f"The partition paths of {state.storage.uri} hold the timestamps of {', '.join(times)} as "
            f"{' and as '.join(sorted(found))}; this write would put rows of stored keys into other partitions, as "
            f"{wanted}. Set {_OPTION}={str(wanted == _NUMBER).lower()} as the writers of the table."
        )
    return keys


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


def _styles(state: TableState, names: list[str]) -> Iterator[str]:
    """The forms in which the partition paths hold some fields."""
    for path in state.view.lister.partitions():
        values = stored_values(path, state.config) or {}
        texts = [text for name in names if (text := values.get(name)) is not None]
        yield from (style for text in texts for style, form in _FORMS.items() if form.fullmatch(text))
