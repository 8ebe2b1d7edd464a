"""Checks for commits of other writers while a write had no lock, before and after it completes.

::

    a lock excludes the others      completed ─► was the lock held until then? ─ yes ─► acknowledged
                                                          └─ no ─► take the lock again ─┐
    no lock does (HDFS, one more    what completed that this write has not seen? ─ any: refused
    writer than was promised)       completed ──────────────────────────────────────────┤
                                                                                        ▼
        read the timeline: what completed that this write has not seen?   nothing, or other file groups ─► acknowledged
            └─ the same file groups, or any write with SINGLE_WRITER ─► rolled back: CommitConflictError
                    └─ by a write that may have read it ─► CommitStateUnknownError

A process can be suspended between its check of the lock and the creation of its completed file, for longer than its
lease. The lock reports this afterwards (:meth:`hudi_fast.locking.table_lock.HeldLock.confirm`). No other writer can
complete a write while the timeline is read, because the lock is held again.

The plan of a service, a rollback or a restore is checked in the same way: a write that completed before the plan was
there has not seen it, and the plan has not seen the write.

Another writer may begin before the lock is taken again. It must not continue files of a commit that may be rolled back.
With concurrent writers, a commit that its writer has not confirmed still has its heartbeat file::

    a writer begins ─► is a commit there with a live heartbeat, and with file groups that another one changed before
                       it was complete? ─┬─ no ──► begin
                                         └─ yes ─► CommitConflictError: its writer decides first

A reader may have seen rows of a write that is rolled back here, as with every rollback of a completed write. A writer
that does not look for unconfirmed commits may have changed files of one: then nothing is rolled back.

Apache Hudi 1.2.0 does not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CommitStateUnknownError, LockError
from hudi_fast.events import warn
from hudi_fast.metadata_table.updates.rollback import drop_lost_partitions
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.heartbeat import heartbeats, is_alive
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    instant_file_name,
    instant_from_ms,
    listed_instant,
    load_timeline,
)
from hudi_fast.timeline.transition import delete_instant_files, revert_to_inflight
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.early_conflicts import FileGroup, groups_of_commit, touched_groups
from hudi_fast.writing.rollback_plan import rollback_of
from hudi_fast.writing.session import TableSession

__all__ = ["confirm_alone", "confirm_plan", "refuse_unconfirmed", "refuse_unseen", "was_alone"]

_OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
_COMPACTIONS = ("COMPACT", "LOG_COMPACT")
_SERVICES = (*_COMPACTIONS, "CLUSTER")
_SKEW_MS = 2000
"""Tolerated difference between the clocks of a store and of another machine, in milliseconds."""


def refuse_unseen(storage: Storage, config: TableConfig, instant: Instant, known: Timeline) -> None:
    """Refuse to complete a write without a lock if another one was completed that it has not seen.

    Args:
        storage: the table's storage.
        config: its configuration.
        instant: the write, inflight.
        known: the timeline that it has seen.

    Raises:
        CommitConflictError: another writer completed a write.
    """
    unseen = _unseen(load_timeline(storage, config), known, instant)
    if unseen:
        raise CommitConflictError(
            f"The {instant.action} {instant.requested} of {storage.uri} has not seen {_named(unseen)}, which another "
            "writer completed since it began, and no lock is held that excludes writers on other machines. Nothing of "
            "it is visible. Run it again, and give all writers a hoodie.write.lock.provider.",
            instant.requested,
            unseen[0].requested,
        )


def confirm_alone(
    session: TableSession, instant: Instant, done: Instant, metadata: CommitMetadata, seen: TableState
) -> None:
    """Check right after the completion of a write that it does not overwrite changes of another writer.

    Args:
        session: the call; in a section of the lock.
        instant: the write or service, inflight.
        done: the same, completed.
        metadata: its commit metadata.
        seen: the table state that the write has seen.

    Raises:
        CommitConflictError: another writer changed the same file groups, or rolled the write back. It is pending again
            and must be rolled back.
        CommitStateUnknownError: the lock cannot be acquired again, or a later write may depend on this one.
    """
    if was_alone(session, done):
        return
    known, now = seen.timeline, load_timeline(session.storage, seen.config)
    _require_once(session, instant, done, seen, now)
    unseen = _unseen(now, known, done)
    rivals = [*_gone(now, known), *(one for one in unseen if _is_rival(session, seen, metadata, one))]
    if rivals:
        _require_no_heirs(session, done, unseen, rivals)
        drop_lost_partitions(session.storage, seen.config, (done.requested,))
        _hide(session, seen, done)
        raise CommitConflictError(
            f"The {done.action} {done.requested} of {session.storage.uri} was completed without a lock, and "
            f"{_named(rivals)} changed the same file groups, or the columns, without seeing it. It is rolled back; run "
            "it again.",
            done.requested,
            rivals[0].requested,
        )
    if unseen:
        warn(
            f"The {done.action} {done.requested} of {session.storage.uri} was completed without a lock, beside "
            f"{_named(unseen)} of another writer. They changed other file groups, so all are valid."
        )
        session.changed()


def confirm_plan(session: TableSession, plan: Instant, groups: Set[FileGroup] | None, seen: TableState) -> None:
    """Check right after a plan was created that no write changed its file groups unseen.

    A write that completed before the plan was there did not look for it, and the plan lacks the files of that write: a
    compaction or clustering by this plan would lose its rows, and a rollback or restore the files that it continues.

    Args:
        session: the call; in a section of the lock.
        plan: the requested instant.
        groups: partition paths and file ids of the plan; None if it may concern all.
        seen: the table state that the plan was made from.

    Raises:
        CommitConflictError: a write changed them, or was rolled back. The plan is removed from the timeline.
        CommitStateUnknownError: the lock cannot be acquired again, or the plan is being executed.
    """
    if was_alone(session, plan):
        return
    known, now = seen.timeline, load_timeline(session.storage, seen.config)
    changed = _unseen(now, known, plan)
    if groups is not None:
        changed = [one for one in changed if groups & touched_groups(session.storage, seen.config, one)]
    rivals = [*_gone(now, known), *changed]
    if not rivals:
        return
    what = f"The {plan.action} {plan.requested} of {session.storage.uri} was planned without a lock"
    changes = "may have changed its file groups" if groups is None else "changed its file groups"
    why = f"{_named(rivals)} {changes}, which has not seen it"
    found = now.find(plan.requested, plan.action)
    if found is not None and found.state is not State.REQUESTED:
        raise CommitStateUnknownError(
            f"{what}, and {why}. The plan is being executed already, so it stays. Check the rows of these writes, and "
            "history()."
        )
    delete_instant_files(session.storage, seen.config, plan)
    session.changed()
    raise CommitConflictError(
        f"{what}, and {why}. The plan is removed, and nothing else has changed; plan it again.",
        plan.requested,
        rivals[0].requested,
    )


def refuse_unconfirmed(session: TableSession) -> None:
    """Refuse to begin a write or service while another writer decides about a commit that it completed too late.

    Args:
        session: the call; in a section of the lock.

    Raises:
        CommitConflictError: there is such a commit, and its heartbeat is live.
    """
    if session.settings.write.lock.mode != _OPTIMISTIC:
        return
    storage = session.storage
    beating = heartbeats(storage)
    for one in session.timeline.writes():
        if one.requested not in beating or not is_alive(storage, one.requested, session.heartbeat_rule):
            continue
        rivals = _overtaken_by(session, one)
        if rivals:
            raise CommitConflictError(
                f"The {one.action} {one.requested} of {storage.uri} was completed without a lock, after "
                f"{_named(rivals)} had changed the same file groups. Its writer is about to roll it back or to report "
                "it. Nothing was changed; run this again.",
                None,
                one.requested,
            )


def was_alone(session: TableSession, created: Instant) -> bool:
    """Whether the lock excluded other writers until an instant's file was there; if it was lost, it is held again.

    Args:
        session: the call; in a section of the lock.
        created: the instant.

    Raises:
        CommitStateUnknownError: the lock was lost, and cannot be acquired again.
    """
    if not session.excludes_others:
        return False
    try:
        session.clock.confirm(created)
    except CommitStateUnknownError as late:
        try:
            session.take_lock_again()
        except (LockError, OSError) as error:
            raise CommitStateUnknownError(f"{late} The lock could not be acquired again: {error}") from error
        return False
    return True


def _require_once(session: TableSession, instant: Instant, done: Instant, seen: TableState, now: Timeline) -> None:
    """Refuse a write that another process considered failed and rolled back, or a service that it completed."""
    storage, config = session.storage, seen.config
    entries = storage.list_dir(config.timeline_folder)
    is_begun = any(one.name == instant_file_name(instant, config.layout_version) for one in entries)
    others = [one.name for one in entries if _is_twin(one, config, done)]
    before = {one.requested for one in seen.timeline.of_action("rollback")}
    rollbacks = (one for one in now.of_action("rollback") if one.requested not in before)
    undone = rollback_of(storage, config, rollbacks, {done.requested})
    if undone is None and not others and is_begun:
        return
    _hide(session, seen, done)
    by = others[0] if others else "a rollback" if undone is None else f"the rollback {undone[0].requested}"
    what = "completed" if others else "rolled back"
    raise CommitConflictError(
        f"The {instant.action} {done.requested} of {storage.uri} was {what} by another process ({by}) before this one "
        "completed it without a lock. Nothing that this process did is visible; run it again.",
        done.requested,
        None if undone is None else undone[0].requested,
    )


def _is_twin(entry: FileStat, config: TableConfig, done: Instant) -> bool:
    """Whether a file completes the same instant, and is not the file of ``done``."""
    found = listed_instant(entry, config)
    return (
        found is not None
        and found.is_completed
        and (found.requested, found.action, found.file_name != done.file_name) == (done.requested, done.action, True)
    )


def _is_rival(session: TableSession, seen: TableState, metadata: CommitMetadata, other: Instant) -> bool:
    """Whether this write conflicts with another one, where neither has seen the other."""
    if metadata.operation_type in _COMPACTIONS and other.action == "deltacommit":
        return False  # it logs beside a compaction
    if metadata.operation_type not in _SERVICES and not session.settings.write.lock.is_shared:
        return True  # this write assumes that it is alone: another one may have inserted the same keys
    found = read_commit(session.storage, seen.config, other)
    columns = (one.extra_metadata.get("schema") for one in (metadata, found))
    return len({one for one in columns if one}) > 1 or bool(groups_of_commit(metadata) & groups_of_commit(found))


def _require_no_heirs(session: TableSession, done: Instant, unseen: list[Instant], rivals: list[Instant]) -> None:
    """Refuse to roll a write back if another one may have read its rows after it became visible."""
    heirs = _heirs(session, done, unseen)
    if heirs:
        raise CommitStateUnknownError(
            f"The {done.action} {done.requested} of {session.storage.uri} was completed without a lock, and "
            f"{_named(rivals)} changed the same file groups, or the columns. It cannot be rolled back, because "
            f"{_named(heirs)} may have read its rows. Check the rows of all of them, and history(), before you run it "
            "again."
        )


def _heirs(session: TableSession, done: Instant, others: Iterable[Instant]) -> list[Instant]:
    """Those of other writes that may have read the rows of a write after it became visible."""
    visible_ms, zone = _visible_ms(session, done), session.state.config.timezone
    since, doubtful = instant_from_ms(visible_ms, zone), instant_from_ms(max(visible_ms - _SKEW_MS, 0), zone)
    return [
        one
        for one in others
        if one.requested != done.requested
        and (one.requested >= since or (one.requested >= doubtful and _continues(session, one, done.requested)))
    ]


def _visible_ms(session: TableSession, done: Instant) -> int:
    """When a completed file was created, in milliseconds of the store's clock; 0 if it is not there."""
    entry = session.storage.stat(f"{session.state.config.timeline_folder}/{done.file_name}")
    return 0 if entry is None else entry.modified_ms


