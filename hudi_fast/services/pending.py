"""Executes pending services of all kinds, oldest first.

::

    a restore, if one is pending ─┐
    pending services ─────────────┴─► each by the function of its service, under that service's lock ─► results

Every step of a service can be repeated, so an abandoned one is executed like any pending one. A service that another
process runs is skipped. A restore comes first: nothing else may begin until it is completed, and it removes services
after its savepoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import pyarrow as pa

from hudi_fast.errors import CommitConflictError, ConfigError, CorruptTableError, HudiError, ServiceTakenError
from hudi_fast.locking.machine import LOCK_PATH, is_held, service_lock_path
from hudi_fast.services.clean import clean
from hudi_fast.services.clustering.cluster import cluster
from hudi_fast.services.clustering.cluster_plan import ScheduledClustering
from hudi_fast.services.clustering.cluster_work import ClusteringResult
from hudi_fast.services.compact import compact, compact_logs
from hudi_fast.services.compact_plan import ScheduledCompaction
from hudi_fast.services.index_build import IndexResult, run_scheduled_index
from hudi_fast.services.index_plan import INDEX_LOCK_PATH, ScheduledIndex, read_index_plan
from hudi_fast.services.merge_slices import CompactionResult
from hudi_fast.services.restore import plan_of_pending, run_restore
from hudi_fast.services.retention import CleanResult
from hudi_fast.services.undoing import RestoreResult
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_alive, is_fresh
from hudi_fast.timeline.instants import Instant, State, ms_from_instant
from hudi_fast.values import dataclass
from hudi_fast.view.pending import pending_clusterings, read_clustering_plan, read_compaction_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = ["PendingResult", "pending_services", "pending_table", "run_pending_services"]

_Plan = TypeVar("_Plan")

PendingResult = CompactionResult | ClusteringResult | CleanResult | IndexResult | RestoreResult
"""The result of a service's verb."""


def run_pending_services(session: TableSession, services: Collection[str] = ()) -> list[PendingResult]:
    """Execute pending services, abandoned ones included.

    Args:
        session: the call.
        services: names, as in :class:`~hudi_fast.services.pending.PendingService`; empty for all.

    Returns:
        The results, oldest first; before table version 8 indexes last: none is built while anything else is pending.

    Raises:
        HudiError: one failed, and is pending again; a note says how many were executed before it.
    """
    done: list[PendingResult] = []
    last = ("index",) if session.state.config.layout_version < 2 else ()
    found = pending_services(session.state, session.settings)
    restores = [one for one in found if one.service == "restore" and not one.alive]
    if restores and (not services or "restore" in services):
        done += [_restore(session, one) for one in restores]
        found = pending_services(session.reload(), session.settings)
    for one in sorted(found, key=lambda one: one.service in last):
        run = _RUNS.get(one.service)
        if run is None or one.alive or (services and one.service not in services):
            continue
        try:
            session.changed()
            with session.without_waiting():
                done.append(run(session, one))
        except HudiError as error:
            if _is_resolved(session, one, error):
                continue
            error.add_note(f"Before the {one.service} {one.instant.requested} {len(done)} pending services were run.")
            raise
    return done


def _restore(session: TableSession, one: _PendingService) -> RestoreResult:
    plan = plan_of_pending(session.state, one.instant)
    if plan is None or not plan.savepoint:
        raise ConfigError(
            f"The pending restore {one.instant.requested} of {session.storage.uri} does not name its savepoint: "
            "restore the table to that savepoint."
        )
    return run_restore(session, plan.savepoint)


def _is_resolved(session: TableSession, one: _PendingService, error: HudiError) -> bool:
    """Whether another process runs or completed it, or it was rolled back because writers made its plan outdated."""
    if isinstance(error, CommitConflictError) and not isinstance(error, ServiceTakenError):
        return all(other.requested != one.instant.requested for other in session.reload().timeline.pending())
    return isinstance(error, ServiceTakenError)


def _compact(session: TableSession, one: _PendingService) -> CompactionResult:
    return compact(session, _planned_merge(session, one))


def _compact_logs(session: TableSession, one: _PendingService) -> CompactionResult:
    return compact_logs(session, _planned_merge(session, one))


def _planned_merge(session: TableSession, one: _PendingService) -> ScheduledCompaction:
    state = session.state
    plan = _plan(one, lambda: read_compaction_plan(state.storage, state.config, one.instant))
    return ScheduledCompaction(one.instant.requested, plan, one.instant.action)


def _cluster(session: TableSession, one: _PendingService) -> ClusteringResult:
    state = session.state
    plan = _plan(one, lambda: read_clustering_plan(state.storage, state.config, one.instant))
    if plan is None:
        raise ServiceTakenError(f"The clustering {one.instant.requested} is no longer pending.")
    return cluster(session, ScheduledClustering(one.instant.requested, plan))


