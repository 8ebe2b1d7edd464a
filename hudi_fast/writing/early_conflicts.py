"""Conflicts before a commit: file groups that others changed, or marked.

The file groups that an instant changed or plans to change.

=======================================  ====================================================
instant                                  its file groups
=======================================  ====================================================
completed write, compaction, clustering  groups in its write stats, and replaced groups
pending compaction or clustering         groups in the plan of its requested file, inflight or not
pending replace commit without a plan    groups in its inflight file, if it names any
=======================================  ====================================================

Source: ``ConcurrentOperation`` (Hudi 1.2.0).

Early conflict detection: finds an earlier writer's marker before a file group is written.

::

    .hoodie/.temp  ─► instants before ours ─► with a live heartbeat ─► pending writes ─┐
    their markers in the partition ────────────────────────────────────────────────────┼─► of our file group: conflict
    writes completed since, if enabled ─► their write stats ───────────────────────────┘

A check costs one listing when no other writer is active, and two or three more for each other writer. Results are not
cached, because only new markers matter. Of two writers the later one fails. Two writers that check at the same moment
miss each other; the check at commit time is final (:mod:`hudi_fast.writing.conflicts`). Compactions,
clusterings and other replace commits are not checked.

Sources: ``SimpleDirectMarkerBasedDetectionStrategy``, ``DirectMarkerBasedDetectionStrategy``, ``MarkerUtils`` (Hudi
1.2.0). Two differences: an instant must be pending, because markers of a completed one may remain; and with a bucket
index all file groups of one bucket count as one, as at commit time.
"""

from __future__ import annotations

from dataclasses import field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.config.write_options import WriteOptions
from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.heartbeat import HeartbeatRule, is_fresh
from hudi_fast.timeline.instants import Instant, State, Timeline, load_timeline, read_instant_body
from hudi_fast.values import dataclass
from hudi_fast.view.pending import read_clustering_plan, read_compaction_plan
from hudi_fast.view.table_state import read_commit
from hudi_fast.writing.markers import marked_in_partition, marker_instants

__all__ = [
    "EarlyDetection",
    "FileGroup",
    "early_detection",
    "groups_of_commit",
    "require_no_earlier_writer",
    "touched_groups",
]

FileGroup = tuple[str, str]
"""Partition path and file id."""


def groups_of_commit(metadata: CommitMetadata) -> frozenset[FileGroup]:
    """The file groups that a commit wrote to or replaced."""
    written = {(stat.partition_path, stat.file_id) for stat in metadata.write_stats()}
    ended = metadata.partition_to_replace_file_ids or {}
    return frozenset(written | {(partition, one) for partition, file_ids in ended.items() for one in file_ids})


def touched_groups(storage: Storage, config: TableConfig, instant: Instant) -> frozenset[FileGroup]:
    """The file groups of an instant.

    Args:
        storage: the table's storage.
        config: its configuration.
        instant: a write, compaction or clustering, completed or pending.

    Raises:
        CorruptTableError: its metadata or plan cannot be parsed.
    """
    if instant.state is State.COMPLETED:
        return groups_of_commit(read_commit(storage, config, instant))
    if instant.action in ("compaction", "logcompaction"):
        operations = read_compaction_plan(storage, config, instant).operations
        return frozenset((one.partition_path, one.file_id) for one in operations)
    if instant.action in ("clustering", "replacecommit"):
        plan = read_clustering_plan(storage, config, instant)
        if plan is not None:
            return frozenset((one.partition_path, one.file_id) for group in plan.groups for one in group.slices)
    return _profiled_groups(storage, config, instant)


def _profiled_groups(storage: Storage, config: TableConfig, instant: Instant) -> frozenset[FileGroup]:
    """The file groups that the inflight file announces; the file is empty where it announces none."""
    if instant.state is not State.INFLIGHT:
        return frozenset()
    body = read_instant_body(storage, config, instant)
    if not body:
        return frozenset()
    stats = decode_commit_metadata(body, f"{config.timeline_folder}/{instant.file_name}").write_stats()
    return frozenset((stat.partition_path, stat.file_id) for stat in stats if stat.file_id)


_BUCKET_DIGITS = 8
_WRITES = ("commit", "deltacommit")


@dataclass(frozen=True, slots=True)
class EarlyDetection:
    """Settings of early conflict detection; part of the write plan.

    Attributes:
        heartbeat: heartbeat settings.
        by_bucket: identify file groups by the bucket prefix of their file ids.
        seen: requested times of the writes that were complete when the table was pinned; None: completed writes are
            not checked.
    """

    heartbeat: HeartbeatRule
    by_bucket: bool = False
    seen: frozenset[str] | None = None
    _changed: dict[str, frozenset[FileGroup]] = field(default_factory=dict, compare=False, repr=False)
    """File groups changed by completed writes, by requested time; immutable, so read once per task."""


def early_detection(options: WriteOptions, pinned: Timeline, has_buckets: bool) -> EarlyDetection | None:
    """Early conflict detection from the options of a write; None when disabled.

    Args:
        options: of the write.
        pinned: its pinned timeline.
        has_buckets: whether the table uses a bucket index.
    """
    if not options.lock.detects_conflicts_early:
        return None
    return EarlyDetection(
        HeartbeatRule(options.failed_writes.heartbeat_interval_ms, options.failed_writes.heartbeat_misses),
        (options.lock.strategy or ("bucket" if has_buckets else "simple")) == "bucket",
        frozenset(one.requested for one in pinned.writes()) if options.lock.early_checks_commits else None,
    )


def require_no_earlier_writer(
    detection: EarlyDetection, storage: Storage, config: TableConfig, instant: str, group: FileGroup
) -> None:
    """Check a file group for earlier writers, right before its marker is created.

    Args:
        detection: settings.
        storage: the table's storage.
        config: its configuration.
        instant: requested time of the write.
        group: its file group.

    Raises:
        CommitConflictError: an earlier writer announced the file group, or a write completed since changed it.
    """
    others = [one for one in marker_instants(storage) if one < instant]
    others = [one for one in others if is_fresh(storage, one, detection.heartbeat)]
    if not others and detection.seen is None:
        return
    timeline = load_timeline(storage, config)
    pending = {one.requested for one in timeline.pending_writes if one.action in _WRITES}
    for other in others:
        if other in pending and _is_announced(detection, storage, other, group):
            raise _conflict(storage, instant, group, other, "which is still running")
    for done in _completed_since(detection, timeline, config.is_mor):
        if _is_changed(detection, storage, config, done, group):
            raise _conflict(storage, instant, group, done.requested, "which was completed since")


def _is_announced(detection: EarlyDetection, storage: Storage, other: str, group: FileGroup) -> bool:
    """Whether a write has a marker for a file of the file group.

    Names begin with the file id; names of log files begin with a dot and the file id.
    """
    partition, file_id = group
    start = file_id[:_BUCKET_DIGITS] if detection.by_bucket else f"{file_id}_"
    return any(name.removeprefix(".").startswith(start) for name in marked_in_partition(storage, other, partition))


def _completed_since(detection: EarlyDetection, timeline: Timeline, is_mor: bool) -> list[Instant]:
    """On merge-on-read tables ``commit`` is a compaction, which does not conflict with log appends."""
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
        f"about to change file group {name}, and so does {other}, {what}. Nothing of it is visible; run it again "
        "after the other one has ended.",
        instant,
        other,
        (group,),
    )
