"""File slices: those that a query reads, and all of a file group.

Derive the file slices that a query reads, from files and the timeline (``AbstractTableFileSystemView``, Hudi 1.2.0).

A :class:`TableView` pins one state of the table: its timeline, replaced file groups, file groups in pending plans, and
a lister. All functions here are pure in that value and in the lister's answers, and ignore files of later instants, so
a retried task sees the same slices.

::

    files of a partition ─► visible base files and log files ─► per file group: the instants that start its slices
        ─► assign each log file to a slice (by name, or by completion time of its write) ─► the newest slice

A slice starts with a base file, with a pending compaction, or with the first log file of a group without base file. The
slice of a pending compaction has log files only; a snapshot reads it merged with the slice before it.

All slices of a file group, old and new, for cleaning.

::

    files of a partition ─► files of completed writes, with change logs ─► per file group: its slices, newest first

Log files are assigned to slices as in :mod:`hudi_fast.view.slices`, so queries and cleans agree. Includes file groups
that a replace commit replaced. Pure in the view and in its lister's answers.

Source: ``AbstractTableFileSystemView#getAllFileGroupsStateless``, ``HoodieFileGroup`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

from hudi_fast.errors import ConfigError
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.instants import METADATA_BOOTSTRAP_INSTANT, Timeline
from hudi_fast.values import dataclass
from hudi_fast.view.bootstrap_index import SourceLookup
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.listing import Lister
from hudi_fast.view.planned_files import LoggedInserts, PlannedSlice, PlannedSlices
from hudi_fast.view.schema_history import renamer

__all__ = [
    "FileSlice",
    "PastSlice",
    "TableView",
    "archived_completions",
    "base_slices",
    "by_partition",
    "latest_slices",
    "past_slices",
    "slice_begin",
]

Found = TypeVar("Found")

Group = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it.

    Attributes:
        base_file: None when the slice has log files only.
        log_files: in order of application.
        base_instant: start of the slice: the instant of the group's pending compaction, else of the base file, else of
            the start of the slice of the oldest log file.
        change_logs: change logs written with the base file; queries of rows do not read them.
    """

    partition: str
    file_id: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...] = ()
    base_instant: str = ""
    change_logs: tuple[LogFile, ...] = ()

    def __post_init__(self) -> None:
        if not self.base_instant and self.base_file is not None:
            object.__setattr__(self, "base_instant", self.base_file.instant)

    @property
    def files(self) -> tuple[BaseFile | LogFile, ...]:
        """The base file, if any, and the log files."""
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)

    @property
    def weight(self) -> int:
        """Bytes to read for all its rows: base file, its source file, and log files."""
        return (0 if self.base_file is None else self.base_file.weight) + sum(log.size for log in self.log_files)


@dataclass(frozen=True, slots=True)
class TableView:
    """A pinned state of a table.

    Attributes:
        timeline: the active timeline when the state was pinned.
        replaced: (partition path, file id) to the requested time of the latest replace commit that replaced the group.
        as_of: newest requested time that is visible; None for the end of the timeline.
        pending_groups: (partition path, file id) of file groups in a pending clustering.
        pending_compactions: (partition path, file id) to the instant of the group's pending compaction.
        pending_log_compactions: the same for pending log compactions.
        table_version: determines the naming of log files.
        archive: completion times of archived instants; None when they are not available.
        history: the table's schema history; None for a table without one.
        sources: finds the source files of skeletons; None for a table that was not bootstrapped.
        planned: before table version 8: finds slices in the plans of the services that ended them; else None.
        logged: MERGE_ON_READ: finds log files with new keys; else None.
    """

    timeline: Timeline
    lister: Lister
    replaced: Mapping[Group, str] = field(default_factory=dict)
    as_of: str | None = None
    pending_groups: frozenset[Group] = frozenset()
    pending_compactions: Mapping[Group, str] = field(default_factory=dict)
    pending_log_compactions: Mapping[Group, str] = field(default_factory=dict)
    table_version: int = 9
    archive: ArchivedTimes | None = None
    history: SchemaHistory | None = None
    sources: SourceLookup | None = None
    planned: PlannedSlices | None = None
    logged: LoggedInserts | None = None


def by_partition(
    view: TableView, partitions: Sequence[str], look: Callable[[str], Found], threads: int = 8
) -> Iterator[Found]:
    """The result of ``look`` for each partition, in order; it asks the view for the partition's files.

    The files of all partitions are read together if the lister can do so. Threads are used if each partition needs
    storage requests; otherwise they would only compete for the interpreter.
    """
    view.lister.expect(partitions)
    if len(partitions) > 1 and (view.lister.lists_folders or view.sources is not None):
        with ThreadPool(threads) as pool:
            yield from pool.map(look, partitions)
    else:
        yield from map(look, partitions)


