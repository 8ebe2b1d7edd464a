"""Carrying a planned clustering out: the rows of file groups go into new ones, and the old ones end.

::

    begin     the table's lock: clean up, roll a died attempt back, is the plan still true? requested ─► inflight
    execute   no lock: the slices of each group ─► new file groups                 (writers go on)
    commit    the table's lock: is the plan still true? markers, the metadata table, inflight ─► completed replace
              commit: new groups are seen and old ones are not, at once

A lock of the services' own is held all the while: it falls when its holder dies, so an inflight clustering that is
found under it belongs to nobody alive. What fails is rolled back to requested, and its plan waits; a plan that writers
have made untrue is rolled back for good. Rows keep all their meta columns but the file name, so an incremental query
does not return them again.

Sources: ``BaseCommitActionExecutor.executeClustering``, ``BaseHoodieTableServiceClient.cluster`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from dataclasses import replace
from functools import partial

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError, ConfigError, HudiWarning, ServiceTakenError, UnsupportedFeatureError
from hudi_fast.index.consistent import has_hashing
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.locking.table_lock import HeldLock, Lock, table_lock
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.carriers import Carriers
from hudi_fast.services.clustering.bucket_plans import planned_resizes
from hudi_fast.services.clustering.bucket_resize import carry_out_resizes, resize_buckets
from hudi_fast.services.clustering.conflicts import changed_groups, require_nobody_at_work, require_unchanged
from hudi_fast.services.clustering.parameters import options_of_plan
from hudi_fast.services.clustering.plan import (
    ScheduledClustering,
    clustering_action,
    clustering_is_due,
    schedule_clustering,
    waiting_clusterings,
)
from hudi_fast.services.clustering.strategies import CONSISTENT, execution_of, plan_strategy_of
from hudi_fast.services.clustering.work import (
    ClusteringExecutor,
    ClusteringWork,
    Finished,
    Ordering,
    slices_of,
)
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import begin_service, commit_service, guarded, service_lock, with_metadata
from hudi_fast.services.settings import ServiceSettings
from hudi_fast.services.work_plan import service_merge, service_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import ClusteringPlan
from hudi_fast.view.pending import pending_clusterings, read_clustering_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.metadata_commit import columns_with_stats
from hudi_fast.writing.pending_clusterings import withdraw_clustering
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.transaction import Transaction, clean_up, noted_on

__all__ = ["cluster", "cluster_after_write", "run_clustering", "run_pending_clusterings"]

_OPERATION = "CLUSTER"


def run_clustering(
    storage: Storage, scheduled: ScheduledClustering, settings: ServiceSettings, execute: ClusteringExecutor
) -> Finished:
    """Carry out a clustering that stands on the timeline.

    Args:
        storage: the table's storage.
        scheduled: which one.
        settings: how files are written.
        execute: rewrites the groups.

    Raises:
        CommitConflictError: another program is carrying it out, or writers changed its file groups: then it is rolled
            back with its plan.
        CommitError: it failed, and waits again.
        ConfigError: it was planned with ``dry_run``, or an option does not go with the table.
        CorruptTableError: a file of the plan is gone or cannot be understood.
        ServiceTakenError: it is no longer pending.
        UnsupportedFeatureError: the plan has an unknown execution strategy, or the table merges its rows in a way that
            is not supported.
    """
    lock = partial(table_lock, storage, settings.write.lock)
    with service_lock(storage, settings, service_lock_path("clustering")):
        try:
            with lock() as held:
                begun = _begin(storage, scheduled, settings, held)
                if isinstance(begun, Finished):
                    return begun
            transaction, work, plan = begun
            return guarded(transaction, lambda: _execute(transaction, work, plan, execute, lock, settings), lock)
        except CommitConflictError as error:
            with noted_on(error, f"Rolling the clustering {scheduled.instant} back"), lock() as held:
                _withdraw_untrue(storage, scheduled, settings, held)
            raise


def run_pending_clusterings(storage: Storage, settings: ServiceSettings, execute: ClusteringExecutor) -> list[Finished]:
    """Carry out what waits on the timeline, oldest first.

    Raises:
        HudiError: as :func:`run_clustering`, but not for one that somebody else has completed in the meantime, or that
            writers have made untrue: that one is gone then.

    Warns:
        HudiWarning: writers made one untrue, and it was rolled back.
    """
    done = []
    for one in waiting_clusterings(storage):
        try:
            done.append(run_clustering(storage, one, settings, execute))
        except CommitConflictError as error:
            _, timeline = _look(storage)
            if one.instant in {instant.requested for instant in timeline.pending()}:
                raise
            if not isinstance(error, ServiceTakenError):
                warnings.warn(str(error), HudiWarning, stacklevel=4)
    return done


def cluster_after_write(storage: Storage, settings: ServiceSettings, carriers: Carriers) -> list[Finished]:
    """What the options ask for after a write: cluster, or plan a clustering for somebody else.

    Args:
        storage: the table's storage.
        settings: the options of the write.
        carriers: who does the work.

    Returns:
        What was completed; empty when nothing was asked for or due.

    Raises:
        HudiError: it failed; the write itself is committed.
    """
    options = settings.clustering
    if not (options.inline or options.schedule_inline):
        return []
    config, timeline = _look(storage)
    waiting = next(pending_clusterings(storage, config, timeline), None)
    if options.schedule_inline:
        if waiting is None and clustering_is_due(storage, config, timeline, options):
            schedule_clustering(storage, settings)
        return []
    if waiting is None and not clustering_is_due(storage, config, timeline, options):
        return []
    return cluster(storage, settings, carriers, pending_only=False)


def cluster(storage: Storage, settings: ServiceSettings, carriers: Carriers, pending_only: bool) -> list[Finished]:
    """Carry out what waits, then plan another clustering, unless that is not due, and carry it out.

    Buckets of consistent hashing are not planned for: those that are too large or too small are changed at once.

    Args:
        storage: the table's storage.
        settings: strategies, and how files are written.
        carriers: who does the work.
        pending_only: plan nothing new.

    Raises:
        UnsupportedFeatureError: an unknown strategy; nothing was carried out.
        HudiError: as :func:`run_clustering`.
    """
    if not pending_only:
        plan_strategy_of(settings.clustering)
    done = run_pending_clusterings(storage, settings, carriers.cluster)
    if pending_only:
        return done
    if has_hashing(storage):
        return [*done, *resize_buckets(storage, settings)]
    planned = schedule_clustering(storage, settings)
    if planned is not None:
        with contextlib.suppress(ServiceTakenError):  # somebody else has been quicker
            done.append(run_clustering(storage, planned, settings, carriers.cluster))
    return done


# ---- inside


def _look(storage: Storage) -> tuple[TableConfig, Timeline]:
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    return config, load_timeline(storage, config)


def _begin(
    storage: Storage, scheduled: ScheduledClustering, settings: ServiceSettings, held: HeldLock
) -> tuple[Transaction, ClusteringWork, ClusteringPlan] | Finished:
    """Buckets of consistent hashing are done with at once: writers have to know where their rows go."""
    state = open_state(storage)
    clock = settings.clock(state.config, held)
    failed = settings.failed_writes
    state = with_metadata(clean_up(state, clock, failed), clock, settings)
    instant, plan = _pending(state, scheduled)
    how = execution_of(plan.strategy_class or settings.clustering.execution_class)
    resizes = planned_resizes(state, instant, plan) if how == CONSISTENT else []
    work = _work(state, instant, plan, settings, how)
    require_unchanged(state, instant, plan)
    require_nobody_at_work(state, instant, plan, settings)
    for group in plan.groups:
        slices_of(storage, group)
    if instant.state is State.INFLIGHT:
        require_abandoned(storage, instant, failed.heartbeat)
        roll_back(storage, state.config, instant, clock, state.timeline.newest_time, keep_plan=True)
        state = open_state(storage)
        instant = replace(instant, state=State.REQUESTED, file_name=None)
    transaction = begin_service(state, instant, clock, _OPERATION, failed.heartbeat)
    return carry_out_resizes(transaction, state, resizes, settings) if resizes else (transaction, work, plan)


def _pending(state: TableState, scheduled: ScheduledClustering) -> tuple[Instant, ClusteringPlan]:
    instant = state.timeline.find(scheduled.instant, clustering_action(state))
    if instant is not None and instant.state is not State.COMPLETED:
        plan = read_clustering_plan(state.storage, state.config, instant)
        if plan is not None:
            return instant, plan
    if not scheduled.instant:
        raise ConfigError(
            f"The plan of a clustering of {state.storage.uri} was made with dry_run=True and is not on the timeline. "
            "Plan it without, and carry that out."
        )
    raise ServiceTakenError(
        f"The clustering {scheduled.instant} of {state.storage.uri} is not pending: it was "
        f"{'taken off the timeline' if instant is None else 'completed'}. Plan another one."
    )


def _work(
    state: TableState, instant: Instant, plan: ClusteringPlan, settings: ServiceSettings, how: str
) -> ClusteringWork:
    if not plan.preserve_meta_fields:
        raise UnsupportedFeatureError(
            f"The clustering {instant.requested} of {state.storage.uri} is to give its rows new commit times "
            "(hoodie.clustering.preserve.commit.metadata=false), which is not supported. Use Apache Hudi for it, or "
            "roll it back."
        )
    options = options_of_plan(plan, settings.clustering)
    written = service_plan(state, settings, instant.requested)
    measured = columns_with_stats(state, written, settings.write.metadata)
    written = replace(written, instant=instant.requested, stats_columns=measured)
    ordering = Ordering(options.sort_columns, options.curve, options.curve_build, options.curve_sample_rows)
    target = sys.maxsize if how == "single" else options.target_bytes
    return ClusteringWork(written, service_merge(state, written), plan.groups, ordering, target, how == "copy")


def _execute(
    transaction: Transaction,
    work: ClusteringWork,
    plan: ClusteringPlan,
    execute: ClusteringExecutor,
    lock: Lock,
    settings: ServiceSettings,
) -> Finished:
    stats = execute(work)
    with lock() as held:
        state = open_state(transaction.storage)  # writers went on
        require_unchanged(state, transaction.instant, plan)
        require_nobody_at_work(state, transaction.instant, plan, settings)
        transaction.clock.under(held, state.timeline.newest_time)  # it completes after all of them
        metadata = _metadata(work, stats)
        commit_service(transaction, state, work.plan, metadata, settings)
    ended = sum(len(group.slices) for group in plan.groups)
    return Finished(transaction.instant.requested, ended, tuple(stats))


def _metadata(work: ClusteringWork, stats: list[WriteStat]) -> CommitMetadata:
    by_partition: dict[str, list[WriteStat]] = {}
    for stat in sorted(stats, key=lambda one: one.path):
        by_partition.setdefault(stat.partition_path, []).append(stat)
    replaced: dict[str, list[str]] = {}
    for group in work.groups:
        for one in group.slices:
            replaced.setdefault(one.partition_path, []).append(one.file_id)
    schema = schema_metadata(work.plan)
    return CommitMetadata(by_partition, schema, _OPERATION, partition_to_replace_file_ids=replaced)


def _withdraw_untrue(
    storage: Storage, scheduled: ScheduledClustering, settings: ServiceSettings, held: HeldLock
) -> None:
    """Roll a clustering back with its plan, if what failed is that the plan does not go with the table any more."""
    state = open_state(storage)
    instant = state.timeline.find(scheduled.instant, clustering_action(state))
    if instant is None or instant.state is State.COMPLETED:
        return
    plan = read_clustering_plan(storage, state.config, instant)
    if plan is not None and changed_groups(state, instant, plan):
        withdraw_clustering(state, instant, settings.clock(state.config, held))
