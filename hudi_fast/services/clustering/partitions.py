"""Selects the partitions of a clustering plan.

::

    incremental: written since the last completed clustering, or left out by its plan   (else: all)
        ─► selected by name, or by a pattern ─► filter mode ─► in order of their names

Partitions of the incremental set that are left out are stored in the plan, as in Apache Hudi; the next plan begins with
them.

Sources: ``ClusteringPlanPartitionFilter``, ``PartitionAwareClusteringPlanStrategy``,
``BaseTableServicePlanActionExecutor`` (1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hudi_fast.config.clustering_options import ClusteringOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.services.compaction.triggers import written_since
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.instant import Instant, State, instant_from_ms
from hudi_fast.timeline.service_plans import decode_requested_replace
from hudi_fast.view.table_state import TableState, read_commit

__all__ = [
    "PlannedPartitions",
    "filter_partitions",
    "last_completed_clustering",
    "select_partitions",
]

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
            wanted |= set(read_commit(state.storage, state.config, instant).partition_to_write_stats)
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
