"""Conflicts that show before a file group is written: somebody who began earlier has announced a file of it.

::

    .hoodie/.temp  ─► instants before ours ─► with signs of life ─► pending writes ─┐
    their markers in the partition ─────────────────────────────────────────────────┼─► of our file group: give up now
    writes completed since, if that is wanted ─► their write stats ─────────────────┘

A look at the markers costs one listing as long as nobody else is at work, and for each other writer two or three more.
It is not remembered: what others announced since is what matters. Of two writers the later one gives way, and two that
look at the same moment miss each other: the last word is had when a write lands
(:mod:`hudi_fast.writing.conflicts.resolve`). Compactions, clusterings and other replace commits are not looked at.

Sources: ``SimpleDirectMarkerBasedDetectionStrategy``, ``DirectMarkerBasedDetectionStrategy``, ``MarkerUtils`` (Hudi
1.2.0). Two things differ from there: an instant must be pending, since markers of a completed one may be left over, and
with a bucket index file groups of one bucket are one, as they are when the write lands.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_fresh
from hudi_fast.timeline.instant import Instant
from hudi_fast.writing.conflicts.touched import FileGroup, touched_groups
from hudi_fast.writing.markers import marked_in_partition, marker_instants

__all__ = ["EarlyDetection", "early_detection", "require_nobody_ahead"]

_BUCKET_DIGITS = 8
_WRITES = ("commit", "deltacommit")


@dataclass(frozen=True, slots=True)
class EarlyDetection:
    """How conflicts are looked for while a write is at work; travels with its plan.

    Attributes:
        heartbeat: which signs of life count.
        by_bucket: whether file groups are told apart by the bucket that their file ids begin with.
        seen: requested times of the writes that were complete when the table was pinned; None: completed writes are
            not looked at.
    """

    heartbeat: HeartbeatRule
    by_bucket: bool = False
    seen: frozenset[str] | None = None
    _changed: dict[str, frozenset[FileGroup]] = field(default_factory=dict, compare=False, repr=False)
    """By requested time, what completed writes changed: that stays as it is, and is read once per task."""


def early_detection(options: WriteOptions, pinned: Timeline, has_buckets: bool) -> EarlyDetection | None:
    """As the options of a write have it; None when they do not want it.

    Args:
        options: of the write.
        pinned: the timeline that it was pinned to.
        has_buckets: whether the index of the table is one of buckets.
    """
    if not options.lock.detects_conflicts_early:
        return None
    return EarlyDetection(
        HeartbeatRule(options.heartbeat_interval_ms, options.heartbeat_misses),
        (options.lock.strategy or ("bucket" if has_buckets else "simple")) == "bucket",
        frozenset(one.requested for one in pinned.writes()) if options.lock.early_checks_commits else None,
    )


def require_nobody_ahead(
    detection: EarlyDetection, storage: Storage, config: TableConfig, instant: str, group: FileGroup
) -> None:
    """Make sure that nobody who began earlier is about to change a file group; right before it is announced.

    Args:
        detection: what to look at.
        storage: the table's storage.
        config: its configuration.
        instant: requested time of the write.
        group: its file group.

    Raises:
        CommitConflictError: somebody is, or has done so since the write began.
    """
    others = [one for one in marker_instants(storage) if one < instant]
    others = [one for one in others if is_fresh(storage, one, detection.heartbeat)]
    if not others and detection.seen is None:
        return
    timeline = load_timeline(storage, config)
    pending = {one.requested for one in timeline.pending_writes if one.action in _WRITES}
    for other in others:
        if other in pending and _is_announced(detection, storage, other, group):
            raise _conflict(storage, instant, group, other, "which is still at work")
    for done in _completed_since(detection, timeline, config.is_mor):
        if _is_changed(detection, storage, config, done, group):
            raise _conflict(storage, instant, group, done.requested, "which was completed since")


def _is_announced(detection: EarlyDetection, storage: Storage, other: str, group: FileGroup) -> bool:
    """Whether a write has a marker for a file of the file group: names begin with the file id, those of logs after a
    dot."""
    partition, file_id = group
    start = file_id[:_BUCKET_DIGITS] if detection.by_bucket else f"{file_id}_"
    return any(name.removeprefix(".").startswith(start) for name in marked_in_partition(storage, other, partition))


def _completed_since(detection: EarlyDetection, timeline: Timeline, is_mor: bool) -> list[Instant]:
    """On merge-on-read tables ``commit`` is a compaction, beside which anybody may log."""
    if detection.seen is None:
        return []
    found = (one for one in timeline.writes() if one.requested not in detection.seen)
    return [one for one in found if not (is_mor and one.action == "commit")]


def _is_changed(
    detection: EarlyDetection, storage: Storage, config: TableConfig, done: Instant, group: FileGroup
) -> bool:
    if done.requested not in detection._changed:
        detection._changed[done.requested] = touched_groups(storage, config, done)
    changed = detection._changed[done.requested]
    if not detection.by_bucket:
        return group in changed
    partition, bucket = group[0], group[1][:_BUCKET_DIGITS]
    return any(one[0] == partition and one[1].startswith(bucket) for one in changed)


def _conflict(storage: Storage, instant: str, group: FileGroup, other: str, what: str) -> CommitConflictError:
    name = "/".join(filter(None, group))
    return CommitConflictError(
        f"Early conflict detected but cannot resolve conflicts for overlapping writes to {storage.uri}: {instant} is "
        f"about to change file group {name}, and so does {other}, {what}. Nothing of it is visible; run it again, once "
        "the other one is done.",
        instant,
        other,
        (group,),
    )
