"""Cleaning policies, the state that cleans leave to the next, and the values of a clean.

The cleaning policies: pure functions of a timeline, and of the slices of a partition.

::

    timeline ─► earliest_to_retain      queries of that commit and of later ones stay possible
    slices of a partition ─► outdated   slices that the policy does not retain and that are not protected

==========================  ========================================================================================
KEEP_LATEST_COMMITS         deletes slices before the earliest retained commit, except the newest of them, which that
KEEP_LATEST_BY_HOURS        commit reads; and file groups that were replaced before it
KEEP_LATEST_FILE_VERSIONS   deletes all but the newest slices of each file group, and replaced file groups
==========================  ========================================================================================

No policy deletes the newest slice of a file group, files of a savepoint, files that a pending service reads, or files
of pending writes.

Source: ``CleanPlanner``, ``CleanerUtils#getEarliestCommitToRetain`` (Hudi 1.2.0).

The state that earlier cleans leave to the next one: what they retained, and files that they could not delete.

::

    completed cleans, newest first ─► the last one ─► its earliest retained commit, the savepoints at that time
                                   └► files that could not be deleted, back to the first clean that took over
                                      those of earlier cleans

A clean of this library retries files that earlier cleans failed to delete. Its own metadata lists the files that fail
again. Its extra metadata has ``hudi_fast.clean``: ``all``, or ``some`` if it skipped partitions; then the next clean
must not begin where this one ended. Apache Hudi's cleans do not take over such files, so all of them are read.

Source: ``CleanPlanner#getPartitionPathsForCleanByCommits``, ``CleanActionExecutor`` (Hudi 1.2.0).

::

    ScheduledClean    a plan on the timeline (of a dry run: in memory only), with the sizes of its files
    CleanResult       the result of a call
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa

from hudi_fast.config.service_options import CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import (
    WRITE_ACTIONS,
    Instant,
    Timeline,
    comparable_action,
    instant_from_ms,
    read_instant_body,
)
from hudi_fast.timeline.plans import CleanMetadata, CleanPlan, decode_clean_metadata
from hudi_fast.values import dataclass
from hudi_fast.view.slices import PastSlice

__all__ = [
    "SAVEPOINTS_KEY",
    "TAKEN_OVER_KEY",
    "CleanResult",
    "FinishedClean",
    "LastClean",
    "Outdated",
    "RetainedFiles",
    "ScheduledClean",
    "combined_result",
    "earliest_to_retain",
    "last_clean",
    "outdated",
    "savepoints_of",
]

BY_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
_BY_HOURS = "KEEP_LATEST_BY_HOURS"
_MS_OF_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class RetainedFiles:
    """Files that no policy may delete.

    Attributes:
        saved: partition path to names of files that savepoints keep.
        compacted: (partition path, file id) of groups in a pending compaction or log compaction to the base instant of
            the slice that it reads: that slice and later ones stay.
        clustered: partition path to names of files that pending clusterings read.
    """

    saved: Mapping[str, frozenset[str]] = field(default_factory=dict)
    compacted: Mapping[tuple[str, str], str] = field(default_factory=dict)
    clustered: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def reason(self, partition: str, file_id: str, slice_: PastSlice) -> str:
        """Why a slice must not be deleted; empty when it may be."""
        begins = self.compacted.get((partition, file_id))
        if begins is not None and slice_.begins >= begins:
            return "a pending compaction reads it"
        saved, clustered = self.saved.get(partition), self.clustered.get(partition)
        if saved is None and clustered is None:
            return ""
        names = {one.name for one in slice_.files()}
        if saved is not None and not saved.isdisjoint(names):
            return "a savepoint keeps it"
        return "a pending clustering reads it" if clustered is not None and not clustered.isdisjoint(names) else ""


@dataclass(frozen=True, slots=True)
class Outdated:
    """The slices of one partition that the policy does not retain.

    Attributes:
        slices: to be deleted.
        is_empty: queries from the earliest retained commit on read no file group.
    """

    slices: tuple[PastSlice, ...] = ()
    is_empty: bool = False


def earliest_to_retain(
    timeline: Timeline, options: CleanOptions, now_ms: int, zone: str, last: str | None = None
) -> Instant | None:
    """The oldest commit that can be queried after a clean; None when the policy has none, or nothing may be cleaned.

    Args:
        timeline: the active timeline.
        options: the policy and its retention.
        now_ms: milliseconds since the epoch.
        zone: of instant times, ``LOCAL`` or ``UTC``.
        last: earliest retained commit of the last clean, if any: ``max_commits_to_clean`` counts from there.
    """
    writes = timeline.writes()
    if options.policy == BY_VERSIONS:
        return None
    if options.policy == _BY_HOURS:
        since = instant_from_ms(now_ms - options.hours_retained * _MS_OF_HOUR, zone)
        found = next((one for one in writes if one.requested >= since), None)
    elif len(writes) <= options.commits_retained:
        found = None
    else:
        found = _before_pending(timeline, writes, writes[-options.commits_retained])
    if found is None or options.max_commits_to_clean is None or last is None:
        return found
    between = [one for one in writes if last <= one.requested < found.requested]
    return between[options.max_commits_to_clean] if len(between) > options.max_commits_to_clean else found


def _before_pending(timeline: Timeline, writes: Sequence[Instant], nth: Instant) -> Instant | None:
    """``nth``, or the last complete write before the first pending one, which may read or replace its files."""
    pending = min(
        (one.requested for one in timeline.pending() if comparable_action(one.action) in WRITE_ACTIONS), default=None
    )
    if pending is None or nth.requested <= pending:
        return nth
    return next((one for one in reversed(writes) if one.requested < pending), None)


def outdated(
    partition: str,
    groups: Mapping[str, Sequence[PastSlice]],
    replaced: Mapping[tuple[str, str], str],
    protected: RetainedFiles,
    options: CleanOptions,
    earliest: str | None,
) -> Outdated:
    """The slices that a clean deletes in a partition.

    Args:
        partition: its path.
        groups: slices of each file group, newest first.
        replaced: (partition path, file id) to the instant of the replace commit that replaced the group.
        protected: files that must stay.
        options: the policy.
        earliest: earliest commit to retain; None for a policy without one.
    """
    gone: list[PastSlice] = []
    is_empty = True
    for file_id, slices in groups.items():
        replaced_at = replaced.get((partition, file_id))
        if replaced_at is not None:
            if earliest is not None and replaced_at >= earliest:
                is_empty = False
                continue
            given_up = slices
        else:
            is_empty = False
            given_up = (
                _old_versions(partition, file_id, slices, protected, options.versions_retained)
                if (earliest is None)
                else _before(slices, earliest)
            )
        for one in given_up:
            if protected.reason(partition, file_id, one):
                is_empty = False
            else:
                gone.append(one)
    return Outdated(tuple(gone), is_empty)


def _before(slices: Sequence[PastSlice], earliest: str) -> Sequence[PastSlice]:
    """Slices that were outdated at the earliest retained commit: all before the newest that began before it."""
    if len(slices) < 2:
        return ()
    seen = next((number for number, one in enumerate(slices) if one.begins < earliest), len(slices))
    return slices[seen + 1 :]


def _old_versions(
    partition: str, file_id: str, slices: Sequence[PastSlice], protected: RetainedFiles, retained: int
) -> Sequence[PastSlice]:
    """All but the newest slices; a slice that a pending compaction reads counts as one of them."""
    begins = protected.compacted.get((partition, file_id))
    if begins is None:
        return slices[retained:]
    return [one for one in slices if one.begins < begins][max(0, retained - 1) :]


SAVEPOINTS_KEY = "savepointed_timestamps"
"""In a clean's extra metadata: the savepoints at that time, as a comma-separated list."""

