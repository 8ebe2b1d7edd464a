"""The archived timeline: read, searched, and written from the active one.

The archived timeline: old instants that archiving removed from the active timeline.

::

    layout 1   .commits_.archive.<n>: a log of Avro records, one per state of an instant    log_reader, log_writer
    layout 2   <first>_<last>_<level>.parquet below a manifest, one row per instant         lsm_reader, lsm_writer

The archive is read lazily. Layout 2 reads only files and row groups within the requested times, and bodies only when
needed; layout 1 has no time ranges and is read backwards from its newest file. Few queries need the archive: queries
that read log files of archived writes in file groups compacted since, and the history.

After an interrupted archiving, an instant may be on both timelines.

Source: ArchivedTimelineLoaderV1/V2, release 1.2.0; spec section 3.

The newest commit of a table that stores something, in the active timeline or else in the archived one.

::

    timeline, newest commit first ─► archived timeline ─► a function of each commit's body ─► the first thing found

Moving instants from the active to the archived timeline.

::

    files of the active timeline, by instant ─► read_instant ─► ArchivedInstant ─► append_archive ─► delete_instants

Instants are archived before their files are deleted, so each instant is on at least one of the two timelines at any
moment. Files of pending states are deleted first and completed files last, oldest instants first: after a crash, the
remaining instants are completed and without gaps. Instants that are already in the archive are not added again.

Sources: LSMTimelineWriter, TimelineArchiverV1/V2, MetadataConversionUtils, releases 1.2.0 and 0.15.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeVar

from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.archive.entries import ArchivedInstant
from hudi_fast.timeline.archive.log_archive import append_log, read_log, read_log_times
from hudi_fast.timeline.archive.lsm_archive import SeenTimes, append_lsm, lsm_completions, read_lsm, read_lsm_times
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    comparable_action,
    instant_from_ms,
    parse_instant_file,
    read_instant_body,
)
from hudi_fast.values import dataclass

__all__ = [
    "ArchivedInstant",
    "ArchivedTimeline",
    "ArchivedTimes",
    "StateFile",
    "append_archive",
    "delete_instants",
    "newest_stored",
    "read_instant",
    "state_files",
]


@dataclass(frozen=True, slots=True)
class ArchivedTimeline:
    """The archived instants of a table.

    Attributes:
        storage: the table's storage.
        config: configuration of the table.
    """

    storage: Storage
    config: TableConfig

    def instants(
        self, begin: str | None = None, end: str | None = None, actions: Collection[str] = ()
    ) -> list[Instant]:
        """Instants requested from ``begin`` to ``end``, both included, oldest first, without bodies.

        Args:
            begin: requested time; None = no bound.
            end: requested time; None = no bound.
            actions: actions as named in completed instants; empty = all.

        Raises:
            CorruptTableError: a file of the archive cannot be read.
        """
        folder = self.config.history_folder
        rows: Iterable[tuple[str, str | None, str]]
        if self.config.layout_version < 2:
            rows = read_log_times(self.storage, folder, begin, end, actions)
        else:
            rows = read_lsm_times(self.storage, folder, begin, end)
        return [
            Instant(requested, action, State.COMPLETED, completion or None)
            for requested, completion, action in rows
            if not actions or action in actions
        ]

    def read(self, begin: str | None = None, end: str | None = None) -> Iterator[ArchivedInstant]:
        """Instants with bodies, requested from ``begin`` to ``end``, both included, oldest first.

        Raises:
            CorruptTableError: a file of the archive cannot be read.
        """
        folder = self.config.history_folder
        read = read_log if self.config.layout_version < 2 else read_lsm
        return read(self.storage, folder, begin, end)


@dataclass(frozen=True, slots=True)
class ArchivedTimes:
    """Completion times of archived instants of layout 2; the first lookup pins the state of the archive.

    Attributes:
        storage: the table's storage.
        folder: folder of the archived timeline, relative to the table.
    """

    storage: Storage
    folder: str
    _seen: SeenTimes = field(default_factory=SeenTimes, repr=False, compare=False)

    def completions(self, wanted: Collection[str]) -> dict[str, str]:
        """Requested time to completion time of the archived instants among ``wanted``; each file is read once.

        Raises:
            CorruptTableError: a manifest or data file cannot be read.
        """
        return lsm_completions(self.storage, self.folder, wanted, self._seen) if wanted else {}


Stored = TypeVar("Stored")


def _all(instant: Any) -> bool:
    return True


def newest_stored(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    find: Callable[[bytes, str], Stored | None],
    takes: Callable[[Any], bool] = _all,
    archive: bool = True,
) -> Stored | None:
    """What the newest commit stores that stores something; None if no commit does.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        find: takes the body of a commit and its path; None if the commit stores nothing.
        takes: chooses completed writes, by ``action`` and, in the active timeline, ``completion``.
        archive: whether to search the archived timeline, too.

    Raises:
        CorruptTableError: a commit cannot be read.
    """
    for instant in reversed(timeline.writes()):
        if takes(instant):
            path = f"{config.timeline_folder}/{instant.file_name}"
            found = find(read_instant_body(storage, config, instant), path)
            if found is not None:
                return found
    newest = None
    if archive:
        for one in ArchivedTimeline(storage, config).read():  # oldest first
            if takes(one):
                newest = find(one.metadata or b"", config.history_folder) or newest
    return newest


_WITH_PLAN = frozenset({"clean", "compaction", "logcompaction", "replacecommit", "clustering"})


@dataclass(frozen=True, slots=True)
class StateFile:
    """The file of an instant in one of its states.

    Attributes:
        path: relative to the table.
        requested: requested time.
        action: action in the file name.
        state: state in the file name.
        completion: completion time of a completed file, else None.
        reached: modification time of the file, as an instant time.
    """

    path: str
    requested: str
    action: str
    state: State
    completion: str | None
    reached: str


def append_archive(
    storage: Storage,
    config: TableConfig,
    rows: Sequence[ArchivedInstant],
    options: ArchiveOptions,
    require_lock: Callable[[], None] = lambda: None,
) -> list[str]:
    """Add instants to the archive in the table's layout, then merge and clean its files.

    Instants that are already in the archive are skipped, so the call can be repeated after a crash. Bodies may have the
    form of either layout; commit metadata is converted. The caller holds the table lock.

    Args:
        storage: the table's storage.
        config: configuration of the table.
        rows: instants in any order; if empty, only merge and clean.
        options: sizes, and the number of retained manifests.
        require_lock: checks that the table lock is still held.

    Returns:
        Paths of the written files.

    Raises:
        CorruptTableError: the archive, or a body to convert, cannot be decoded.
        LockError: the lock was lost; the archive keeps its content and may already contain the rows.
    """
    wanted = sorted(rows, key=lambda row: (row.requested, row.action))
    if wanted:
        actions = {row.action for row in wanted}
        there = ArchivedTimeline(storage, config).instants(wanted[0].requested, wanted[-1].requested, actions)
        known = {(one.requested, one.action) for one in there}
        wanted = [row for row in wanted if (row.requested, row.action) not in known]
    append = append_log if config.layout_version < 2 else append_lsm
    return append(storage, config.history_folder, wanted, options, require_lock)


def state_files(storage: Storage, config: TableConfig) -> dict[tuple[str, str], list[StateFile]]:
    """The files of the active timeline from one listing: (requested time, comparable action) to files by state."""
    found: dict[tuple[str, str], list[StateFile]] = {}
    for entry in storage.list_dir(config.timeline_folder):
        one = None if entry.is_dir else parse_instant_file(entry.name, config.layout_version)
        if one is None:
            continue
        reached = instant_from_ms(entry.modified_ms, config.timezone)
        completion = (one.completion or reached) if one.state is State.COMPLETED else None
        file = StateFile(entry.path, one.requested, one.action, one.state, completion, reached)
        found.setdefault((one.requested, comparable_action(one.action)), []).append(file)
    for files in found.values():
        files.sort(key=lambda file: file.state)
    return found


def read_instant(storage: Storage, files: Iterable[StateFile]) -> ArchivedInstant:
    """Read a completed instant of the active timeline for archiving.

    Args:
        storage: the table's storage.
        files: the files of the instant, including the completed one.

    Raises:
        CorruptTableError: a file does not exist any more.
    """
    by_state = {file.state: file for file in files}
    done = by_state[State.COMPLETED]
    requested, inflight = by_state.get(State.REQUESTED), by_state.get(State.INFLIGHT)
    plan = requested if requested is not None and requested.action in _WITH_PLAN else None
    return ArchivedInstant(
        done.requested,
        done.completion or done.reached,
        comparable_action(done.action),
        _body(storage, done),
        None if plan is None else _body(storage, plan),
        None if inflight is None else _body(storage, inflight),
        None if requested is None else requested.reached,
        None if inflight is None else inflight.reached,
    )


def delete_instants(storage: Storage, instants: Iterable[Sequence[StateFile]]) -> int:
    """Delete the files of archived instants and return the number of deleted files.

    A reader, or a loss of power, may come at any time. A pending file without the completed one would be a failed
    write, so all pending files are deleted before. A completed file without a later one would hide the files of the
    later one, so the completed files are deleted one after the other, the oldest first.
    """
    files = sorted((file for one in instants for file in one), key=lambda file: (file.requested, file.action))
    pending = [file for file in files if file.state is not State.COMPLETED]
    completed = [file for file in files if file.state is State.COMPLETED]
    storage.delete_files([file.path for file in pending], durable=True)
    for file in completed:
        storage.delete_files([file.path], durable=True)
    return len(files)


def _body(storage: Storage, file: StateFile) -> bytes | None:
    try:
        return storage.read_bytes(file.path) or None
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"Table {storage.uri}: the {file.state.name.lower()} {file.action} {file.requested} has no file; it was "
            "archived or rolled back since the timeline was read. Retry the operation.",
            file.path,
        ) from error