def _overtaken_by(session: TableSession, done: Instant) -> list[Instant]:
    """Writes that changed the same file groups as a completed write, and completed while it ran.

    There are none if each of them held the lock when it looked for conflicts and until it was complete. Services are
    left out: some may run beside a write.
    """
    storage, config, visible_ms = session.storage, session.state.config, _visible_ms(session, done)
    metadata = read_commit(storage, config, done)
    if metadata.operation_type in _SERVICES:
        return []
    groups, found = groups_of_commit(metadata), []
    for one in session.timeline.writes():
        if one.requested != done.requested and (one.completion or "") > done.requested:
            other = read_commit(storage, config, one)
            shares = other.operation_type not in _SERVICES and groups & groups_of_commit(other)
            if shares and _visible_ms(session, one) <= visible_ms:
                found.append(one)
    return found


def _continues(session: TableSession, other: Instant, requested: str) -> bool:
    """Whether a write continues file slices of an instant."""
    stats = read_commit(session.storage, session.state.config, other).write_stats()
    return any(stat.prev_commit == requested for stat in stats)


def _hide(session: TableSession, seen: TableState, done: Instant) -> None:
    """Make a completed write pending again; the caller's failure rolls it back."""
    revert_to_inflight(session.storage, seen.config, done)
    session.changed()


def _unseen(now: Timeline, known: Timeline, own: Instant) -> list[Instant]:
    """Writes that are complete now and were not before, oldest first."""
    seen = {one.requested for one in known.writes()}
    return [one for one in now.writes() if one.requested not in seen and one.requested != own.requested]


def _gone(now: Timeline, known: Timeline) -> list[Instant]:
    """Writes that were complete and have been rolled back since: their rows may be part of this one."""
    return [one for one in known.writes() if not now.is_completed_or_archived(one.requested)]


def _named(instants: Iterable[Instant]) -> str:
    return ", ".join(f"{one.action} {one.requested}" for one in instants)