def latest_slices(view: TableView, partition: str) -> list[FileSlice]:
    """The newest committed slice of each file group of a partition with its log files, ordered by file id.

    A group in a pending compaction gets one slice: the base file and log files before the compaction, then later log
    files.

    Raises:
        ConfigError: the view is of a time before the table was downgraded, and the slices of that time are not known or
            were cleaned.
        CorruptTableError: completion times of archived writes, or plans, are needed and cannot be read.
    """
    bases, logs, changes = _visible_files(view, partition)
    completions = archived_completions(view, partition, bases, logs)
    found = (
        _newest(view, partition, file_id, bases.get(file_id, {}), logs.get(file_id, ()), completions)
        for file_id in sorted(bases.keys() | logs.keys())
        if not _is_replaced(view, (partition, file_id))
    )
    return [_with_change_logs(one, changes.get(one.file_id, ())) for one in found if one is not None]


def base_slices(view: TableView, partition: str) -> list[FileSlice]:
    """The newest committed base file of each file group, ordered by file id, for a read-optimized query."""
    bases, _, _ = _visible_files(view, partition)
    chosen: list[FileSlice] = []
    for file_id, versions in sorted(bases.items()):
        instants = [one for one in versions if view.as_of is None or one <= view.as_of]
        if instants and not _is_replaced(view, (partition, file_id)):
            chosen.append(FileSlice(partition, file_id, versions[max(instants)]))
    return chosen


# ---- files


