"""Alter the columns of a table, and the properties of its users.

Alters the columns of a table: an empty commit with another schema, and its schema commit.

::

    the table's lock: clean up ─► former schema + changes ─► requested ─► inflight ─► schema commit
        ─► metadata table ─► completed commit with ``schema`` and ``latest_schema``     visible

No file is rewritten: older files are read with the current names (:mod:`hudi_fast.schema.history`).

Source: ``AlterTableCommand`` (Hudi 1.2.0).

Changes the properties that users keep with a table, in ``hoodie.properties``; no commit is made.

::

    the table's lock: backup ─► hoodie.properties anew ─► the backup is removed

The next change undoes one that a crash interrupted.

Properties of a table that its users set: keys of their own, and the few of Hudi on which no stored file depends.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hudi_fast.config.option_fields import text_of
from hudi_fast.config.options import find_option
from hudi_fast.config.properties_file import update_properties
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import ConfigError
from hudi_fast.formats.column_limits import check_type_limits
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.alter import Change, altered
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.schema.internal import InternalSchema, arrow_schema, evolved_ids, internal_schema
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.draft import draft_files
from hudi_fast.writing.metadata_commit import ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.table_schema import BY_THIS_COMMIT, record_schema, schema_metadata
from hudi_fast.writing.transaction import Transaction, begin, publish, recover, rolled_back_on_failure
from hudi_fast.writing.write_plan import FilePlan

__all__ = ["AlterResult", "alter_table", "checked_properties", "own_properties", "set_own_properties"]

_OPERATION = "ALTER_SCHEMA"
_BY_DEFINITION = ("secondary_index", "expr_index")


@dataclass(frozen=True, slots=True)
class AlterResult(ShownResult):
    """The result of altering a table.

    Attributes:
        instant: requested time of the commit; empty when the changes had no effect.
        schema: the data columns now.
        seconds: time from the call until the commit is visible.
    """

    instant: str
    schema: pa.Schema
    seconds: float


@dataclass(frozen=True)
class _Altering:
    """The table's columns before and after.

    Attributes:
        state: the table before; its history has at least one version.
        plan: a commit without rows, with the new columns.
    """

    state: TableState
    plan: FilePlan


def alter_table(session: TableSession, changes: Sequence[Change]) -> AlterResult:
    """Apply changes to the columns of a table: all of them, or none.

    Args:
        session: the call.
        changes: in the order in which they apply.

    Raises:
        ConfigError: a column is missing or must stay, a name is taken, or the table has no columns.
        SchemaMismatchError: stored values cannot become the new type.
        HudiError: as for a write; unless it is ``CommitStateUnknownError`` the table is as before.
    """
    started, options = time.monotonic(), session.settings.write
    with session.locked() as state:
        if _draft(state, changes, options) is None:  # refuses invalid changes before anything is written
            return AlterResult("", table_schema(state) or pa.schema([]), time.monotonic() - started)
        state = recover(session)
        state = ensure_metadata(session, draft_files(state, options))
        altering = _draft(state, changes, options)
        if altering is None:
            return AlterResult("", table_schema(state) or pa.schema([]), time.monotonic() - started)
        session.set_state(altering.state)
        transaction = begin(session, _OPERATION, False)
        plan = replace(altering.plan, instant=transaction.instant.requested)
        with rolled_back_on_failure(transaction):
            _publish(transaction, altering.state, plan)
        session.changed()
        maintain_metadata(session, altering.state)
    return AlterResult(plan.instant, plan.schema, time.monotonic() - started)


def _publish(transaction: Transaction, state: TableState, plan: FilePlan) -> None:
    session = transaction.session
    extra = {**session.settings.write.extra_metadata, **schema_metadata(plan)}
    metadata = CommitMetadata({}, extra, _OPERATION)

    def record() -> None:
        record_schema(state, plan, session.clock)
        record_in_metadata(session, plan, metadata)

    publish(transaction, metadata, record)


def _draft(state: TableState, changes: Sequence[Change], options: WriteOptions) -> _Altering | None:
    """The commit to make; None when there is nothing to commit."""
    known = table_schema(state)
    if known is None or not len(known):
        raise ConfigError(f"{state.storage.uri} has no columns yet: write rows to it first.")
    history = state.view.history
    before = internal_schema(known) if history is None else _newest_schema(state, history, known)
    after = altered(before, changes, _roles(state), BY_THIS_COMMIT)
    if after.record == before.record:
        return None
    versions = () if history is None else history.versions
    if not versions or versions[-1] is not before:
        versions = (*versions, before)
    state = replace(state, view=replace(state.view, history=SchemaHistory(versions)))
    plan = draft_files(state, options)
    schema = arrow_schema(after, before, known)
    check_type_limits(schema)
    table = replace(plan.table, schema=schema, internal=after)
    return _Altering(state, replace(plan, table=table))


def _newest_schema(state: TableState, history: SchemaHistory, known: pa.Schema) -> InternalSchema:
    """The newest schema; columns that the history lacks get their ids now."""
    newest = history.versions[-1]
    last = max((int(instant.requested) for instant in state.timeline.writes()), default=newest.version)
    return evolved_ids(newest, known, last)


def _roles(state: TableState) -> dict[str, str]:
    """Columns that must not change, with their roles."""
    config = state.config
    roles = dict.fromkeys(config.ordering_fields, "an ordering field")
    roles |= dict.fromkeys(config.partition_fields, "a partition field")
    roles |= dict.fromkeys(config.record_key_fields, "a record key field")
    table = metadata_of(state)
    for name, definition in ({} if table is None else table.definitions).items():
        if name.startswith(_BY_DEFINITION):
            text = f"what the index {name} is made of (drop the index first)"
            roles |= {field: text for field in definition.source_fields if field not in roles}
    return roles


_OF_HUDI = ("hoodie.", "hudi_fast.")
_SETTABLE = ("hoodie.database.name", "hoodie.table.partition_extractor_class")
_DESCRIBING = ("hoodie.table.", "hoodie.timeline.", "hoodie.populate.", "hoodie.archivelog.", "hoodie.index.defs.")


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties among those of a table that :func:`checked_properties` allows."""
    return {key: value for key, value in properties.items() if _is_own(key)}


