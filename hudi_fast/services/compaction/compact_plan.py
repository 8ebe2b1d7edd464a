"""Plans a compaction: selects the file slices, and the log files in them, to merge into new base files.

::

    the table's lock ─► due? ─► partitions ─► slices with log files ─► strategies ─► <instant>.compaction.requested

A plan names its log files, so writers continue while it is pending: later log files belong to the slice that begins at
the compaction's instant. A group is in one pending compaction at most, and a plan without slices is not written.

Sources: ``ScheduleCompactionActionExecutor``, ``BaseHoodieCompactionPlanGenerator``, ``CompactionStrategy`` (1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.services.compaction.strategies import filter_operations, filter_partitions, strategies_of
from hudi_fast.services.compaction.triggers import compaction_is_due, last_compaction, written_since
from hudi_fast.services.pending_deletes import PendingDeletes
from hudi_fast.services.running import file_plan, put_plan
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instant import Instant, State, instant_from_ms, ms_from_instant
from hudi_fast.timeline.service_plans import CompactionPlan, encode_compaction_plan
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, LogFile
from hudi_fast.view.pending import operation_of, read_compaction_plan
from hudi_fast.view.slices import FileSlice, by_partition, latest_slices
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings
from hudi_fast.writing.transaction import recover

__all__ = [
    "ScheduledCompaction",
    "compactable_slices",
    "pending_compactions",
    "plan_compaction",
    "put_compaction",
    "recovered_state",
    "require_merge_on_read",
    "schedule_compaction",
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
            wanted |= set(read_commit(state.storage, state.config, instant).partition_to_write_stats)
    wanted |= _written_and_archived_since(state, last)
    return [name for name in everything if name in wanted]