TAKEN_OVER_KEY = "hudi_fast.clean"
"""In a clean's extra metadata: ``all`` if it examined all partitions that it had to, else ``some``."""


@dataclass(frozen=True, slots=True)
class LastClean:
    """The state that earlier cleans leave.

    Attributes:
        instant: requested time of the newest completed clean; empty without a clean on the timeline.
        earliest: its earliest retained commit; empty for a policy without one.
        last_completed: newest complete write when it was planned.
        savepoints: the savepoints at that time.
        is_partial: it skipped partitions.
        failed: partition path to names of files that no clean could delete.
    """

    instant: str = ""
    earliest: str = ""
    last_completed: str = ""
    savepoints: frozenset[str] = frozenset()
    is_partial: bool = False
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def last_clean(storage: Storage, config: TableConfig, timeline: Timeline) -> LastClean:
    """The state that the cleans on the active timeline leave; reads one body, more after cleans of Apache Hudi.

    Raises:
        CorruptTableError: a clean's metadata is damaged.
    """
    newest: CleanMetadata | None = None
    failed: dict[str, dict[str, None]] = {}
    gone: dict[str, set[str]] = {}
    for instant in reversed(timeline.of_action("clean")):
        if not instant.is_completed:
            continue
        body = read_instant_body(storage, config, instant)
        if not body:  # truncated; Apache Hudi removes such a clean from the timeline
            continue
        metadata = decode_clean_metadata(body, f"{config.timeline_folder}/{instant.file_name}")
        newest = newest or metadata
        for part in metadata.partitions:
            later = gone.setdefault(part.partition_path, set())
            known = failed.setdefault(part.partition_path, {})
            known.update((name, None) for name in part.failed if name not in later)
            later.update(part.deleted)
        if metadata.extra_metadata.get(TAKEN_OVER_KEY) == "all":
            break
    if newest is None:
        return LastClean()
    return LastClean(
        newest.start_time,
        newest.earliest_instant_to_retain,
        newest.last_completed,
        savepoints_of(newest.extra_metadata),
        newest.extra_metadata.get(TAKEN_OVER_KEY) == "some",
        {partition: tuple(names) for partition, names in failed.items() if names},
    )


