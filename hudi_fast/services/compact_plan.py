"""Plan a compaction: triggers, strategies and selected file slices.

Plans a compaction: selects the file slices, and the log files in them, to merge into new base files.

::

    the table's lock ─► due? ─► partitions ─► slices with log files ─► strategies ─► <instant>.compaction.requested

A plan names its log files, so writers continue while it is pending: later log files belong to the slice that begins at
the compaction's instant. A group is in one pending compaction at most, and a plan without slices is not written.

Sources: ``ScheduleCompactionActionExecutor``, ``BaseHoodieCompactionPlanGenerator``, ``CompactionStrategy`` (1.2.0).

Compaction strategies: select the partitions and the slices to compact, and their order.

A strategy is a pair of functions; several strategies are applied one after the other. Their names are the class names
of Apache Hudi, with or without package::

    hoodie.compaction.strategy ─► strategies_of ─► filter_partitions ─► (plan the slices) ─► filter_operations

Sources: the classes of ``org.apache.hudi.table.action.compact.strategy``, release 1.2.0.

Triggers of table services: by the number of delta commits, or by time.

A delta commit counts if it was *completed* after the last compaction was requested: one that began earlier and ended
later wrote log files that this compaction does not have. Before timeline layout 2 completion times are modification
times, which a copy of the table does not keep, so requested times are used instead.

Sources: ``ScheduleCompactionActionExecutor``, ``CompactionUtils``, release 1.2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import pyarrow as pa

from hudi_fast.config.rewrite_options import CompactionOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.services.running import PendingDeletes, file_plan, put_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instants import Instant, State, Timeline, instant_from_ms, ms_from_instant
from hudi_fast.timeline.service_plans import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, LogFile
from hudi_fast.view.pending import operation_of, read_compaction_plan
from hudi_fast.view.slices import FileSlice, by_partition, latest_slices
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover

__all__ = [
    "ScheduledCompaction",
    "Strategy",
    "compactable_slices",
    "compaction_is_due",
    "filter_operations",
    "filter_partitions",
    "last_compaction",
    "log_compaction_is_due",
    "pending_compactions",
    "plan_compaction",
    "put_compaction",
    "recovered_state",
    "require_merge_on_read",
    "schedule_compaction",
    "strategies_of",
    "written_since",
]

Operations = list[CompactionOperation]


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy.

    Attributes:
        name: its class in Apache Hudi, without package.
        partitions: selects partitions, from (options, partition paths).
        operations: selects and orders operations, from (options, operations).
    """

    name: str
    partitions: Callable[[CompactionOptions, list[str]], list[str]]
    operations: Callable[[CompactionOptions, Operations], Operations]


def strategies_of(options: CompactionOptions) -> tuple[Strategy, ...]:
    """The strategies of ``hoodie.compaction.strategy``.

    Raises:
        ConfigError: the pattern of partition paths is not a regular expression.
        UnsupportedFeatureError: a class that Apache Hudi does not have.
    """
    found: list[Strategy] = []
    known = {strategy.name: strategy for strategy in _strategies()}
    for name in options.strategies:
        strategy = known.get(name.rpartition(".")[2])
        if strategy is None:
            raise UnsupportedFeatureError(
                f"hoodie.compaction.strategy={name} is not supported; supported: {', '.join(known)}."
            )
        found.append(strategy)
    _pattern(options)
    return tuple(found)


def filter_partitions(strategies: Sequence[Strategy], options: CompactionOptions, partitions: list[str]) -> list[str]:
    """The partitions that all strategies select, in the order of the last one."""
    for strategy in strategies:
        partitions = strategy.partitions(options, partitions)
    return partitions


def filter_operations(strategies: Sequence[Strategy], options: CompactionOptions, operations: Operations) -> Operations:
    """The operations that all strategies select, in the order of the last one."""
    for strategy in strategies:
        operations = strategy.operations(options, operations)
    return operations


