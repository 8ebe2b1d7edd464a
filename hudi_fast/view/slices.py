"""From files and the timeline to the file slices that a query sees (``AbstractTableFileSystemView``, Hudi 1.2.0).

A :class:`TableView` pins one state of the table: its timeline, the file groups that completed replace commits took
away, those that a planned service will rewrite, and a lister. All functions here are pure in that value and in what
the lister answers, so a task that runs twice sees the same slices twice: files of later instants are ignored.

::

    files of a partition ─► base files and log files that count ─► per file group: where its slices begin
        ─► each log file to its slice (by the name, or by the completion of its write) ─► the newest slice

A slice begins at a base file, at a pending compaction, or at the first log file of a group without base file. The slice
at a pending compaction has log files only; merged with the one before it, it is what a snapshot sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hudi_fast.errors import ConfigError
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimes
from hudi_fast.timeline.instant import METADATA_BOOTSTRAP_INSTANT
from hudi_fast.view.bootstrap_index import SourceLookup
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.listing import Lister
from hudi_fast.view.schema_history import naming

__all__ = ["FileSlice", "TableView", "archived_completions", "base_slices", "latest_slices", "slice_begin"]

Group = tuple[str, str]
"""Partition path and file id."""

_LOGS_NAMED_BY_WRITE = 8
"""From this table version on a log file is named after the delta commit that wrote it, before after its slice."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """One version of a file group: a base file and the log files on top of it.

    Attributes:
        partition: partition path.
        file_id: the file group.
        base_file: None when only log files exist so far.
        log_files: in the order in which they apply.
        base_instant: where the slice begins: the instant of the pending compaction that the group is in, else of the
            base file, else the one that the oldest log file begins its slice at.
        change_logs: change logs that came with the base file; queries of rows do not read them.
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
        """The base file, where there is one, and the log files."""
        return self.log_files if self.base_file is None else (self.base_file, *self.log_files)


