"""Which partitions were written or dropped since a catalog was synced, by the commits on the active timeline.

Sources: ``TimelineUtils#getCommitsTimelineAfter``, ``#getWrittenPartitions``, ``#getDroppedPartitions`` (Apache Hudi
1.2.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["SyncPoint", "WrittenPartitions", "current_point", "partitions_since"]


@dataclass(frozen=True, slots=True)
class SyncPoint:
    """How far a catalog knows the timeline.

    Attributes:
        requested: requested time of the newest completed write.
        completion: newest completion time of a write; None before table version 8.
    """

    requested: str
    completion: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenPartitions:
    """Partition paths: ``written`` has all that a commit names, ``dropped`` those of them that were deleted last."""

    written: Sequence[str]
    dropped: frozenset[str]


def current_point(state: TableState) -> SyncPoint | None:
    """The point of the table itself; None without a completed write."""
    writes = state.timeline.writes()
    if not writes:
        return None
    return SyncPoint(writes[-1].requested, max((one.completion or "" for one in writes), default="") or None)


def partitions_since(state: TableState, point: SyncPoint | None) -> WrittenPartitions | None:
    """The partitions of commits after a point; None if these are not all on the active timeline."""
    first = state.timeline.first_write_requested
    if point is None or first is None or point.requested < first:
        return None
    written: dict[str, str] = {}
    deleted: dict[str, str] = {}
    for instant in state.timeline.writes():
        if not _is_after(instant, point):
            continue
        commit = read_commit(state.storage, state.config, instant)
        replaced = commit.partition_to_replace_file_ids or {}
        if commit.operation_type == "DELETE_PARTITION":
            deleted.update(dict.fromkeys(replaced, instant.requested))
        for partition in (*replaced, *commit.partition_to_write_stats):
            written.setdefault(partition, "")
        written.update(dict.fromkeys(commit.partition_to_write_stats, instant.requested))
    dropped = frozenset(path for path, time in deleted.items() if time > written.get(path, ""))
    return WrittenPartitions(list(written), dropped)


def _is_after(instant: Instant, point: SyncPoint) -> bool:
    """Whether a write was requested, or completed, after the point: a slow write may complete after a later one."""
    if instant.requested > point.requested:
        return True
    return bool(point.completion and instant.completion and instant.completion > point.completion)
