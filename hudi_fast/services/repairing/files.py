"""Find orphan, uncleaned and leftover files.

Finds orphan files, files that a clean could not delete, and files that are shorter than their commit says.

An orphan file is one that no commit lists. A file is named after an instant, and is an orphan when that instant

- was rolled back, or removed by a restore; the rollback may be archived, or
- is on no timeline, although active timeline and archive reach back to it, or
- is complete and does not list the file: a failed or duplicate task attempt wrote it.

Files that a snapshot reads, a savepoint protects, a plan names or the metadata table lists are never deleted; the
finding then says what to check. If the timeline is damaged, no file is an orphan.

Finds leftover files below ``.hoodie``, temporary files anywhere, and locks that were not released.

A temporary file or lock file has no instant whose heartbeat could be checked; it counts as a leftover after an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hudi_fast.config.properties_file import BACKUP_PATH
from hudi_fast.errors import CorruptTableError, HudiError
from hudi_fast.metadata_table.state import MetadataLister
from hudi_fast.services.repairing.findings import Finding, Inspection
from hudi_fast.services.upgrading.move import leftovers
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.storage.untrusted import stored_json
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instants import WRITE_ACTIONS, Instant, read_instant_body
from hudi_fast.timeline.plans import decode_clean_metadata, decode_rollback_metadata, decode_savepoint
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import (
    LOGS_NAMED_BY_WRITE,
    BaseFile,
    LogFile,
    is_own_file,
    is_own_temporary,
    parse_base_file,
    parse_log_file,
)
from hudi_fast.view.lost_files import written_sizes
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import load_state, read_commit
from hudi_fast.writing.rollback_plan import pending_rollbacks, undone_instants

__all__ = ["find_data_files", "find_leftovers"]

_THREADS = 8


@dataclass(frozen=True)
class _Known:
    """The files that timelines, savepoints and snapshots refer to.

    Attributes:
        listed: paths that completed writes of the active timeline name.
        groups: for partition path, file id and requested time: versions of the log files listed, None for base files.
        bodies: requested times of writes whose body lists their files.
        undone: requested times that rollbacks and restores undid, archived ones included.
        being_undone: targets of pending rollbacks.
        archived: requested times of archived writes.
        reaches: the oldest requested time in the archive; None when it is empty.
        read: paths that a snapshot reads.
        saved: paths that a savepoint protects; None when a savepoint is damaged, because it may protect any file.
        sizes: for each path that a completed write names, the write and the least size of the file.
    """

    listed: frozenset[str]
    groups: Mapping[tuple[str, str, str], Sequence[int | None]]
    bodies: frozenset[str]
    undone: frozenset[str]
    being_undone: frozenset[str]
    archived: frozenset[str]
    reaches: str | None
    read: frozenset[str]
    saved: frozenset[str] | None
    sizes: Mapping[str, tuple[Instant, int]]


def find_data_files(inspection: Inspection) -> Iterator[Finding]:
    """Findings of the kinds ``lost content``, ``orphan file`` and ``failed delete``.

    Raises:
        CorruptTableError: the timeline or the archive cannot be read.
    """
    if inspection.timeline.pending_restore is not None:
        return
    known = _known(inspection)
    listed_inside = _MetadataNames(inspection)
    for partition, entries in inspection.partitions.items():
        for entry in entries:
            if entry.path in known.sizes and entry.size < known.sizes[entry.path][1]:
                yield _lost(entry, *known.sizes[entry.path])
            file = (parse_base_file(entry) or parse_log_file(entry)) if is_own_file(entry.name) else None
            why = None if file is None else _why_orphan(inspection, known, entry, file)
            if file is None or why is None:
                continue
            doubt = _doubt(inspection, known, listed_inside, partition, file)
            advice = f"{why} {doubt or 'It is deleted.'}"
            yield Finding("orphan file", file.instant, entry.path, entry.size, doubt is None, advice)
    yield from _failed_deletes(inspection, known, listed_inside)


# ---- lost content


def _lost(entry: FileStat, instant: Instant, size: int) -> Finding:
    advice = (
        f"The completed {instant.action} {instant.requested} says that it has {size} bytes: rows are lost, as in a "
        "loss of power. Restore the file from a copy, or roll the write back if it is the newest, or restore the table "
        "to a savepoint, and write the rows again."
    )
    return Finding("lost content", instant.requested, entry.path, entry.size, False, advice)


# ---- orphans


def _why_orphan(inspection: Inspection, known: _Known, entry: FileStat, file: BaseFile | LogFile) -> str | None:
    """Why a file is an orphan; None when a commit lists it, or may."""
    time = file.instant
    instant = inspection.timeline.find(time)
    if entry.path in known.listed or time in known.archived or time in known.being_undone:
        return None
    if instant is not None:
        if not instant.is_completed or time not in known.bodies or _may_be_of_another(inspection, known, file):
            return None
        return f"The {instant.action} {time} does not list it: a failed or duplicate task attempt wrote it."
    if time in known.undone:
        return f"The instant {time} was rolled back."
    first = inspection.timeline.first_write_requested
    covered = (first is not None and time > first) or (known.reaches is not None and time > known.reaches)
    if not covered or time > (inspection.timeline.newest_time or ""):
        return None
    return f"The instant {time} is on no timeline, although active timeline and archive reach back beyond it."


def _may_be_of_another(inspection: Inspection, known: _Known, file: BaseFile | LogFile) -> bool:
    """Whether another write may have made a file of a complete instant: log files may be named after their slice.

    Before table version 8 all log files are, and an upgraded table still has some: later writes logged to the slice
    that the instant began, with a base file or a log file of a lower version.
    """
    if isinstance(file, BaseFile):
        return False
    if inspection.config.version < LOGS_NAMED_BY_WRITE:
        return True
    written = known.groups.get((file.path.rpartition("/")[0], file.file_id, file.instant), ())
    return any(one is None or one != file.version for one in written)


def _doubt(
    inspection: Inspection, known: _Known, inside: _MetadataNames, partition: str, file: BaseFile | LogFile
) -> str | None:
    """Why an orphan must stay; None when it can be deleted."""
    if known.saved is None:
        return "A savepoint cannot be read, and may protect it; it stays. Repair the savepoint first."
    if file.path in known.saved:
        return "A savepoint protects it; it stays. Delete the savepoint first, if it is no longer needed."
    if inside.has(partition, file.name):
        return "The metadata table lists it; it stays. Validate the metadata table, and rebuild it if it is wrong."
    if file.path in known.read and not _has_twin(inspection, known, partition, file):
        return "Queries read it; it stays. Compare its rows with their source before you delete it."
    return None


def _has_twin(inspection: Inspection, known: _Known, partition: str, file: BaseFile | LogFile) -> bool:
    """Whether the commit lists another base file of the same group and instant that exists."""
    listed = (parse_base_file(entry) for entry in inspection.partitions[partition] if entry.path in known.listed)
    wanted = file.file_id, file.instant
    return isinstance(file, BaseFile) and any(
        one is not None and (one.file_id, one.instant) == wanted for one in listed
    )


# ---- failed deletes


def _failed_deletes(inspection: Inspection, known: _Known, inside: _MetadataNames) -> Iterator[Finding]:
    """Existing files that a clean of the active timeline could not delete."""
    present = {entry.path: entry for entries in inspection.partitions.values() for entry in entries}
    for instant in inspection.timeline.of_action("clean"):
        if not instant.is_completed:
            continue
        try:
            parts = decode_clean_metadata(read_instant_body(inspection.storage, inspection.config, instant)).partitions
        except CorruptTableError:  # reported as a dangling instant
            continue
        for part in parts:
            for name in part.failed:
                entry = present.get(_path(part.partition_path, name))
                file = None if entry is None else parse_base_file(entry) or parse_log_file(entry)
                if entry is None or file is None:
                    continue
                doubt = _doubt(inspection, known, inside, part.partition_path, file)
                why = f"The clean {instant.requested} could not delete it."
                advice = f"{why} {doubt or 'It is deleted.'}"
                yield Finding("failed delete", instant.requested, entry.path, entry.size, doubt is None, advice)


# ---- references to files


class _MetadataNames:
    """Files that the metadata table lists, loaded per partition and cached. An untrusted metadata table lists none."""

    def __init__(self, inspection: Inspection) -> None:
        usable = inspection.metadata is not None and inspection.metadata_problem is None
        self._lister = MetadataLister(inspection.metadata) if usable and inspection.metadata is not None else None
        self._names: dict[str, frozenset[str]] = {}

    def has(self, partition: str, name: str) -> bool:
        """Whether it lists that file; True when it cannot be read."""
        if self._lister is None:
            return False
        if partition not in self._names:
            try:
                self._names[partition] = frozenset(entry.name for entry in self._lister.files(partition))
            except HudiError:
                return True
        return name in self._names[partition]


def _known(inspection: Inspection) -> _Known:
    writes = inspection.timeline.writes()
    with ThreadPool(_THREADS) as pool:
        commits = list(pool.map(lambda one: _commit_of(inspection, one), writes))
    bodies = frozenset(one.requested for one, commit in zip(writes, commits, strict=True) if commit is not None)
    listed = {path for commit in commits if commit is not None for path in _paths_of(commit)}
    off_timeline = _off_timeline(inspection)
    archive = ArchivedTimeline(inspection.storage, inspection.config)
    archived = archive.instants() if off_timeline else []
    view = load_state(inspection.storage).view
    read = {
        file.path for partition in inspection.partitions for one in latest_slices(view, partition) for file in one.files
    }
    saved = _saved(inspection)
    reaches = min((one.requested for one in archived), default=None)
    names = frozenset(one.requested for one in archived if one.action in WRITE_ACTIONS)
    undone = set(undone_instants(inspection.storage, inspection.config, inspection.timeline))
    undone |= _undone_in_archive(archive, archived, off_timeline - undone - names)
    undone -= {one.requested for one in writes}
    return _Known(
        frozenset(listed),
        _by_group(listed),
        bodies,
        frozenset(undone),
        _being_undone(inspection),
        names,
        reaches,
        frozenset(read),
        saved,
        written_sizes((one, commit) for one, commit in zip(writes, commits, strict=True) if commit is not None),
    )


def _by_group(listed: Iterable[str]) -> dict[tuple[str, str, str], list[int | None]]:
    found: dict[tuple[str, str, str], list[int | None]] = {}
    for path in listed:
        entry = FileStat(path, 0, 0, False)
        base, log = parse_base_file(entry), parse_log_file(entry)
        file = base or log
        if file is not None:
            key = path.rpartition("/")[0], file.file_id, file.instant
            found.setdefault(key, []).append(None if log is None else log.version)
    return found


def _commit_of(inspection: Inspection, instant: Instant) -> CommitMetadata | None:
    """The body of a completed write; None when it is damaged or empty."""
    try:
        commit = read_commit(inspection.storage, inspection.config, instant)
    except CorruptTableError:
        return None
    return commit if commit.partition_to_write_stats or commit.partition_to_replace_file_ids else None


def _paths_of(commit: CommitMetadata) -> Iterator[str]:
    for stat in commit.write_stats():
        yield stat.path
        yield from stat.cdc_stats or ()
        for name in stat.log_files or ():
            yield _path(stat.partition_path, name)


def _off_timeline(inspection: Inspection) -> set[str]:
    """Instants in the names of data files that are not on the active timeline."""
    entries = (entry for found in inspection.partitions.values() for entry in found)
    parsed = (parse_base_file(entry) or parse_log_file(entry) for entry in entries)
    named = {one.instant for one in parsed if one is not None}
    return named - {one.requested for one in inspection.timeline.instants}


def _undone_in_archive(archive: ArchivedTimeline, archived: Sequence[Instant], unexplained: set[str]) -> set[str]:
    """Instants that archived rollbacks undid; bodies are read only of rollbacks since the first unexplained instant."""
    first = min(unexplained, default=None)
    rollbacks = [one.requested for one in archived if one.action == "rollback" and first and one.requested > first]
    if not rollbacks:
        return set()
    rows = archive.read(rollbacks[0], rollbacks[-1])
    bodies = (row.metadata for row in rows if row.action == "rollback" and row.metadata)
    return {decode_rollback_metadata(body).instant for body in bodies}


def _being_undone(inspection: Inspection) -> frozenset[str]:
    return frozenset(
        plan.instant for _, plan in pending_rollbacks(inspection.storage, inspection.config, inspection.timeline)
    )


def _saved(inspection: Inspection) -> frozenset[str] | None:
    paths: set[str] = set()
    for instant in inspection.timeline.of_action("savepoint"):
        if not instant.is_completed:
            continue
        try:
            files = decode_savepoint(read_instant_body(inspection.storage, inspection.config, instant)).files
        except CorruptTableError:
            return None
        paths.update(_path(partition, name) for partition, names in files.items() for name in names)
    return frozenset(paths)


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


_MARKERS = ".hoodie/.temp/"
_HEARTBEATS = ".hoodie/.heartbeat/"
_METADATA = ".hoodie/metadata/"
_FILE_LOCKS = (".hoodie/lock", ".hoodie/.aux/lock")
_LEASE = ".hoodie/.locks/table_lock.json"
_DROPPED = re.compile(r"\.hoodie/\.metadata_[^/]+")
_TEMPORARY = ".tmp"
_LEFT_BEHIND_MS = 3_600_000
_REBUILT = (
    "No row of the table is lost: queries that meet the loss list folders, and the next write with a metadata table "
    "builds it again."
)


def find_leftovers(inspection: Inspection) -> Iterator[Finding]:
    """Findings that concern neither data files nor instants."""
    yield from _markers(inspection)
    yield from _temporary_files(inspection)
    yield from _properties_backup(inspection)
    yield from _heartbeats(inspection)
    yield from _other_timeline(inspection)
    yield from _locks(inspection)
    yield from _metadata(inspection)


def _markers(inspection: Inspection) -> Iterator[Finding]:
    pending = {one.requested for one in inspection.timeline.pending()}
    newest = inspection.timeline.newest_time or ""
    for entry in inspection.internal:
        name = entry.path.removeprefix(_MARKERS)
        if not entry.is_dir or name == entry.path or not name.isdigit() or name in pending or name > newest:
            continue
        advice = "Markers of a completed or rolled back write; they are deleted."
        yield Finding("markers", name, entry.path, 0, True, advice)


def _temporary_files(inspection: Inspection) -> Iterator[Finding]:
    of_partitions = (entry for found in inspection.partitions.values() for entry in found)
    entries = [*inspection.internal, *(entry for entry in of_partitions if is_own_temporary(entry.name))]
    for entry in entries:
        if entry.is_dir or not entry.name.endswith(_TEMPORARY) or inspection.age_ms(entry) < _LEFT_BEHIND_MS:
            continue
        if entry.path.startswith(_MARKERS):
            continue
        advice = "A temporary file of a failed write; it is deleted."
        yield Finding("temporary file", "", entry.path, entry.size, True, advice)


def _properties_backup(inspection: Inspection) -> Iterator[Finding]:
    for entry in inspection.internal:
        if entry.path == BACKUP_PATH:
            advice = "An unfinished change of hoodie.properties; it is undone, or the backup is deleted."
            yield Finding("properties backup", "", entry.path, entry.size, True, advice)


def _heartbeats(inspection: Inspection) -> Iterator[Finding]:
    pending = {one.requested for one in inspection.timeline.pending()}
    for entry in inspection.internal:
        name = entry.path.removeprefix(_HEARTBEATS)
        if entry.is_dir or name == entry.path or not name.isdigit() or name in pending:
            continue
        if inspection.age_ms(entry) > inspection.heartbeat.lasts_ms:
            advice = "A heartbeat of an instant that is no longer pending; it is deleted."
            yield Finding("heartbeat", name, entry.path, entry.size, True, advice)


def _other_timeline(inspection: Inspection) -> Iterator[Finding]:
    """The timeline in the layout of another table version, left by an upgrade that failed before it deleted it."""
    advice = "A file of the timeline of the previous table version; its contents were moved. It is deleted."
    for entry in leftovers(inspection.storage, inspection.config):
        yield Finding("other timeline", "", entry.path, entry.size, True, advice)
    if inspection.metadata is not None:
        for entry in leftovers(inspection.metadata.storage, inspection.metadata.config):
            yield Finding("other timeline", "", f"{_METADATA}{entry.path}", entry.size, True, advice)


def _locks(inspection: Inspection) -> Iterator[Finding]:
    """Locks of Apache Hudi's providers that a failed writer may have left; locks of this library end by themselves."""
    for entry in inspection.internal:
        if entry.path in _FILE_LOCKS and inspection.age_ms(entry) > _LEFT_BEHIND_MS:
            minutes = inspection.age_ms(entry) // 60_000
            advice = (
                f"Apache Hudi's file lock has been held for {minutes} minutes{_holder(inspection, entry)}. Unless "
                "hoodie.write.lock.filesystem.expire is set it never expires: if its writer no longer runs, delete it."
            )
            yield Finding("lock", "", entry.path, entry.size, False, advice)
        elif entry.path == _LEASE and (until := _dangling_until(inspection, entry)) is not None:
            advice = (
                f"Apache Hudi's storage lock was not released, but expired {(inspection.now_ms - until) // 1000} s "
                "ago. The next writer takes it over; no action is needed."
            )
            yield Finding("lock", "", entry.path, entry.size, False, advice)


