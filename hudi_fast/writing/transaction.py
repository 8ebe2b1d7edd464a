"""The life of one write on the timeline.

::

    clean_up    finish what died writers left                                     -> the state to pin
    begin       requested ─► inflight ─► marker folder                            -> the write may make files
    commit      reconcile markers ─► participants ─► still ours? ─► completed     -> visible, at once
    abandon     roll the write back                                               -> as if it had not been

All of it runs under the table's lock, and ends at once when that is lost: the clock, of which every change of the
timeline takes its time, gives none then. Nothing is rolled back without the lock; whoever has it now, or has it next,
finds a pending instant without signs of life. Where one writer is all there may be, the lock is held in between, too,
and a pending write that is found belongs to nobody alive; where several may be at work, signs of life tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, CorruptTableError, LockError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata, encode_commit_metadata
from hudi_fast.timeline.heartbeat import Heartbeat
from hudi_fast.timeline.instant import Instant, State, comparable_action
from hudi_fast.timeline.service_plans import RequestedReplace, encode_requested_replace
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.view.pending import read_clustering_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.failed_writes import FailedWrites, abandoned_writes
from hudi_fast.writing.markers import delete_leftover_markers, delete_markers, make_marker_folder, marked_files
from hudi_fast.writing.pending_clusterings import roll_back_expired
from hudi_fast.writing.rollback import finish_rollbacks, roll_back
from hudi_fast.writing.rollback_plan import pending_rollback_of

__all__ = [
    "Participant",
    "Transaction",
    "abandon",
    "begin",
    "clean_up",
    "commit",
    "left_pending",
    "noted_on",
    "refuse_while_restoring",
    "require_not_undone",
    "withdraw",
]

_ONE_WRITER = FailedWrites()

Participant = Callable[[Storage, Instant, CommitMetadata], None]
"""Takes part in a commit just before it becomes visible, for example to update a metadata table."""


@dataclass(frozen=True)
class Transaction:
    """A write that has begun.

    Attributes:
        storage: the table's storage.
        config: its configuration.
        instant: the inflight instant.
        clock: gives the completion time.
        operation: as commit metadata names it (``UPSERT``).
        heart: its signs of life; None when it gives none.
    """

    storage: Storage
    config: TableConfig
    instant: Instant
    clock: InstantClock
    operation: str
    heart: Heartbeat | None = None


def refuse_while_restoring(storage: Storage, timeline: Timeline, what: str) -> None:
    """Make sure that the table is not being restored.

    Args:
        storage: the table's storage.
        timeline: its active timeline.
        what: what must not happen, as a sentence that goes on with "before it is done".

    Raises:
        CommitConflictError: there is a pending restore.
    """
    restore = timeline.pending_restore
    if restore is not None:
        saved = ", ".join(one.requested for one in timeline.of_action("savepoint")) or "none is left"
        raise CommitConflictError(
            f"{storage.uri} has a pending restore, {restore.requested}; {what} before it is done. Finish it: "
            f"services.restore(), `hudi-fast restore`, with the savepoint that it goes to (savepoints: {saved})."
        )


def clean_up(state: TableState, clock: InstantClock, failed: FailedWrites = _ONE_WRITER) -> TableState:
    """Leave no trace of writers that died; the state afterwards.

    Args:
        state: the table.
        clock: gives times.
        failed: which pending writes are those of writers that died.

    Raises:
        CommitConflictError: the table is being restored.
    """
    storage, config, timeline = state.storage, state.config, state.timeline
    refuse_while_restoring(storage, timeline, "no write may begin")
    changed = False
    if finish_rollbacks(storage, config, timeline, clock, rule=failed.heartbeat):
        timeline, changed = load_timeline(storage, config), True
    for instant in abandoned_writes(replace(state, timeline=timeline), failed):
        roll_back(storage, config, instant, clock, timeline.newest_time, rule=failed.heartbeat)
        changed = True
    state = open_state(storage) if changed else state
    if failed.clustering_minutes is not None:
        if roll_back_expired(state, failed.clustering_minutes, clock, failed.heartbeat):
            state = open_state(storage)
    delete_leftover_markers(storage, {instant.requested for instant in state.timeline.pending()})
    return state


def begin(
    state: TableState, clock: InstantClock, operation: str, replaces: bool, requested: str | None = None
) -> Transaction:
    """Put the write on the timeline.

    Args:
        state: the pinned state.
        clock: gives the requested time.
        operation: as commit metadata names it.
        replaces: whether the write ends file groups, and is a replace commit.
        requested: the requested time, if it is known already.
    """
    storage, config = state.storage, state.config
    action = "replacecommit" if replaces else "deltacommit" if config.is_mor else "commit"
    time = clock.next_time(state.timeline.newest_time) if requested is None else requested
    instant = Instant(time, action, State.REQUESTED)
    replacement = (
        RequestedReplace("DELETE_PARTITION", extra_metadata={})
        if operation == "DELETE_PARTITION"
        else RequestedReplace()
    )
    plan = encode_requested_replace(replacement) if replaces else b""
    clock.require_lock()  # else its time may be older than what others have put on the timeline since it was taken
    create_requested(storage, config, instant, plan)
    profile = encode_commit_metadata(CommitMetadata(operation_type=operation), config.layout_version, replaces)
    transaction = Transaction(storage, config, replace(instant, state=State.INFLIGHT), clock, operation)
    try:
        to_inflight(storage, config, instant, profile)
        make_marker_folder(storage, instant.requested)
    except BaseException:
        with contextlib.suppress(Exception):  # the next writer does it otherwise
            withdraw(transaction)
        raise
    return transaction


def commit(transaction: Transaction, metadata: CommitMetadata, participants: Sequence[Participant] = ()) -> Instant:
    """Make the write visible.

    Args:
        transaction: the write.
        metadata: what it did.
        participants: called in order before that.

    Raises:
        LockError: the lock was lost; nothing is visible, and whoever has it now may be rolling the write back.
        CommitError: it did not become visible.
        CommitStateUnknownError: storage does not say whether it did.
    """
    storage, config, instant = transaction.storage, transaction.config, transaction.instant
    _reconcile(storage, instant, metadata)
    for participant in participants:
        participant(storage, instant, metadata)
    replaces = comparable_action(instant.action) == "replacecommit"
    body = encode_commit_metadata(metadata, config.layout_version, replaces)
    completed = complete(storage, config, instant, body, lambda: transaction.clock.next_time(instant.requested))
    with contextlib.suppress(OSError):  # visible already; leftover markers harm nobody
        delete_markers(storage, instant.requested)
    return completed


def abandon(transaction: Transaction) -> None:
    """Roll back a write that failed in this process.

    Nothing is done to a write that is visible already: an interrupt may come between that and the write's return.
    """
    storage, config, instant = transaction.storage, transaction.config, transaction.instant
    timeline = load_timeline(storage, config)
    if any(one.requested == instant.requested for one in timeline.writes()):
        return
    keep_plan: bool | None = None
    if comparable_action(instant.action) == "replacecommit":
        with contextlib.suppress(CorruptTableError):  # others have rolled it back; what it wrote since goes, too
            keep_plan = True if read_clustering_plan(storage, config, instant) is not None else None
    roll_back(storage, config, instant, transaction.clock, timeline.newest_time, keep_plan=keep_plan)


@contextlib.contextmanager
def noted_on(cause: BaseException, what: str) -> Iterator[None]:
    """Undoing what failed for ``cause``, the error to report: if the undoing fails too, a note on it says so."""
    try:
        yield
    except Exception as error:
        cause.add_note(f"{what} failed too: {error!r}")


def left_pending(transaction: Transaction, error: LockError) -> LockError:
    """The error of a write or service that lost the lock, or could not have it again, with what becomes of it."""
    instant = transaction.instant
    return type(error)(
        f"{error} Nothing of the {instant.action} {instant.requested} of {transaction.storage.uri} is visible, and "
        "nothing was rolled back, since others may have the lock: it is left pending. The next clean rolls it back "
        "(hoodie.clean.failed.writes.policy=LAZY), or the next writer (EAGER). Run the operation again."
    )


def require_not_undone(state: TableState, instant: Instant) -> None:
    """Make sure that nobody is about to roll an instant back that is about to be completed; under the table's lock.

    Args:
        state: the table as it is.
        instant: inflight.

    Raises:
        CommitConflictError: somebody took it for dead, and has planned its rollback.
    """
    rollback = pending_rollback_of(state.storage, state.config, state.timeline, instant.requested)
    if rollback is not None:
        raise CommitConflictError(
            f"The {instant.action} {instant.requested} of {state.storage.uri} was taken for dead: the rollback "
            f"{rollback.requested} of it is pending. Nothing of it is visible; run it again, with a longer "
            "hoodie.client.heartbeat.interval_in_ms if it gave signs of life too late.",
            instant.requested,
            rollback.requested,
        )


def withdraw(transaction: Transaction) -> None:
    """Take a write that made no file off the timeline again."""
    delete_instant_files(transaction.storage, transaction.config, transaction.instant)
    delete_markers(transaction.storage, transaction.instant.requested)


def _reconcile(storage: Storage, instant: Instant, metadata: CommitMetadata) -> None:
    """Delete what attempts of tasks wrote that did not win (``HoodieTable.finalizeWrite``, Hudi 1.2.0)."""
    kept = {path for stat in metadata.write_stats() for path in (stat.path, *(stat.cdc_stats or ()))}
    for path in marked_files(storage, instant.requested):
        if path not in kept:
            storage.delete_file(path)
