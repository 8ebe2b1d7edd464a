"""The life of one write or table service on the timeline.

::

    recover     roll back failed writes; apply announced changes                  -> the state to pin
    begin       requested ─► inflight ─► marker folder                            -> files may be made
    publish     reconcile markers ─► record ─► is the lock still held? ─► completed   -> visible, atomically
                ─► was it held until then? ─ no ─► it again, and what others did          -> acknowledged, or taken back
    abandon     roll the write back                                               -> the table is as before

All steps run under the table's lock and stop when the lock is lost: each change of the timeline takes its time from the
session's clock, which then raises an error. Nothing is rolled back without the lock. The next holder of the lock finds
the pending instant without a live heartbeat.

With a single writer the lock is held from begin to publish, so every pending write that a writer finds has failed. With
several writers, heartbeats distinguish live writes from failed ones.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import partial

from hudi_fast.config.metadata_options import FIRST_WITH_METADATA
from hudi_fast.errors import (
    CommitConflictError,
    CommitError,
    CommitStateUnknownError,
    CorruptTableError,
    LockError,
    PostCommitError,
)
from hudi_fast.events import Completed, completed, note
from hudi_fast.metadata_table.updates.bookkeeping import drop_metadata, has_metadata_folder
from hudi_fast.storage.base import Storage
from hudi_fast.storage.conditional import credentials_advice, has_expired
from hudi_fast.storage.failures import refusal_advice
from hudi_fast.timeline.commit_metadata import CommitMetadata, encode_commit_metadata
from hudi_fast.timeline.heartbeat import Heartbeat
from hudi_fast.timeline.instants import Instant, State, Timeline, comparable_action, load_timeline
from hudi_fast.timeline.service_plans import RequestedReplace, encode_requested_replace
from hudi_fast.timeline.transition import apply_announced, complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file
from hudi_fast.view.pending import read_clustering_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.markers import delete_leftover_markers, delete_markers, make_marker_folder, marked_files
from hudi_fast.writing.pending_clusterings import roll_back_expired
from hudi_fast.writing.rollback import finish_rollbacks, roll_back
from hudi_fast.writing.rollback_plan import FailedWrites, abandoned_writes, pending_rollback_of
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.unseen_writes import confirm_alone, refuse_unconfirmed, refuse_unseen

__all__ = [
    "Transaction",
    "abandon",
    "begin",
    "left_pending",
    "noted_on",
    "publish",
    "recover",
    "refuse_while_restoring",
    "require_not_undone",
    "rolled_back_on_failure",
    "undone_on_failure",
    "withdraw",
]


_SERVICES = {"COMPACT": "compaction", "LOG_COMPACT": "logcompaction", "CLUSTER": "clustering"}
"""Operations of table services, and the names of their metrics."""

_PLANNED_ACTIONS = ("compaction", "logcompaction", "clustering", "replacecommit")
"""Pending actions of services, which keep their requested times when they are executed again."""


@dataclass(kw_only=True)
class Transaction:
    """A write or table service that has begun.

    Attributes:
        session: the call.
        instant: the inflight instant.
        operation: as commit metadata names it (``UPSERT``).
        heartbeat: its heartbeat; None when it sends none.
        started: when it began, on the monotonic clock, in seconds.
        is_visible: whether :func:`publish` has made it visible.
    """

    session: TableSession
    instant: Instant
    operation: str
    heartbeat: Heartbeat | None = None
    started: float = field(default_factory=time.monotonic)
    is_visible: bool = False

    @property
    def storage(self) -> Storage:
        """The table's storage."""
        return self.session.storage


def refuse_while_restoring(storage: Storage, timeline: Timeline, what: str) -> None:
    """Check that no restore is pending.

    Args:
        storage: the table's storage.
        timeline: its active timeline.
        what: the refused action, as a sentence that continues with "before it is complete".

    Raises:
        CommitConflictError: a restore is pending.
    """
    restore = timeline.pending_restore
    if restore is not None:
        saved = ", ".join(one.requested for one in timeline.of_action("savepoint")) or "none is left"
        raise CommitConflictError(
            f"{storage.uri} has a pending restore, {restore.requested}; {what} before it is complete. Finish it with "
            f"services.restore() or `hudi-fast restore` and the savepoint that it restores (savepoints: {saved})."
        )


def recover(session: TableSession, failed: FailedWrites | None = None) -> TableState:
    """Roll failed writes back; returns the state afterwards. Under the table's lock.

    Before version 6 the metadata table is deleted, since no change can be recorded in it; Apache Hudi builds it again.

    Args:
        session: the call.
        failed: rules for failed writes; None for the session's settings.

    Raises:
        CommitConflictError: a restore is pending, or another writer decides about a commit that it completed too late.
    """
    refuse_while_restoring(session.storage, session.timeline, "no write may begin")
    if session.is_recovered:
        return session.state
    failed = session.settings.failed_writes if failed is None else failed
    if session.state.config.version < FIRST_WITH_METADATA and has_metadata_folder(session.storage):
        drop_metadata(session.storage, session.state.config)
        session.changed()
    finish_rollbacks(session)
    refuse_unconfirmed(session)
    for instant in abandoned_writes(session.state, failed):
        roll_back(session, instant)
    if apply_announced(session.storage, session.state.config, session.timeline):
        session.changed()
    if failed.clustering_minutes is not None:
        roll_back_expired(session, failed.clustering_minutes)
    delete_leftover_markers(session.storage, {instant.requested for instant in session.timeline.pending()})
    session.recovered()
    return session.state


def begin(session: TableSession, operation: str, replaces: bool, requested: str | None = None) -> Transaction:
    """Put a write on the timeline.

    It sends heartbeats if failed writes are recognised by them (policy LAZY), or if the lock does not exclude writers
    on other machines. A writer that the lock excludes does not need them.

    Args:
        session: the call; the lock is held.
        operation: as commit metadata names it.
        replaces: whether the write ends file groups, so that it is a replace commit.
        requested: the requested time; None for a new one.

    Raises:
        CommitConflictError: only one writer is allowed, and another one began at the same time.
    """
    storage, config = session.storage, session.state.config
    action = "replacecommit" if replaces else "deltacommit" if config.is_mor else "commit"
    instant = Instant(session.next_time() if requested is None else requested, action, State.REQUESTED)
    heartbeat = None
    if session.settings.failed_writes.policy == "LAZY" or not session.excludes_others:
        alone = not session.settings.write.lock.is_shared
        heartbeat = Heartbeat(storage, instant.requested, session.heartbeat_rule, alone)
        heartbeat.start()
    try:
        transaction = _begin(session, instant, operation, heartbeat)
        if not session.excludes_others:
            _refuse_beside_others(transaction)
        return transaction
    except BaseException:
        if heartbeat is not None:
            heartbeat.stop()
        raise


def _refuse_beside_others(transaction: Transaction) -> None:
    """Check for other writers once this write is on the timeline: if two begin at the same time, one sees the other."""
    session = transaction.session
    found = load_timeline(session.storage, session.state.config)
    others = tuple(one for one in found.instants if one.requested != transaction.instant.requested)
    now = replace(found, instants=others)
    try:
        abandoned_writes(replace(session.state, timeline=now), session.settings.failed_writes)
    except CommitConflictError:
        withdraw(transaction)
        raise


def _begin(session: TableSession, instant: Instant, operation: str, heartbeat: Heartbeat | None) -> Transaction:
    storage, config, replaces = session.storage, session.state.config, instant.action == "replacecommit"
    replacement = (
        RequestedReplace("DELETE_PARTITION", extra_metadata={})
        if operation == "DELETE_PARTITION"
        else RequestedReplace()
    )
    plan = encode_requested_replace(replacement) if replaces else b""
    session.clock.require_lock()  # otherwise other instants may be newer than this time
    create_requested(storage, config, instant, plan)
    profile = encode_commit_metadata(CommitMetadata(operation_type=operation), config.layout_version, replaces)
    transaction = Transaction(
        session=session,
        instant=replace(instant, state=State.INFLIGHT),
        operation=operation,
        heartbeat=heartbeat,
    )
    try:
        to_inflight(storage, config, instant, profile, is_new=True)
        make_marker_folder(storage, instant.requested)
    except BaseException:
        with contextlib.suppress(Exception):  # otherwise the next writer does it
            withdraw(transaction)
        raise
    return transaction


