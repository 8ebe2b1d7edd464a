"""Conflict checks of a write at its commit.

Conflict checks right before a commit, by concurrency mode.

========================================  ===================================================================
mode                                      checked
========================================  ===================================================================
``OPTIMISTIC_CONCURRENCY_CONTROL``        file groups, and the schema
``NON_BLOCKING_CONCURRENCY_CONTROL``      the schema; all file groups of bulk inserts, overwrites and DML; other writes
                                          log concurrently into known file groups, which readers merge, and only
                                          conflict when such a file group was replaced
========================================  ===================================================================

(Apache Hudi checks only bulk inserts in that mode: rows logged to a file group that an overwrite replaced are lost.)

Source: ``TransactionUtils.resolveWriteConflictIfAny``, ``HoodieWriteConfig#needResolveWriteConflict`` (Hudi 1.2.0).

Checks a write for conflicts at commit time. The first write to complete wins.

::

    timeline at the beginning ─┐
    timeline now ──────────────┴─► candidates ─► their file groups ─┐
    own write stats ─► own file groups ─────────────────────────────┴─► disjoint, or CommitConflictError

Candidates are all writes completed since the table was pinned, at any requested time: this write has not read their
changes. (Apache Hudi determines the last completed write after it creates its own instant, and may miss a write
that completes in between. An extra candidate only causes a retry.) Further candidates, by strategy:

=============  =====================================================================================================
strategy       pending instants
=============  =====================================================================================================
simple         clusterings; replace commits requested later; before table version 8 compactions planned since
bucket         the same; file groups are compared by the bucket prefix of their file ids
prefer_writer  none: pending clusterings check for conflicts when they complete
non_blocking   none; of the completed instants only replace commits, which replaced file groups
=============  =====================================================================================================

On merge-on-read tables of version 8 and later a compaction never conflicts with a write: log files written during it
belong to the slice that it creates. Before, only log files of writes that found its plan on the timeline do. (Apache
Hudi compares requested times instead, and misses a plan of a machine whose clock is behind.) Writes that only add file
groups never conflict: two concurrent inserts of one new key both complete.

A write that was on the pinned timeline and is missing now was rolled back. Its rows may be part of this write's, so
this is a conflict for any file groups. (Apache Hudi does not check.) The same holds for a write that was pending then
and has been completed and archived since, which takes about twenty commits during this write.

Sources: ``SimpleConcurrentFileWritesConflictResolutionStrategy``, ``BucketIndexConcurrentFileWrites...``,
``PreferWriterConflictResolutionStrategy``, ``TransactionUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, ConfigError, FileGoneError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of, with_meta
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, State, Timeline, load_timeline
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.lost_files import cleaned_since
from hudi_fast.view.pending import read_clustering_plan
from hudi_fast.view.table_state import TableState, load_state, table_schema
from hudi_fast.writing.early_conflicts import FileGroup, groups_of_commit, touched_groups
from hudi_fast.writing.rollback_plan import log_of, pending_rollback_of, rollback_of
from hudi_fast.writing.table_schema import stored_columns
from hudi_fast.writing.write_plan import WritePlan

__all__ = [
    "OwnWrite",
    "Pinned",
    "candidates",
    "check_mode",
    "conflict_of_missing_file",
    "merged_schema",
    "pin",
    "plan_with_merged_schema",
    "require_no_conflict",
    "require_no_conflicts",
    "require_no_other_commit",
]

_BUCKET_DIGITS = 8
_THREADS = 8
_NAMED = 5
_FIRST_WITH_COMPLETION_TIMES = 8


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A write that is about to complete.

    Attributes:
        instant: inflight.
        operation: as commit metadata names it.
        groups: file groups that it wrote to or replaced.
    """

    instant: Instant
    operation: str
    groups: frozenset[FileGroup]