def _visible_files(
    view: TableView, partition: str
) -> tuple[dict[str, dict[str, BaseFile]], dict[str, list[LogFile]], dict[str, list[LogFile]]]:
    """By file id: base files of completed writes by instant, log files that may hold completed blocks, change logs."""
    bases: dict[str, dict[str, BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    changes: dict[str, list[LogFile]] = {}
    named = renamer(view.history)
    for entry in view.lister.files(partition):
        base = parse_base_file(entry)
        if base is not None:
            if view.timeline.is_completed_or_archived(base.instant):
                bases.setdefault(base.file_id, {})[base.instant] = named(base)  # if one write left two, the last listed
            continue
        log = parse_log_file(entry)
        if log is None:
            continue
        if log.is_cdc:
            changes.setdefault(log.file_id, []).append(log)
        elif _may_be_visible(view, log):
            logs.setdefault(log.file_id, []).append(log)
    for found in logs.values():
        found.sort(key=log_order)
    return _with_sources(view, partition, bases), logs, changes


def _with_sources(
    view: TableView, partition: str, bases: dict[str, dict[str, BaseFile]]
) -> dict[str, dict[str, BaseFile]]:
    """The base files, with source files of skeletons."""
    if view.sources is None or not any(METADATA_BOOTSTRAP_INSTANT in versions for versions in bases.values()):
        return bases
    sources = view.sources.of_partition(partition)
    return {
        file_id: {
            instant: replace(base, source=sources.get(file_id)) if base.is_skeleton else base
            for instant, base in versions.items()
        }
        for file_id, versions in bases.items()
    }


def _may_be_visible(view: TableView, log: LogFile) -> bool:
    """Whether the log file may hold visible rows, by its name; its blocks are checked when it is read."""
    if view.table_version < LOGS_NAMED_BY_WRITE:
        return True
    return view.timeline.is_completed_or_archived(log.instant) and (view.as_of is None or log.instant <= view.as_of)


def _is_replaced(view: TableView, group: Group) -> bool:
    replaced_at = view.replaced.get(group)
    return replaced_at is not None and (view.as_of is None or replaced_at <= view.as_of)


# ---- slices


def _with_change_logs(one: FileSlice, changes: Sequence[LogFile]) -> FileSlice:
    """The slice with the change logs of its base file, which have its instant and write token."""
    base = one.base_file
    if base is None or not changes:
        return one
    found = [log for log in changes if (log.instant, log.write_token) == (base.instant, base.write_token)]
    return replace(one, change_logs=tuple(sorted(found, key=log_order)))


def _newest(
    view: TableView,
    partition: str,
    file_id: str,
    bases: Mapping[str, BaseFile],
    logs: Sequence[LogFile],
    completions: Mapping[str, str],
) -> FileSlice | None:
    """The newest slice of a group; the slice of a pending compaction includes the slice before it."""
    pending = view.pending_compactions.get((partition, file_id))
    if pending is None and not logs:
        last = max((one for one in bases if view.as_of is None or one <= view.as_of), default=None)
        return None if last is None else FileSlice(partition, file_id, bases[last], (), last)
    planned = _planned(view, partition, file_id, bases, logs)
    if planned is not None:
        return _as_planned(view, partition, file_id, bases, logs, planned)
    by_slice: dict[str, list[LogFile]] = {instant: [] for instant in bases}
    if pending is not None:
        by_slice.setdefault(pending, [])
    for log in logs:
        by_slice.setdefault(slice_begin(view, log, by_slice, completions), []).append(log)
    committed = sorted(one for one in by_slice if _is_committed(view, one, pending))
    if not committed:
        return None
    last = committed[-1]
    if committed == [pending] and not by_slice[last]:
        return None
    if last != pending or len(committed) == 1:
        _require_named_by_slice(view, partition, file_id, last in bases or len(committed) == 1)
        return FileSlice(partition, file_id, bases.get(last), tuple(by_slice[last]), last)
    before = committed[-2]
    return FileSlice(partition, file_id, bases.get(before), (*by_slice[before], *by_slice[last]), last)


def _planned(
    view: TableView, partition: str, file_id: str, bases: Mapping[str, BaseFile], logs: Sequence[LogFile]
) -> PlannedSlice | None:
    """The slice at an earlier time, from the plan of the service that ended it; None where log file names are enough.

    Names are not enough if the table was downgraded later: older log files are named after their write, not their
    slice.
    """
    as_of = view.as_of
    if as_of is None or view.planned is None or all(log.instant in bases for log in logs):
        return None
    ended = min((one for one in bases if one > as_of), default=view.replaced.get((partition, file_id)))
    return None if ended is None else view.planned.ended_by(ended, partition, file_id)


def _as_planned(
    view: TableView,
    partition: str,
    file_id: str,
    bases: Mapping[str, BaseFile],
    logs: Sequence[LogFile],
    planned: PlannedSlice,
) -> FileSlice | None:
    """The files of a planned slice that existed at the time of the view; None if the slice began later.

    Raises:
        ConfigError: some of these files were cleaned.
    """
    as_of = view.as_of or ""
    base = next((one for one in bases.values() if one.name == planned.base_file), None)
    present = {log.name: log for log in logs}
    parsed = [parse_log_file(FileStat(name, 0, 0, False)) for name in planned.log_files]
    wanted = [log.name for log in parsed if log is not None and not log.is_cdc and log.instant <= as_of]
    missing = [name for name in wanted if name not in present]
    if planned.base_file is not None and base is None:
        missing.insert(0, planned.base_file)
    if missing:
        raise ConfigError(
            f"The table cannot be read as of {as_of}: {', '.join(missing[:3])} in partition {partition!r} "
            f"{'has' if len(missing) == 1 else 'have'} been cleaned since. Use a later time, or retain more commits."
        )
    chosen = tuple(sorted((present[name] for name in wanted), key=log_order))
    if base is None:
        return FileSlice(partition, file_id, None, chosen, chosen[0].instant) if chosen else None
    return FileSlice(partition, file_id, base, chosen, base.instant) if base.instant <= as_of else None


def _require_named_by_slice(view: TableView, partition: str, file_id: str, is_slice: bool) -> None:
    """Raise for a log file from before a downgrade whose slice is in no plan: its name holds its write only."""
    if view.as_of is not None and view.table_version < LOGS_NAMED_BY_WRITE and not is_slice:
        raise ConfigError(
            f"The table cannot be read as of {view.as_of}: it was later downgraded to version {view.table_version}, "
            f"and the timeline has no plan any more that tells which log files of before belong to the file group "
            f"{file_id} in partition {partition!r}. Use a later time, or upgrade the table to version "
            f"{LOGS_NAMED_BY_WRITE} first."
        )


def slice_begin(view: TableView, log: LogFile, slices: Iterable[str], completions: Mapping[str, str]) -> str:
    """The start of a log file's slice.

    ``slices`` are the starts of the slices of its group; ``completions`` is of :func:`archived_completions`.
    """
    if view.table_version < LOGS_NAMED_BY_WRITE:
        return log.instant
    begins = sorted(slices)
    if not begins:
        return log.instant
    completion = _completion(view, log.instant, completions)
    if completion is None:
        return begins[-1]
    if len(completion) != len(begins[-1]):
        completion = log.instant  # one of the two is not a timestamp, so they cannot be compared
    return next((one for one in reversed(begins) if one <= completion), log.instant)


def _is_committed(view: TableView, instant: str, pending: str | None) -> bool:
    if view.as_of is not None and instant > view.as_of:
        return False
    return instant == pending or view.timeline.is_completed_or_archived(instant)


def _completion(view: TableView, instant: str, archived: Mapping[str, str]) -> str | None:
    return view.timeline.completion_of(instant) or archived.get(instant)


def archived_completions(
    view: TableView, partition: str, bases: Mapping[str, Mapping[str, BaseFile]], logs: Mapping[str, Sequence[LogFile]]
) -> dict[str, str]:
    """Completion times of archived writes that have log files in a group with a later slice.

    ``bases`` are by file id and instant, ``logs`` by file id.

    Raises:
        CorruptTableError: they cannot be read.
    """
    if view.table_version < LOGS_NAMED_BY_WRITE or view.archive is None:
        return {}
    wanted: set[str] = set()
    for file_id, found in logs.items():
        begins = [*bases.get(file_id, ()), view.pending_compactions.get((partition, file_id), "")]
        newest = max(begins)
        wanted |= {one.instant for one in found if one.instant < newest and not view.timeline.find(one.instant)}
    return view.archive.completions(wanted) if wanted else {}


@dataclass(frozen=True, slots=True)
class PastSlice:
    """One version of a file group, with all files to delete with it.

    Attributes:
        begins: requested time of its first write, or of the pending compaction that starts it.
        base_files: empty if it has log files only; several if task attempts left some.
        log_files: with change logs, unordered.
    """

    begins: str
    base_files: tuple[BaseFile, ...] = ()
    log_files: tuple[LogFile, ...] = ()

    def files(self) -> Iterator[BaseFile | LogFile]:
        """All its files."""
        yield from self.base_files
        yield from self.log_files


def past_slices(view: TableView, partition: str, entries: list[FileStat] | None = None) -> dict[str, list[PastSlice]]:
    """The slices of each file group of a partition, newest first, by file id.

    ``view`` is at the end of the timeline. ``entries`` are the partition's files; None to list them.

    Returns:
        Groups without a file of a completed write are left out. A group in a pending compaction has the slice that the
        compaction starts, even without log files.

    Raises:
        CorruptTableError: completion times of archived writes are needed and cannot be read.
    """
    bases: dict[str, dict[str, list[BaseFile]]] = {}
    logs: dict[str, list[LogFile]] = {}
    completed: dict[str, bool] = {}
    for entry in view.lister.files(partition) if entries is None else entries:
        base = parse_base_file(entry)
        if base is not None:
            if _is_completed(view, base.instant, completed):
                bases.setdefault(base.file_id, {}).setdefault(base.instant, []).append(base)
            continue
        log = parse_log_file(entry)
        if log is not None and (
            view.table_version < LOGS_NAMED_BY_WRITE or _is_completed(view, log.instant, completed)
        ):
            logs.setdefault(log.file_id, []).append(log)
    one_each = {file_id: {begins: found[-1] for begins, found in some.items()} for file_id, some in bases.items()}
    completions = archived_completions(view, partition, one_each, logs)
    groups: dict[str, list[PastSlice]] = {}
    for file_id in bases.keys() | logs.keys():
        found = _slices(view, partition, file_id, bases.get(file_id, {}), logs.get(file_id, []), completions)
        committed = [
            one
            for one in found
            if one.begins == _pending(view, partition, file_id) or _is_completed(view, one.begins, completed)
        ]
        if committed:
            groups[file_id] = committed
    return groups


def _slices(
    view: TableView,
    partition: str,
    file_id: str,
    bases: dict[str, list[BaseFile]],
    logs: list[LogFile],
    completions: dict[str, str],
) -> list[PastSlice]:
    """The slices of a group, newest first, including slices of incomplete writes."""
    pending = _pending(view, partition, file_id)
    if not logs and pending is None:
        return [PastSlice(begins, tuple(bases[begins])) for begins in sorted(bases, reverse=True)]
    cut: dict[str, list[LogFile]] = {begins: [] for begins in bases}
    if pending is not None:
        cut.setdefault(pending, [])
    logs.sort(key=lambda log: (log.instant, log.version, log.write_token))
    for log in logs:
        cut.setdefault(slice_begin(view, log, cut, completions), []).append(log)
    return [PastSlice(begins, tuple(bases.get(begins, ())), tuple(cut[begins])) for begins in sorted(cut, reverse=True)]


def _pending(view: TableView, partition: str, file_id: str) -> str | None:
    return view.pending_compactions.get((partition, file_id))


def _is_completed(view: TableView, instant: str, known: dict[str, bool]) -> bool:
    """Whether the write is complete; cached, since many files share few instants."""
    found = known.get(instant)
    if found is None:
        found = known[instant] = view.timeline.is_completed_or_archived(instant)
    return found
