"""Plans a clustering: selects the file slices to rewrite together, and the number of new file groups.

::

    the table's lock ─► due? ─► partitions ─► slices without another pending service ─► groups
        ─► <instant>.clustering.requested     (before table version 8: <instant>.replacecommit.requested)

Depending on its options, a write that would change rows of a planned group is refused or makes the clustering fail.
Inserts use other groups. A plan without groups is not written.

Sources: ``ClusteringPlanActionExecutor``, ``ClusteringPlanStrategy``, ``PartitionAwareClusteringPlanStrategy``,
``CommitBasedClusteringPlanStrategy`` (1.2.0).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import pyarrow as pa

from hudi_fast.config.rewrite_options import ClusteringOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, CorruptTableError, UnsupportedFeatureError
from hudi_fast.index.buckets import has_hashing
from hudi_fast.services.clustering.ordering import are_buckets, one_bucket_to_a_group, require_sortable
from hudi_fast.services.clustering.strategies import CONSISTENT, PlanStrategy, parameters_of, plan_strategy_of
from hudi_fast.services.compact_plan import recovered_state, written_since
from hudi_fast.services.running import PendingDeletes, file_plan, put_plan
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.instants import Instant, State, Timeline, instant_from_ms, read_requested_body
from hudi_fast.timeline.service_plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    RequestedReplace,
    decode_requested_replace,
    encode_requested_replace,
)
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.slices import FileSlice, by_partition, latest_slices
from hudi_fast.view.table_state import TableState, read_commit
from hudi_fast.writing.output_file import carried_schema
from hudi_fast.writing.session import TableSession
from hudi_fast.writing.settings import Settings

__all__ = [
    "ScheduledClustering",
    "clustering_action",
    "clustering_is_due",
    "filter_partitions",
    "group_slices",
    "plan_clustering",
    "planned_group",
    "schedule_clustering",
    "waiting_clusterings",
]

_CHECKPOINT = "clustering.commit.checkpoint"
_Groups = tuple[tuple[FileSlice, ...], int]


@dataclass(frozen=True, slots=True)
class ScheduledClustering:
    """A planned clustering.

    Attributes:
        instant: its requested time; empty for a plan that is not on the timeline.
        plan: the groups.
    """

    instant: str
    plan: ClusteringPlan

    @property
    def file_groups(self) -> int:
        """Number of file groups that it would replace."""
        return sum(len(group.slices) for group in self.plan.groups)

    def to_arrow(self) -> pa.Table:
        """One row for each file slice: group (int32), partition, file_id, base_file, log_files, outputs (int32)."""
        rows = [
            {
                "group": number,
                "partition": one.partition_path,
                "file_id": one.file_id,
                "base_file": one.base_path.rpartition("/")[2] or None,
                "log_files": [path.rpartition("/")[2] for path in one.log_paths],
                "outputs": group.output_groups,
            }
            for number, group in enumerate(self.plan.groups)
            for one in group.slices
        ]
        return pa.Table.from_pylist(rows, schema=_PLAN_SCHEMA)


_PLAN_SCHEMA = pa.schema(
    {
        "group": pa.int32(),
        "partition": pa.string(),
        "file_id": pa.string(),
        "base_file": pa.string(),
        "log_files": pa.list_(pa.string()),
        "outputs": pa.int32(),
    }
)


def schedule_clustering(session: TableSession, dry_run: bool = False) -> ScheduledClustering | None:
    """Put a clustering on the timeline.

    Args:
        session: the call; its settings have the strategies, their bounds and the trigger.
        dry_run: only return the plan; nothing is written.

    Returns:
        The plan; None when it is not due, or there is nothing to cluster, and then nothing is written.

    Raises:
        ConfigError: an option does not fit the table.
        UnsupportedFeatureError: an unknown strategy, or a table with a bucket index and no sort columns.
    """
    storage, settings = session.storage, session.settings
    plan_strategy_of(settings.clustering)
    if has_hashing(storage):
        raise UnsupportedFeatureError(
            f"{storage.uri} is a table of consistent hashing: services.cluster() splits and merges its buckets "
            "immediately, without a plan that another process could execute."
        )
    if dry_run:
        plan = _feasible_plan(session)
        return None if plan is None else ScheduledClustering("", plan)
    with session.locked():
        state = recovered_state(session)
        plan = _feasible_plan(session)
        if plan is None:
            return None
        now = session.next_time()
        body = encode_requested_replace(RequestedReplace("CLUSTER", plan, {}))
        files = (
            (one.partition_path, one.file_id, [path.rpartition("/")[2] for path in one.log_paths])
            for group in plan.groups
            for one in group.slices
        )
        put_plan(session, state, Instant(now, clustering_action(state), State.REQUESTED), body, files)
        return ScheduledClustering(now, plan)


def plan_clustering(state: TableState, settings: Settings, now_ms: int) -> ClusteringPlan | None:
    """The plan of a clustering: a function of the table's files and timeline; None when there is nothing to cluster.

    Args:
        state: the pinned table.
        settings: strategies and their bounds.
        now_ms: milliseconds since the epoch; a filter mode uses the hour.

    Raises:
        ConfigError: an option does not fit the table.
        UnsupportedFeatureError: an unknown strategy, or buckets without sort columns.
    """
    options = settings.clustering
    strategy = plan_strategy_of(options)
    extra: dict[str, str] = {}
    if strategy.grouping == "commits":
        found, checkpoint = _of_commits(state, settings)
        found = _buckets_apart(state, settings, found)
        missing: set[str] = set()
        extra = {_CHECKPOINT: checkpoint}
    else:
        planned = select_partitions(state, options, strategy.partition_filter, now_ms)
        busy: set[str] = set()
        by_partition = list(_partition_groups(state, planned.chosen, strategy, settings, busy))
        found = _buckets_apart(state, settings, [one for _, groups in by_partition for one in groups.groups])
        missing = {name for name, groups in by_partition if groups.partial} | set(planned.missing) | busy
        missing |= {slices[0].partition for slices, _ in found[options.max_groups :]}
    chosen = found[: options.max_groups]
    if not chosen:
        return None
    groups = tuple(_planned(state, slices, outputs, settings) for slices, outputs in chosen)
    return ClusteringPlan(
        groups,
        strategy.execution,
        parameters_of(options),
        extra,
        missing_partitions=tuple(sorted(missing)) if options.incremental else (),
    )


def clustering_is_due(storage: Storage, config: TableConfig, timeline: Timeline, options: ClusteringOptions) -> bool:
    """Whether enough writes were completed since the last clustering, for the enabled mode; True without any mode.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        options: the modes, and their bounds.
    """
    enough, writes = options.max_commits, timeline.writes()
    if len(writes) < enough or not enough:
        return not enough
    known = [instant for instant, _ in pending_clusterings(storage, config, timeline)]
    completed = last_completed_clustering(storage, config, timeline)
    last = max((one.requested for one in (*known, completed) if one is not None), default="")
    return sum(one.requested > last for one in writes) >= enough


def waiting_clusterings(state: TableState) -> list[ScheduledClustering]:
    """Pending clusterings, abandoned ones included, oldest first."""
    found = pending_clusterings(state.storage, state.config, state.timeline)
    return [ScheduledClustering(instant.requested, plan) for instant, plan in found]


def clustering_action(state: TableState) -> str:
    """The action of a pending clustering on the table's timeline."""
    return "clustering" if state.config.layout_version > 1 else "replacecommit"


