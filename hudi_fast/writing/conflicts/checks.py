"""The last look before a commit of one of several writers: is anybody in its way?

========================================  ===================================================================
mode                                      what is looked at
========================================  ===================================================================
``OPTIMISTIC_CONCURRENCY_CONTROL``        file groups, and the schema
``NON_BLOCKING_CONCURRENCY_CONTROL``      the schema; all file groups of bulk inserts, overwrites, and changes that
                                          follow from what the table holds; others log beside each other into
                                          file groups that are known beforehand, and readers merge, but none of
                                          these may have been ended since
========================================  ===================================================================

(Apache Hudi looks at nothing but bulk inserts there: what is logged to a file group that an overwrite ended is lost.)

Source: ``TransactionUtils.resolveWriteConflictIfAny``, ``HoodieWriteConfig#needResolveWriteConflict`` (Hudi 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, ConfigError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of, with_meta
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.cleaned_files import cleaned_since
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.conflicts.resolve import OwnWrite, require_no_conflict
from hudi_fast.writing.conflicts.schemas import merged_schema
from hudi_fast.writing.conflicts.touched import groups_of_commit
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.rollback_plan import log_of, pending_rollback_of, rollback_of
from hudi_fast.writing.schema_commit import stored_columns

__all__ = ["Pinned", "check_mode", "pin", "plan_with_merged_schema", "require_no_conflicts", "require_nobody_else"]

_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_FIRST_NON_BLOCKING = 8
_LOGGED = frozenset({"upsert", "insert", "delete"})


@dataclass(frozen=True, slots=True)
class Pinned:
    """The table that a write works from.

    Attributes:
        state: as it was when the write began.
        columns: its data columns, where others may change them; looked up then, for their commit may be archived since.
    """

    state: TableState
    columns: pa.Schema | None = None


def pin(state: TableState, options: WriteOptions) -> Pinned:
    """What a write has to know of the table when it lands; under the table's lock, right before it begins."""
    return Pinned(state, table_schema(state) if options.lock.is_shared and options.lock.merges_schemas else None)


def check_mode(plan: WritePlan, options: WriteOptions) -> None:
    """Refuse a concurrency mode that the table cannot have.

    Raises:
        ConfigError: non-blocking writes to a table whose file groups are not known beforehand.
    """
    if options.lock.mode != _NON_BLOCKING:
        return
    bucket, config = plan.index.bucket, plan.config
    if not config.is_mor or bucket is None or bucket.engine != "SIMPLE":
        raise ConfigError(
            "Non-blocking concurrency control requires the MOR table with simple bucket index (hoodie.index.type=BUCKET"
            f"); {config.name} is {config.table_type} with {options.index_type}. Use OPTIMISTIC_CONCURRENCY_CONTROL."
        )
    if config.version < _FIRST_NON_BLOCKING:
        raise ConfigError(
            f"Non-blocking concurrency control requires table version {_FIRST_NON_BLOCKING}; {config.name} has version "
            f"{config.version}. Upgrade it, or use OPTIMISTIC_CONCURRENCY_CONTROL."
        )


def plan_with_merged_schema(
    instant: Instant, plan: WritePlan, pinned: Pinned, now: TableState, options: WriteOptions
) -> WritePlan:
    """The plan with the columns that the table has once the write is visible.

    Raises:
        CommitConflictError: the write and another one both changed the columns.
    """
    if not options.lock.merges_schemas:
        return plan
    schema = merged_schema(pinned.columns, pinned.state.timeline, now, plan.schema, instant.requested)
    if schema is plan.schema:
        return plan
    history = now.view.history
    table = replace(plan.table, schema=schema, internal=None if history is None else history.versions[-1])
    columns = with_meta(stored_columns(schema, plan.config))
    avro = arrow_to_avro(columns, *record_name_of(plan.config.name), meta_fields=True)
    return replace(plan, table=replace(table, file_schema=columns, avro_schema=avro))