def checked_properties(changes: Mapping[str, Any]) -> dict[str, str | None]:
    """Changes of properties as they are stored: a value as text, None for a key that is removed.

    Args:
        changes: key to a text, a boolean, a number, a list of names, or None.

    Raises:
        ConfigError: a key belongs to Hudi or hudi_fast, or is empty; a value has another type.
    """
    if not isinstance(changes, Mapping):
        raise ConfigError(f"Properties are a dict of keys and values; got {type(changes).__name__}.")
    found: dict[str, str | None] = {}
    for given, raw in changes.items():
        if not isinstance(given, str) or not (key := given.strip()):
            raise ConfigError(f"The key of a property is a text that is not blank; got {given!r}.")
        if not _is_own(key):
            raise ConfigError(_refusal(key))
        found[key] = None if raw is None else text_of(key, raw)
    return found


def _is_own(key: str) -> bool:
    return key in _SETTABLE or not key.startswith(_OF_HUDI)


def _refusal(key: str) -> str:
    allowed = f"Set keys of your own, or {' or '.join(_SETTABLE)}."
    if key.startswith(_DESCRIBING):
        return f"{key} describes how the files of the table are stored, so it cannot be set afterwards. {allowed}"
    if find_option(key) is not None:
        return f"{key} is an option of calls, not of a table: pass it as options= of the write or service. {allowed}"
    return f"{key} cannot be set: keys that begin with {' or '.join(_OF_HUDI)} belong to the format. {allowed}"


def set_own_properties(session: TableSession, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Set and remove properties; all of them, or none. Returns all that users have set.

    Args:
        session: the call.
        changes: checked by :func:`hudi_fast.writing.alter.checked_properties`.

    Raises:
        CommitConflictError: another process began a change at the same time.
        LockError: the lock cannot be acquired.
    """
    with session.locked():
        session.require_lock()
        properties = update_properties(session.storage, changes)
        session.changed()
    return own_properties(properties)
