"""Reads the files and timelines that a repair examines, in an order that never mistakes a live write for a leftover.

::

    data files ─► files below .hoodie ─► the timeline with its bodies ─► the archive

A writer puts its instant on the timeline before it makes a file. So the instant of a listed file is on the timeline
that is read later, or was removed for good.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.locking.machine import is_held
from hudi_fast.metadata_table.table import MetadataTable, examine_metadata
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.heartbeat import HeartbeatRule
from hudi_fast.timeline.instant import Instant, State, comparable_action, parse_instant_file
from hudi_fast.view.listing import StorageLister

__all__ = ["Inspection", "InstantKey", "inspect_table"]

_THREADS = 8

InstantKey = tuple[str, str]
"""Requested time and comparable action."""


@dataclass(frozen=True)
class Inspection:
    """The files and timelines of a table at the time of a repair.

    Attributes:
        storage: its files.
        config: its configuration.
        now_ms: milliseconds since the epoch.
        heartbeat: when a heartbeat expires.
        busy: whether another process of this machine holds the table's lock: pending writes may be live.
        partitions: partition path to its files, of any kind.
        internal: files and folders below ``.hoodie``, including the metadata table.
        timeline: the active timeline.
        states: for each instant of it, state to the file of that state.
        metadata: the metadata table; None without one, or when it cannot be opened.
        metadata_problem: why it cannot be trusted; None when it can, or without one.
    """

    storage: Storage
    config: TableConfig
    now_ms: int
    heartbeat: HeartbeatRule
    busy: bool
    partitions: Mapping[str, list[FileStat]]
    internal: list[FileStat]
    timeline: Timeline
    states: Mapping[InstantKey, Mapping[State, FileStat]]
    metadata: MetadataTable | None
    metadata_problem: str | None

    def age_ms(self, entry: FileStat) -> int:
        """Milliseconds since a file was last written."""
        return self.now_ms - entry.modified_ms

    def files_of(self, instant: Instant) -> Mapping[State, FileStat]:
        """The files of an instant by state."""
        return self.states.get((instant.requested, comparable_action(instant.action)), {})


def inspect_table(storage: Storage, heartbeat: HeartbeatRule, locked: bool = False) -> Inspection:
    """Read the files and timelines of a table; nothing is written.

    Args:
        storage: the table's storage.
        heartbeat: when a heartbeat expires.
        locked: whether the caller holds the table's lock.

    Raises:
        TableNotFoundError: there is no table.
        CorruptTableError: ``hoodie.properties`` is damaged.
    """
    config = TableConfig.from_properties(load_properties(storage), storage.uri)
    lister = StorageLister(storage)
    busy = not locked and is_held(storage)
    names = lister.partitions()
    with ThreadPool(_THREADS) as pool:
        partitions = dict(zip(names, pool.map(lister.files, names), strict=True))
    internal = storage.list_dir(".hoodie", recursive=True)
    timeline = load_timeline(storage, config)
    metadata, problem = None, None
    if config.metadata_partitions:
        metadata, problem = examine_metadata(storage, config, timeline)
    return Inspection(
        storage,
        config,
        time.time_ns() // 1_000_000,
        heartbeat,
        busy or (not locked and is_held(storage)),
        partitions,
        internal,
        timeline,
        _states(config, storage.list_dir(config.timeline_folder)),
        metadata,
        problem,
    )


def _states(config: TableConfig, entries: list[FileStat]) -> dict[InstantKey, dict[State, FileStat]]:
    found: dict[InstantKey, dict[State, FileStat]] = {}
    for entry in entries:
        instant = None if entry.is_dir else parse_instant_file(entry.name, config.layout_version)
        if instant is not None:
            found.setdefault((instant.requested, comparable_action(instant.action)), {})[instant.state] = entry
    return found
