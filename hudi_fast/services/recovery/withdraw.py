"""Removing pending services from the timeline, or setting them back to requested.

::

    compaction       inflight: its base files are deleted and it is requested again, because writers may have logged to
                     the slices that begin at it; requested: its plan is removed
    log compaction, clustering       their files are deleted, and their plans removed
    indexing         its partitions of the metadata table are dropped, and its plan removed
    clean            requested: its plan is removed; inflight: it can only be finished, because it has deleted files

Each step holds the lock that running the service takes, so no process of this machine runs it. Heartbeats show whether
another machine does.

Source: ``BaseHoodieTableServiceClient#rollback``, ``HoodieTable#rollbackInflightCompaction``, ``CompactionAdminClient``
(Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hudi_fast.errors import ConfigError
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.services.indexing.drop import undo_indexing
from hudi_fast.services.indexing.index_plan import INDEX_LOCK_PATH, ScheduledIndex, read_index_plan
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.session import TableSession

__all__ = ["ALL_SERVICES", "held_locks", "service_of", "withdraw_plan"]

ALL_SERVICES = ("compaction", "logcompaction", "clustering", "clean", "indexing")
"""Services that must not run during a restore."""

_LOCKS = {
    "compaction": service_lock_path("compaction"),
    "logcompaction": service_lock_path("logcompaction"),
    "clustering": service_lock_path("clustering"),
    "clean": service_lock_path("clean"),
    "indexing": INDEX_LOCK_PATH,
}


def service_of(state: TableState, target: Instant) -> str | None:
    """The service of a pending instant; None for a write or a completed instant."""
    if target.is_completed:
        return None
    if any(one.requested == target.requested for one in state.pending_services):
        return "clustering"  # in layout 1 a replace commit with a plan
    return target.action if target.action in ALL_SERVICES else None


@contextlib.contextmanager
def held_locks(session: TableSession, services: tuple[str, ...]) -> Iterator[TableState]:
    """Hold the locks of some services, then the table's; yields the table.

    Raises:
        LockTimeoutError: another process runs one of them.
    """
    with contextlib.ExitStack() as stack:
        for service in sorted({*services} & _LOCKS.keys()):
            seconds = session.service_lock_seconds
            stack.enter_context(machine_lock(session.storage, seconds, _LOCKS[service]))
        yield stack.enter_context(session.locked())


def withdraw_plan(session: TableSession, target: Instant, service: str) -> bool:
    """Remove a service from the timeline if it has written no files; under its lock and the table's.

    Args:
        session: the call.
        target: pending.
        service: name of the service.

    Returns:
        False when it has files to delete as well.

    Raises:
        CommitConflictError: another process runs it.
        ConfigError: it must be finished.
    """
    state = session.state
    storage, config = state.storage, state.config
    require_abandoned(session, target)
    if service == "indexing":
        parts = read_index_plan(state, target)
        undo_indexing(storage, ScheduledIndex(target.requested, parts))
        session.changed()
        return True
    if target.state is State.INFLIGHT and service == "clean":
        raise ConfigError(
            f"The clean {target.requested} of {storage.uri} has begun to delete files; it can be finished, not rolled "
            "back. Finish it with services.clean(pending_only=True)."
        )
    if target.state is State.INFLIGHT:
        return False
    if service == "compaction" and config.layout_version < 2:
        _require_nothing_on_top(state, target)
    delete_instant_files(storage, config, target)
    session.changed()
    return True


def _require_nothing_on_top(state: TableState, compaction: Instant) -> None:
    """Before table version 8 log files are named after the slice that begins at the compaction: it must be executed."""
    planned = read_compaction_plan(state.storage, state.config, compaction).operations
    for partition in sorted({one.partition_path for one in planned}):
        for log in map(parse_log_file, state.storage.list_dir(partition)):
            if log is not None and log.instant == compaction.requested:
                raise ConfigError(
                    f"The compaction {compaction.requested} of {state.storage.uri} cannot be removed from the "
                    f"timeline: writers have logged to slices that begin at it ({log.path}). Execute it with "
                    "services.compact(pending_only=True)."
                )