def _holder(inspection: Inspection, entry: FileStat) -> str:
    try:
        text = inspection.storage.read_bytes(entry.path).decode("utf-8", "replace")[:200]
    except FileNotFoundError:
        return ""
    return f" ({' '.join(text.split())})" if text.strip() else ""


def _dangling_until(inspection: Inspection, entry: FileStat) -> int | None:
    """When a lease expired without being released, in milliseconds; None if it was released or is valid."""
    try:
        lease = stored_json(inspection.storage.read_bytes(entry.path))
        until, expired = int(lease["validUntil"]), bool(lease["expired"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    return None if expired or until > inspection.now_ms - _LEFT_BEHIND_MS else until


def _lost_of_metadata(inspection: Inspection) -> Iterator[Finding]:
    """Files of the metadata table that are shorter than its commits say, and its commits without a body."""
    table = inspection.metadata
    if table is None:
        return
    commits = []
    for instant in table.timeline.writes():
        path = f"{_METADATA}{table.timeline.folder}/{instant.file_name}"
        try:
            if instant in table.timeline.without_body:
                raise CorruptTableError("It is empty.", path)
            commits.append((instant, read_commit(table.storage, table.config, instant)))
        except CorruptTableError:
            advice = (
                f"The body of the metadata table's {instant.action} is empty or truncated. No query needs it; "
                "archiving removes it."
            )
            yield Finding("metadata table", instant.requested, path, 0, False, advice)
        except FileNotFoundError:  # archived in the meantime
            continue
    sizes = written_sizes(commits)
    for entry in inspection.internal:
        said = sizes.get(entry.path.removeprefix(_METADATA))
        if said is not None and entry.size < said[1]:
            instant, size = said
            advice = f"The metadata table's {instant.action} says that it has {size} bytes. {_REBUILT}"
            yield Finding("metadata table", instant.requested, entry.path, entry.size, False, advice)


def _metadata(inspection: Inspection) -> Iterator[Finding]:
    if inspection.metadata_problem is not None:
        advice = (
            f"The metadata table is not used: {inspection.metadata_problem.rstrip('.')}. The next write with a "
            "metadata table rebuilds it."
        )
        yield Finding("metadata table", "", _METADATA.rstrip("/"), 0, False, advice)
    elif inspection.metadata is not None:
        for partition in inspection.metadata.partitions:
            why = inspection.metadata.unusable(partition)
            if why is not None:
                advice = f"It cannot be read: {why.rstrip('.')}. Validate the metadata table, or drop the index."
                yield Finding("metadata table", "", f"{_METADATA}{partition}", 0, False, advice)
    yield from _lost_of_metadata(inspection)
    for entry in inspection.internal:
        if entry.is_dir and _DROPPED.fullmatch(entry.path):
            size = sum(one.size for one in inspection.internal if one.path.startswith(f"{entry.path}/"))
            advice = "A backup of a dropped metadata table; no query reads it. Delete the folder."
            yield Finding("metadata table", "", entry.path, size, False, advice)