def require_no_conflicts(
    instant: Instant,
    metadata: CommitMetadata,
    pinned: TableState,
    now: TableState,
    plan: WritePlan,
    options: WriteOptions,
) -> None:
    """Make sure that a write is in nobody's way; under the table's lock.

    Args:
        instant: the write, inflight.
        metadata: what it did.
        pinned: the table that it was pinned to.
        now: the table as it is.
        plan: of the write.
        options: mode and strategy.

    Raises:
        CommitConflictError: others changed its file groups, or took away what it saw, or might have seen.
    """
    _require_what_it_saw(instant, pinned, now)
    _require_its_slices(instant, metadata, pinned, now)
    if plan.operation != "bulk_insert":  # which looks at nothing
        _require_what_it_listed(instant, pinned, now)
    strategy = options.lock.strategy or ("simple" if plan.index.bucket is None else "bucket")
    if options.lock.mode == _NON_BLOCKING and plan.operation in _LOGGED and not plan.is_dml:
        strategy = "non_blocking"
    own = OwnWrite(instant, metadata.operation_type, groups_of_commit(metadata))
    require_no_conflict(now.storage, now.config, own, pinned.timeline, now.timeline, strategy)


def _require_what_it_saw(instant: Instant, pinned: TableState, now: TableState) -> None:
    """Rows of a complete write that was rolled back since would come back with the files that were made of its own.

    Apache Hudi looks at commits alone, and lands.
    """
    seen = {one.requested for one in pinned.timeline.writes()}
    left = seen & {one.requested for one in now.timeline.writes()}
    rollbacks = now.timeline.of_action("rollback")
    if left == seen:  # what completed ones took back had not been complete
        rollbacks = tuple(one for one in rollbacks if not one.is_completed)
    found = rollback_of(now.storage, now.config, rollbacks, seen)
    if found is not None:
        rollback, undone = found
        raise CommitConflictError(
            f"{now.storage.uri}: the write {undone}, which {instant.requested} saw, was rolled back in the meantime "
            f"({rollback.requested}). Its changes are withdrawn; run the operation again.",
            instant.requested,
            rollback.requested,
        )


def _require_its_slices(instant: Instant, metadata: CommitMetadata, pinned: TableState, now: TableState) -> None:
    """Before table version 8 what is logged on top of a pending compaction is named after the slice that it begins.

    When the compaction is taken off the timeline, or completed and rolled back, nobody reads that.
    """
    logs = (log_of(stat.path) for stat in metadata.write_stats() if stat.path)
    begun = {log.instant for log in logs if log is not None}
    slices = begun & {one.requested for one in pinned.timeline.pending_compactions}
    gone = [
        one
        for one in sorted(slices)
        if now.timeline.find(one) is None or pending_rollback_of(now.storage, now.config, now.timeline, one)
    ]
    if gone:
        raise CommitConflictError(
            f"{now.storage.uri}: the compaction {gone[0]}, on top of which {instant.requested} logged, was taken back "
            "in the meantime. The changes of this write are withdrawn; run the operation again.",
            instant.requested,
            gone[0],
        )


def _require_what_it_listed(instant: Instant, pinned: TableState, now: TableState) -> None:
    """Keys in a slice that a newer one followed, and that was cleaned, before folders were listed are not found there.

    The write would add them once more. It says nothing of what it did not find, so a slice of any partition that it may
    have looked into counts.
    """
    for removed in cleaned_since(pinned, now.timeline):
        raise CommitConflictError(
            f"{now.storage.uri}: the clean {removed.clean.requested} removed {removed.path}, in which "
            f"{instant.requested} may have looked for keys, in the meantime. Its changes are withdrawn; run the "
            "operation again. A table with a metadata table (hoodie.metadata.enable) knows what was there before.",
            instant.requested,
            removed.clean.requested,
            ((removed.partition, removed.file_id),),
        )


def require_nobody_else(instant: Instant, pinned: TableState) -> None:
    """Make sure that rows which follow from what the table holds still do, where no other writer is expected.

    The lock keeps writers of this machine away, others do not ask for it.

    Args:
        instant: the write, inflight.
        pinned: the table that its rows were worked out from.

    Raises:
        CommitConflictError: another writer has committed since.
    """
    now = load_timeline(pinned.storage, pinned.config)
    others = _writes(now, pinned.config.is_mor) - _writes(pinned.timeline, pinned.config.is_mor) - {instant.requested}
    if others:
        raise CommitConflictError(
            f"{pinned.storage.uri} was written to ({', '.join(sorted(others))}) while {instant.requested} worked out "
            "what it changes. Its changes are withdrawn; run the operation again.",
            instant.requested,
            max(others),
        )


def _writes(timeline: Timeline, is_mor: bool) -> frozenset[str]:
    """Completed writes that change rows; on merge-on-read tables ``commit`` is a compaction."""
    return frozenset(one.requested for one in timeline.writes() if not (is_mor and one.action == "commit"))
