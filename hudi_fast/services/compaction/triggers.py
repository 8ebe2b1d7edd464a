"""Triggers of table services: by the number of delta commits, or by time.

A delta commit counts if it was *completed* after the last compaction was requested: one that began earlier and ended
later wrote log files that this compaction does not have. Before timeline layout 2 completion times are modification
times, which a copy of the table does not keep, so requested times are used instead.

Sources: ``ScheduleCompactionActionExecutor``, ``CompactionUtils``, release 1.2.0.
"""

from __future__ import annotations

from hudi_fast.config.compaction_options import CompactionOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.instant import Instant, ms_from_instant

__all__ = ["compaction_is_due", "last_compaction", "log_compaction_is_due", "written_since"]

_LOG_COMPACTION_PLAN = ".logcompaction.requested"


def compaction_is_due(config: TableConfig, timeline: Timeline, now: str, options: CompactionOptions) -> bool:
    """Whether a compaction is due by the trigger strategy.

    Args:
        config: the table's configuration.
        timeline: its active timeline.
        now: instant of the compaction.
        options: the strategy and its bounds.
    """
    deltas = [one for one in timeline.writes() if one.action == "deltacommit"]
    if not deltas:
        return False
    last = last_compaction(timeline, requested_counts=options.trigger == "NUM_COMMITS_AFTER_LAST_REQUEST")
    since = written_since(config, timeline, last)
    enough = sum(one.action == "deltacommit" for one in since) >= options.max_delta_commits
    began = deltas[0].requested if last is None else last.requested
    elapsed = ms_from_instant(now, config.timezone) // 1000 - ms_from_instant(began, config.timezone) // 1000
    late = elapsed >= options.max_delta_seconds
    return {
        "TIME_ELAPSED": late,
        "NUM_OR_TIME": enough or late,
        "NUM_AND_TIME": enough and late,
    }.get(options.trigger, enough)


def log_compaction_is_due(storage: Storage, config: TableConfig, timeline: Timeline, threshold: int) -> bool:
    """Whether ``threshold`` delta commits were completed since the last compaction and since the last log compaction.

    A completed log compaction has the same action as a delta commit; it also has a plan on the timeline.
    """
    names = (entry.name for entry in storage.list_dir(config.timeline_folder))
    planned = {name.removesuffix(_LOG_COMPACTION_PLAN) for name in names if name.endswith(_LOG_COMPACTION_PLAN)}
    logged = [one for one in timeline.writes() if one.action == "deltacommit" and one.requested in planned]
    starts = last_compaction(timeline), logged[-1] if logged else None
    return all(
        sum(one.action == "deltacommit" for one in written_since(config, timeline, start)) >= threshold
        for start in starts
    )


def last_compaction(timeline: Timeline, requested_counts: bool = False) -> Instant | None:
    """The newest completed compaction of a MERGE_ON_READ table, where each ``commit`` is one; None if there is none.

    Args:
        timeline: the active timeline.
        requested_counts: include pending compactions.
    """
    found = [one for one in timeline.writes() if one.action == "commit"]
    if requested_counts:
        found += timeline.pending_compactions
    return max(found, key=lambda one: one.requested, default=None)


def written_since(config: TableConfig, timeline: Timeline, start: Instant | None) -> list[Instant]:
    """Completed writes after ``start`` was requested, without ``start``; all writes when it is None."""
    if start is None:
        return list(timeline.writes())
    if config.layout_version < 2:
        return [one for one in timeline.writes() if one.requested > start.requested]
    return [
        one
        for one in timeline.writes()
        if one.requested != start.requested and (one.completion or one.requested) > start.requested
    ]
