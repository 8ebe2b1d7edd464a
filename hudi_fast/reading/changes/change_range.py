"""Which commits an incremental query asks for.

::

    options ─► bounds ─► complete writes of the active timeline and the archived one, between the bounds ─► ChangeRange

Table version 8 and later orders commits by completion, version 6 by requested time. Both ranges are ``(begin, end]``.

Source: ``IncrementalQueryAnalyzer``, ``IncrementalRelationUtil``, ``TimelineUtils`` (Hudi 1.2.0).
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_fast.config.read_options import ReadOptions
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import TableState

__all__ = ["ChangeCommit", "ChangeRange", "newest_offset", "resolve_range"]


@dataclass(frozen=True, slots=True)
class ChangeCommit:
    """A complete write in the range.

    Attributes:
        instant: the write.
        metadata: what it wrote.
    """

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The writes that a query asks for.

    Attributes:
        begin: exclusive; :data:`~hudi_fast.config.read_options.EARLIEST` = from the first commit.
        end: inclusive; None = up to the newest.
        by_completion: whether bounds are completion times; else requested times.
        commits: oldest first by the time that the bounds are of.
        archived: whether some of them have left the active timeline.
    """

    begin: str
    end: str | None
    by_completion: bool
    commits: tuple[ChangeCommit, ...]
    archived: bool = False


def resolve_range(state: TableState, options: ReadOptions) -> ChangeRange:
    """The writes between the bounds of an incremental query.

    Raises:
        ConfigError: the range cannot be answered.
        CorruptTableError: a commit in the range cannot be read.
    """
    raise NotImplementedError


def newest_offset(state: TableState) -> str | None:
    """The newest time that a range can end at; None for a table without complete writes."""
    raise NotImplementedError
