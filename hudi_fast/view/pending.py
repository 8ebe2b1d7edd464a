"""File groups that a planned service is going to rewrite: writers must leave them alone or log beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.service_plans import (
    ClusteringPlan,
    CompactionPlan,
    decode_compaction_plan,
    decode_requested_replace,
)

__all__ = ["compacted_groups", "pending_clusterings", "read_compaction_plan"]


def pending_clusterings(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> Iterator[tuple[Instant, ClusteringPlan]]:
    """Pending clusterings with their plans; in layout 1 they are replace commits that have a plan."""
    for instant in timeline.pending():
        if instant.action not in ("clustering", "replacecommit"):
            continue
        path = f"{config.timeline_folder}/{instant.requested}.{instant.action}.requested"
        plan = decode_requested_replace(read_requested_body(storage, config, instant), path).clustering
        if plan is not None:
            yield instant, plan


def compacted_groups(storage: Storage, config: TableConfig, instants: Sequence[Instant]) -> dict[tuple[str, str], str]:
    """(partition path, file id) to instant, for the file groups in the plans of pending (log) compactions.

    Raises:
        CorruptTableError: a plan is gone or cannot be understood.
    """
    groups: dict[tuple[str, str], str] = {}
    for instant in instants:
        plan = read_compaction_plan(storage, config, instant)
        groups |= {(one.partition_path, one.file_id): instant.requested for one in plan.operations}
    return groups


def read_compaction_plan(storage: Storage, config: TableConfig, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction or log compaction.

    Raises:
        CorruptTableError: it is gone or cannot be understood.
    """
    path = f"{config.timeline_folder}/{instant.requested}.{instant.action}.requested"
    return decode_compaction_plan(read_requested_body(storage, config, instant), path)
