"""Executes a planned clustering: writes the rows of file groups to new file groups, which replace the old ones.

::

    begin     the table's lock: recover, roll back an abandoned attempt, is the plan up to date? requested ─► inflight
    execute   no lock: the file slices of each group ─► new file groups            (writers continue)
    commit    the table's lock: is the plan up to date? markers, the metadata table, inflight ─► completed replace
              commit: readers see the new groups instead of the old ones, atomically

The process holds the lock of clusterings from begin to commit. The lock ends with its process, so a process that holds
it and finds an inflight clustering knows that it was abandoned. A failed clustering is rolled back to requested and
keeps its plan. An outdated plan is removed. So is the plan of a clustering that fails before or after a write in the
same call: writers must not change rows of its file groups, so a plan that always fails would block them forever. Rows
keep all meta columns but the file name, so incremental queries do not return them again.

Sources: ``BaseCommitActionExecutor.executeClustering``, ``BaseHoodieTableServiceClient.cluster`` (1.2.0).
"""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial

from hudi_fast.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptTableError,
    LockError,
    ServiceTakenError,
    UnsupportedFeatureError,
)
from hudi_fast.events import warn
from hudi_fast.index.buckets import HashingNode, has_hashing, load_hashing
from hudi_fast.locking.machine import service_lock_path
from hudi_fast.services.clustering.bucket_resize import PartitionResize, ResizeGroup, execute_resizes, resize_buckets
from hudi_fast.services.clustering.cluster_plan import (
    ScheduledClustering,
    clustering_action,
    clustering_is_due,
    schedule_clustering,
    waiting_clusterings,
)
from hudi_fast.services.clustering.cluster_work import (
    ClusteringResult,
    ClusteringWork,
    Finished,
    Ordering,
    changed_groups,
    combined_result,
    require_no_active_writer,
    require_unchanged,
    slices_of,
)
from hudi_fast.services.clustering.new_files import NewFiles, copy_row_groups
from hudi_fast.services.clustering.ordering import are_buckets, require_buckets
from hudi_fast.services.clustering.rows import GroupInput, ahead, group_input, known_keys, ordered_rows
from hudi_fast.services.clustering.strategies import CONSISTENT, execution_of, options_of_plan, plan_strategy_of
from hudi_fast.services.running import (
    begin_service,
    bytes_read,
    commit_service,
    figures_of,
    file_plan,
    recover_with_metadata,
    require_abandoned,
    stats_by_partition,
)
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat
from hudi_fast.timeline.heartbeat import is_alive
from hudi_fast.timeline.instants import Instant, State
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringPlan
from hudi_fast.view.pending import pending_clusterings, read_clustering_plan
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.pending_clusterings import withdraw_clustering, withdraw_failed
from hudi_fast.writing.rollback import roll_back
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.table_schema import schema_metadata
from hudi_fast.writing.transaction import Transaction, noted_on, rolled_back_on_failure
from hudi_fast.writing.write_plan import TaskToken

__all__ = [
    "cluster",
    "cluster_after_write",
    "finish_or_withdraw",
    "rewrite_group",
    "rewrite_rows",
    "run_clustering",
    "run_pending_clusterings",
]

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
        withdraws: whether a failed clustering is rolled back with its plan.

    Raises:
        HudiError: as :func:`run_clustering`. A clustering that another process has completed is skipped instead, and
            one that writers have made outdated is rolled back.

    Warns:
        HudiWarning: writers made a clustering outdated, and it was rolled back.
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
    except (CommitConflictError, CommitStateUnknownError, LockError):  # another process runs it, or may
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

    Makes no plan for buckets of consistent hashing: resizes too large and too small ones immediately.

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
        withdraws: whether a failed clustering is rolled back with its plan.
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
    """Begin a clustering. Resizes buckets of consistent hashing at once: writers must know where their rows go."""
    state = recover_with_metadata(session)
    instant, plan = _pending(state, scheduled)
    how = execution_of(plan.strategy_class or session.settings.clustering.execution_class)
    resizes = _planned_resizes(state, instant, plan) if how == CONSISTENT else []
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
    buckets = how != CONSISTENT and are_buckets(ids, session.settings.write.index.type)
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


# ---- rewrites one group of a clustering into new file groups: the unit of work
#
# ::
#
#     nothing to sort or merge, files can be copied ── row groups, as bytes ────────────────────┐
#     else: slices ─► merged rows ─► sorted, if required (in memory, or with local disk) ───────┴─► new file groups
#
# Rows keep commit time, sequence number, key and partition path; only their file name changes. Old file groups are
# not modified. Buckets of a simple bucket index are rewritten one by one.
#
# Source: ``MultipleSparkJobExecutionStrategy``, ``SparkStreamCopyClusteringExecutionStrategy`` (Hudi 1.2.0).


_ROWS_MEMORY = 1 << 30
"""Arrow bytes of rows that all groups together hold while they are sorted."""


def rewrite_group(work: ClusteringWork, group: ClusteringGroup, token: TaskToken) -> list[WriteStat]:
    """Rewrite the file slices of one group.

    Args:
        work: the clustering.
        group: of its plan.
        token: the task that writes.

    Returns:
        One stat for each new file group; ``copied_row_groups`` counts row groups copied as bytes, or
        ``decoded_because`` says why none could be.

    Raises:
        CommitError: the clustering has ended, and this task is outdated.
        ConfigError: a sort column does not exist.
        CorruptTableError: a file of the group is missing or damaged.
        UnsupportedFeatureError: the type of a sort column is not sortable, or the group has several partitions.
    """
    if work.keeps_buckets and (len(group.slices) > 1 or group.output_groups > 1):
        buckets = [replace(group, slices=(one,), output_groups=1) for one in group.slices]
        return [stat for one in buckets for stat in rewrite_group(work, one, token)]
    source = group_input(work, group)
    copied = copy_row_groups(source, token)
    if not isinstance(copied, str):
        return copied
    at_once = min(work.plan.files.threads, work.group_count)
    stats = rewrite_rows(source, token, _ROWS_MEMORY // max(at_once, 1))
    return [replace(stat, decoded_because=copied) for stat in stats]


def rewrite_rows(source: GroupInput, token: TaskToken, memory: int) -> list[WriteStat]:
    """Read the rows of a group, and write them into new file groups.

    Args:
        source: the group.
        token: the task that writes.
        memory: Arrow bytes of rows that may be held for sorting.
    """
    known = known_keys(source)
    rows = ordered_rows(source, known.rows, memory)
    with (
        closing(ahead(rows.tables, source.threads)) as tables,
        NewFiles(source, token, rows.count, known.filter) as files,
    ):
        for table in tables:
            files.write(table)
        return files.finish()


# ---- reads plans of Apache Hudi that split, merge or rewrite buckets of consistent hashing
#
# ::
#
#     per group of the plan: old slices, their new ranges   (as the plan strategy stores them)
#         ─► per partition: its ranges now ─► with the new ranges in place ─► groups to rewrite
#
# While such a plan is pending, Apache Hudi's writers write to the old groups and to the new ones. Only Apache Hudi
# can execute it after such a write.
#
# Sources: ``BaseConsistentHashingBucketClusteringPlanStrategy``, ``HoodieSparkConsistentBucketIndex.updateLocation``,
# ``ConsistentBucketIdentifier`` (1.2.0).


_PARTITION = "clustering.group.partition"
_NODES = "clustering.group.child.node"
_SEQUENCE = "clustering.group.sequence.no"
_SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"


def _planned_resizes(state: TableState, instant: Instant, plan: ClusteringPlan) -> list[PartitionResize]:
    """The changes of a plan, by partition.

    Args:
        state: the table now, under its lock.
        instant: the pending clustering.
        plan: its plan.

    Raises:
        CommitConflictError: the ranges have changed since it was planned.
        CorruptTableError: the plan is damaged, or a file of it is missing.
        UnsupportedFeatureError: rows were written since it was planned, or the plan sorts rows.
    """
    what = f"The clustering {instant.requested} of {state.storage.uri} splits and merges buckets of consistent hashing"
    if plan.strategy_params.get(_SORT_COLUMNS):
        raise UnsupportedFeatureError(f"{what}, and sorts their rows, which is not supported. Use Apache Hudi for it.")
    if changed_groups(state, instant, plan):
        raise UnsupportedFeatureError(
            f"{what}, and Apache Hudi has written rows to the old and to the new buckets since it was planned. Use "
            "Apache Hudi to execute it."
        )
    by_partition: dict[str, list[tuple[ClusteringGroup, dict[int, HashingNode | None]]]] = {}
    sequences: dict[str, int] = {}
    for group in plan.groups:
        partition, sequence, nodes = _noted(group, instant)
        by_partition.setdefault(partition, []).append((group, nodes))
        sequences[partition] = sequence
    return [_resize(state, name, sequences[name], groups, what) for name, groups in sorted(by_partition.items())]


def _resize(
    state: TableState,
    partition: str,
    sequence: int,
    groups: list[tuple[ClusteringGroup, dict[int, HashingNode | None]]],
    what: str,
) -> PartitionResize:
    before = load_hashing(state.storage, state.timeline, partition)
    if before is None or before.sequence != sequence:
        raise CommitConflictError(
            f"{what}, and expects that those of partition {partition!r} have changed {sequence} times; they have "
            "changed since. Roll it back."
        )
    ring = {node.value: node for node in before.nodes}
    resized: list[ResizeGroup] = []
    for group, nodes in groups:
        for value, node in nodes.items():
            if node is None:
                ring.pop(value, None)
            else:
                ring[value] = node
        made = tuple(node for _, node in sorted(nodes.items()) if node is not None)
        resized.append(ResizeGroup(tuple(slices_of(state.storage, group, state.view.history)), made))
    return PartitionResize(before, tuple(node for _, node in sorted(ring.items())), tuple(resized))


def _noted(group: ClusteringGroup, instant: Instant) -> tuple[str, int, dict[int, HashingNode | None]]:
    """The partition, the number of earlier changes of its ranges, and the range for each value (None: removed)."""
    noted: Mapping[str, str] = group.extra_metadata or {}
    try:
        nodes = {
            int(one["value"]): None if one["tag"] == "DELETE" else HashingNode(int(one["value"]), one["fileIdPrefix"])
            for one in stored_json(noted[_NODES])
        }
        if any(nodes.values()):
            return noted[_PARTITION], int(noted[_SEQUENCE]), nodes
        raise ValueError("no range is left")
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(
            f"The plan of the clustering {instant.requested} does not say which buckets become which: {error!r}."
        ) from error