def _strategies() -> tuple[Strategy, ...]:
    return (
        Strategy("UnBoundedCompactionStrategy", _all_partitions, _all_operations),
        Strategy("BoundedIOCompactionStrategy", _all_partitions, _within_io),
        Strategy("LogFileSizeBasedCompactionStrategy", _all_partitions, _largest_logs),
        Strategy("LogFileNumBasedCompactionStrategy", _all_partitions, _max_logs),
        Strategy("DayBasedCompactionStrategy", _newest_days, _by_day),
        Strategy("BoundedPartitionAwareCompactionStrategy", _recent_days, _of_recent_days),
        Strategy("UnBoundedPartitionAwareCompactionStrategy", _older_days, _of_older_days),
        Strategy("PartitionRegexBasedCompactionStrategy", _matching, _all_operations),
    )


# ---- by size


def _all_partitions(options: CompactionOptions, partitions: list[str]) -> list[str]:
    return partitions


def _all_operations(options: CompactionOptions, operations: Operations) -> Operations:
    return operations


def _within_io(options: CompactionOptions, operations: Operations) -> Operations:
    """As many operations as fit into the bound; the last one may exceed it."""
    left, chosen = float(options.target_io_mb), []
    for one in operations:
        if left <= 0:
            break
        chosen.append(one)
        left -= one.metrics["TOTAL_IO_MB"]
    return chosen


def _largest_logs(options: CompactionOptions, operations: Operations) -> Operations:
    return _within_io(options, _descending(operations, "TOTAL_LOG_FILES_SIZE", options.log_size_threshold))


def _max_logs(options: CompactionOptions, operations: Operations) -> Operations:
    return _within_io(options, _descending(operations, "TOTAL_LOG_FILES", options.log_count_threshold))


def _descending(operations: Operations, metric: str, threshold: int) -> Operations:
    enough = [one for one in operations if one.metrics[metric] >= threshold]
    return sorted(enough, key=lambda one: one.metrics[metric], reverse=True)


# ---- by day


def _newest_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    return sorted(partitions, key=_day, reverse=True)[: options.day_partitions]


def _by_day(options: CompactionOptions, operations: Operations) -> Operations:
    days = set(_newest_days(options, list({one.partition_path for one in operations})))
    return _within_io(options, _newest_first([one for one in operations if one.partition_path in days]))


def _recent_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    earliest = _earliest(options)
    return [name for name in sorted(partitions, key=_day, reverse=True) if _day(name) >= earliest]


def _of_recent_days(options: CompactionOptions, operations: Operations) -> Operations:
    earliest = _earliest(options)
    return _newest_first([one for one in operations if _day(one.partition_path) >= earliest])


def _older_days(options: CompactionOptions, partitions: list[str]) -> list[str]:
    earliest = _earliest(options)
    return [name for name in partitions if _day(name) < earliest]


def _of_older_days(options: CompactionOptions, operations: Operations) -> Operations:
    earliest = _earliest(options)
    return [one for one in operations if _day(one.partition_path) < earliest]


def _newest_first(operations: Operations) -> Operations:
    return sorted(operations, key=lambda one: _day(one.partition_path), reverse=True)


def _earliest(options: CompactionOptions) -> date:
    return date.today() - timedelta(days=options.day_partitions)


def _day(partition: str) -> date:
    """The day of a partition path ``yyyy/MM/dd``, hive style or not."""
    text = "/".join(part.rpartition("=")[2] for part in partition.split("/"))
    try:
        return datetime.strptime(text, "%Y/%m/%d").date()
    except ValueError as error:
        raise ConfigError(
            f"The day-based compaction strategies need partitions like 2024/01/31; found {partition!r}. Choose another "
            "hoodie.compaction.strategy."
        ) from error


# ---- by name


def _matching(options: CompactionOptions, partitions: list[str]) -> list[str]:
    pattern = _pattern(options)
    return [name for name in partitions if pattern.fullmatch(name)]


def _pattern(options: CompactionOptions) -> re.Pattern[str]:
    try:
        return re.compile(options.partition_regex)
    except re.error as error:
        raise ConfigError(
            f"hoodie.compaction.partition.path.regex={options.partition_regex!r} is not a regular expression: {error}."
        ) from error


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


