"""What a repair examines, and what it finds.

Findings of a repair: one value per problem, and the results.

Planning makes :class:`Finding` values without changing anything. Executing a plan removes ``repairable`` findings; the
others stay, with advice.

Reads the files and timelines that a repair examines, in an order that never mistakes a live write for a leftover.

::

    data files ─► files below .hoodie ─► the timeline with its bodies ─► the archive

A writer puts its instant on the timeline before it makes a file. So the instant of a listed file is on the timeline
that is read later, or was removed for good.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict

import pyarrow as pa

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.locking.machine import is_held
from hudi_fast.metadata_table.table import MetadataTable, examine_metadata
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.heartbeat import HeartbeatRule
from hudi_fast.timeline.instants import Instant, State, Timeline, comparable_action, load_timeline, parse_instant_file
from hudi_fast.values import dataclass
from hudi_fast.view.listing import StorageLister

__all__ = ["FINDING_KINDS", "Finding", "Inspection", "InstantKey", "RepairPlan", "RepairResult", "inspect_table"]

FINDING_KINDS = (
    "lost content",
    "lost body",
    "orphan file",
    "failed delete",
    "failed write",
    "dangling instant",
    "markers",
    "temporary file",
    "properties backup",
    "heartbeat",
    "other timeline",
    "lock",
    "metadata table",
)
"""All kinds of findings, in the order in which they are listed."""

_SCHEMA = pa.schema(
    {
        "kind": pa.string(),
        "instant": pa.string(),
        "path": pa.string(),
        "bytes": pa.int64(),
        "repairable": pa.bool_(),
        "advice": pa.string(),
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One file, folder or instant that does not belong to the table.

    Attributes:
        kind: one of :data:`FINDING_KINDS`.
        instant: requested time of its instant; empty for none.
        path: file or folder, relative to the table.
        bytes: size of that file; 0 for folders.
        repairable: whether repairing removes it.
        advice: the reason, and what a repair does or the user should do.
    """

    kind: str
    instant: str
    path: str
    bytes: int
    repairable: bool
    advice: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The findings of an inspection.

    Attributes:
        findings: by kind, instant and path.
    """

    findings: tuple[Finding, ...] = ()

    @property
    def repairable(self) -> tuple[Finding, ...]:
        """The findings that repairing removes."""
        return tuple(one for one in self.findings if one.repairable)

    @property
    def bytes(self) -> int:
        """Size of the files that repairing removes."""
        return sum(one.bytes for one in self.repairable)

    def to_arrow(self) -> pa.Table:
        """One row per finding: kind, instant, path, bytes, repairable, advice."""
        return pa.Table.from_pylist([asdict(one) for one in self.findings], _SCHEMA)


@dataclass(frozen=True, slots=True)
class RepairResult(ShownResult):
    """The result of a repair.

    Attributes:
        instant: the newest instant that it put on the timeline (a rollback); empty for none.
        repaired: removed findings.
        left: remaining findings: not repairable, or files that could not be deleted.
        files_deleted: number of data files deleted as orphans or failed deletes.
        bytes_deleted: size of all deleted files, in bytes.
        rolled_back: requested times of failed writes that were rolled back.
        seconds: duration.
    """

    instant: str
    repaired: tuple[Finding, ...]
    left: tuple[Finding, ...]
    files_deleted: int
    bytes_deleted: int
    rolled_back: tuple[str, ...]
    seconds: float

    def to_arrow(self) -> pa.Table:
        """The remaining findings, with the columns of :meth:`RepairPlan.to_arrow`."""
        return RepairPlan(self.left).to_arrow()


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
