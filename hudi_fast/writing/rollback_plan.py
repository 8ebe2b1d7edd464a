"""Decide which writes have failed, and plan their rollback.

Plans a rollback: the files of the instant that is rolled back.

::

    completed    files that its commit metadata names
    inflight     files that its markers announce; without markers, all folders are listed for its files
    requested    no files
                                    ─► from table version 8: each is deleted
                                    ─► before: log files added to an older slice get a command block

The cost depends on the write and not on the table, except for a write that failed before it created its marker folder.
Before table version 8 log files are named after the slice below them. Log files on top of a completed instant's files
are deleted with these files: their writes are already rolled back, so they hold no valid rows. Log files of a write
that still logs there are deleted by its own rollback: with a command block they would form a file group again.

Sources: ``MarkerBasedRollbackStrategy``, ``ListingBasedRollbackStrategy`` (Hudi 1.2.0).

Decides which pending writes have failed, and when they are rolled back.

=======  ==================================================  ===========================================
policy   at the start of a write or service                  at the start of a clean
=======  ==================================================  ===========================================
EAGER    all pending writes: only one writer is allowed.     the same
         One with a live heartbeat elsewhere is refused
LAZY     none: another writer may own a pending write        pending writes with an expired heartbeat
NEVER    none                                                none
=======  ==================================================  ===========================================

With EAGER, a writer that the lock excludes sends no heartbeat. A live heartbeat therefore belongs to a writer that
allows concurrent writers, in hudi_fast or Apache Hudi, or to a writer on another machine that no lock excludes. Its
write is not rolled back, and no other write may begin meanwhile. (Apache Hudi rolls it back: with EAGER it ignores
heartbeats.)

Compactions, log compactions and clusterings are not writes: their plans stay pending until a process executes them. A
write with a pending rollback is left to that rollback. Newer writes are rolled back first, because they may depend on
older ones.

Sources: ``BaseHoodieTableServiceClient#rollbackFailedWrites``, ``#getInstantsToRollback``,
``CleanerUtils#rollbackFailedWrites`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError, CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive, is_elsewhere
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    load_timeline,
    read_instant_body,
    read_requested_body,
    with_state,
)
from hudi_fast.timeline.plans import RollbackPlan, RollbackRequest, decode_rollback_metadata, decode_rollback_plan
from hudi_fast.timeline.service_plans import decode_compaction_plan, decode_restore_metadata
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, parse_base_file, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.planned_files import checked_compaction, checked_rollback, named_file
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.markers import has_markers, marked_files

__all__ = [
    "FailedWrites",
    "abandoned_writes",
    "expired_writes",
    "failed_writes",
    "log_of",
    "pending_rollback_of",
    "pending_rollbacks",
    "plan_rollback",
    "read_rollback_plan",
    "rollback_of",
    "taken_back",
    "undone_instants",
]


def plan_rollback(storage: Storage, config: TableConfig, instant: Instant, restoring: bool = False) -> RollbackPlan:
    """Plan the rollback of an instant; nothing is written.

    Args:
        storage: the table's storage.
        config: its configuration.
        instant: a commit, delta commit, replace commit, clustering, compaction or log compaction in any state.
        restoring: the rollback is part of a restore, which has also rolled back the logs on top of a compaction.

    Returns:
        The plan; it names files by absolute path.

    Raises:
        CorruptTableError: the metadata of a completed instant, or a marker, cannot be parsed.
    """
    deleted: list[RollbackRequest] = []
    appended: dict[tuple[str, str, str], dict[str, int]] = {}
    files = sorted(_files_of(storage, config, instant, restoring))
    gone = {instant.requested}
    if config.layout_version < 2 and any(log is not None and log.instant not in gone for log in map(log_of, files)):
        gone |= taken_back(storage, config, load_timeline(storage, config))
    for path in files:
        partition = path.rpartition("/")[0]
        log = log_of(path)
        if config.layout_version > 1 or log is None or log.instant in gone:
            deleted.append(RollbackRequest(partition, files_to_be_deleted=(storage.absolute(path),)))
        elif (found := storage.stat(path)) is not None and found.size > 0:  # an empty one has no block to undo
            appended.setdefault((partition, log.file_id, log.instant), {})[storage.absolute(path)] = found.size
    blocks = (
        RollbackRequest(partition, file_id, base, log_blocks_to_be_deleted=sizes)
        for (partition, file_id, base), sizes in appended.items()
    )
    return RollbackPlan(instant.requested, instant.action, (*deleted, *blocks))


def log_of(path: str) -> LogFile | None:
    """The log file at a path; None for other files."""
    return parse_log_file(FileStat(path, 0, 0, False))


def _files_of(storage: Storage, config: TableConfig, instant: Instant, restoring: bool) -> set[str]:
    """Files that the instant wrote, or may have written."""
    if instant.is_completed:
        found = set(_files_of_completed(storage, config, instant))
    else:
        found = set(_files_of_pending(storage, config, instant))
    goes_whole = instant.is_completed or (restoring and instant.action == "compaction")
    if goes_whole and config.layout_version < 2 and config.is_mor:
        partitions = {path.rpartition("/")[0] for path in found if _begins_at(path, instant.requested)}
        if instant.action == "compaction":
            partitions |= _planned_partitions(storage, config, instant)
        found |= set(_logs_on_top(storage, partitions, instant.requested))
    return found


def _begins_at(path: str, instant: str) -> bool:
    entry = FileStat(path, 0, 0, False)
    named = parse_base_file(entry) or parse_log_file(entry)
    return named is not None and named.instant == instant


# ---- completed


def _files_of_completed(storage: Storage, config: TableConfig, instant: Instant) -> Iterable[str]:
    body, path = read_instant_body(storage, config, instant), f"{config.timeline_folder}/{instant.file_name}"
    if body:
        return _named_by(storage, decode_commit_metadata(body, path), path)
    return _listed(storage, config, with_state(instant, State.INFLIGHT))  # the body is lost


def _named_by(storage: Storage, metadata: CommitMetadata, where: str) -> Iterator[str]:
    for stat in metadata.write_stats():
        for path in (*filter(None, (stat.path,)), *(stat.cdc_stats or ())):
            yield named_file(storage, path, where)


# ---- pending


def _files_of_pending(storage: Storage, config: TableConfig, failed: Instant) -> Iterable[str]:
    if has_markers(storage, failed.requested):
        return marked_files(storage, failed.requested)
    if failed.state is State.REQUESTED:
        return ()
    return _listed(storage, config, failed)


def _listed(storage: Storage, config: TableConfig, failed: Instant) -> Iterator[str]:
    lister = StorageLister(storage)
    updated = _updated_slices(storage, config, failed) if config.layout_version < 2 else frozenset()
    for partition in lister.partitions():
        for entry in lister.files(partition):
            base, log = parse_base_file(entry), parse_log_file(entry)
            # Logs of rows named after a compaction (table version 6) belong to writers that ran concurrently with it.
            own_log = log if log is not None and (failed.action != "compaction" or log.is_cdc) else None
            named = base or own_log
            if named is not None and named.instant == failed.requested:
                yield entry.path
            elif log is not None and not log.is_cdc and (partition, log.file_id, log.instant) in updated:
                yield entry.path


def _updated_slices(storage: Storage, config: TableConfig, failed: Instant) -> frozenset[tuple[str, str, str]]:
    """Partition path, file id and base instant of the slices that the inflight file announces for logging."""
    path = f"{config.timeline_folder}/{failed.file_name}"
    try:
        profile = decode_commit_metadata(read_instant_body(storage, config, failed), path)
    except (CorruptTableError, FileGoneError):  # truncated: it had not begun; a completed one may have lost it
        return frozenset()
    return frozenset((stat.partition_path, stat.file_id, stat.prev_commit) for stat in profile.write_stats())


# ---- slices that are deleted as a whole


def _planned_partitions(storage: Storage, config: TableConfig, compaction: Instant) -> set[str]:
    path = f"{config.timeline_folder}/{compaction.requested}.compaction.requested"
    plan = checked_compaction(storage, decode_compaction_plan(read_requested_body(storage, config, compaction)), path)
    return {one.partition_path for one in plan.operations}


def _logs_on_top(storage: Storage, partitions: Iterable[str], begins: str) -> Iterator[str]:
    lister = StorageLister(storage)
    for partition in sorted(partitions):
        for log in map(parse_log_file, lister.files(partition)):
            if log is not None and log.instant == begins:
                yield log.path


def taken_back(storage: Storage, config: TableConfig, timeline: Timeline) -> set[str]:
    """Instants without slices: rollbacks and restores of a timeline have removed them, or are about to.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: the current one.
    """
    there = {one.requested for one in timeline.instants}
    found = set(undone_instants(storage, config, timeline))
    plans = (plan for _, plan in pending_rollbacks(storage, config, timeline))
    # A rolled-back compaction is requested again: logs on top of it stay valid.
    return found - there | {plan.instant for plan in plans if plan.action != "compaction"}


def undone_instants(storage: Storage, config: TableConfig, timeline: Timeline) -> Iterator[str]:
    """Instants undone by completed rollbacks and restores of a timeline; skips unreadable ones.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: the current one.
    """
    for instant in timeline.of_action("rollback", "restore"):
        if not instant.is_completed:
            continue
        with contextlib.suppress(CorruptTableError):
            body = read_instant_body(storage, config, instant)
            if instant.action == "rollback":
                yield decode_rollback_metadata(body).instant
            else:
                yield from (requested for requested, _ in decode_restore_metadata(body).instants)


# ---- pending rollbacks


def read_rollback_plan(storage: Storage, config: TableConfig, rollback: Instant) -> RollbackPlan | None:
    """The plan of a pending rollback; None when its requested file is truncated, so that it has not started.

    Args:
        storage: the table's storage.
        config: its configuration.
        rollback: the pending rollback.

    Raises:
        CorruptTableError: it names a file that is not a data file of the table.
    """
    path = f"{config.timeline_folder}/{rollback.requested}.rollback.requested"
    try:
        plan = decode_rollback_plan(read_requested_body(storage, config, rollback), path)
    except CorruptTableError:
        return None
    return checked_rollback(storage, plan, path)


def pending_rollbacks(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> Iterator[tuple[Instant, RollbackPlan]]:
    """Pending rollbacks with their plans, oldest first; skips rollbacks with a truncated plan.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: the current one.
    """
    for one in timeline.of_action("rollback"):
        plan = None if one.is_completed else read_rollback_plan(storage, config, one)
        if plan is not None:
            yield one, plan


def rollback_of(
    storage: Storage, config: TableConfig, rollbacks: Iterable[Instant], instants: Container[str]
) -> tuple[Instant, str] | None:
    """The first rollback of one of these instants, and the instant; None without a match.

    Args:
        storage: the table's storage.
        config: its configuration.
        rollbacks: in the order of the search.
        instants: requested times.
    """
    for one in rollbacks:
        plan = read_rollback_plan(storage, config, one)
        if plan is not None and plan.instant in instants:
            return one, plan.instant
    return None


def pending_rollback_of(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> Instant | None:
    """The pending rollback of an instant; None without one.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: the current one.
        instant: requested time.
    """
    return next((one for one, plan in pending_rollbacks(storage, config, timeline) if plan.instant == instant), None)


@dataclass(frozen=True, slots=True)
class FailedWrites:
    """Rules for deciding which pending writes have failed.

    Attributes:
        policy: ``EAGER``, ``LAZY`` or ``NEVER``.
        heartbeat: when a heartbeat expires.
        clustering_minutes: clusterings that were planned at least this many minutes ago, and that no process runs, are
            rolled back, too; None: they stay pending.
    """

    policy: str = "EAGER"
    heartbeat: HeartbeatRule = field(default_factory=HeartbeatRule)
    clustering_minutes: int | None = None


def failed_writes(options: WriteOptions) -> FailedWrites:
    """The rules in the options of a write or service."""
    rule = HeartbeatRule(
        options.failed_writes.heartbeat_interval_ms, options.failed_writes.heartbeat_misses, options.lock.is_shared
    )
    minutes = options.clusterings.expire_after_minutes if options.clusterings.expire else None
    return FailedWrites(options.failed_writes.policy, rule, minutes)


def abandoned_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a writer or service rolls back before it begins, newest first; under the table's lock.

    Raises:
        CommitConflictError: only one writer is allowed, and another one is at work.
    """
    if failed.policy != "EAGER":
        return []
    found = _pending(state)
    for one in found:
        if is_elsewhere(state.storage, one.requested, failed.heartbeat):
            raise CommitConflictError(
                f"The {one.action} {one.requested} of {state.storage.uri} is being written: its heartbeat is live, and "
                "hoodie.write.concurrency.mode=SINGLE_WRITER allows one writer. Nothing was changed. Run this again "
                f"when it has ended, or, if its process is dead, {failed.heartbeat.lasts_ms / 1000:g} s after its last "
                "heartbeat. To write at the same time, give all writers hoodie.write.concurrency.mode="
                "OPTIMISTIC_CONCURRENCY_CONTROL and the same hoodie.write.lock.provider.",
                None,
                one.requested,
            )
    return found


def expired_writes(state: TableState, failed: FailedWrites) -> list[Instant]:
    """Pending writes that a clean rolls back before it begins, newest first; under the table's lock.

    Raises:
        CommitConflictError: as :func:`abandoned_writes`.
    """
    if failed.policy == "LAZY":
        return [one for one in _pending(state) if not is_alive(state.storage, one.requested, failed.heartbeat)]
    return abandoned_writes(state, failed)


def _pending(state: TableState) -> list[Instant]:
    planned = {one.requested for one in state.pending_services}
    left = planned | {plan.instant for _, plan in pending_rollbacks(state.storage, state.config, state.timeline)}
    found = [one for one in state.timeline.pending_writes if one.requested not in left]
    return sorted(found, key=lambda one: one.requested, reverse=True)