_LONGEST_WRITE_MS = 24 * 3600 * 1000
"""Longest duration of a write that Apache Hudi assumes when it looks for completion times in the archive."""


@dataclass(frozen=True, slots=True)
class ScheduledCompaction:
    """A compaction or log compaction that is planned.

    Attributes:
        instant: its requested time; empty for a plan that is not on the timeline.
        plan: the slices.
        action: ``compaction`` or ``logcompaction``.
    """

    instant: str
    plan: CompactionPlan
    action: str = "compaction"

    @property
    def file_groups(self) -> int:
        """Number of file groups that it merges."""
        return len(self.plan.operations)

    def to_arrow(self) -> pa.Table:
        """One row for each file slice: partition, file_id, base_file (null without one), log_files."""
        rows = [
            {
                "partition": one.partition_path,
                "file_id": one.file_id,
                "base_file": one.base_file,
                "log_files": list(one.log_files),
            }
            for one in self.plan.operations
        ]
        return pa.Table.from_pylist(rows, schema=_PLAN_SCHEMA)


_PLAN_SCHEMA = pa.schema(
    {
        "partition": pa.string(),
        "file_id": pa.string(),
        "base_file": pa.string(),
        "log_files": pa.list_(pa.string()),
    }
)


def schedule_compaction(session: TableSession, if_due: bool, dry_run: bool = False) -> ScheduledCompaction | None:
    """Put a compaction on the timeline.

    Args:
        session: the call; its settings have the strategies, their bounds and the trigger.
        if_due: ask the trigger first.
        dry_run: only return the plan, without an instant; nothing is written.

    Returns:
        The plan; None when it is not due, or there is nothing to compact, and then nothing is written.

    Raises:
        ConfigError: the table is not MERGE_ON_READ, or the strategy does not fit its partitions.
        UnsupportedFeatureError: an unknown strategy.
    """
    if dry_run:
        looked = _due_plan(session, session.latest(), if_due)
        return None if looked is None else replace(looked, instant="")
    with session.locked() as state:
        require_merge_on_read(state)
        state = recovered_state(session)
        planned = _due_plan(session, state, if_due)
        if planned is None:
            return None
        file_plan(session)  # refuses unsupported tables
        put_compaction(session, state, planned)
        return planned


def _due_plan(session: TableSession, state: TableState, if_due: bool) -> ScheduledCompaction | None:
    """The plan of a compaction that begins now; None when it is not due, or there is nothing to compact."""
    require_merge_on_read(state)
    now, settings = session.next_time(), session.settings
    if if_due and not compaction_is_due(state.config, state.timeline, now, settings.compaction):
        return None
    plan = plan_compaction(state, now, settings)
    return ScheduledCompaction(now, plan) if plan.operations else None


def put_compaction(session: TableSession, seen: TableState, planned: ScheduledCompaction) -> None:
    """Put the plan of a compaction or log compaction on the timeline, as :func:`put_plan` says."""
    instant = Instant(planned.instant, planned.action, State.REQUESTED)
    files = ((one.partition_path, one.file_id, one.log_files) for one in planned.plan.operations)
    put_plan(session, seen, instant, encode_compaction_plan(planned.plan), files)


def plan_compaction(state: TableState, now: str, settings: Settings) -> CompactionPlan:
    """The plan of a compaction that begins at ``now``: a pure function of the table's files and timeline.

    Raises:
        ConfigError: the strategy does not fit the table's partitions.
        UnsupportedFeatureError: an unknown strategy.
    """
    options = settings.compaction
    strategies = strategies_of(options)
    candidates = _partitions(state, options.incremental)
    partitions = filter_partitions(strategies, options, candidates)
    busy: set[str] = set()
    operations = [
        operation_of(slice_, settings.write.sizing.max_file_size)
        for slice_ in compactable_slices(state, partitions, now, state.view.pending_compactions, busy)
    ]
    chosen = filter_operations(strategies, options, operations)
    kept = {(one.partition_path, one.file_id) for one in chosen}
    left_out = {one.partition_path for one in operations if (one.partition_path, one.file_id) not in kept}
    missing = (set(candidates) - set(partitions)) | left_out | busy
    return CompactionPlan(tuple(chosen), missing_partitions=tuple(sorted(missing)))


