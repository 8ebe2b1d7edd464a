"""Resolve the commits of an incremental query.

::

    options ─► bounds ─┬─ completed writes of the active timeline ─────┬─► those in (begin, end] ─► bodies ─►
    ChangeRange
                       └─ of the archived one, if begin is so early ───┘

Since table version 8, commits are ordered by completion time; before, by requested time. With requested times, a commit
may complete while one that was requested earlier is still pending. A query that continues after the completed commit
would miss the pending one. Such a hollow commit raises an error, ends the range, or makes the range use completion
times.

Archived commits are included in all table versions; Apache Hudi ignores them before version 8.

Sources: ``IncrementalQueryAnalyzer``, ``CompletionTimeQueryViewV2``, ``TimelineUtils.handleHollowCommitIfNeeded`` (Hudi
1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.errors import ConfigError
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.instant import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT, WRITE_ACTIONS, Instant
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["ChangeCommit", "ChangeRange", "by_completion", "newest_offset", "readable_until", "resolve_range"]

_COMPLETION_COUNTS_FROM = 8
_HOLLOW_KEY = "hoodie.read.timeline.holes.resolution.policy"
_LONGEST_WRITE = timedelta(days=1)
"""Maximum time between request and completion of an archived commit that is searched for, the same as Hudi's."""
_READERS = 8


@dataclass(frozen=True, slots=True)
class ChangeCommit:
    """A completed write in the range, and its commit metadata."""

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The writes of a query.

    Attributes:
        begin: exclusive; :data:`~hudi_fast.config.read_options.EARLIEST` = from the first commit.
        end: inclusive; None = up to the newest.
        by_completion: whether bounds are completion times; else requested times.
        commits: oldest first, by the same kind of time.
        archived: whether some commits are archived.
    """

    begin: str
    end: str | None
    by_completion: bool
    commits: tuple[ChangeCommit, ...]
    archived: bool = False

    @property
    def last(self) -> str | None:
        """The largest requested time of the writes; None without writes."""
        return max((one.instant.requested for one in self.commits), default=None)


def by_completion(state: TableState, options: ReadOptions) -> bool:
    """Whether the bounds of a range are completion times; else they are requested times."""
    version = options.incremental_table_version
    version = state.config.version if version is None else version
    return version >= _COMPLETION_COUNTS_FROM or options.hollow_commit_policy == "USE_TRANSITION_TIME"


def resolve_range(state: TableState, options: ReadOptions) -> ChangeRange:
    """The writes between the bounds of an incremental query.

    Raises:
        ConfigError: begin is missing, or there is a hollow commit and the policy is FAIL.
        CorruptTableError: a commit in the range cannot be read.
    """
    begin = options.begin
    if begin is None:
        raise ConfigError(
            "Specify the start completion time to pull from using option hoodie.datasource.read.begin.instanttime "
            f"(earliest = from the first commit of {state.storage.uri})."
        )
    completion = by_completion(state, options)
    before = readable_until(state, options)
    bounds = _Bounds(begin, options.end, completion, before, options.skip_compact and state.config.is_mor)
    active = [one for one in state.timeline.writes() if bounds.hold(one)]
    archived = _archived(state, bounds)
    commits = sorted([*archived, *_with_metadata(state, active)], key=lambda one: bounds.place(one.instant))
    return ChangeRange(begin, options.end, completion, tuple(commits), bool(archived))


def readable_until(state: TableState, options: ReadOptions) -> str | None:
    """The requested time of the hollow commit before which the range ends; None without a hollow commit.

    Raises:
        ConfigError: there is a hollow commit and the policy is FAIL.
    """
    if by_completion(state, options):
        return None
    services = {instant.requested for instant in state.pending_services}
    pending = [one.requested for one in state.timeline.pending_writes if one.requested not in services]
    hollow, last = min(pending, default=None), state.timeline.last_completed_write
    if hollow is None or last is None or last.requested < hollow:
        return None
    if options.hollow_commit_policy == "BLOCK":
        return hollow
    raise ConfigError(
        f"Found hollow commit: '{hollow}'. Adjust config `{_HOLLOW_KEY}` accordingly if to avoid throwing this "
        f"exception. A write of {state.storage.uri} requested then is not complete, later ones are: BLOCK "
        "reads up to it, USE_TRANSITION_TIME interprets begin and end as completion times."
    )


def newest_offset(state: TableState) -> str | None:
    """The newest time that a range can end at; None without completed writes on the active timeline.

    It is a completion time since table version 8, and a requested time before.
    """
    writes = state.timeline.writes()
    if state.config.version < _COMPLETION_COUNTS_FROM:
        return max((one.requested for one in writes), default=None)
    return max((one.completion or one.requested for one in writes), default=None)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of a range."""

    begin: str
    end: str | None
    completion: bool
    before: str | None
    no_compactions: bool

    def place(self, one: Instant) -> tuple[str, str]:
        """Sort key of instants; requested times break ties."""
        return (one.completion or one.requested) if self.completion else one.requested, one.requested

    def hold(self, one: Instant) -> bool:
        time, requested = self.place(one)
        if self.no_compactions and self.completion and one.action == "commit":
            return False  # a compaction, since the table is merge-on-read
        if self.before is not None and requested >= self.before:
            return False
        return (self.begin == EARLIEST or time > self.begin) and (self.end is None or time <= self.end)


def _with_metadata(state: TableState, instants: Sequence[Instant]) -> Iterator[ChangeCommit]:
    def read(one: Instant) -> ChangeCommit:
        return ChangeCommit(one, read_commit(state.storage, state.config, one))

    if len(instants) < 2:
        yield from map(read, instants)
        return
    with ThreadPool(min(_READERS, len(instants))) as pool:
        yield from pool.map(read, instants)


def _archived(state: TableState, bounds: _Bounds) -> list[ChangeCommit]:
    """Archived writes of the range that are not on the active timeline."""
    earliest, first = _earliest_requested(bounds), state.timeline.first_write_requested
    if earliest is not None and first is not None and earliest >= first:
        return []
    archive = ArchivedTimeline(state.storage, state.config)
    wanted = {
        (one.requested, one.action)
        for one in archive.instants(earliest, bounds.end, WRITE_ACTIONS)
        if bounds.hold(one) and state.timeline.find(one.requested, one.action) is None
    }
    if not wanted:
        return []
    times = [requested for requested, _ in wanted]
    return [
        ChangeCommit(one.instant(), decode_commit_metadata(one.metadata or b"", state.config.history_folder))
        for one in archive.read(min(times), max(times))
        if (one.requested, one.action) in wanted
    ]


def _earliest_requested(bounds: _Bounds) -> str | None:
    """The earliest requested time that a commit of the range may have; None for any."""
    if bounds.begin in (
        METADATA_BOOTSTRAP_INSTANT,
        FULL_BOOTSTRAP_INSTANT,
    ):  # not timestamps, and before all timestamps
        return None
    if bounds.begin == EARLIEST or not bounds.completion:
        return None if bounds.begin == EARLIEST else bounds.begin
    try:
        begun = datetime.strptime(bounds.begin[:14], "%Y%m%d%H%M%S")
    except ValueError:  # the table stores an invalid time
        return None
    return f"{begun - _LONGEST_WRITE:%Y%m%d%H%M%S}" if begun - datetime.min > _LONGEST_WRITE else None
