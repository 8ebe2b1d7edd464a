"""File groups in plans of pending table services, which writers must not rewrite.

:func:`operation_of` adds a slice to such a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, Timeline, explained_plan, read_requested_body
from hudi_fast.timeline.service_plans import (
    ClusteringPlan,
    CompactionOperation,
    CompactionPlan,
    decode_compaction_plan,
    decode_requested_replace,
)
from hudi_fast.view.planned_files import checked_clustering, checked_compaction
from hudi_fast.view.slices import FileSlice

__all__ = [
    "compacted_groups",
    "operation_of",
    "pending_clusterings",
    "read_clustering_plan",
    "read_compaction_plan",
]

_MIB = 1 << 20


def pending_clusterings(
    storage: Storage, config: TableConfig, timeline: Timeline
) -> Iterator[tuple[Instant, ClusteringPlan]]:
    """Pending clusterings with their plans; in layout 1 they are replace commits with a plan."""
    for instant in timeline.pending():
        if instant.action in ("clustering", "replacecommit"):
            plan = read_clustering_plan(storage, config, instant)
            if plan is not None:
                yield instant, plan


def read_clustering_plan(storage: Storage, config: TableConfig, instant: Instant) -> ClusteringPlan | None:
    """The plan of a pending clustering; None for a replace commit without one.

    Raises:
        CorruptTableError: it is missing or invalid.
    """
    path = f"{config.timeline_folder}/{instant.requested}.{instant.action}.requested"
    with explained_plan(storage, instant):
        plan = decode_requested_replace(read_requested_body(storage, config, instant), path).clustering
        return None if plan is None else checked_clustering(storage, plan, path)


def compacted_groups(storage: Storage, config: TableConfig, instants: Sequence[Instant]) -> dict[tuple[str, str], str]:
    """(partition path, file id) to instant, for the file groups in the plans of pending (log) compactions.

    Raises:
        CorruptTableError: a plan is missing or invalid.
    """
    groups: dict[tuple[str, str], str] = {}
    for instant in instants:
        plan = read_compaction_plan(storage, config, instant)
        groups |= {(one.partition_path, one.file_id): instant.requested for one in plan.operations}
    return groups


def read_compaction_plan(storage: Storage, config: TableConfig, instant: Instant) -> CompactionPlan:
    """The plan of a pending compaction or log compaction.

    Raises:
        CorruptTableError: it is missing or invalid.
    """
    path = f"{config.timeline_folder}/{instant.requested}.{instant.action}.requested"
    with explained_plan(storage, instant):
        plan = decode_compaction_plan(read_requested_body(storage, config, instant), path)
        return checked_compaction(storage, plan, path)


def operation_of(slice_: FileSlice, max_file_size: int) -> CompactionOperation:
    """A compaction operation for a slice, with the metrics used by compaction strategies (``CompactionStrategy``).

    ``max_file_size`` is the assumed size of a missing base file in bytes.
    """
    base, logs = slice_.base_file, (*slice_.change_logs, *slice_.log_files)
    log_bytes = sum(log.size for log in logs)
    read = ((base.weight if base is not None else 0) + log_bytes) // _MIB
    write = (base.weight if base is not None else max_file_size) // _MIB
    metrics = {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(write),
    }
    names = tuple(log.name for log in logs)
    return CompactionOperation(
        slice_.partition,
        slice_.file_id,
        slice_.base_instant,
        base.name if base is not None else None,
        names,
        metrics,
        None if base is None or base.source is None else base.source.uri,
    )