@dataclass(frozen=True, slots=True)
class TableView:
    """A pinned state of a table.

    Attributes:
        timeline: the active timeline when the state was pinned.
        lister: finds partitions and files.
        replaced: (partition path, file id) to the requested time of the replace commit that took it away; if several
            did, the latest.
        as_of: newest requested time that counts; None for the end of the timeline.
        pending_groups: (partition path, file id) of file groups in a pending clustering.
        pending_compactions: (partition path, file id) to the instant of the pending compaction that the group is in.
        pending_log_compactions: the same for pending log compactions.
        table_version: decides how log files are named.
        archive: completion times of instants that have left the timeline; None when they cannot be looked up.
        history: what the table's schema has been; None for a table without history.
        sources: where the data of skeletons is; None for a table that was not bootstrapped.
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


def latest_slices(view: TableView, partition: str) -> list[FileSlice]:
    """The newest committed slice of each file group of a partition with its log files, ordered by file id.

    A group in a pending compaction gets one slice: the base file and log files before it, then those since.

    Raises:
        ConfigError: the view is of a time before the table was downgraded, and needs log files of that time.
        CorruptTableError: completion times of archived writes are needed and cannot be read.
    """
    bases, logs, changes = _files_that_count(view, partition)
    completions = archived_completions(view, partition, bases, logs)
    found = (
        _newest(view, partition, file_id, bases.get(file_id, {}), logs.get(file_id, ()), completions)
        for file_id in sorted(bases.keys() | logs.keys())
        if not _is_replaced(view, (partition, file_id))
    )
    return [_with_change_logs(one, changes.get(one.file_id, ())) for one in found if one is not None]


def base_slices(view: TableView, partition: str) -> list[FileSlice]:
    """The newest committed base file of each file group, ordered by file id: what a read-optimized query sees."""
    bases, _, _ = _files_that_count(view, partition)
    chosen: list[FileSlice] = []
    for file_id, versions in sorted(bases.items()):
        instants = [one for one in versions if view.as_of is None or one <= view.as_of]
        if instants and not _is_replaced(view, (partition, file_id)):
            chosen.append(FileSlice(partition, file_id, versions[max(instants)]))
    return chosen


# ---- files


def _files_that_count(
    view: TableView, partition: str
) -> tuple[dict[str, dict[str, BaseFile]], dict[str, list[LogFile]], dict[str, list[LogFile]]]:
    """By file id: base files of completed writes by instant, log files that may hold completed blocks, change logs."""
    bases: dict[str, dict[str, BaseFile]] = {}
    logs: dict[str, list[LogFile]] = {}
    changes: dict[str, list[LogFile]] = {}
    named = naming(view.history)
    for entry in view.lister.files(partition):
        base = parse_base_file(entry)
        if base is not None:
            if view.timeline.is_completed_or_archived(base.instant):
                bases.setdefault(base.file_id, {})[base.instant] = named(base)  # of two of one write the last listed
            continue
        log = parse_log_file(entry)
        if log is None:
            continue
        if log.is_cdc:
            changes.setdefault(log.file_id, []).append(log)
        elif _log_counts(view, log):
            logs.setdefault(log.file_id, []).append(log)
    for found in logs.values():
        found.sort(key=log_order)
    return _with_sources(view, partition, bases), logs, changes


def _with_sources(
    view: TableView, partition: str, bases: dict[str, dict[str, BaseFile]]
) -> dict[str, dict[str, BaseFile]]:
    """The base files, skeletons with the files that hold their data."""
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


def _log_counts(view: TableView, log: LogFile) -> bool:
    """Whether the name leaves open that the log file holds rows for this view; blocks are looked at when it is read."""
    if view.table_version < _LOGS_NAMED_BY_WRITE:
        return True
    return view.timeline.is_completed_or_archived(log.instant) and (view.as_of is None or log.instant <= view.as_of)


def _is_replaced(view: TableView, group: Group) -> bool:
    replaced_at = view.replaced.get(group)
    return replaced_at is not None and (view.as_of is None or replaced_at <= view.as_of)


# ---- slices


def _with_change_logs(one: FileSlice, changes: Sequence[LogFile]) -> FileSlice:
    """The slice with the change logs of its base file: they carry its instant and its write token."""
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
    """The newest slice of a group; the one of a pending compaction together with the one before."""
    pending = view.pending_compactions.get((partition, file_id))
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


def _require_named_by_slice(view: TableView, partition: str, file_id: str, is_slice: bool) -> None:
    """Refuse to take a log file of before a downgrade for a slice: it names its write, and lies on an older one."""
    if view.as_of is not None and view.table_version < _LOGS_NAMED_BY_WRITE and not is_slice:
        raise ConfigError(
            f"The table cannot be seen as of {view.as_of}: it was downgraded to version {view.table_version} since, "
            f"which cannot read the log files of before, such as those of the file group {file_id} in partition "
            f"{partition!r}. Travel to a later time, or upgrade the table to version {_LOGS_NAMED_BY_WRITE} first."
        )


def slice_begin(view: TableView, log: LogFile, slices: Iterable[str], completions: Mapping[str, str]) -> str:
    """Where the slice begins that a log file belongs to.

    Args:
        view: the pinned state.
        log: the log file.
        slices: where slices of its group begin.
        completions: of archived writes, from :func:`archived_completions`.
    """
    if view.table_version < _LOGS_NAMED_BY_WRITE:
        return log.instant
    begins = sorted(slices)
    if not begins:
        return log.instant
    completion = _completion(view, log.instant, completions)
    if completion is None:
        return begins[-1]
    if len(completion) != len(begins[-1]):
        completion = log.instant  # one of them is no date and time: they do not compare
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
    """Completion times of archived writes, of those where they decide: a slice of the group begins after the write.

    Args:
        view: the pinned state.
        partition: partition path.
        bases: of each file id, its base files by instant.
        logs: of each file id, its log files.

    Raises:
        CorruptTableError: they cannot be read.
    """
    if view.table_version < _LOGS_NAMED_BY_WRITE or view.archive is None:
        return {}
    wanted: set[str] = set()
    for file_id, found in logs.items():
        begins = [*bases.get(file_id, ()), view.pending_compactions.get((partition, file_id), "")]
        newest = max(begins)
        wanted |= {one.instant for one in found if one.instant < newest and not view.timeline.find(one.instant)}
    return view.archive.completions(wanted) if wanted else {}
