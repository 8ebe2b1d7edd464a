"""Plans of services taken off the timeline, or made to wait again, by name.

::

    compaction       inflight: its base files go and it waits again, since writers may have logged to the slices that
                     begin at it; requested: its plan goes
    log compaction, clustering       their files go, and their plans
    indexing         its partitions of the metadata table go, and its plan
    clean            requested: its plan goes; inflight: it can only be finished, for it has begun to delete

Each under the lock that carrying the service out takes, so nobody on this machine is at it; the heartbeats of others
are looked at.

Source: ``BaseHoodieTableServiceClient#rollback``, ``HoodieTable#rollbackInflightCompaction``, ``CompactionAdminClient``
(Hudi 1.2.0).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hudi_fast.errors import ConfigError
from hudi_fast.locking.machine import machine_lock, service_lock_path
from hudi_fast.locking.table_lock import HeldLock, table_lock
from hudi_fast.services.indexing.drop import undo_indexing
from hudi_fast.services.indexing.plan import INDEX_LOCK_PATH, ScheduledIndex, read_index_plan
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.transition import delete_instant_files
from hudi_fast.view.file_names import parse_log_file
from hudi_fast.view.pending import read_compaction_plan
from hudi_fast.view.table_state import TableState

__all__ = ["ALL_SERVICES", "held_locks", "service_of", "withdraw_plan"]

ALL_SERVICES = ("compaction", "logcompaction", "clustering", "clean", "indexing")
"""Services whose work must not go on while the table is taken back."""

_LOCKS = {
    "compaction": service_lock_path("compaction"),
    "logcompaction": service_lock_path("logcompaction"),
    "clustering": service_lock_path("clustering"),
    "clean": service_lock_path("clean"),
    "indexing": INDEX_LOCK_PATH,
}


def service_of(state: TableState, target: Instant) -> str | None:
    """The service that a pending instant is of; None for a write, and for what is complete."""
    if target.is_completed:
        return None
    if any(one.requested == target.requested for one in state.pending_services):
        return "clustering"  # in layout 1 a replace commit with a plan
    return target.action if target.action in ALL_SERVICES else None


@contextlib.contextmanager
def held_locks(storage: Storage, services: tuple[str, ...], settings: ServiceSettings) -> Iterator[HeldLock]:
    """Hold the locks of some services, then the table's.

    Raises:
        LockTimeoutError: somebody is carrying one of them out.
    """
    with contextlib.ExitStack() as stack:
        for service in sorted({*services} & _LOCKS.keys()):
            stack.enter_context(machine_lock(storage, settings.service_lock_seconds, _LOCKS[service]))
        yield stack.enter_context(table_lock(storage, settings.write.lock))


def withdraw_plan(state: TableState, target: Instant, service: str, rule: HeartbeatRule) -> bool:
    """Take a service off the timeline if that is all that there is to do; under its lock and the table's.

    Args:
        state: the table.
        target: pending.
        service: that it is of.
        rule: for how long a sign of life counts.

    Returns:
        False when it has files to undo as well.

    Raises:
        CommitConflictError: another program is carrying it out.
        ConfigError: it must be finished.
    """
    storage, config = state.storage, state.config
    require_abandoned(storage, target, rule)
    if service == "indexing":
        parts = read_index_plan(state, target)
        undo_indexing(storage, ScheduledIndex(target.requested, parts))
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
    return True


def _require_nothing_on_top(state: TableState, compaction: Instant) -> None:
    """Before table version 8 log files are named after the slice that begins at the compaction: it has to be made."""
    planned = read_compaction_plan(state.storage, state.config, compaction).operations
    for partition in sorted({one.partition_path for one in planned}):
        for log in map(parse_log_file, state.storage.list_dir(partition)):
            if log is not None and log.instant == compaction.requested:
                raise ConfigError(
                    f"The compaction {compaction.requested} of {state.storage.uri} cannot be taken off the timeline: "
                    f"writers have logged to slices that begin at it ({log.path}). Carry it out with "
                    "services.compact(pending_only=True)."
                )