def compactable_slices(
    state: TableState, partitions: Sequence[str], now: str, pending: Iterable[tuple[str, str]], busy: set[str]
) -> Iterator[FileSlice]:
    """The newest slice of each group with its log files that were complete before ``now``; skips slices without any.

    Slices of another pending service, or with files that a pending rollback will delete, are skipped, too.

    Args:
        state: the table as it was pinned.
        partitions: the partitions to search.
        now: instant of the service.
        pending: groups of pending plans, in addition to the groups of a pending clustering.
        busy: receives the partitions of such groups.
    """
    view, pending_deletes = state.view, PendingDeletes(state)
    taken = {*pending, *view.pending_groups}
    for found in by_partition(view, partitions, lambda name: latest_slices(view, name)):
        for slice_ in found:
            logs = tuple(log for log in slice_.log_files if _was_complete(state, log, now))
            if not logs:
                continue
            if (slice_.partition, slice_.file_id) in taken or pending_deletes.has(slice_):
                busy.add(slice_.partition)
                continue
            yield replace(slice_, log_files=logs)


def pending_compactions(state: TableState) -> list[ScheduledCompaction]:
    """Pending compactions, abandoned ones included, oldest first."""
    return [
        ScheduledCompaction(instant.requested, read_compaction_plan(state.storage, state.config, instant))
        for instant in state.timeline.pending_compactions
    ]


def require_merge_on_read(state: TableState) -> None:
    """Refuse tables that have no log files to compact.

    Raises:
        ConfigError: the table is COPY_ON_WRITE.
    """
    if not state.config.is_mor:
        raise ConfigError(
            f"Can only compact table of type MERGE_ON_READ and not {state.config.table_type}: {state.storage.uri}."
        )


def recovered_state(session: TableSession) -> TableState:
    """The state after failed writes, if any are pending, were rolled back; under the table's lock."""
    timeline = session.timeline
    rollbacks = any(instant.action == "rollback" for instant in timeline.pending())
    return recover(session) if rollbacks or timeline.pending_writes else session.state


def _was_complete(state: TableState, log: LogFile, now: str) -> bool:
    """Whether the write of a log file ended before ``now``. True where its name does not say: its block headers do."""
    if state.config.version < LOGS_NAMED_BY_WRITE:
        return True
    completion = state.timeline.completion_of(log.instant)
    return completion is None or completion < now


def _written_and_archived_since(state: TableState, last: Instant) -> set[str]:
    """Partitions of archived writes that began before the last compaction and ended after it was planned."""
    if state.config.layout_version < 2:
        return set()
    began = ms_from_instant(last.requested, state.config.timezone) - _LONGEST_WRITE_MS
    archive = ArchivedTimeline(state.storage, state.config)
    late = [
        one
        for one in archive.instants(instant_from_ms(began, state.config.timezone), actions=("deltacommit",))
        if (one.completion or "") > last.requested
    ]
    return {
        partition
        for one in late
        for row in archive.read(one.requested, one.requested)
        for partition in decode_commit_metadata(row.metadata or b"").partition_to_write_stats
    }


def _partitions(state: TableState, incremental: bool) -> list[str]:
    """All partitions, or only partitions written since the last compaction was planned, or skipped by its plan."""
    everything = state.view.lister.partitions()
    last = last_compaction(state.timeline, requested_counts=True)
    if not incremental or last is None:
        return everything
    try:
        planned = Instant(last.requested, "compaction", State.REQUESTED)
        wanted = set(read_compaction_plan(state.storage, state.config, planned).missing_partitions)
    except CorruptTableError:  # its plan is missing: the table was cleaned up, or restored
        return everything
    for instant in written_since(state.config, state.timeline, last):
        if instant.action != "commit":
            wanted |= set(state.commits.read(state.storage, state.config, instant).partition_to_write_stats)
    wanted |= _written_and_archived_since(state, last)
    return [name for name in everything if name in wanted]
