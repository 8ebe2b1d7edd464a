"""Rolls an instant back: deletes its files, then the instant, and records a rollback instant.

::

    requested (the plan: which files) ─► inflight
        ─► a completed instant: drop metadata partitions that cannot be rolled back; it becomes invisible
        ─► delete files, invalidate log blocks ─► the metadata table's commit ─► delete the instant ─► completed

Before table version 8 a log file that was added to an older slice stays: a command block in the slice's next log file
invalidates its blocks. A failed compaction or clustering is requested again afterwards: its plan stays valid.

Every step can be repeated, so the next writer finishes an abandoned rollback from its plan. The rollback completes only
after all files are deleted: a remaining file would later be mistaken for a committed one.

Sources: ``BaseRollbackActionExecutor``, ``CopyOnWriteRollbackActionExecutor``, ``RollbackHelper``, ``RollbackHelperV1``
(Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import field
from functools import partial

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitError
from hudi_fast.events import Completed, completed
from hudi_fast.formats.log.blocks import command_block
from hudi_fast.index.buckets import bucket_counts_path, has_hashing, hashing_path, marker_path
from hudi_fast.metadata_table.updates.rollback import drop_lost_partitions, roll_back_metadata
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.storage.untrusted import check_relative
from hudi_fast.timeline.heartbeat import heartbeat_path, is_alive, sending_heartbeats
from hudi_fast.timeline.instants import Instant, State, Timeline, comparable_action, load_timeline
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_fast.timeline.transition import (
    complete,
    create_requested,
    delete_instant_files,
    revert_to_inflight,
    revert_to_requested,
    to_inflight,
)
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, log_file_name, parse_log_file
from hudi_fast.view.listing import StorageLister
from hudi_fast.view.planned_files import relative_path
from hudi_fast.writing.backend import Backend
from hudi_fast.writing.markers import create_marker, delete_markers, make_marker_folder, marked_files
from hudi_fast.writing.rollback_plan import log_of, plan_rollback, read_rollback_plan
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.unseen_writes import confirm_plan

__all__ = ["RolledBack", "finish_rollbacks", "request_rollback", "roll_back", "take_back", "undo"]

_THREADS = 8
_WAITS_AGAIN = "compaction"
_ONLY_PENDING = ("compaction", "logcompaction", "clustering")


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A completed rollback.

    Attributes:
        instant: the rollback.
        metadata: its rollback metadata.
    """

    instant: Instant
    metadata: RollbackMetadata

    @property
    def requested(self) -> str:
        """Requested time of the rollback."""
        return self.instant.requested


def finish_rollbacks(session: TableSession) -> list[RolledBack | None]:
    """Finish pending rollbacks, under the table's lock.

    A rollback is removed from the timeline instead if its plan is truncated or outdated: it was part of a completed
    restore, or it undoes an attempt of a service that a later attempt has completed. With several writers, rollbacks
    with a live heartbeat are skipped.

    Returns:
        The completed rollbacks; None for one that was removed from the timeline.
    """
    storage, state, rule = session.storage, session.state, session.heartbeat_rule
    done: list[RolledBack | None] = []
    for instant in state.timeline.pending():
        if instant.action != "rollback" or (rule.shared and is_alive(storage, instant.requested, rule)):
            continue
        plan = read_rollback_plan(storage, state.config, instant)
        if plan is None or _is_outdated(state.timeline, instant, plan):
            delete_instant_files(storage, state.config, instant)
            done.append(None)
        else:
            keep_plan = True if plan.action == "clustering" else None  # the caller may roll the clustering back
            done.append(_execute(session, state.config, instant, plan, keep_plan))
    if done:
        session.changed()
    return done


def request_rollback(session: TableSession, plan: RollbackPlan) -> Instant:
    """Put a rollback on the timeline. From now on the next writer finishes it if this process does not."""
    rollback = Instant(session.clock.next_time(plan.instant), "rollback", State.REQUESTED)
    return create_requested(session.storage, session.state.config, rollback, encode_rollback_plan(plan))


def roll_back(session: TableSession, failed: Instant, keep_plan: bool | None = None) -> RolledBack:
    """Undo a write or a planned service, pending or completed; under the table's lock.

    Args:
        session: the call.
        failed: the instant; no later instant may depend on it.
        keep_plan: whether the instant is requested again afterwards; None: only a pending compaction is.

    Raises:
        CommitConflictError: the lock was lost before the rollback was requested, and another writer completed a write,
            which may continue files of the instant. Nothing was changed.
        CommitError: a file could not be deleted; the next writer finishes the rollback.
        CommitStateUnknownError: the lock was lost and cannot be acquired again.
        CorruptTableError: the metadata of the instant is damaged; nothing was changed.
    """
    state = session.state
    plan = plan_rollback(session.storage, state.config, failed)
    rollback = request_rollback(session, plan)
    confirm_plan(session, rollback, None, state)
    done = _execute(session, state.config, rollback, plan, keep_plan)
    session.changed()
    return done


