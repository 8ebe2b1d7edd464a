"""Carrying out what waits on the timeline, whatever its kind, oldest first.

::

    pending services ─► each by the function of its room, under that room's locks ─► results

Every step of a service can be repeated, so one that died is taken over like one that waits. Somebody else may carry one
out meanwhile: then it is theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from hudi_fast.errors import CommitConflictError, CorruptTableError, HudiError, ServiceTakenError
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.cleaning.run import clean
from hudi_fast.services.cleaning.work import CleanResult
from hudi_fast.services.cleaning.work import combined_result as combined_cleans
from hudi_fast.services.clustering.plan import ScheduledClustering
from hudi_fast.services.clustering.run import run_clustering
from hudi_fast.services.clustering.work import ClusteringResult
from hudi_fast.services.clustering.work import combined_result as combined_clusterings
from hudi_fast.services.compaction.log_run import run_log_compaction
from hudi_fast.services.compaction.plan import ScheduledCompaction
from hudi_fast.services.compaction.run import run_compaction
from hudi_fast.services.compaction.work import CompactionResult, Executor, combined_result
from hudi_fast.services.indexing.plan import ScheduledIndex, read_index_plan
from hudi_fast.services.indexing.run import IndexResult, run_scheduled_index
from hudi_fast.services.scheduling.pending import PendingService, pending_services
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.pending import read_clustering_plan, read_compaction_plan
from hudi_fast.view.table_state import load_state

__all__ = ["PendingResult", "run_pending_services"]

_Plan = TypeVar("_Plan")

PendingResult = CompactionResult | ClusteringResult | CleanResult | IndexResult
"""What the verb of a service gives."""


def run_pending_services(
    storage: Storage, settings: ServiceSettings, carriers: Carriers, services: Collection[str] = ()
) -> list[PendingResult]:
    """Carry out the services that wait, or that died.

    Args:
        storage: the table's storage.
        settings: how files are written, locks and clocks.
        carriers: who does the work.
        services: those to carry out, as :class:`~hudi_fast.services.scheduling.pending.PendingService` names them;
            empty for all.

    Returns:
        What those did that were carried out, oldest first; before table version 8 indexes last: none is built while
        anything else waits.

    Raises:
        HudiError: one failed, and waits again; a note says how many were carried out before it.
    """
    done: list[PendingResult] = []
    state = load_state(storage)
    last = ("index",) if state.config.layout_version < 2 else ()
    for one in sorted(pending_services(state, settings), key=lambda one: one.service in last):
        run = _RUNS.get(one.service)
        if run is None or one.alive or (services and one.service not in services):
            continue
        try:
            done.append(run(storage, one, replace(settings, waits=False), carriers))
        except HudiError as error:
            if _is_gone(storage, one, error):
                continue
            error.add_note(f"Before the {one.service} {one.instant.requested} {len(done)} pending services were done.")
            raise
    return done


def _is_gone(storage: Storage, one: PendingService, error: HudiError) -> bool:
    """Whether it is somebody else's, or was taken off the timeline because writers have made its plan untrue."""
    if isinstance(error, CommitConflictError) and not isinstance(error, ServiceTakenError):
        return all(other.requested != one.instant.requested for other in load_state(storage).timeline.pending())
    return isinstance(error, ServiceTakenError)


def _compact(storage: Storage, one: PendingService, settings: ServiceSettings, carriers: Carriers) -> CompactionResult:
    return _merge_logs(storage, one, settings, carriers, run_compaction)


def _compact_logs(
    storage: Storage, one: PendingService, settings: ServiceSettings, carriers: Carriers
) -> CompactionResult:
    return _merge_logs(storage, one, settings, carriers, run_log_compaction)


def _merge_logs(
    storage: Storage,
    one: PendingService,
    settings: ServiceSettings,
    carriers: Carriers,
    run: Callable[[Storage, ScheduledCompaction, ServiceSettings, Executor], list[WriteStat]],
) -> CompactionResult:
    started = time.monotonic()
    plan = _plan(one, lambda: read_compaction_plan(storage, load_state(storage).config, one.instant))
    planned = ScheduledCompaction(one.instant.requested, plan, one.instant.action)
    stats = run(storage, planned, settings, carriers.compact)
    return combined_result(one.service, [(planned.instant, stats)], time.monotonic() - started)


def _cluster(storage: Storage, one: PendingService, settings: ServiceSettings, carriers: Carriers) -> ClusteringResult:
    started = time.monotonic()
    plan = _plan(one, lambda: read_clustering_plan(storage, load_state(storage).config, one.instant))
    if plan is None:
        raise ServiceTakenError(f"The clustering {one.instant.requested} is not pending any more.")
    done = run_clustering(storage, ScheduledClustering(one.instant.requested, plan), settings, carriers.cluster)
    return combined_clusterings([done], time.monotonic() - started)


def _clean(storage: Storage, one: PendingService, settings: ServiceSettings, carriers: Carriers) -> CleanResult:
    """All that wait: a clean carries out those before it in any case."""
    started = time.monotonic()
    done = clean(storage, settings, carriers, if_due=False, pending_only=True)
    if not done:
        raise ServiceTakenError(f"The clean {one.instant.requested} is not pending any more.")
    return combined_cleans(done, time.monotonic() - started)


def _index(storage: Storage, one: PendingService, settings: ServiceSettings, carriers: Carriers) -> IndexResult:
    parts = _plan(one, lambda: read_index_plan(load_state(storage), one.instant))
    return run_scheduled_index(storage, ScheduledIndex(one.instant.requested, parts), settings, carriers.index)


def _plan(one: PendingService, read: Callable[[], _Plan]) -> _Plan:
    """The plan of a service that may have been withdrawn in the meantime."""
    try:
        return read()
    except CorruptTableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise ServiceTakenError(f"The {one.service} {one.instant.requested} is not pending any more.") from error
        raise


_Run = Callable[[Storage, PendingService, ServiceSettings, Carriers], PendingResult]
_RUNS: Mapping[str, _Run] = MappingProxyType(
    {"compact": _compact, "log_compact": _compact_logs, "cluster": _cluster, "clean": _clean, "index": _index}
)
