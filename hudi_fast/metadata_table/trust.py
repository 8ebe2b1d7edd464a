"""Whether a metadata table tells all that its data table did, as far as the two timelines show it.

::

    completed writes of the data table ─┐
                                        ├─► each must have its delta commit, from where the metadata table begins
    delta commits of the metadata table ┘   the newest must be known to the data table, unless it is being written

Pure in the two timelines, but for one more listing when the metadata table seems ahead: a write may have come between
the listings of the two.
"""

from __future__ import annotations

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.instant import SOLO_TIME, Instant

__all__ = ["distrust_of", "missing_writes", "unknown_commit"]

_INSTANT_DIGITS = 17


def distrust_of(storage: Storage, config: TableConfig, data: Timeline, own: Timeline) -> str | None:
    """Why a metadata table cannot be trusted; None when it can.

    Args:
        storage: of the data table.
        config: of the data table.
        data: timeline of the data table.
        own: timeline of the metadata table.
    """
    if not own.writes():
        return "it has no completed commit."
    missing = missing_writes(data, own, config.layout_version)
    if missing:
        return (
            f"the {missing[0].action} {missing[0].requested} of the table ({len(missing)} such) has no delta commit in "
            "it; a writer did not keep it up to date."
        )
    unknown = unknown_commit(data, own)
    if unknown is not None and unknown_commit(load_timeline(storage, config), own) is not None:
        return (
            f"its newest delta commit {unknown.requested} is no action of the table, whose newest time is "
            f"{data.newest_time}; the table's timeline was set back."
        )
    return None


def missing_writes(data: Timeline, own: Timeline, layout: int) -> list[Instant]:
    """Completed writes of the data table that the metadata table should know and does not, oldest first.

    Writes from before the metadata table was made are in what it was made of. With initial delta commits on its
    timeline, those are the ones that completed before the first of them did; without, or before table version 8
    (where the time of the first follows from the newest write then), those before its first commit.

    Args:
        data: timeline of the data table.
        own: timeline of the metadata table; not empty.
        layout: of both timelines.
    """
    known = {one.requested for one in own.writes() if one.action == "deltacommit"}
    built = [one.completion for one in own.writes() if _is_initial(one) and len(one.requested) == _INSTANT_DIGITS]
    made = min((time for time in built if time is not None), default=None)
    if layout > 1 and made is not None:
        return [one for one in data.writes() if one.requested not in known and (one.completion or one.requested) > made]
    first = min(one.requested for one in own.writes())
    return [one for one in data.writes() if one.requested not in known and one.requested > first]


def unknown_commit(data: Timeline, own: Timeline) -> Instant | None:
    """The newest delta commit of the metadata table if it is newer than all that the data table knows.

    Args:
        data: timeline of the data table.
        own: timeline of the metadata table.
    """
    commits = [one for one in own.writes() if one.action == "deltacommit" and not _is_initial(one)]
    if not commits or data.find(commits[-1].requested) is not None:
        return None
    return commits[-1] if commits[-1].requested[:_INSTANT_DIGITS] > _newest(data) else None


def _newest(data: Timeline) -> str:
    """The newest time; of files whose storage keeps whole seconds, the last moment that may have been meant."""
    ends = (one.completion for one in data.instants if one.completion is not None)
    whole = (end[:-3] + "999" for end in ends if len(end) == _INSTANT_DIGITS and end.endswith("000"))
    return max(data.newest_time or "", *whole, "")


def _is_initial(instant: Instant) -> bool:
    return instant.action == "deltacommit" and instant.requested.startswith(SOLO_TIME)
