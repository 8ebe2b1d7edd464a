"""The life of a service that writes files while writers go on; every one of them is made of these steps.

::

    begin_service    the table's lock: signs of life ─► requested ─► inflight ─► marker folder      -> may make files
    guarded          whatever fails from here on is rolled back                     -> as if it had not begun
    commit_service   the table's lock: reconcile markers ─► the metadata table ─► completed (visible, at once)

Source: ``BaseHoodieTableServiceClient`` (Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from hudi_fast.errors import CommitError, CommitStateUnknownError, LockError, LockTimeoutError, ServiceTakenError
from hudi_fast.locking.machine import machine_lock
from hudi_fast.locking.table_lock import Lock
from hudi_fast.metadata_table.updates.runner import in_threads
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.heartbeat import Heartbeat, HeartbeatRule
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import to_inflight
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.markers import make_marker_folder
from hudi_fast.writing.metadata_commit import ensure_metadata, maintain_metadata, record_in_metadata
from hudi_fast.writing.plan import WritePlan
from hudi_fast.writing.transaction import (
    Transaction,
    abandon,
    commit,
    left_pending,
    noted_on,
    require_not_undone,
)

__all__ = ["begin_service", "commit_service", "guarded", "service_lock", "with_metadata"]

_Result = TypeVar("_Result")
_BY_DEFAULT = HeartbeatRule()


def with_metadata(state: TableState, clock: InstantClock, settings: ServiceSettings) -> TableState:
    """The state once the metadata table is as a service's settings want it; under the table's lock."""
    return ensure_metadata(state, service_plan(state, settings), settings.write.metadata, clock, in_threads())


@contextlib.contextmanager
def service_lock(storage: Storage, settings: ServiceSettings, path: str) -> Iterator[None]:
    """The lock that a service holds as long as it runs; only one of a kind runs at a time.

    Args:
        storage: the table's storage.
        settings: whether to wait for it, and how long.
        path: of the lock.

    Raises:
        LockTimeoutError: somebody else held it for longer than the options wait.
        ServiceTakenError: somebody else holds it, and the settings do not wait.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(machine_lock(storage, settings.service_lock_seconds, path))
        except LockTimeoutError as error:
            if settings.waits:
                raise
            raise ServiceTakenError(f"Somebody else runs a service of that kind on {storage.uri}: {error}") from error
        yield


def begin_service(
    state: TableState, instant: Instant, clock: InstantClock, operation: str, rule: HeartbeatRule = _BY_DEFAULT
) -> Transaction:
    """Mark a requested service as being carried out, by :func:`guarded`: files may be made from now on.

    Args:
        state: the table.
        instant: the service.
        clock: gives times.
        operation: as commit metadata names it.
        rule: how often it gives signs of life until :func:`guarded` returns.

    Raises:
        CommitError: storage failed; nothing has begun.
    """
    storage, config = state.storage, state.config
    heart = Heartbeat(storage, instant.requested, rule)
    heart.start()
    try:
        to_inflight(storage, config, instant)
        inflight = replace(instant, state=State.INFLIGHT)
        transaction = Transaction(storage, config, inflight, clock, operation, heart)
        _undone_on_failure(transaction, lambda: make_marker_folder(storage, instant.requested), None)
    except BaseException:
        heart.stop()
        raise
    return transaction


def guarded(transaction: Transaction, execute: Callable[[], _Result], lock: Lock | None) -> _Result:
    """What ``execute`` returns; if it fails the service is rolled back. Its signs of life end then.

    Args:
        transaction: the service.
        execute: does the work and commits it.
        lock: the table's, to roll back under; None: the caller holds it.

    Raises:
        CommitError: storage failed.
        LockError: the lock was lost, or could not be had again. The service stays inflight, and is rolled back by
            whoever finds it without signs of life.
    """
    try:
        return _undone_on_failure(transaction, execute, lock)
    finally:
        if transaction.heart is not None:
            transaction.heart.stop()


def _undone_on_failure(transaction: Transaction, execute: Callable[[], _Result], lock: Lock | None) -> _Result:
    try:
        return execute()
    except CommitStateUnknownError:
        raise
    except LockError as error:
        raise left_pending(transaction, error) from error
    except OSError as error:
        _abandon(transaction, lock, error)
        raise CommitError(
            f"The {transaction.instant.action} {transaction.instant.requested} of {transaction.storage.uri} failed "
            f"because of storage: {error}. The table is as before; run it again."
        ) from error
    except BaseException as error:
        _abandon(transaction, lock, error)
        raise


def commit_service(
    transaction: Transaction,
    state: TableState,
    plan: WritePlan,
    metadata: CommitMetadata,
    settings: ServiceSettings,
) -> None:
    """Make a service visible, in the metadata table too; under the table's lock.

    Args:
        transaction: the service.
        state: the table as it is now.
        plan: how the service wrote files.
        metadata: its commit metadata.
        settings: of the metadata table.

    Raises:
        CommitConflictError: somebody rolls it back, or it gave no signs of life for so long that others may have taken
            it over.
    """
    if transaction.heart is not None:
        transaction.heart.require_alive()
    require_not_undone(state, transaction.instant)
    options, clock = settings.write.metadata, transaction.clock

    def record(_storage: Storage, instant: Instant, made: CommitMetadata) -> None:
        record_in_metadata(state, plan, options, instant.requested, made, clock, in_threads())

    commit(transaction, metadata, [record])
    maintain_metadata(state, options, clock)


def _abandon(transaction: Transaction, lock: Lock | None, cause: BaseException) -> None:
    """Roll back; if even that fails the next run will, and the first error is the one to report."""
    instant = transaction.instant
    with noted_on(cause, f"Rolling the {instant.action} {instant.requested} back"), contextlib.ExitStack() as stack:
        if lock is not None:
            transaction.clock.under(stack.enter_context(lock()))
        abandon(transaction)