# ---- groups


def _feasible_plan(session: TableSession) -> ClusteringPlan | None:
    """The plan if it is due; refuses one that could not be executed, because it would block writers."""
    state, settings = session.state, session.settings
    if not clustering_is_due(state.storage, state.config, state.timeline, settings.clustering):
        return None
    plan = plan_clustering(state, settings, time.time_ns() // 1_000_000)
    if plan is not None:
        require_sortable(carried_schema(file_plan(session)), settings.clustering.sort_columns)
    return plan


def _partition_groups(
    state: TableState, names: Sequence[str], strategy: PlanStrategy, settings: Settings, busy: set[str]
) -> Iterator[tuple[str, _PartitionGroups]]:
    options, size = settings.clustering, settings.write.sizing.max_file_size
    if strategy.grouping == CONSISTENT:
        raise UnsupportedFeatureError(
            f"{state.storage.uri} does not use consistent hashing, so it has no buckets to split and merge. Set "
            "another hoodie.clustering.plan.strategy.class."
        )
    pending_deletes = PendingDeletes(state)
    found = by_partition(state.view, names, lambda one: latest_slices(state.view, one))
    for name, slices in zip(names, found, strict=True):
        free = [one for one in slices if _is_free(pending_deletes, one, busy)]
        if strategy.small_only:
            limit = options.small_file_limit
            free = [one for one in free if (0 if one.base_file is None else one.base_file.weight) < limit]
        if strategy.grouping == "single":
            yield name, _one_to_a_group(free, options)
        elif strategy.grouping == "schema" and not options.copy_evolved:
            yield name, group_slices(free, options, size, cache(partial(_columns_of, state.storage)))
        else:
            yield name, group_slices(free, options, size)


def _is_free(pending_deletes: PendingDeletes, slice_: FileSlice, busy: set[str]) -> bool:
    """Whether no pending delete or other service has the group; adds the partition of a taken group to ``busy``."""
    group, view = (slice_.partition, slice_.file_id), pending_deletes.state.view
    planned = group in view.pending_groups or group in view.pending_compactions or group in view.pending_log_compactions
    taken = planned or pending_deletes.has(slice_)
    if taken:
        busy.add(slice_.partition)
    return not taken


def _columns_of(storage: Storage, slice_: FileSlice) -> str:
    if slice_.base_file is None:
        return ""
    with open_base(storage, slice_.base_file) as reader:
        return str(reader.schema.remove_metadata())


def _of_commits(state: TableState, settings: Settings) -> tuple[list[_Groups], str]:
    """Groups of the files of writes after an instant, in the order of the writes; and the last examined write.

    Each file group appears once, at its first write, in its present state.
    """
    options, size = settings.clustering, settings.write.sizing.max_file_size
    if not options.earliest_commit:
        raise ConfigError(
            "CommitBasedClusteringPlanStrategy needs hoodie.clustering.plan.strategy.earliest.commit.to.cluster: the "
            "instant after whose writes files are clustered."
        )
    waiting: dict[str, list[FileSlice]] = {}
    now: dict[str, dict[str, FileSlice]] = {}
    pending_deletes = PendingDeletes(state)
    seen: set[tuple[str, str]] = set()
    found: list[_Groups] = []
    last = ""
    for instant in state.timeline.writes():
        if instant.requested <= options.earliest_commit or len(found) >= options.max_groups:
            continue
        last = instant.requested
        if instant.action == "replacecommit":
            continue
        commit = state.commits.read(state.storage, state.config, instant)
        for name, stats in commit.partition_to_write_stats.items():
            if name not in now:
                now[name] = {one.file_id: one for one in latest_slices(state.view, name)}
            new = dict.fromkeys(stat.file_id for stat in stats if (name, stat.file_id) not in seen)
            seen |= {(name, file_id) for file_id in new}
            slices = [now[name][file_id] for file_id in new if file_id in now[name]]
            waiting.setdefault(name, []).extend(one for one in slices if _is_free(pending_deletes, one, set()))
            if _base_bytes(waiting[name]) >= options.max_group_bytes:
                found += group_slices(waiting.pop(name), options, size).groups
    for slices in waiting.values():
        found += group_slices(slices, options, size).groups
    return found, last


def _buckets_apart(state: TableState, settings: Settings, found: list[_Groups]) -> list[_Groups]:
    """The groups; one bucket to each if the table has a simple bucket index."""
    ids = [one.file_id for slices, _ in found for one in slices]
    if not are_buckets(ids, settings.write.index.type):
        return found
    return one_bucket_to_a_group(state.storage.uri, found, settings.clustering)


def _base_bytes(slices: Sequence[FileSlice]) -> int:
    return sum(one.base_file.weight for one in slices if one.base_file is not None)


def _planned(state: TableState, slices: tuple[FileSlice, ...], outputs: int, settings: Settings) -> ClusteringGroup:
    return planned_group(state.storage, slices, outputs, settings.write.sizing.max_file_size)


# ---- groups the file slices of a partition that are rewritten together, by their sizes
#
# The options set the order of slices, largest first by default. A group is closed when the next slice would make it
# too large. A slice without a base file counts with the size of a full one.
#
# Sources: ``PartitionAwareClusteringPlanStrategy``, ``SparkSingleFileSortPlanStrategy``,
# ``SparkStreamCopyClusteringPlanStrategy``, ``ClusteringFileSliceComparator``, ``FileSliceMetricUtils`` (1.2.0).


_MIB = 1 << 20

Kind = Callable[[FileSlice], object]
"""Slices of different kinds never share a group."""


@dataclass(frozen=True, slots=True)
class _PartitionGroups:
    """The groups of one partition: slices with the number of file groups that they become.

    Attributes:
        groups: in the order of the plan.
        partial: whether slices were left over because there were enough groups.
    """

    groups: tuple[tuple[tuple[FileSlice, ...], int], ...]
    partial: bool = False


def group_slices(
    slices: Sequence[FileSlice], options: ClusteringOptions, max_file_size: int, kind: Kind | None = None
) -> _PartitionGroups:
    """Put the slices of a partition into groups of limited size.

    Args:
        slices: the slices that may be clustered.
        options: limits and order.
        max_file_size: bytes assumed for a slice without base file.
        kind: slices of different kinds never share a group; None when any may.
    """
    groups: list[tuple[tuple[FileSlice, ...], int]] = []
    current: list[FileSlice] = []
    total, partial = 0, False
    for slice_ in _ordered(slices, options, max_file_size):
        size = _size(slice_, max_file_size)
        full = total + size > options.max_group_bytes
        if current and (full or (kind is not None and kind(slice_) != kind(current[0]))):
            groups.append((tuple(current), _outputs(total, options)))
            current, total = [], 0
            if len(groups) >= options.max_groups:
                partial = True
                break
        current.append(slice_)
        total += size
    if current:
        groups.append((tuple(current), _outputs(total, options)))
    singles = options.single_groups or bool(options.sort_columns)
    kept = tuple(one for one in groups if len(one[0]) > 1 or one[1] > 1 or singles)
    return _PartitionGroups(kept, partial)


def _one_to_a_group(slices: Sequence[FileSlice], options: ClusteringOptions) -> _PartitionGroups:
    """Each slice becomes one file."""
    groups = tuple(((one,), 1) for one in slices)
    return _PartitionGroups(groups[: options.max_groups], len(groups) > options.max_groups)


def planned_group(storage: Storage, slices: Sequence[FileSlice], outputs: int, max_file_size: int) -> ClusteringGroup:
    """A group in the form of a plan: absolute paths, and metrics for other engines."""
    log_bytes = sum(log.size for one in slices for log in one.log_files)
    base_bytes = sum(one.base_file.weight for one in slices if one.base_file is not None)
    read = (base_bytes + log_bytes) // _MIB
    write = sum(_size(one, max_file_size) for one in slices) // _MIB
    metrics = {
        "TOTAL_LOG_FILES": float(sum(len(one.log_files) for one in slices)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(write),
    }
    planned = tuple(
        ClusteringSlice(
            one.partition,
            one.file_id,
            "" if one.base_file is None else storage.absolute(one.base_file.path),
            tuple(storage.absolute(log.path) for log in one.log_files),
            "" if one.base_file is None or one.base_file.source is None else one.base_file.source.uri,
        )
        for one in slices
    )
    return ClusteringGroup(planned, outputs, metrics)


def _ordered(slices: Sequence[FileSlice], options: ClusteringOptions, max_file_size: int) -> list[FileSlice]:
    def key(slice_: FileSlice) -> tuple[tuple[int, str], ...]:
        began = "" if slice_.base_file is None else slice_.base_file.instant
        values = {"SIZE": (-_size(slice_, max_file_size), ""), "INSTANT_TIME": (0, began)}
        return tuple(values[name] for name in options.slice_order)

    return sorted(slices, key=key)


def _size(slice_: FileSlice, max_file_size: int) -> int:
    return max_file_size if slice_.base_file is None else slice_.base_file.weight


def _outputs(total: int, options: ClusteringOptions) -> int:
    return max(1, -(-total // options.target_bytes))


# ---- partitions to examine
#
# ::
#
#     incremental: written since the last completed clustering, or left out by its plan   (else: all)
#         ─► selected by name, or by a pattern ─► filter mode ─► in order of their names
#
# Partitions of the incremental set that are left out are stored in the plan, as in Apache Hudi; the next plan begins
# with them.
#
# Sources: ``ClusteringPlanPartitionFilter``, ``PartitionAwareClusteringPlanStrategy``,
# ``BaseTableServicePlanActionExecutor`` (1.2.0).

_HOURS = 24


@dataclass(frozen=True, slots=True)
class PlannedPartitions:
    """Partition paths that a plan examines, and paths that it leaves to the next plan."""

    chosen: tuple[str, ...]
    missing: tuple[str, ...] = ()


def select_partitions(state: TableState, options: ClusteringOptions, mode: str, now_ms: int) -> PlannedPartitions:
    """The partitions that a plan examines.

    Args:
        state: the pinned table.
        options: selection, pattern, and arguments of the filter mode.
        mode: the filter mode.
        now_ms: milliseconds since the epoch; ``DAY_ROLLING`` uses the local hour of the day.

    Raises:
        ConfigError: the pattern is not a regular expression.
    """
    everything = state.view.lister.partitions()
    candidates: Sequence[str]
    missing: tuple[str, ...] = ()
    if options.partitions:
        known = set(everything)
        candidates = [name for name in options.partitions if name in known]
        if options.incremental:
            missing = _left_out(state, last_completed_clustering(state.storage, state.config, state.timeline))
    else:
        candidates = _matching(_touched(state, everything) if options.incremental else everything, options)
    hour = int(instant_from_ms(now_ms, "LOCAL")[8:10])
    found = filter_partitions(candidates, options, mode, hour)
    return PlannedPartitions(found.chosen, tuple(dict.fromkeys((*missing, *found.missing))))


def filter_partitions(names: Sequence[str], options: ClusteringOptions, mode: str, hour: int) -> PlannedPartitions:
    """Apply a filter mode; returns the selected names, sorted.

    Args:
        names: candidates.
        options: arguments of the modes.
        mode: ``NONE``, ``RECENT_DAYS``, ``SELECTED_PARTITIONS`` or ``DAY_ROLLING``.
        hour: of the day, 0 to 23.
    """
    ordered = sorted(names)
    missing: tuple[str, ...] = ()
    if mode == "RECENT_DAYS":
        latest = ordered[::-1]
        skip, count = options.skip_partitions, options.lookback_partitions
        missing = tuple(latest[:skip])
        ordered = sorted(latest[skip : skip + count] if count else latest[skip:])
    elif mode == "SELECTED_PARTITIONS":
        begin, end = options.begin_partition, options.end_partition
        ordered = [name for name in ordered if name >= begin and (not end or name <= end)]
    elif mode == "DAY_ROLLING":
        ordered = [name for number, name in enumerate(ordered) if number % _HOURS == hour]
    return PlannedPartitions(tuple(ordered), missing)


def last_completed_clustering(storage: Storage, config: TableConfig, timeline: Timeline) -> Instant | None:
    """The newest completed replace commit of a clustering on the timeline; None without one."""
    replaced = (instant for instant in reversed(timeline.writes()) if instant.action == "replacecommit")
    return next((one for one in replaced if read_commit(storage, config, one).operation_type == "CLUSTER"), None)


def _touched(state: TableState, everything: Sequence[str]) -> Sequence[str]:
    """Partitions that were written since the last clustering was planned or that it left out; all for the first one."""
    last = last_completed_clustering(state.storage, state.config, state.timeline)
    if last is None:
        return everything
    try:
        wanted = set(_left_out(state, last))
    except CorruptTableError:  # its plan is missing: archived, or removed by a restore
        return everything
    for instant in written_since(state.config, state.timeline, last):
        if instant.action != ("commit" if state.config.is_mor else "deltacommit"):  # no compactions
            wanted |= set(state.commits.read(state.storage, state.config, instant).partition_to_write_stats)
    return [name for name in everything if name in wanted]


def _left_out(state: TableState, last: Instant | None) -> tuple[str, ...]:
    """Partitions that the plan of a completed clustering left out."""
    if last is None:
        return ()
    action = "clustering" if state.config.layout_version > 1 else "replacecommit"
    planned = Instant(last.requested, action, State.REQUESTED)
    path = f"{state.config.timeline_folder}/{last.requested}.{action}.requested"
    plan = decode_requested_replace(read_requested_body(state.storage, state.config, planned), path).clustering
    return () if plan is None else plan.missing_partitions


def _matching(names: Sequence[str], options: ClusteringOptions) -> Sequence[str]:
    if not options.partition_regex:
        return names
    try:
        pattern = re.compile(options.partition_regex)
    except re.error as error:
        raise ConfigError(
            f"hoodie.clustering.plan.strategy.partition.regex.pattern={options.partition_regex!r} is not a regular "
            f"expression: {error}."
        ) from error
    return [name for name in names if pattern.fullmatch(name)]