def require_no_conflict(
    storage: Storage, config: TableConfig, own: OwnWrite, before: Timeline, now: Timeline, strategy: str
) -> None:
    """Check that no other writer changed the file groups of a write since it began; called under the table's lock.

    Args:
        storage: the table's storage.
        config: its configuration.
        own: the write.
        before: the timeline that it was pinned to.
        now: the current timeline.
        strategy: ``simple``, ``bucket``, ``prefer_writer`` or ``non_blocking``.

    Raises:
        CommitConflictError: another writer changed them.
        CorruptTableError: the metadata of an instant cannot be parsed.
    """
    _require_all_there(storage, own, before, now)
    _require_none_archived(storage, config, own, before, now)
    others = candidates(storage, config, own.instant, before, now, strategy)
    if not others:
        return
    with ThreadPool(_THREADS) as pool:
        touched = pool.map(lambda one: touched_groups(storage, config, one), others)
        for other, groups in zip(others, touched, strict=True):
            common = _in_common(own.groups, groups, strategy)
            if common:
                raise _conflict(storage, own, other, common)


def _require_all_there(storage: Storage, own: OwnWrite, before: Timeline, now: Timeline) -> None:
    gone = [one for one in before.writes() if not now.is_completed_or_archived(one.requested)]
    if gone:
        raise CommitConflictError(
            f"The {gone[-1].action} {gone[-1].requested} of {storage.uri} was rolled back since {own.operation} "
            f"{own.instant.requested} began, which may have read it. Nothing of it is visible; run it again.",
            own.instant.requested,
            gone[-1].requested,
        )


def _require_none_archived(
    storage: Storage, config: TableConfig, own: OwnWrite, before: Timeline, now: Timeline
) -> None:
    """Refuse the write if a formerly pending instant left the timeline completed and archived, not rolled back."""
    gone = {one.requested for one in before.pending_writes if now.find(one.requested) is None}
    if not gone:
        return
    archived = ArchivedTimeline(storage, config).instants(min(gone), max(gone), WRITE_ACTIONS)
    found = next((one for one in archived if one.requested in gone), None)
    if found is not None:
        raise CommitConflictError(
            f"The {found.action} {found.requested} of {storage.uri} was pending when {own.operation} "
            f"{own.instant.requested} began, and is completed and archived by now: it may have changed the same file "
            "groups. Nothing of this write is visible; run it again.",
            own.instant.requested,
            found.requested,
        )


def candidates(
    storage: Storage, config: TableConfig, own: Instant, before: Timeline, now: Timeline, strategy: str
) -> list[Instant]:
    """The instants that may conflict with a write, by requested time.

    Args:
        storage: the table's storage, for the plans of pending replace commits.
        config: the table's configuration.
        own: the write.
        before: the timeline that it was pinned to.
        now: the current timeline.
        strategy: see :func:`require_no_conflict`.
    """
    seen = {one.requested for one in before.writes()}
    found = [one for one in now.writes() if one.requested not in seen]
    planned = {one.requested for one in before.pending_compactions}
    ends_slices = config.version < _FIRST_WITH_COMPLETION_TIMES
    if config.is_mor:
        found = [one for one in found if one.action != "commit" or (ends_slices and one.requested not in planned)]
    if strategy == "non_blocking":
        found = [one for one in found if one.action == "replacecommit"]
    elif strategy != "prefer_writer":
        found += [one for one in now.pending() if _counts_pending(storage, config, own, one)]
        found += [one for one in now.pending_compactions if ends_slices and one.requested not in planned]
    return sorted((one for one in found if one.requested != own.requested), key=lambda one: one.requested)


def _counts_pending(storage: Storage, config: TableConfig, own: Instant, one: Instant) -> bool:
    if one.action == "replacecommit":
        return one.requested > own.requested or read_clustering_plan(storage, config, one) is not None
    return one.action == "clustering"


def _in_common(own: frozenset[FileGroup], other: frozenset[FileGroup], strategy: str) -> list[FileGroup]:
    if strategy != "bucket":
        return sorted(own & other)
    buckets = {(partition, file_id[:_BUCKET_DIGITS]) for partition, file_id in other}
    return sorted(one for one in own if (one[0], one[1][:_BUCKET_DIGITS]) in buckets)


def _conflict(storage: Storage, own: OwnWrite, other: Instant, common: Iterable[FileGroup]) -> CommitConflictError:
    groups = tuple(common)
    named = ", ".join(f"{partition}/{file_id}" if partition else file_id for partition, file_id in groups[:_NAMED])
    more = f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    how, then = "completed since it began", ""
    if other.state is not State.COMPLETED:
        is_new = other.requested > own.instant.requested
        how = "planned since it began" if is_new else "planned before it began and is pending"
        then = "" if is_new else "complete or roll back that plan, then "
    return CommitConflictError(
        f"Cannot resolve conflicts for overlapping writes to {storage.uri}: {own.operation} {own.instant.requested} "
        f"changed file groups of {other.action} {other.requested}, which was {how}: {named}{more}. "
        f"Nothing of it is visible; {then}run it again, or enable automatic retries with "
        "hoodie.write.num.retries.on.conflict.failures.",
        own.instant.requested,
        other.requested,
        groups,
    )


_NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
_FIRST_NON_BLOCKING = 8
_LOGGED = frozenset({"upsert", "insert", "delete"})


@dataclass(frozen=True, slots=True)
class Pinned:
    """The table state that a write pins.

    Attributes:
        state: as it was when the write began.
        columns: its data columns, where other writers may change them; read at the start, because the commit that
            holds them may be archived later.
    """

    state: TableState
    columns: pa.Schema | None = None


def pin(state: TableState, options: WriteOptions) -> Pinned:
    """The table state that conflict checks need at commit time; called under the table's lock before the write."""
    return Pinned(state, table_schema(state) if options.lock.is_shared and options.lock.merges_schemas else None)


def check_mode(plan: WritePlan, options: WriteOptions) -> None:
    """Refuse a concurrency mode that the table does not support.

    Raises:
        ConfigError: non-blocking writes to a table whose file groups do not follow from the record key.
    """
    if options.lock.mode != _NON_BLOCKING:
        return
    bucket, config = plan.index.bucket, plan.config
    if not config.is_mor or bucket is None or bucket.engine != "SIMPLE":
        raise ConfigError(
            "Non-blocking concurrency control requires the MOR table with simple bucket index (hoodie.index.type=BUCKET"
            f"); {config.name} is {config.table_type} with {options.index.type}. Use OPTIMISTIC_CONCURRENCY_CONTROL."
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
    columns = with_meta(stored_columns(schema, plan.config), plan.table.stores_operations)
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
    """Check a write for conflicts; called under the table's lock.

    Args:
        instant: the write, inflight.
        metadata: its commit metadata.
        pinned: the table state that it pinned.
        now: the current table state.
        plan: of the write.
        options: mode and strategy.

    Raises:
        CommitConflictError: other writers changed its file groups, or removed files that it read or may have read.
    """
    _require_what_it_saw(instant, pinned, now)
    _require_its_slices(instant, metadata, pinned, now)
    if plan.operation != "bulk_insert":  # a bulk insert reads no stored rows
        _require_what_it_listed(instant, pinned, now)
    strategy = options.lock.strategy or ("simple" if plan.index.bucket is None else "bucket")
    if options.lock.mode == _NON_BLOCKING and plan.committed_as in _LOGGED and not plan.is_dml:
        strategy = "non_blocking"
    own = OwnWrite(instant, metadata.operation_type, groups_of_commit(metadata))
    require_no_conflict(now.storage, now.config, own, pinned.timeline, now.timeline, strategy)


def _require_what_it_saw(instant: Instant, pinned: TableState, now: TableState) -> None:
    """Refuse the write if a completed write that it read was rolled back: its files would restore those rows.

    Apache Hudi checks only commits, and completes such a write.
    """
    seen = {one.requested for one in pinned.timeline.writes()}
    left = seen & {one.requested for one in now.timeline.writes()}
    rollbacks = now.timeline.of_action("rollback")
    if left == seen:  # completed rollbacks undid only incomplete writes
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
    """Before table version 8 log files on top of a pending compaction are named after the slice that it begins.

    If the compaction is removed from the timeline, or completed and rolled back, no query reads those log files.
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
            f"{now.storage.uri}: the compaction {gone[0]}, on top of which {instant.requested} logged, was rolled "
            "back in the meantime. The changes of this write are withdrawn; run the operation again.",
            instant.requested,
            gone[0],
        )


def _require_what_it_listed(instant: Instant, pinned: TableState, now: TableState) -> None:
    """Refuse the write if a clean removed slices that it may have needed for tagging without a metadata table.

    A folder listing after such a clean does not show the slice. Its keys are not found, and the write would insert
    them again. Commit metadata does not record missed keys, so slices of every partition that the write may have
    searched count.
    """
    for removed in cleaned_since(pinned, now.timeline):
        raise CommitConflictError(
            f"{now.storage.uri}: the clean {removed.clean.requested} removed {removed.path}, in which "
            f"{instant.requested} may have looked for keys, in the meantime. Its changes are withdrawn; run the "
            "operation again. A metadata table (hoodie.metadata.enable) avoids this conflict.",
            instant.requested,
            removed.clean.requested,
            ((removed.partition, removed.file_id),),
        )


def require_no_other_commit(instant: Instant, pinned: TableState) -> None:
    """Refuse DML in single-writer mode if another writer has committed since the table state was pinned.

    The lock excludes other writers on this machine; writers on other machines do not take it.

    Args:
        instant: the write, inflight.
        pinned: the table state that its rows were computed from.

    Raises:
        CommitConflictError: another writer has committed since.
    """
    now = load_timeline(pinned.storage, pinned.config)
    others = _writes(now, pinned.config.is_mor) - _writes(pinned.timeline, pinned.config.is_mor) - {instant.requested}
    if others:
        raise CommitConflictError(
            f"{pinned.storage.uri} was written to ({', '.join(sorted(others))}) while {instant.requested} computed its "
            "changes. They are withdrawn; run the operation again.",
            instant.requested,
            max(others),
        )


def _writes(timeline: Timeline, is_mor: bool) -> frozenset[str]:
    """Completed writes that change rows; on merge-on-read tables ``commit`` is a compaction."""
    return frozenset(one.requested for one in timeline.writes() if not (is_mor and one.action == "commit"))


# ---- the schema of a commit when other writers evolved the table since it began
#
# S0 are the table's columns when the write began, S1 its current columns, and W the columns of the write:
#
# The first line that applies decides:
#
# ====================================================  ===========================================================
# W = S1                                                the commit records W
# W = S0                                                the commit records S1: the write changed no columns
# S1 = S0, no write that began later has completed      the commit records W
# S1 = S0                                               refused: the newest commit by requested time defines the
#                                                       columns of the table, and this commit is not the newest
# otherwise                                             refused: both writes changed the columns
# ====================================================  ===========================================================
#
# Source: ``SimpleSchemaConflictResolutionStrategy`` (Hudi 1.2.0).


def merged_schema(then: pa.Schema | None, before: Timeline, now: TableState, own: pa.Schema, instant: str) -> pa.Schema:
    """The data columns of the table after a write completes; called under the table's lock.

    Args:
        then: data columns of the pinned table; None if it had none yet.
        before: the pinned timeline.
        now: the current table state.
        own: data columns after the write.
        instant: requested time of the write.

    Raises:
        CommitConflictError: the write and another one both changed the columns, or its changes would not be visible.
    """
    seen = {one.requested for one in before.writes()}
    others = [one for one in now.timeline.writes() if one.requested not in seen]
    current = table_schema(now) if others else None
    if current is None or current.equals(own):
        return own
    if then is not None and own.equals(then):
        return current
    later = [one.requested for one in others if one.requested > instant]
    if (then is None or current.equals(then)) and not later:
        return own
    added = ", ".join(sorted(set(current.names) ^ set(own.names))) or "types differ"
    raise CommitConflictError(
        f"Detected incompatible concurrent schema evolution of {now.storage.uri}: {instant} changed its columns, and "
        f"another writer has committed its own since it began ({added}). Nothing of it is visible; run it again.",
        instant,
        max(later, default=others[-1].requested),
    )


# ---- turns a missing file into a conflict: another process's service removed a file that a write had to read
#
# Apache Hudi raises the storage error instead. A rerun of the whole write reads the current files.


_REMOVING = ("clean", "restore")


def conflict_of_missing_file(storage: Storage, error: FileGoneError) -> CommitConflictError:
    """The conflict error for a missing file; names the last instant that removed files.

    Args:
        storage: the table.
        error: raised by the write.
    """
    removing = load_state(storage).timeline.of_action(*_REMOVING)
    other = max((one.requested for one in removing if one.is_completed), default=None)
    gone = FileStat(error.path or "", 0, 0, False)
    file = parse_base_file(gone) or parse_log_file(gone)
    return CommitConflictError(
        f"Another process removed a file that this write had to read; the last instant that removed "
        f"files is {other or 'not on the timeline'}. The table is as before; run the operation again. {error}",
        other=other,
        file_groups=() if file is None else ((gone.path.rpartition("/")[0], file.file_id),),
    )
