"""How far a stream of a table's commits goes with its next batch.

::

    state, where the last batch ended ─► commits since, oldest first ─► as many as limits allow ─► where this one ends

Offsets are times of commits as the bounds of an incremental query are: completion times from table version 8 on, before
that requested times. There a commit may complete before one that was requested earlier; a stream that went on past
the earlier one would lose its rows, so a batch ends before a commit that is pending.

Source of the order: ``HoodieStreamSourceV1`` and ``V2`` (1.2.0), which take everything there is in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.reading.incremental.commit_range import ChangeCommit, by_completion, readable_until, resolve_range
from hudi_fast.view.table_state import TableState

__all__ = ["BatchLimits", "newest_readable", "next_offset"]

_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much a batch may take; at least one commit in any case.

    Attributes:
        max_commits: commits, those of services not counted: they bring no rows; None for all.
        max_bytes: bytes that they wrote; None for all.
    """

    max_commits: int | None = None
    max_bytes: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return self.max_commits is not None or self.max_bytes is not None


def newest_readable(state: TableState, options: ReadOptions) -> str | None:
    """The newest time that a batch can end at; None for a table without complete writes that can be read.

    Args:
        state: the table now.
        options: of the stream's reads.
    """
    options = _patient(options)
    completion, before = by_completion(state, options), readable_until(state, options)
    writes = [one for one in state.timeline.writes() if before is None or one.requested < before]
    return max(((one.completion or one.requested) if completion else one.requested for one in writes), default=None)


def next_offset(
    state: TableState, start: str, limits: BatchLimits, options: ReadOptions | None = None, until: str | None = None
) -> str:
    """Where the batch after ``start`` ends; ``start`` when there is nothing new.

    Args:
        state: the table now.
        start: where the last one ended; :data:`~hudi_fast.config.read_options.EARLIEST` before the first.
        limits: how much it may take.
        options: of the stream's reads; None for the defaults.
        until: the batch goes no further than that; None for no bound.

    Raises:
        CorruptTableError: a commit since ``start`` cannot be read.
    """
    options = _patient(options or ReadOptions())
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


def _patient(options: ReadOptions) -> ReadOptions:
    """A stream waits for a commit that others have overtaken, unless it goes by completion times."""
    return replace(options, hollow_commit_policy="BLOCK") if options.hollow_commit_policy == "FAIL" else options


def _written(one: ChangeCommit) -> int:
    return sum(stat.total_write_bytes for stat in one.metadata.write_stats())


def _exceeds(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit
