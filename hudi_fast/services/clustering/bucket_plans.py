"""Reads plans of Apache Hudi that split, merge or rewrite buckets of consistent hashing.

::

    per group of the plan: old slices, their new ranges   (as the plan strategy stores them)
        ─► per partition: its ranges now ─► with the new ranges in place ─► groups to rewrite

While such a plan is pending, Apache Hudi's writers write to the old groups and to the new ones. Only Apache Hudi can
execute it after such a write.

Sources: ``BaseConsistentHashingBucketClusteringPlanStrategy``, ``HoodieSparkConsistentBucketIndex.updateLocation``,
``ConsistentBucketIdentifier`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping

from hudi_fast.errors import CommitConflictError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.index.consistent import HashingNode, load_hashing
from hudi_fast.services.clustering.bucket_ranges import PartitionResize, ResizeGroup
from hudi_fast.services.clustering.conflicts import changed_groups
from hudi_fast.services.clustering.work import slices_of
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringPlan
from hudi_fast.view.table_state import TableState

__all__ = ["planned_resizes"]

_PARTITION = "clustering.group.partition"
_NODES = "clustering.group.child.node"
_SEQUENCE = "clustering.group.sequence.no"
_SORT_COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"


def planned_resizes(state: TableState, instant: Instant, plan: ClusteringPlan) -> list[PartitionResize]:
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
    """Partition, how often its ranges had changed, and the new range for each value; None for a removed range."""
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
