"""Bounds of archiving: the requested time from which instants stay on the active timeline, and the reason.

::

    pending writes and services     the last complete write before the first of them
    a pending restore               everything
    compaction                      MERGE_ON_READ: the delta commits that the trigger of the next compaction counts
    replaced file groups            replace commits whose replaced files may still exist after the last clean: without
                                    the commit on the timeline those files would become visible again
    the metadata table              instants after its last compaction: its log blocks need them to be valid
    the data table                  for a metadata table: instants on the data table's active timeline
    savepoints                      their commits, and (by default) all later ones

All functions are pure functions of timelines and of the state of the last clean.

Sources: ``TimelineArchiverV1``/``V2``, ``CompactionUtils``, ``ClusteringUtils``, ``TimelineUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Sequence

from hudi_fast.config.table_config import TableConfig
from hudi_fast.services.compact_plan import last_compaction, written_since
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, Timeline, comparable_action
from hudi_fast.values import dataclass

__all__ = [
    "Bound",
    "of_compaction",
    "of_data_table",
    "of_last_clean",
    "of_metadata_table",
    "of_pending",
    "of_replaced",
    "of_restore",
    "of_savepoint",
]

_REPLACES = ("replacecommit", "clustering")
_COUNTED_TRIGGERS = frozenset({"NUM_COMMITS", "NUM_AND_TIME"})


@dataclass(frozen=True, slots=True)
class Bound:
    """A requested time from which instants stay.

    Attributes:
        time: instants requested then or later stay; empty: all of them.
        reason: in words, without a full stop.
    """

    time: str
    reason: str


def of_pending(timeline: Timeline) -> Bound | None:
    """The first pending write, compaction or clustering; the complete write before it stays as well."""
    pending = [one for one in timeline.pending() if comparable_action(one.action) in WRITE_ACTIONS]
    if not pending:
        return None
    first = pending[0]
    before = [one.requested for one in timeline.writes() if one.requested < first.requested]
    reason = f"the {first.action} {first.requested} is {first.state.name.lower()}"
    return Bound(before[-1] if before else first.requested, reason)


def of_restore(timeline: Timeline) -> Bound | None:
    """A pending restore, which rolls writes back."""
    pending = [one for one in timeline.of_action("restore") if not one.is_completed]
    return Bound("", f"the restore {pending[0].requested} is not done") if pending else None


def of_compaction(config: TableConfig, timeline: Timeline, trigger: str, delta_commits: int) -> Bound | None:
    """The delta commits that make the next compaction due; the last compaction while there are fewer.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        trigger: trigger strategy of compaction.
        delta_commits: number of delta commits after which it is due.
    """
    if not config.is_mor or trigger not in _COUNTED_TRIGGERS:
        return None
    last = last_compaction(timeline)
    since = [one for one in written_since(config, timeline, last) if one.action == "deltacommit"]
    since += [one for one in timeline.pending_writes if one.action == "deltacommit"]
    since.sort(key=lambda one: one.requested)
    if not since and last is None:
        return None
    if len(since) < delta_commits:
        time = since[0].requested if last is None else last.requested
        return Bound(time, f"compaction is due after {delta_commits} delta commits, and {time} is where they begin")
    time = since[len(since) - delta_commits].requested
    return Bound(time, f"the next compaction is counted by the {delta_commits} delta commits from {time} on")


def of_replaced(timeline: Timeline, clean: str, earliest: str, savepoints: Sequence[str]) -> Bound | None:
    """The first replace commit or clustering whose replaced files the last clean may have kept.

    Args:
        timeline: the active timeline.
        clean: requested time of the last clean; empty without one.
        earliest: its earliest retained commit; empty where its policy has none.
        savepoints: the savepoints at that time.
    """
    replaces = [one for one in timeline.instants if one.action in _REPLACES]
    since, reason = "", "there has been no clean"
    if clean and not earliest:
        since, reason = clean, f"the last clean ({clean}) came before it"
    elif clean:
        since, reason = earliest, f"the last clean ({clean}) retained {earliest}"
        saved = min(savepoints, default="")
        if saved and saved < earliest and any(saved <= one.requested <= earliest for one in replaces):
            since, reason = saved, f"the last clean ({clean}) kept files of the savepoint {saved}"
    first = next((one for one in replaces if one.requested >= since), None)
    if first is None:
        return None
    return Bound(first.requested, f"the {first.action} {first.requested} replaced files that are still there: {reason}")


def of_metadata_table(config: TableConfig, timeline: Timeline, compacted: str | None) -> Bound | None:
    """Writes that completed after the metadata table was last compacted.

    Args:
        config: the data table's configuration.
        timeline: its active timeline.
        compacted: requested time of the metadata table's last compaction; None: no known one.
    """
    if compacted is None:
        due = "which is due after hoodie.metadata.compact.max.delta.commits"
        return Bound("", f"the metadata table has not been compacted yet, {due}, or cannot be trusted")
    reason = f"the metadata table was last compacted at {compacted}"
    if config.layout_version < 2:
        return Bound(compacted, reason)
    after = (one.requested for one in timeline.writes() if (one.completion or one.requested) > compacted)
    first = min(after, default=None)
    return None if first is None else Bound(first, reason)


def of_data_table(data: Timeline, beyond_savepoint: bool) -> Bound | None:
    """The instants that a metadata table keeps: from the data table's first write, or first pending action, on.

    Args:
        data: the data table's active timeline.
        beyond_savepoint: whether to skip savepointed writes: they may be far older than the others.
    """
    writes = [one for one in data.instants if comparable_action(one.action) in WRITE_ACTIONS]
    if beyond_savepoint:
        saved = {one.requested for one in data.of_action("savepoint")}
        writes = [one for one in writes if one.requested not in saved] or writes
    first = min([*writes[:1], *data.pending()[:1]], key=lambda one: one.requested, default=None)
    if first is None:
        return None
    return Bound(first.requested, f"the {first.action} {first.requested} is on the data table's active timeline")


def of_savepoint(savepoints: Sequence[Instant]) -> Bound | None:
    """The first savepoint."""
    first = min((one.requested for one in savepoints), default=None)
    return None if first is None else Bound(first, f"the first savepoint is of {first}")


def of_last_clean(earliest: str) -> Bound | None:
    """The earliest commit retained by the last clean (``hoodie.archive.block.on.latest.clean.ectr``)."""
    return Bound(earliest, f"the last clean retained {earliest}") if earliest else None
