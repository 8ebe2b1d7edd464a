"""File groups that a planned service is going to rewrite: writers must leave them alone."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.service_plans import ClusteringPlan, decode_requested_replace

__all__ = ["pending_clusterings"]


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