def publish(transaction: Transaction, metadata: CommitMetadata, record: Callable[[], None]) -> Instant:
    """Make a write visible; under the table's lock.

    Args:
        transaction: the write.
        metadata: its commit metadata.
        record: called just before the write becomes visible, for example to update the metadata table.

    Raises:
        LockError: the lock was lost. Nothing is visible, and the next holder may be rolling the write back.
        CommitError: it did not become visible.
        CommitConflictError: another writer changed the same file groups without seeing this write, which is pending
            again.
        CommitStateUnknownError: storage errors hide whether it became visible, or it is visible and other writers may
            not have seen it.
    """
    session, instant = transaction.session, transaction.instant
    storage, state, clock = session.storage, session.state, session.clock
    config = state.config
    kept = _reconcile(storage, instant, metadata)
    record()
    replaces = comparable_action(instant.action) == "replacecommit"
    body = encode_commit_metadata(metadata, config.layout_version, replaces)
    if not session.excludes_others:
        refuse_unseen(storage, config, instant, state.timeline)
    times = partial(clock.completion_time, instant.requested)
    visible = complete(
        storage,
        config,
        instant,
        body,
        times,
        confirm=lambda done: confirm_alone(session, instant, done, metadata, state),
    )
    transaction.is_visible = True
    with contextlib.suppress(OSError, CorruptTableError):  # the write is visible; leftover markers are harmless
        delete_markers(storage, instant.requested, kept)
    completed(
        Completed(
            action=_SERVICES.get(transaction.operation, visible.action),
            instant=instant.requested,
            seconds=time.monotonic() - transaction.started,
            metadata=metadata,
            state=state,
        )
    )
    return visible


def abandon(transaction: Transaction) -> None:
    """Roll back a write that failed in this process; under the table's lock.

    Does nothing to a visible write: an interrupt may arrive after it became visible.
    """
    session, instant = transaction.session, transaction.instant
    timeline = session.reload().timeline
    if any(one.requested == instant.requested for one in timeline.writes()):
        return
    keep_plan: bool | None = None
    if comparable_action(instant.action) == "replacecommit":
        with contextlib.suppress(CorruptTableError):  # another process has rolled it back already
            plan = read_clustering_plan(session.storage, session.state.config, instant)
            keep_plan = True if plan is not None else None
    roll_back(session, instant, keep_plan)


@contextlib.contextmanager
def rolled_back_on_failure(transaction: Transaction) -> Iterator[None]:
    """Roll the write or service back if the block fails. Its heartbeat ends with the block.

    Raises:
        HudiError: as :func:`undone_on_failure`.
    """
    try:
        with undone_on_failure(transaction):
            yield
    finally:
        if transaction.heartbeat is not None:
            transaction.heartbeat.stop()


@contextlib.contextmanager
def undone_on_failure(transaction: Transaction) -> Iterator[None]:
    """Roll the write or service back if the block fails.

    Raises:
        CommitError: storage failed.
        LockError: the lock was lost, or could not be acquired again. The instant stays pending; the next writer or
            clean rolls it back.
        PostCommitError: it had become visible before.
    """
    session, instant = transaction.session, transaction.instant
    try:
        with _told_if_visible(transaction):
            yield
    except (CommitStateUnknownError, PostCommitError):
        raise
    except LockError as error:
        raise left_pending(transaction, error) from error
    except OSError as error:
        _abandon_after(transaction, error)
        if has_expired(error):
            raise CommitError(credentials_advice(session.storage.uri, instant.requested)) from error
        raise CommitError(
            f"The {transaction.operation.lower()} {instant.requested} of {session.storage.uri} failed because of "
            f"storage: {error}. The table is as before; run the operation again." + refusal_advice(error)
        ) from error
    except BaseException as error:
        _abandon_after(transaction, error)
        raise


