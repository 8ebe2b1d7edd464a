"""The commits of an incremental query, and of the batches of a stream.

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

Compute the end of a stream's next batch of commits.

::

    state, end of the last batch ─► commits since, oldest first ─► as many as limits allow ─► end of this batch

Offsets are times of commits, like the bounds of an incremental query: completion times since table version 8, requested
times before. With requested times, a commit may complete while one that was requested earlier is still pending. A
stream that continued past the pending commit would lose its rows, so a batch ends before it.

Source of the order: ``HoodieStreamSourceV1`` and ``V2`` (1.2.0), which read everything available in one batch.

Stream the commits of a table: where the stream begins, where each batch ends, and the query of a batch.

::

    options ─► StreamQuery ─► start ─► end_after(start) ─► end_after(that) ...     times, stored as StreamOffset
                         └──► batch_options(begin, end) ─► an incremental query, or a query for changes

Both streaming sources use this module: ``format("hudi_fast")`` of PySpark 4 and :func:`hudi_fast.stream_changes`. An
offset has Apache Hudi's format, ``{"offsetCommitTime": "<time>"}``: the completion time of a commit; before table
version 8, and for changes, its requested time. A stream that Apache Hudi began therefore continues from its checkpoint.

Sources: ``HoodieSourceOffset``, ``HoodieStreamSourceV2`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Self

from hudi_fast.config.moments import normalise_instant, timeline_zone
from hudi_fast.config.options import find_option
from hudi_fast.config.read_options import EARLIEST, ReadOptions
from hudi_fast.config.stream_options import SourceOptions
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, decode_commit_metadata
from hudi_fast.timeline.instants import FULL_BOOTSTRAP_INSTANT, METADATA_BOOTSTRAP_INSTANT, WRITE_ACTIONS, Instant
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState, load_state, read_commit

__all__ = [
    "FIRST",
    "BatchLimits",
    "ChangeCommit",
    "ChangeRange",
    "StreamOffset",
    "StreamQuery",
    "by_completion",
    "check_stream_options",
    "newest_offset",
    "newest_readable",
    "next_offset",
    "readable_until",
    "resolve_range",
    "waiting",
]

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


FIRST = "00000000000000"
"""Apache Hudi's offset before all commits."""

_TIME = "offsetCommitTime"
_BEGIN = "begin"
_TYPE_KEY = "hoodie.datasource.query.type"
_BEGIN_KEY = "hoodie.datasource.read.begin.instanttime"
_END_KEY = "hoodie.datasource.read.end.instanttime"
_START_KEY = "hoodie.datasource.streaming.startOffset"
_HOLES_KEY = "hoodie.read.timeline.holes.resolution.policy"
_OF_ONE_QUERY = (_BEGIN_KEY, _END_KEY, "as.of.instant")
_FROM_THE_LATEST = "latest"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """The end of a batch, as a checkpoint stores it.

    Attributes:
        time: time of the newest commit of the batch.
        begin: where the batch begins, exclusive; None = at the end of the batch before it.
    """

    time: str
    begin: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """The offset of a checkpoint.

        Raises:
            CorruptTableError: the checkpoint holds no offset of a Hudi table.
        """
        if not isinstance(stored, Mapping) or not isinstance(stored.get(_TIME), str):
            raise CorruptTableError(f"The offset {stored!r} of the stream's checkpoint has no {_TIME}.")
        return cls(stored[_TIME], stored.get(_BEGIN))

    def stored(self) -> dict[str, str]:
        """The offset as a checkpoint stores it."""
        return {_TIME: self.time} if self.begin is None else {_TIME: self.time, _BEGIN: self.begin}


@dataclass(frozen=True)
class StreamQuery:
    """The query of a stream. Picklable.

    Attributes:
        storage: the table's storage.
        settings: options of every batch.
        source: start offset and batch limits.
    """

    storage: Storage
    settings: ReadOptions
    source: SourceOptions

    @classmethod
    def from_options(cls, storage: Storage, options: Mapping[str, Any]) -> Self:
        """The stream that the options describe.

        Raises:
            ConfigError: an option is wrong, or applies only to a query of one range or one time.
            UnsupportedFeatureError: an option is not supported.
        """
        check_stream_options(options)
        incremental = str(options.get(_TYPE_KEY, "")).lower() == "incremental"
        given = {**options, _BEGIN_KEY: "earliest"} if incremental else options
        settings = ReadOptions.from_options(given, timeline_zone(storage))
        return cls(storage, settings, SourceOptions.from_options(options))

    @property
    def is_cdc(self) -> bool:
        """Whether the stream returns changes instead of rows."""
        return self.settings.query_type == "incremental" and self.settings.incremental_format == "cdc"

    @property
    def limits(self) -> BatchLimits:
        """The largest batch that the options allow."""
        return BatchLimits(self.source.max_commits, self.source.max_bytes)

    @property
    def starts_at_latest(self) -> bool:
        """Whether a new stream begins after the current commits, so that a restart could begin at another commit."""
        return self.source.start.lower() == _FROM_THE_LATEST

    def start(self) -> str:
        """The time after which a new stream begins."""
        start = self.source.start
        if start.lower() == "earliest":
            return FIRST
        if self.starts_at_latest:
            return self.newest() or FIRST
        return normalise_instant(start, _START_KEY, timeline_zone(self.storage))

    def newest(self) -> str | None:
        """The newest time that a batch can end at; None without completed writes."""
        return newest_readable(load_state(self.storage), self._of_offsets())

    def end_after(self, begin: str, limits: BatchLimits, until: str | None = None) -> str:
        """The end of the batch that begins after ``begin``; ``begin`` itself if there is nothing new.

        Args:
            begin: end of the batch before it, or the start of the stream.
            limits: limits of the batch.
            until: the latest end; None for the newest commit.

        Raises:
            CorruptTableError: a new commit cannot be read.
        """
        bound = _bound(begin)
        end = next_offset(load_state(self.storage), bound, limits, self._of_offsets(), until)
        return begin if end == bound else end

    def batch_settings(self, begin: str, end: str) -> ReadOptions:
        """The settings of the query for the commits after ``begin`` up to ``end``."""
        settings = waiting(self.settings)
        return replace(settings, query_type="incremental", begin=_bound(begin), end=end)

    def _of_offsets(self) -> ReadOptions:
        """Changes are ordered by requested times in every table version."""
        return replace(self.settings, incremental_table_version=6) if self.is_cdc else self.settings

    @staticmethod
    def batch_options(options: Mapping[str, Any], begin: str, end: str) -> dict[str, Any]:
        """The stream's options, changed to query the commits after ``begin`` up to ``end``."""
        return {
            _HOLES_KEY: "BLOCK",
            **{key: value for key, value in options.items() if not _is_default_policy(key, value)},
            _TYPE_KEY: "incremental",
            _BEGIN_KEY: _bound(begin),
            _END_KEY: end,
        }


def check_stream_options(options: Mapping[str, Any]) -> None:
    """Refuse options that do not apply to a stream, which has a start and no other bounds.

    Raises:
        ConfigError: such an option is given.
    """
    for key in options:
        option = find_option(key)
        if option is not None and option.key in _OF_ONE_QUERY and options[key] is not None:
            raise ConfigError(
                f"{key} belongs to a query of one range or one time; a stream begins at {_START_KEY} and has no end."
            )
    if str(options.get(_TYPE_KEY, "")).lower() == "read_optimized":
        raise ConfigError(
            f"{_TYPE_KEY}=read_optimized does not apply to a stream, which reads the rows of commits, those in log "
            "files among them."
        )


def _is_default_policy(key: str, value: Any) -> bool:
    """Whether the option is the policy that fails at a hollow commit; a stream waits for that commit instead."""
    option = find_option(key)
    return option is not None and option.key == _HOLES_KEY and str(value).upper() == "FAIL"


def _bound(time: str) -> str:
    """An offset as the begin of a range."""
    return time if time.strip("0") else EARLIEST