def undo(
    session: TableSession,
    rollback: Instant,
    plan: RollbackPlan,
    keep_plan: bool | None = None,
    list_logs: bool = True,
) -> RollbackMetadata:
    """Execute all steps of a rollback before its completion; under the table's lock.

    Args:
        session: the call.
        rollback: the requested or inflight rollback.
        plan: its plan.
        keep_plan: as for :func:`roll_back`.
        list_logs: whether log files that stay, before table version 8, are listed in the metadata table.

    Returns:
        The rollback metadata.
    """
    return _undo(session, session.state.config, rollback, plan, keep_plan, list_logs)


# ---- execution


@dataclass
class _Done:
    """Deleted and remaining files of one partition; mutable."""

    deleted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    rollback_logs: dict[str, int] = field(default_factory=dict)
    failed_logs: dict[str, int] = field(default_factory=dict)


def _execute(
    session: TableSession, config: TableConfig, rollback: Instant, plan: RollbackPlan, keep_plan: bool | None
) -> RolledBack:
    with session.phase("rollback", "writing", rollback.requested, logging.INFO, of=plan.instant) as step:
        done = _complete(session, config, rollback, plan, keep_plan)
        files = sum(len(one.deleted) for one in done.metadata.partitions)
        step.add(files=files)
        seconds, figures = done.metadata.millis / 1000, {"numFilesDeleted": files}
        completed(
            Completed(
                action="rollback",
                instant=rollback.requested,
                seconds=seconds,
                state=session.known_state,
                figures=figures,
            )
        )
    return done


def _complete(
    session: TableSession, config: TableConfig, rollback: Instant, plan: RollbackPlan, keep_plan: bool | None
) -> RolledBack:
    storage, rule, clock = session.storage, session.heartbeat_rule, session.clock
    with sending_heartbeats(storage, rollback.requested, rule) if rule.shared else contextlib.nullcontext():
        metadata = _undo(session, config, rollback, plan, keep_plan, list_logs=True)
        inflight = Instant(rollback.requested, "rollback", State.INFLIGHT)
        body = encode_rollback_metadata(metadata)
        times = partial(clock.completion_time, rollback.requested)
        visible = complete(storage, config, inflight, body, times, confirm=clock.confirm)
    delete_markers(storage, plan.instant, frozenset())
    delete_markers(storage, rollback.requested)
    storage.delete_file(heartbeat_path(plan.instant))
    return RolledBack(visible, metadata)


def _undo(
    session: TableSession,
    config: TableConfig,
    rollback: Instant,
    plan: RollbackPlan,
    keep_plan: bool | None,
    list_logs: bool,
) -> RollbackMetadata:
    started, storage, clock = time.monotonic(), session.storage, session.clock
    clock.require_lock()  # another process may have taken the failed write over
    if rollback.state is State.REQUESTED:
        to_inflight(storage, config, rollback)
    _unpublish(storage, config, plan)
    done = _delete_data(storage, plan, session.backend)
    _answer_logs(storage, rollback.requested, plan, done)
    added, removed = _changed_logs(done) if list_logs else ({}, {})
    roll_back_metadata(storage, config, plan.instant, rollback.requested, clock, added, removed)
    clock.require_lock()
    _delete_instant(storage, config, plan, plan.action == _WAITS_AGAIN if keep_plan is None else keep_plan)
    return RollbackMetadata(
        start_time=rollback.requested,
        instant=plan.instant,
        action=plan.action,
        millis=int((time.monotonic() - started) * 1000),
        partitions=tuple(
            RollbackPartition(name, tuple(one.deleted), tuple(one.failed), one.rollback_logs, one.failed_logs)
            for name, one in sorted(done.items())
        ),
    )


def _is_outdated(timeline: Timeline, rollback: Instant, plan: RollbackPlan) -> bool:
    if plan.action in _ONLY_PENDING and _completed(timeline, plan) is not None:
        return True
    restored = max((one.completion or "" for one in timeline.of_action("restore")), default="")
    is_there = any(one.requested == plan.instant for one in timeline.instants)
    return rollback.requested < restored and not is_there


def _completed(timeline: Timeline, plan: RollbackPlan) -> Instant | None:
    found = timeline.find(plan.instant, plan.action)
    wanted = comparable_action(plan.action)
    is_it = found is not None and comparable_action(found.action) == wanted and found.is_completed
    return found if is_it else None


def _unpublish(storage: Storage, config: TableConfig, plan: RollbackPlan) -> None:
    """Make a completed instant pending again, in one step: no reader sees a part of it."""
    found = _completed(load_timeline(storage, config), plan)
    partitions = {request.partition_path for request in plan.requests}
    if found is not None and found.action == "replacecommit" and has_hashing(storage):
        for partition in partitions:  # while it is complete its bucket ranges are valid without their mark
            storage.delete_file(marker_path(partition, plan.instant))
    if found is not None:
        drop_lost_partitions(storage, config, (plan.instant,))
        revert_to_inflight(storage, config, found)
    if comparable_action(plan.action) == "replacecommit":
        storage.delete_file(bucket_counts_path(plan.instant))
    if comparable_action(plan.action) == "replacecommit" and has_hashing(storage):
        for partition in partitions:
            storage.delete_file(marker_path(partition, plan.instant))
            storage.delete_file(hashing_path(partition, plan.instant))


def _delete_data(storage: Storage, plan: RollbackPlan, backend: Backend) -> dict[str, _Done]:
    named = [(one.partition_path, path) for one in plan.requests for path in one.files_to_be_deleted]
    relative = [relative_path(storage, path) for _, path in named]
    done: dict[str, _Done] = {request.partition_path: _Done() for request in plan.requests}
    for (partition, path), where, was_there in zip(named, relative, backend.delete(storage, relative), strict=True):
        if not was_there and storage.exists(where):
            raise CommitError(
                f"The rollback of the {plan.action} {plan.instant} of {storage.uri} is not complete: the file {where} "
                "could not be deleted. The instant is no longer visible; the next write finishes its rollback."
            )
        (done[partition].deleted if was_there else done[partition].failed).append(path)
    return done


def _changed_logs(done: Mapping[str, _Done]) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    """By partition path, before table version 8: remaining and new log files; deleted ones."""
    stay = {name: _sizes_by_name({**one.failed_logs, **one.rollback_logs}) for name, one in done.items()}
    gone = {name: [path.rpartition("/")[2] for path in one.deleted if log_of(path)] for name, one in done.items()}
    return {name: one for name, one in stay.items() if one}, {name: one for name, one in gone.items() if one}


def _sizes_by_name(logs: Mapping[str, int]) -> dict[str, int]:
    return {path.rpartition("/")[2]: size for path, size in logs.items()}


def _delete_instant(storage: Storage, config: TableConfig, plan: RollbackPlan, keep_plan: bool) -> None:
    inflight = Instant(plan.instant, plan.action, State.INFLIGHT)
    if keep_plan:
        revert_to_requested(storage, config, inflight)
    else:
        delete_instant_files(storage, config, inflight)


def _answer_logs(storage: Storage, rollback: str, plan: RollbackPlan, done: Mapping[str, _Done]) -> None:
    """Add a command block to each slice whose log files the plan names; record the absolute paths of new log files.

    A log file that an earlier attempt of this rollback wrote is complete and is kept: the metadata table may list it.
    """
    wanted: dict[str, set[str]] = {}
    for request in plan.requests:
        if request.log_blocks_to_be_deleted:
            wanted.setdefault(request.partition_path, set()).update(request.log_blocks_to_be_deleted)
            done[request.partition_path].failed_logs.update(request.log_blocks_to_be_deleted)
    if not wanted:
        return
    make_marker_folder(storage, rollback)
    marked = set(marked_files(storage, rollback))

    def answer(partition: str) -> None:
        logs = {log for log in map(log_of, wanted[partition]) if log is not None}
        slices = {(log.file_id, log.instant) for log in logs}
        made = take_back(storage, rollback, plan.instant, partition, slices, marked)
        done[partition].rollback_logs.update({storage.absolute(path): size for path, size in made.items()})

    with ThreadPool(min(_THREADS, len(wanted)), thread_name_prefix="hudi_fast") as pool:
        list(pool.map(answer, sorted(wanted)))


# ---- invalidates log blocks before table version 8, with a command block in a new log file
#
# ::
#
#     slice ─► its log files ─► the next version ─► marker ─► log file with one command block
#
# A repeated rollback finds the files of its earlier attempt by their markers: such a file is complete and valid, and
# the metadata table may already list it.
#
# Source: ``RollbackHelperV1`` (Hudi 1.2.0).


_TOKEN = "1-0-1"


def take_back(
    storage: Storage, rollback: str, failed: str, partition: str, slices: set[tuple[str, str]], marked: set[str]
) -> dict[str, int]:
    """Add a command block to slices of a partition.

    Args:
        storage: the table's storage.
        rollback: requested time of the rollback; its marker folder exists.
        failed: requested time of the instant whose blocks are invalidated.
        partition: partition path.
        slices: file id and base instant of each.
        marked: files that the rollback announced before.

    Returns:
        The log files with the command blocks, relative to the table, with their sizes.
    """
    block, logs = command_block(rollback, failed), _logs(storage, partition, slices)
    made = {log.path: log.size for log in logs if log.path in marked}
    answered = {(log.file_id, log.instant) for log in logs if log.path in marked and log.size >= len(block)}
    for file_id, base in sorted(slices - answered):
        version = max((log.version for log in logs if (log.file_id, log.instant) == (file_id, base)), default=0) + 1
        name = log_file_name(file_id, base, version, _TOKEN)
        path = check_relative(f"{partition}/{name}" if partition else name)
        with contextlib.suppress(FileExistsError):  # written by an earlier attempt
            create_marker(storage, rollback, path, "APPEND")
        storage.create_exclusive(path, block)
        made[path] = len(block)
    return made


def _logs(storage: Storage, partition: str, slices: Collection[tuple[str, str]]) -> list[LogFile]:
    found = (parse_log_file(entry) for entry in StorageLister(storage).files(partition))
    wanted = set(slices)
    return [log for log in found if log is not None and (log.file_id, log.instant) in wanted]
