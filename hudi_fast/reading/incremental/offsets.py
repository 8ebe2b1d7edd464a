"""Compute the end of a stream's next batch of commits.

::

    state, end of the last batch ─► commits since, oldest first ─► as many as limits allow ─► end of this batch

Offsets are times of commits, like the bounds of an incremental query: completion times since table version 8, requested
times before. With requested times, a commit may complete while one that was requested earlier is still pending. A
stream that continued past the pending commit would lose its rows, so a batch ends before it.

Source of the order: ``HoodieStreamSourceV1`` and ``V2`` (1.2.0), which read everything available in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.reading.incremental.commit_range import ChangeCommit, by_completion, readable_until, resolve_range
from hudi_fast.view.table_state import TableState

__all__ = ["BatchLimits", "newest_readable", "next_offset", "waiting"]

_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Maximum size of a batch; a batch has at least one commit.

    Attributes:
        max_commits: number of commits, without table services, which add no rows; None for all.
        max_bytes: bytes that these commits wrote; None for no limit.
    """

    max_commits: int | None = None
    max_bytes: int | None = None

    @property
    def any(self) -> bool:
        """Whether any limit is set."""
        return self.max_commits is not None or self.max_bytes is not None


def newest_readable(state: TableState, options: ReadOptions) -> str | None:
    """The newest time that a batch can end at; None without completed writes that can be read."""
    options = waiting(options)
    completion, before = by_completion(state, options), readable_until(state, options)
    writes = [one for one in state.timeline.writes() if before is None or one.requested < before]
    return max(((one.completion or one.requested) if completion else one.requested for one in writes), default=None)


def next_offset(
    state: TableState, start: str, limits: BatchLimits, options: ReadOptions | None = None, until: str | None = None
) -> str:
    """The end of the batch after ``start``; ``start`` when there is nothing new.

    ``start`` is the end of the last batch, :data:`~hudi_fast.config.read_options.EARLIEST` before the first; ``until``
    the latest end of this batch.

    Raises:
        CorruptTableError: a commit since ``start`` cannot be read.
    """
    options = waiting(options or ReadOptions())
    newest = newest_readable(state, options)
    if newest is None or (start != EARLIEST and newest <= start):
        return start
    end = newest if until is None else min(newest, until)
    if start != EARLIEST and end <= start:
        return start
    if not limits.any:
        return end
    changes = resolve_range(state, replace(options, query_type="incremental", begin=start, end=end))
    commits = bytes_ = 0
    reached = start
    for one in changes.commits:
        if one.metadata.operation_type not in _SERVICES:
            commits, bytes_ = commits + 1, bytes_ + _written(one)
            if commits > 1 and (_exceeds(commits, limits.max_commits) or _exceeds(bytes_, limits.max_bytes)):
                return reached
        instant = one.instant
        reached = (instant.completion or instant.requested) if changes.by_completion else instant.requested
    return end


def waiting(options: ReadOptions) -> ReadOptions:
    """Options of a stream: it waits for a hollow commit instead of failing, unless it uses completion times."""
    return replace(options, hollow_commit_policy="BLOCK") if options.hollow_commit_policy == "FAIL" else options


def _written(one: ChangeCommit) -> int:
    return sum(stat.total_write_bytes for stat in one.metadata.write_stats())


def _exceeds(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit
