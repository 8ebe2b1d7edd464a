"""Finds leftover files below ``.hoodie``, temporary files anywhere, and locks that were not released.

A temporary file or lock file has no instant whose heartbeat could be checked; it counts as a leftover after an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hudi_fast.config.properties_file import BACKUP_PATH
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.repairing.findings import Finding
from hudi_fast.services.repairing.inspection import Inspection
from hudi_fast.services.upgrading.move import leftovers
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.stored_json import stored_json
from hudi_fast.view.lost_content import written_sizes
from hudi_fast.view.own_files import is_own_temporary
from hudi_fast.view.table_state import read_commit

__all__ = ["find_leftovers"]

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
