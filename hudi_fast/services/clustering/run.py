"""Executes a planned clustering: writes the rows of file groups to new file groups, which replace the old ones.

::

    begin     the table's lock: recover, roll back an abandoned attempt, is the plan up to date? requested ─► inflight
    execute   no lock: the file slices of each group ─► new file groups            (writers continue)
    commit    the table's lock: is the plan up to date? markers, the metadata table, inflight ─► completed replace
              commit: readers see the new groups instead of the old ones, atomically

The lock of clusterings is held all the while. It ends with its process, so an inflight clustering that is found under
it was abandoned. A failed clustering is rolled back to requested and keeps its plan; an outdated plan is rolled back
for good. So is one that a writer executes beside its writes: writers must not change rows of its file groups, so a
plan that fails each time would keep them out for good. Rows keep all meta columns but the file name, so incremental
queries do not return them again.

Sources: ``BaseCommitActionExecutor.executeClustering``, ``BaseHoodieTableServiceClient.cluster`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hudi_fast.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    LockError,
    ServiceTakenError,
    UnsupportedFeatureError,
)
from hudi_fast.events import warn
from hudi_fast.index.consistent import has_hashing
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.services.clustering.bucket_plans import planned_resizes
from hudi_fast.services.clustering.bucket_resize import execute_resizes, resize_buckets
from hudi_fast.services.clustering.conflicts import changed_groups, require_no_active_writer, require_unchanged
from hudi_fast.services.clustering.parameters import options_of_plan
from hudi_fast.services.clustering.plan import (
    ScheduledClustering,
    clustering_action,
    clustering_is_due,
    schedule_clustering,
    waiting_clusterings,
)
from hudi_fast.services.clustering.rewrite import rewrite_group
from hudi_fast.services.clustering.simple_buckets import are_buckets, require_buckets
from hudi_fast.services.clustering.strategies import CONSISTENT, execution_of, plan_strategy_of
from hudi_fast.services.clustering.work import (
    ClusteringResult,
    ClusteringWork,
    Finished,
    Ordering,
    combined_result,
    slices_of,
)
from hudi_fast.services.liveness import require_abandoned
from hudi_fast.services.running import (
    begin_service,
    commit_service,
    figures_of,
    file_plan,
    recover_with_metadata,
    stats_by_partition,
)
from hudi_fast.services.units import bytes_read
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instant import Instant, State
from hudi_fast.timeline.service_plans import ClusteringPlan
from hudi_fast.view.pending import pending_clusterings, read_clustering_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.pending_clusterings import withdraw_clustering, withdraw_failed
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.schema_commit import schema_metadata
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.transaction import Transaction, noted_on, rolled_back_on_failure

__all__ = ["cluster", "cluster_after_write", "finish_or_withdraw", "run_clustering", "run_pending_clusterings"]

_OPERATION = "CLUSTER"


def run_clustering(session: TableSession, scheduled: ScheduledClustering) -> Finished:
    """Execute a clustering that is pending on the timeline.

    Args:
        session: the call.
        scheduled: the clustering.

    Raises:
        CommitConflictError: another process runs it, or writers changed its file groups: then it is rolled back with
            its plan.
        CommitError: it failed, and is pending again.
        ConfigError: an option does not fit the table.
        CorruptTableError: a file of the plan is missing or damaged.
        ServiceTakenError: it is no longer pending.
        UnsupportedFeatureError: the plan has an unknown execution strategy, or the table merges its rows in a way that
            is not supported.
    """
    with (
        session.phase("clustering", "services", scheduled.instant, logging.INFO) as step,
        session.service_lock(service_lock_path("clustering")),
    ):
        try:
            with session.locked():
                begun = _begin(session, scheduled)
                if isinstance(begun, Finished):
                    return begun
            transaction, work, plan = begun
            with rolled_back_on_failure(transaction):
                done = _execute(transaction, work, plan)
            step.add(**figures_of(done.stats))
            return done
        except CommitConflictError as error:
            with noted_on(error, f"Rolling back the clustering {scheduled.instant}"), session.locked():
                _withdraw_outdated(session, scheduled)
            raise


def run_pending_clusterings(session: TableSession, withdraws: bool = False) -> list[Finished]:
    """Execute all pending clusterings, oldest first.

    Args:
        session: the call.
        withdraws: whether one that fails is rolled back with its plan.

    Raises:
        HudiError: as :func:`run_clustering`, but not for one that another process has completed in the meantime, or
            that writers have made outdated: that one is rolled back.

    Warns:
        HudiWarning: writers made one outdated, and it was rolled back.
    """
    done = []
    for one in waiting_clusterings(session.reload()):
        try:
            with _withdrawn_on_failure(session, one, withdraws):
                done.append(run_clustering(session, one))
        except CommitConflictError as error:
            if one.instant in {instant.requested for instant in session.reload().timeline.pending()}:
                raise
            if not isinstance(error, ServiceTakenError):
                warn(str(error))
    return done


def finish_or_withdraw(session: TableSession) -> None:
    """Before a write: execute pending clusterings that no process runs; one that fails is rolled back with its plan.

    Raises:
        HudiError: as :func:`run_clustering`.
    """
    state = session.reload()
    if state.pending_services and not any(
        is_alive(session.storage, one.requested, session.heartbeat_rule) for one in state.pending_services
    ):
        run_pending_clusterings(session, withdraws=True)


@contextlib.contextmanager
def _withdrawn_on_failure(session: TableSession, scheduled: ScheduledClustering, withdraws: bool) -> Iterator[None]:
    try:
        yield
    except (CommitConflictError, CommitStateUnknownError, LockError):  # others run it, or may
        raise
    except Exception as error:
        if withdraws:
            with noted_on(error, f"Withdrawing the clustering {scheduled.instant}"):
                withdraw_failed(session, scheduled.instant)
        raise


def cluster_after_write(session: TableSession) -> list[Finished]:
    """Cluster after a write, or plan a clustering for another process, if the options ask for it.

    Returns:
        The completed clusterings; empty when none was enabled or due.

    Raises:
        HudiError: it failed; the write itself is committed.
    """
    options, storage, state = session.settings.clustering, session.storage, session.state
    if not (options.inline or options.schedule_inline):
        return []
    pending = next(pending_clusterings(storage, state.config, state.timeline), None)
    is_due = pending is None and clustering_is_due(storage, state.config, state.timeline, options)
    if options.schedule_inline:
        if is_due:
            schedule_clustering(session)
        return []
    if pending is None and not is_due:
        return []
    return _cluster_all(session, pending_only=False, withdraws=True)


def cluster(
    session: TableSession, plan: ScheduledClustering | None = None, pending_only: bool = False
) -> ClusteringResult:
    """Execute pending clusterings, then plan another one, if that is due, and execute it.

    Buckets of consistent hashing are not planned for: those that are too large or too small are resized immediately.

    Args:
        session: the call.
        plan: execute only this plan.
        pending_only: plan nothing new.

    Raises:
        UnsupportedFeatureError: an unknown strategy; nothing was executed.
        HudiError: as :func:`run_clustering`.
    """
    started = time.monotonic()
    done = _cluster_all(session, pending_only) if plan is None else [run_clustering(session, plan)]
    return combined_result(done, time.monotonic() - started)


def _cluster_all(session: TableSession, pending_only: bool, withdraws: bool = False) -> list[Finished]:
    """As :func:`cluster`.

    Args:
        session: the call.
        pending_only: plan nothing new.
        withdraws: whether one that fails is rolled back with its plan.
    """
    if not pending_only:
        plan_strategy_of(session.settings.clustering)
    done = run_pending_clusterings(session, withdraws)
    if pending_only:
        return done
    if has_hashing(session.storage):
        return [*done, *resize_buckets(session)]
    planned = schedule_clustering(session)
    if planned is not None:
        with (
            contextlib.suppress(ServiceTakenError),  # another process completed it first
            _withdrawn_on_failure(session, planned, withdraws),
        ):
            done.append(run_clustering(session, planned))
    return done


# ---- begin and commit


def _begin(
    session: TableSession, scheduled: ScheduledClustering
) -> tuple[Transaction, ClusteringWork, ClusteringPlan] | Finished:
    """Buckets of consistent hashing are resized immediately: writers must know where their rows go."""
    state = recover_with_metadata(session)
    instant, plan = _pending(state, scheduled)
    how = execution_of(plan.strategy_class or session.settings.clustering.execution_class)
    resizes = planned_resizes(state, instant, plan) if how == CONSISTENT else []
    work = _work(session, instant, plan, how)
    require_unchanged(state, instant, plan)
    require_no_active_writer(session, instant, plan)
    for group in plan.groups:
        slices_of(session.storage, group)
    if instant.state is State.INFLIGHT:
        require_abandoned(session, instant)
        roll_back(session, instant, keep_plan=True)
        instant = replace(instant, state=State.REQUESTED, file_name=None)
    transaction = begin_service(session, instant, _OPERATION)
    return execute_resizes(transaction, resizes) if resizes else (transaction, work, plan)


def _pending(state: TableState, scheduled: ScheduledClustering) -> tuple[Instant, ClusteringPlan]:
    instant = state.timeline.find(scheduled.instant, clustering_action(state))
    if instant is not None and instant.state is not State.COMPLETED:
        plan = read_clustering_plan(state.storage, state.config, instant)
        if plan is not None:
            return instant, plan
    raise ServiceTakenError(
        f"The clustering {scheduled.instant} of {state.storage.uri} is not pending: it was "
        f"{'removed from the timeline' if instant is None else 'completed'}. Plan another one."
    )


def _work(session: TableSession, instant: Instant, plan: ClusteringPlan, how: str) -> ClusteringWork:
    if not plan.preserve_meta_fields:
        raise UnsupportedFeatureError(
            f"The clustering {instant.requested} of {session.storage.uri} gives its rows new commit times "
            "(hoodie.clustering.preserve.commit.metadata=false), which is not supported. Use Apache Hudi for it, or "
            "roll it back."
        )
    options = options_of_plan(plan, session.settings.clustering)
    files = file_plan(session, instant.requested)
    ids = [one.file_id for group in plan.groups for one in group.slices]
    buckets = how != CONSISTENT and are_buckets(ids, session.settings.write.index_type)
    if buckets:
        require_buckets(session.storage.uri, ids)
    return ClusteringWork(
        plan=files,
        merge=files.merge_of(session.state),
        group_count=len(plan.groups),
        ordering=Ordering(options.sort_columns, options.curve, options.curve_build, options.curve_sample_rows),
        target_bytes=sys.maxsize if how == "single" or buckets else options.target_bytes,
        copies=how == "copy",
        keeps_buckets=buckets,
    )


def _execute(transaction: Transaction, work: ClusteringWork, plan: ClusteringPlan) -> Finished:
    session, instant = transaction.session, transaction.instant
    weights = [bytes_read(group.metrics) for group in plan.groups]
    stats = session.backend.map_units(work.plan, plan.groups, weights, partial(rewrite_group, work))
    with session.locked() as state:  # writers continued
        require_unchanged(state, instant, plan)
        require_no_active_writer(session, instant, plan)
        commit_service(transaction, work.plan, _metadata(work, plan, stats))
    return Finished(instant.requested, sum(len(group.slices) for group in plan.groups), tuple(stats))


def _metadata(work: ClusteringWork, plan: ClusteringPlan, stats: list[WriteStat]) -> CommitMetadata:
    replaced: dict[str, list[str]] = {}
    for group in plan.groups:
        for one in group.slices:
            replaced.setdefault(one.partition_path, []).append(one.file_id)
    schema = schema_metadata(work.plan)
    return CommitMetadata(stats_by_partition(stats), schema, _OPERATION, partition_to_replace_file_ids=replaced)


def _withdraw_outdated(session: TableSession, scheduled: ScheduledClustering) -> None:
    """Roll a clustering back with its plan if the plan no longer fits the table."""
    state = session.reload()
    instant = state.timeline.find(scheduled.instant, clustering_action(state))
    if instant is None or instant.state is State.COMPLETED:
        return
    plan = read_clustering_plan(session.storage, state.config, instant)
    if plan is not None and changed_groups(state, instant, plan):
        withdraw_clustering(session, instant)
