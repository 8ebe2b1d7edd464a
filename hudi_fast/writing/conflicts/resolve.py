"""Checks a write for conflicts at commit time. The first write to complete wins.

::

    timeline at the beginning ─┐
    timeline now ──────────────┴─► candidates ─► their file groups ─┐
    own write stats ─► own file groups ─────────────────────────────┴─► disjoint, or CommitConflictError

Candidates are all writes completed since the table was pinned, at any requested time: this write has not read their
changes. (Apache Hudi determines the last completed write after it creates its own instant, and may miss a write
that completes in between. An extra candidate only causes a retry.) Further candidates, by strategy:

=============  =====================================================================================================
strategy       pending instants
=============  =====================================================================================================
simple         clusterings; replace commits requested later; before table version 8 compactions planned since
bucket         the same; file groups are compared by the bucket prefix of their file ids
prefer_writer  none: pending clusterings check for conflicts when they complete
non_blocking   none; of the completed instants only replace commits, which replaced file groups
=============  =====================================================================================================

On merge-on-read tables of version 8 and later a compaction never conflicts with a write: log files written during it
belong to the slice that it creates. Before, only log files of writes that found its plan on the timeline do. (Apache
Hudi compares requested times instead, and misses a plan of a machine whose clock is behind.) Writes that only add file
groups never conflict: two concurrent inserts of one new key both complete.

A write that was on the pinned timeline and is missing now was rolled back. Its rows may be part of this write's, so
this is a conflict for any file groups. (Apache Hudi does not check.) The same holds for a write that was pending then
and has been completed and archived since, which takes about twenty commits during this write.

Sources: ``SimpleConcurrentFileWritesConflictResolutionStrategy``, ``BucketIndexConcurrentFileWrites...``,
``PreferWriterConflictResolutionStrategy``, ``TransactionUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CommitConflictError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instant import WRITE_ACTIONS, Instant, State
from hudi_fast.view.pending import read_clustering_plan
from hudi_fast.writing.conflicts.touched import FileGroup, touched_groups

__all__ = ["OwnWrite", "candidates", "require_no_conflict"]

_BUCKET_DIGITS = 8
_THREADS = 8
_NAMED = 5
_FIRST_WITH_COMPLETION_TIMES = 8


@dataclass(frozen=True, slots=True)
class OwnWrite:
    """A write that is about to complete.

    Attributes:
        instant: inflight.
        operation: as commit metadata names it.
        groups: file groups that it wrote to or replaced.
    """

    instant: Instant
    operation: str
    groups: frozenset[FileGroup]


def require_no_conflict(
    storage: Storage, config: TableConfig, own: OwnWrite, before: Timeline, now: Timeline, strategy: str
) -> None:
    """Check that no other writer changed the file groups of a write since it began; called under the table's lock.

    Args:
        storage: the table's storage.
        config: its configuration.
        own: the write.
        before: the timeline that it was pinned to.
        now: the current timeline.
        strategy: ``simple``, ``bucket``, ``prefer_writer`` or ``non_blocking``.

    Raises:
        CommitConflictError: another writer changed them.
        CorruptTableError: the metadata of an instant cannot be parsed.
    """
    _require_all_there(storage, own, before, now)
    _require_none_archived(storage, config, own, before, now)
    others = candidates(storage, config, own.instant, before, now, strategy)
    if not others:
        return
    with ThreadPool(_THREADS) as pool:
        touched = pool.map(lambda one: touched_groups(storage, config, one), others)
        for other, groups in zip(others, touched, strict=True):
            common = _in_common(own.groups, groups, strategy)
            if common:
                raise _conflict(storage, own, other, common)


def _require_all_there(storage: Storage, own: OwnWrite, before: Timeline, now: Timeline) -> None:
    gone = [one for one in before.writes() if not now.is_completed_or_archived(one.requested)]
    if gone:
        raise CommitConflictError(
            f"The {gone[-1].action} {gone[-1].requested} of {storage.uri} was rolled back since {own.operation} "
            f"{own.instant.requested} began, which may have read it. Nothing of it is visible; run it again.",
            own.instant.requested,
            gone[-1].requested,
        )


def _require_none_archived(
    storage: Storage, config: TableConfig, own: OwnWrite, before: Timeline, now: Timeline
) -> None:
    """Refuse the write if a formerly pending instant left the timeline completed and archived, not rolled back."""
    gone = {one.requested for one in before.pending_writes if now.find(one.requested) is None}
    if not gone:
        return
    archived = ArchivedTimeline(storage, config).instants(min(gone), max(gone), WRITE_ACTIONS)
    found = next((one for one in archived if one.requested in gone), None)
    if found is not None:
        raise CommitConflictError(
            f"The {found.action} {found.requested} of {storage.uri} was pending when {own.operation} "
            f"{own.instant.requested} began, and is completed and archived by now: it may have changed the same file "
            "groups. Nothing of this write is visible; run it again.",
            own.instant.requested,
            found.requested,
        )


def candidates(
    storage: Storage, config: TableConfig, own: Instant, before: Timeline, now: Timeline, strategy: str
) -> list[Instant]:
    """The instants that may conflict with a write, by requested time.

    Args:
        storage: the table's storage, for the plans of pending replace commits.
        config: the table's configuration.
        own: the write.
        before: the timeline that it was pinned to.
        now: the current timeline.
        strategy: see :func:`require_no_conflict`.
    """
    seen = {one.requested for one in before.writes()}
    found = [one for one in now.writes() if one.requested not in seen]
    planned = {one.requested for one in before.pending_compactions}
    ends_slices = config.version < _FIRST_WITH_COMPLETION_TIMES
    if config.is_mor:
        found = [one for one in found if one.action != "commit" or (ends_slices and one.requested not in planned)]
    if strategy == "non_blocking":
        found = [one for one in found if one.action == "replacecommit"]
    elif strategy != "prefer_writer":
        found += [one for one in now.pending() if _counts_pending(storage, config, own, one)]
        found += [one for one in now.pending_compactions if ends_slices and one.requested not in planned]
    return sorted((one for one in found if one.requested != own.requested), key=lambda one: one.requested)


def _counts_pending(storage: Storage, config: TableConfig, own: Instant, one: Instant) -> bool:
    if one.action == "replacecommit":
        return one.requested > own.requested or read_clustering_plan(storage, config, one) is not None
    return one.action == "clustering"


def _in_common(own: frozenset[FileGroup], other: frozenset[FileGroup], strategy: str) -> list[FileGroup]:
    if strategy != "bucket":
        return sorted(own & other)
    buckets = {(partition, file_id[:_BUCKET_DIGITS]) for partition, file_id in other}
    return sorted(one for one in own if (one[0], one[1][:_BUCKET_DIGITS]) in buckets)


def _conflict(storage: Storage, own: OwnWrite, other: Instant, common: Iterable[FileGroup]) -> CommitConflictError:
    groups = tuple(common)
    named = ", ".join(f"{partition}/{file_id}" if partition else file_id for partition, file_id in groups[:_NAMED])
    more = f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    how, then = "completed since it began", ""
    if other.state is not State.COMPLETED:
        is_new = other.requested > own.instant.requested
        how = "planned since it began" if is_new else "planned before it began and is pending"
        then = "" if is_new else "complete or roll back that plan, then "
    return CommitConflictError(
        f"Cannot resolve conflicts for overlapping writes to {storage.uri}: {own.operation} {own.instant.requested} "
        f"changed file groups of {other.action} {other.requested}, which was {how}: {named}{more}. "
        f"Nothing of it is visible; {then}run it again, or enable automatic retries with "
        "hoodie.write.num.retries.on.conflict.failures.",
        own.instant.requested,
        other.requested,
        groups,
    )