def _clean(session: TableSession, one: _PendingService) -> CleanResult:
    """Executes all pending cleans."""
    done = clean(session, pending_only=True)
    if not done.instants:
        raise ServiceTakenError(f"The clean {one.instant.requested} is no longer pending.")
    return done


def _index(session: TableSession, one: _PendingService) -> IndexResult:
    parts = _plan(one, lambda: read_index_plan(session.state, one.instant))
    return run_scheduled_index(session, ScheduledIndex(one.instant.requested, parts))


def _plan(one: _PendingService, read: Callable[[], _Plan]) -> _Plan:
    """The plan of a service that may have been withdrawn in the meantime."""
    try:
        return read()
    except CorruptTableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise ServiceTakenError(f"The {one.service} {one.instant.requested} is no longer pending.") from error
        raise


_RUNS: Mapping[str, Callable[[TableSession, _PendingService], PendingResult]] = MappingProxyType(
    {"compact": _compact, "compact_logs": _compact_logs, "cluster": _cluster, "clean": _clean, "index": _index}
)


# ---- lists pending services, and whether a live process runs them
#
# ::
#
#     timeline ─► pending instants of services ─► plans: number of file groups ─► heartbeats, locks ─► PendingService
#
# An inflight service that is not alive is abandoned; the next run of services executes it. Pending writes are not
# listed: the next write or clean rolls abandoned ones back.


_LOCKS = {
    "compact": service_lock_path("compaction"),
    "compact_logs": service_lock_path("logcompaction"),
    "cluster": service_lock_path("clustering"),
    "clean": service_lock_path("clean"),
    "index": INDEX_LOCK_PATH,
    "rollback": LOCK_PATH,
    "restore": LOCK_PATH,
}
_SERVICES = {
    "compaction": "compact",
    "logcompaction": "compact_logs",
    "clustering": "cluster",
    "replacecommit": "cluster",
    "clean": "clean",
    "indexing": "index",
    "rollback": "rollback",
    "restore": "restore",
}
_SCHEMA = pa.schema(
    {
        "instant": pa.string(),
        "action": pa.string(),
        "state": pa.string(),
        "service": pa.string(),
        "file_groups": pa.int64(),
        "alive": pa.bool_(),
        "seconds": pa.float64(),
    }
)


@dataclass(frozen=True, slots=True)
class _PendingService:
    """A requested or inflight service.

    Attributes:
        instant: on the timeline.
        service: the verb that executes it: ``compact``, ``compact_logs``, ``cluster``, ``clean``, ``index``,
            ``rollback`` or ``restore``.
        file_groups: number of file groups in its plan; None for plans without file groups.
        alive: whether a live process runs it.
        seconds: since it was requested.
    """

    instant: Instant
    service: str
    file_groups: int | None
    alive: bool
    seconds: float


def pending_services(state: TableState, settings: Settings) -> list[_PendingService]:
    """Pending services, oldest first.

    Args:
        state: the table.
        settings: when a heartbeat expires.

    Raises:
        CorruptTableError: a plan is damaged.
    """
    rule, now = settings.failed_writes.heartbeat, time.time() * 1000
    planned = pending_clusterings(state.storage, state.config, state.timeline)
    clusterings = {one.requested: sum(len(group.slices) for group in plan.groups) for one, plan in planned}
    found = []
    for instant in state.timeline.pending():
        service = _SERVICES.get(instant.action)
        if service is None or (instant.action == "replacecommit" and instant.requested not in clusterings):
            continue
        alive = instant.state is State.INFLIGHT and _is_alive(state.storage, instant.requested, service, rule)
        seconds = (now - ms_from_instant(instant.requested, state.config.timezone)) / 1000
        groups = clusterings.get(instant.requested) if service == "cluster" else _file_groups(state, instant)
        found.append(_PendingService(instant, service, groups, alive, max(seconds, 0.0)))
    return sorted(found, key=lambda one: one.instant.requested)


def pending_table(services: Sequence[_PendingService]) -> pa.Table:
    """One row for each: ``instant``, ``action``, ``state``, ``service``, ``file_groups``, ``alive``, ``seconds``."""
    rows = [
        {
            "instant": one.instant.requested,
            "action": one.instant.action,
            "state": one.instant.state.name,
            "service": one.service,
            "file_groups": one.file_groups,
            "alive": one.alive,
            "seconds": round(one.seconds, 3),
        }
        for one in services
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _is_alive(storage: Storage, instant: str, service: str, rule: HeartbeatRule) -> bool:
    """Whether its heartbeat is live: one of another process, or one of this process while the lock is held."""
    if is_alive(storage, instant, rule):
        return True
    return is_fresh(storage, instant, rule) and is_held(storage, _LOCKS[service])


def _file_groups(state: TableState, instant: Instant) -> int | None:
    if instant.action in ("compaction", "logcompaction"):
        return len(read_compaction_plan(state.storage, state.config, instant).operations)
    return None