def savepoints_of(extra_metadata: Mapping[str, str]) -> frozenset[str]:
    """The savepoints in a clean's plan or metadata."""
    return frozenset(one for one in extra_metadata.get(SAVEPOINTS_KEY, "").split(",") if one)


@dataclass(frozen=True, slots=True)
class ScheduledClean:
    """A planned clean.

    Attributes:
        instant: its requested time; empty for a plan that is not on the timeline.
        plan: the files that it deletes.
        sizes: bytes of its existing files, by absolute path.
    """

    instant: str
    plan: CleanPlan
    sizes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def files(self) -> int:
        """Number of files that it deletes."""
        return sum(map(len, self.plan.files.values()))

    @property
    def bytes(self) -> int:
        """Their total size."""
        return sum(self.sizes.values())

    def to_arrow(self) -> pa.Table:
        """One row for each file: ``partition``, ``file`` (name), ``bytes`` (null for a missing file)."""
        rows = [(partition, path) for partition, paths in sorted(self.plan.files.items()) for path in paths]
        return pa.table(
            {
                "partition": pa.array([partition for partition, _ in rows], pa.string()),
                "file": pa.array([path.rpartition("/")[2] for _, path in rows], pa.string()),
                "bytes": pa.array([self.sizes.get(path) for _, path in rows], pa.int64()),
            }
        )


@dataclass(frozen=True, slots=True)
class FinishedClean:
    """One completed clean.

    Attributes:
        instant: its requested time.
        metadata: its clean metadata.
        bytes_deleted: size of the files that it deleted.
    """

    instant: str
    metadata: CleanMetadata
    bytes_deleted: int = 0


@dataclass(frozen=True, slots=True)
class CleanResult(ShownResult):
    """The result of a call that cleaned.

    Attributes:
        instant: requested time of the newest completed clean; empty when there was nothing to do.
        files_deleted: number of deleted files.
        files_failed: files that could not be deleted; the next clean tries again.
        bytes_deleted: size of the deleted files.
        partitions_deleted: paths of partitions that were deleted as a whole.
        earliest_retained: the newest clean's earliest retained commit: earlier states of the table can no longer be
            read; empty for a policy without one.
        instants: requested times of all cleans that were completed, oldest first.
        seconds: from call to return.
    """

    instant: str
    files_deleted: int = 0
    files_failed: int = 0
    bytes_deleted: int = 0
    partitions_deleted: tuple[str, ...] = ()
    earliest_retained: str = ""
    instants: tuple[str, ...] = ()
    seconds: float = 0.0


def combined_result(done: Iterable[FinishedClean], seconds: float) -> CleanResult:
    """The result of a call that completed several cleans, or none.

    Args:
        done: oldest first.
        seconds: duration of the call.
    """
    finished = list(done)
    parts = [part for one in finished for part in one.metadata.partitions]
    return CleanResult(
        instant=finished[-1].instant if finished else "",
        files_deleted=sum(len(part.deleted) for part in parts),
        files_failed=sum(len(part.failed) for part in parts),
        bytes_deleted=sum(one.bytes_deleted for one in finished),
        partitions_deleted=tuple(dict.fromkeys(part.partition_path for part in parts if part.partition_deleted)),
        earliest_retained=finished[-1].metadata.earliest_instant_to_retain if finished else "",
        instants=tuple(one.instant for one in finished),
        seconds=seconds,
    )
