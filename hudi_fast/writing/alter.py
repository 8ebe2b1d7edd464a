"""Altering the columns of a table: an empty commit with another schema, and the schema commit that goes with it.

::

    the table's lock: clean up ─► schema of before + changes ─► requested ─► inflight ─► schema commit
        ─► metadata table ─► completed commit with ``schema`` and ``latest_schema``     visible

No file is rewritten: files of before are read in today's names (:mod:`hudi_fast.schema.history`).

Source: ``AlterTableCommand`` (Hudi 1.2.0).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitError, CommitStateUnknownError, ConfigError, LockError
from hudi_fast.locking.table_lock import table_lock
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.updates.runner import in_threads
from hudi_fast.schema.alter import Change, altered
from hudi_fast.schema.column_ids import evolved_ids
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.schema.internal import InternalSchema
from hudi_fast.schema.internal_types import arrow_schema, internal_schema
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.draft import draft_plan
from hudi_fast.writing.failed_writes import failed_writes, sending_writer_heartbeats
from hudi_fast.writing.metadata_commit import ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.schema_commit import BY_THIS_COMMIT, record_schema, schema_metadata
from hudi_fast.writing.transaction import Transaction, abandon, begin, clean_up, commit, left_pending, noted_on

__all__ = ["AlterResult", "alter_table"]

_OPERATION = "ALTER_SCHEMA"
_BY_DEFINITION = ("secondary_index", "expr_index")


@dataclass(frozen=True, slots=True)
class AlterResult:
    """What altering a table did.

    Attributes:
        instant: requested time of the commit; empty when the changes left everything as it was.
        schema: the data columns now.
        seconds: from call to visible.
    """

    instant: str
    schema: pa.Schema
    seconds: float


@dataclass(frozen=True)
class _Altering:
    """The table's columns before and after.

    Attributes:
        state: the table; its history is that of before, with at least one version.
        plan: a commit that brings no rows, with the columns of after.
    """

    state: TableState
    plan: WritePlan


def alter_table(storage: Storage, changes: Sequence[Change], options: WriteOptions) -> AlterResult:
    """Change the columns of a table, all of the changes or none.

    Args:
        storage: the table's storage.
        changes: in the order in which they apply.
        options: locks, clocks and the metadata table.

    Raises:
        ConfigError: a column that is not there or must stay, a name that is taken, a table without columns.
        SchemaMismatchError: a type that stored values do not become.
        HudiError: as for a write; unless it is ``CommitStateUnknownError`` the table is as before.
    """
    started = time.monotonic()
    with table_lock(storage, options.lock) as held:
        state = open_state(storage)
        clock = InstantClock(state.config.timezone, options.clock_skew_ms, held=held)
        altering = _draft(state, changes, options)  # refuses what it can before anything is done
        if altering is None:
            return AlterResult("", table_schema(state) or pa.schema([]), time.monotonic() - started)
        failed = failed_writes(options)
        state = clean_up(state, clock, failed)
        plan = _plan(state, options, table_schema(state) or pa.schema([]))
        state = ensure_metadata(state, plan, options.metadata, clock, in_threads())
        altering = _draft(state, changes, options) or altering
        requested = clock.next_time(state.timeline.newest_time)
        with sending_writer_heartbeats(storage, requested, failed):
            transaction = begin(altering.state, clock, _OPERATION, False, requested)
            plan = replace(altering.plan, instant=requested)
            _commit(transaction, replace(altering, plan=plan), options)
        maintain_metadata(state, options.metadata, clock)
    return AlterResult(requested, plan.schema, time.monotonic() - started)


def _draft(state: TableState, changes: Sequence[Change], options: WriteOptions) -> _Altering | None:
    """The commit to make; None when there is nothing to commit."""
    known = table_schema(state)
    if known is None or not len(known):
        raise ConfigError(f"{state.storage.uri} has no columns yet: write rows to it first.")
    history = state.view.history
    before = internal_schema(known) if history is None else _recovered(state, history, known)
    after = altered(before, changes, _roles(state), BY_THIS_COMMIT)
    if after.record == before.record:
        return None
    versions = () if history is None else history.versions
    if not versions or versions[-1] is not before:
        versions = (*versions, before)
    state = replace(state, view=replace(state.view, history=SchemaHistory(versions)))
    plan = replace(_plan(state, options, known), schema=arrow_schema(after, before, known), internal=after)
    return _Altering(state, plan)


def _recovered(state: TableState, history: SchemaHistory, known: pa.Schema) -> InternalSchema:
    """The newest schema; columns that came without the history's knowledge get their ids now."""
    newest = history.versions[-1]
    last = max((int(instant.requested) for instant in state.timeline.writes()), default=newest.version)
    return evolved_ids(newest, known, last)


def _plan(state: TableState, options: WriteOptions, known: pa.Schema) -> WritePlan:
    """A write that neither brings columns nor needs keys."""
    drafted = replace(options, operation="delete_partition", partitions_to_delete=("*",), index_type="SIMPLE")
    return replace(draft_plan(state, drafted, known), operation=_OPERATION.lower())


def _roles(state: TableState) -> dict[str, str]:
    """Columns that must stay what they are, and what they are."""
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


def _commit(transaction: Transaction, altering: _Altering, options: WriteOptions) -> None:
    state, plan, clock = altering.state, altering.plan, transaction.clock
    metadata = CommitMetadata({}, {**options.extra_metadata, **schema_metadata(plan)}, _OPERATION)

    def record(_storage: Storage, _instant: Instant, made: CommitMetadata) -> None:
        record_schema(state, plan, clock)
        record_in_metadata(state, plan, options.metadata, plan.instant, made, clock, in_threads())

    try:
        commit(transaction, metadata, [record])
    except CommitStateUnknownError:
        raise
    except LockError as error:
        raise left_pending(transaction, error) from error
    except OSError as error:
        _abandon(transaction, error)
        raise CommitError(
            f"Altering {state.storage.uri} ({plan.instant}) failed because of storage: {error}. The table is as "
            "before; run it again."
        ) from error
    except BaseException as error:
        _abandon(transaction, error)
        raise


def _abandon(transaction: Transaction, cause: BaseException) -> None:
    with noted_on(cause, f"Rolling the ALTER {transaction.instant.requested} back"):
        abandon(transaction)
