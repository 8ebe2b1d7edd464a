"""The schema in commit metadata, and the schema commit of tables with a schema history.

::

    FilePlan ─► extra metadata: ``schema`` (Avro), ``latest_schema`` (internal)
         └─────► .hoodie/.schema/<instant>: all internal schemas, newest first; before the commit is visible

Every commit stores the whole history, so it remains after the commits that altered the schema are archived.

Source: ``BaseHoodieWriteClient.saveInternalSchema``, ``FileBasedInternalSchemaStorageManager`` (Hudi 1.2.0).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of
from hudi_fast.schema.column_ids import replaced_ids
from hudi_fast.schema.history import schema_at
from hudi_fast.schema.internal import InternalSchema, schema_json, versions_json
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instant import Instant, State, instant_file_name
from hudi_fast.view.schema_history import SCHEMA_COMMIT, SCHEMA_FOLDER, newest_schema_commit
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.write_plan import FilePlan

__all__ = ["BY_THIS_COMMIT", "avro_of_columns", "overwritten_ids", "record_schema", "schema_metadata", "stored_columns"]

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