@contextlib.contextmanager
def _told_if_visible(transaction: Transaction) -> Iterator[None]:
    """Turn an error into ``PostCommitError`` if the instant is visible: it must not say that nothing happened."""
    try:
        yield
    except Exception as error:
        if not transaction.is_visible:
            raise
        session, requested = transaction.session, transaction.instant.requested
        raise PostCommitError(
            f"The {transaction.operation.lower()} {requested} of {session.storage.uri} is committed; a step after it "
            f"failed: {error or type(error).__name__} Do not run it again.",
            requested,
        ) from error


def _abandon_after(transaction: Transaction, cause: BaseException) -> None:
    """Roll back. If that fails, too, the next writer does it, and ``cause`` is the error to report."""
    instant, uri = transaction.instant, transaction.storage.uri
    note(
        "writing",
        logging.WARNING,
        "The %s %s of %s failed and is rolled back: %s: %s",
        instant.action,
        instant.requested,
        uri,
        type(cause).__name__,
        cause,
        table=uri,
        instant=instant.requested,
    )
    with noted_on(cause, f"Rolling back the {instant.action} {instant.requested}"), transaction.session.locked():
        abandon(transaction)


@contextlib.contextmanager
def noted_on(cause: BaseException, what: str) -> Iterator[None]:
    """Add a note to ``cause`` if the block, a cleanup after the error, fails as well."""
    try:
        yield
    except Exception as error:
        cause.add_note(f"{what} failed too: {error!r}")


def left_pending(transaction: Transaction, error: LockError) -> LockError:
    """The error of a write or service that lost the lock, with the consequences for its instant."""
    instant = transaction.instant
    return type(error)(
        f"{error} Nothing of the {instant.action} {instant.requested} of {transaction.storage.uri} is visible. It was "
        "not rolled back, because another process may hold the lock: it stays pending. The next clean rolls it back "
        "(hoodie.clean.failed.writes.policy=LAZY), or the next writer (EAGER). Run the operation again."
    )


def require_not_undone(state: TableState, instant: Instant) -> None:
    """Check that no rollback of an inflight instant is pending; under the table's lock.

    Args:
        state: the table under the lock.
        instant: inflight.

    Raises:
        CommitConflictError: another process considered it failed and requested its rollback.
    """
    rollback = pending_rollback_of(state.storage, state.config, state.timeline, instant.requested)
    if rollback is not None:
        raise CommitConflictError(
            f"The {instant.action} {instant.requested} of {state.storage.uri} was taken for failed: its rollback "
            f"{rollback.requested} is pending. Nothing of it is visible; run it again, with a longer "
            "hoodie.client.heartbeat.interval_in_ms if its heartbeat was late.",
            instant.requested,
            rollback.requested,
        )


def withdraw(transaction: Transaction) -> None:
    """Remove a write without files from the timeline."""
    session = transaction.session
    delete_instant_files(session.storage, session.state.config, transaction.instant)
    delete_markers(session.storage, transaction.instant.requested)
    session.changed()


def _reconcile(storage: Storage, instant: Instant, metadata: CommitMetadata) -> set[str]:
    """Delete files of lost task attempts (``HoodieTable.finalizeWrite``, Hudi 1.2.0); returns the write's files.

    A planned service may have been executed before, at the same time. A loss of power can leave base files of that
    attempt without their markers; readers would take them for files of this one.
    """
    kept = {path for stat in metadata.write_stats() for path in (stat.path, *(stat.cdc_stats or ()))}
    found = set(marked_files(storage, instant.requested))
    if storage.is_local and instant.action in _PLANNED_ACTIONS:
        for partition in {stat.partition_path for stat in metadata.write_stats()}:
            files = map(parse_base_file, storage.list_dir(partition))
            found |= {one.path for one in files if one is not None and one.instant == instant.requested}
    storage.delete_files([path for path in found if path not in kept])
    return kept
