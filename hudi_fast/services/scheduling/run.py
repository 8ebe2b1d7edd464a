"""Executes pending services of all kinds, oldest first.

::

    a restore, if one is pending ─┐
    pending services ─────────────┴─► each by the function of its service, under that service's lock ─► results

Every step of a service can be repeated, so an abandoned one is executed like any pending one. A service that another
process runs is skipped. A restore comes first: nothing else may begin until it is completed, and it removes services
after its savepoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TypeVar

from hudi_fast.errors import CommitConflictError, ConfigError, CorruptTableError, HudiError, ServiceTakenError
from hudi_fast.services.cleaning.run import clean
from hudi_fast.services.cleaning.work import CleanResult
from hudi_fast.services.clustering.plan import ScheduledClustering
from hudi_fast.services.clustering.run import cluster
from hudi_fast.services.clustering.work import ClusteringResult
from hudi_fast.services.compaction.log_run import compact_logs
from hudi_fast.services.compaction.plan import ScheduledCompaction
from hudi_fast.services.compaction.run import compact
from hudi_fast.services.compaction.work import CompactionResult
from hudi_fast.services.indexing.plan import ScheduledIndex, read_index_plan
from hudi_fast.services.indexing.run import IndexResult, run_scheduled_index
from hudi_fast.services.recovery.restore import run_restore
from hudi_fast.services.recovery.restore_plan import plan_of_pending
from hudi_fast.services.recovery.values import RestoreResult
from hudi_fast.services.scheduling.pending import PendingService, pending_services
from hudi_fast.view.pending import read_clustering_plan, read_compaction_plan
from hudi_fast.writing.session import TableSession

__all__ = ["PendingResult", "run_pending_services"]

_Plan = TypeVar("_Plan")

PendingResult = CompactionResult | ClusteringResult | CleanResult | IndexResult | RestoreResult
"""The result of a service's verb."""


def run_pending_services(session: TableSession, services: Collection[str] = ()) -> list[PendingResult]:
    """Execute pending services, abandoned ones included.

    Args:
        session: the call.
        services: names, as in :class:`~hudi_fast.services.scheduling.pending.PendingService`; empty for all.

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


def _restore(session: TableSession, one: PendingService) -> RestoreResult:
    plan = plan_of_pending(session.state, one.instant)
    if plan is None or not plan.savepoint:
        raise ConfigError(
            f"The pending restore {one.instant.requested} of {session.storage.uri} does not name its savepoint: "
            "restore the table to that savepoint."
        )
    return run_restore(session, plan.savepoint)


def _is_resolved(session: TableSession, one: PendingService, error: HudiError) -> bool:
    """Whether another process runs or completed it, or it was rolled back because writers made its plan outdated."""
    if isinstance(error, CommitConflictError) and not isinstance(error, ServiceTakenError):
        return all(other.requested != one.instant.requested for other in session.reload().timeline.pending())
    return isinstance(error, ServiceTakenError)


def _compact(session: TableSession, one: PendingService) -> CompactionResult:
    return compact(session, _planned_merge(session, one))


def _compact_logs(session: TableSession, one: PendingService) -> CompactionResult:
    return compact_logs(session, _planned_merge(session, one))


def _planned_merge(session: TableSession, one: PendingService) -> ScheduledCompaction:
    state = session.state
    plan = _plan(one, lambda: read_compaction_plan(state.storage, state.config, one.instant))
    return ScheduledCompaction(one.instant.requested, plan, one.instant.action)


def _cluster(session: TableSession, one: PendingService) -> ClusteringResult:
    state = session.state
    plan = _plan(one, lambda: read_clustering_plan(state.storage, state.config, one.instant))
    if plan is None:
        raise ServiceTakenError(f"The clustering {one.instant.requested} is no longer pending.")
    return cluster(session, ScheduledClustering(one.instant.requested, plan))


def _clean(session: TableSession, one: PendingService) -> CleanResult:
    """Executes all pending cleans."""
    done = clean(session, pending_only=True)
    if not done.instants:
        raise ServiceTakenError(f"The clean {one.instant.requested} is no longer pending.")
    return done


def _index(session: TableSession, one: PendingService) -> IndexResult:
    parts = _plan(one, lambda: read_index_plan(session.state, one.instant))
    return run_scheduled_index(session, ScheduledIndex(one.instant.requested, parts))


def _plan(one: PendingService, read: Callable[[], _Plan]) -> _Plan:
    """The plan of a service that may have been withdrawn in the meantime."""
    try:
        return read()
    except CorruptTableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise ServiceTakenError(f"The {one.service} {one.instant.requested} is no longer pending.") from error
        raise


_RUNS: Mapping[str, Callable[[TableSession, PendingService], PendingResult]] = MappingProxyType(
    {"compact": _compact, "compact_logs": _compact_logs, "cluster": _cluster, "clean": _clean, "index": _index}
)
