"""The cleaning policies: pure functions of a timeline, and of the slices of a partition.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hudi_fast.config.clean_options import CleanOptions
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.instant import WRITE_ACTIONS, Instant, comparable_action, instant_from_ms
from hudi_fast.view.history_slices import PastSlice

__all__ = ["Outdated", "RetainedFiles", "earliest_to_retain", "outdated"]

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
