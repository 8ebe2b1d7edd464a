"""Files below ``.hoodie`` that belong to nothing any more, temporary files anywhere, and locks that may be forgotten.

What is written in one step has no instant to tell whether its writer is alive; it counts as left behind after an hour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from hudi_fast.config.properties_file import BACKUP_PATH
from hudi_fast.services.repairing.findings import Finding
from hudi_fast.services.repairing.inspection import Look
from hudi_fast.services.upgrading.move import leftovers
from hudi_fast.storage.base import FileStat

__all__ = ["find_leftovers"]

_MARKERS = ".hoodie/.temp/"
_HEARTBEATS = ".hoodie/.heartbeat/"
_METADATA = ".hoodie/metadata/"
_FILE_LOCKS = (".hoodie/lock", ".hoodie/.aux/lock")
_LEASE = ".hoodie/.locks/table_lock.json"
_DROPPED = re.compile(r"\.hoodie/\.metadata_[^/]+")
_TEMPORARY = ".tmp"
_LEFT_BEHIND_MS = 3_600_000


def find_leftovers(look: Look) -> Iterator[Finding]:
    """Findings of the kinds that are about neither data files nor instants."""
    yield from _markers(look)
    yield from _temporary_files(look)
    yield from _properties_backup(look)
    yield from _heartbeats(look)
    yield from _other_timeline(look)
    yield from _locks(look)
    yield from _metadata(look)


def _markers(look: Look) -> Iterator[Finding]:
    pending = {one.requested for one in look.timeline.pending()}
    newest = look.timeline.newest_time or ""
    for entry in look.internal:
        name = entry.path.removeprefix(_MARKERS)
        if not entry.is_dir or name == entry.path or not name.isdigit() or name in pending or name > newest:
            continue
        advice = "Markers of a write that has ended, or was rolled back; they are deleted."
        yield Finding("markers", name, entry.path, 0, True, advice)


def _temporary_files(look: Look) -> Iterator[Finding]:
    entries = [*look.internal, *(entry for found in look.partitions.values() for entry in found)]
    for entry in entries:
        if entry.is_dir or not entry.name.endswith(_TEMPORARY) or look.age_ms(entry) < _LEFT_BEHIND_MS:
            continue
        if entry.path.startswith(_MARKERS):
            continue
        advice = "A file that was being written when its writer died; it is deleted."
        yield Finding("temporary file", "", entry.path, entry.size, True, advice)


def _properties_backup(look: Look) -> Iterator[Finding]:
    for entry in look.internal:
        if entry.path == BACKUP_PATH:
            advice = "A change of hoodie.properties that was not finished; it is undone, or the backup is deleted."
            yield Finding("properties backup", "", entry.path, entry.size, True, advice)


def _heartbeats(look: Look) -> Iterator[Finding]:
    pending = {one.requested for one in look.timeline.pending()}
    for entry in look.internal:
        name = entry.path.removeprefix(_HEARTBEATS)
        if entry.is_dir or name == entry.path or not name.isdigit() or name in pending:
            continue
        if look.age_ms(entry) > look.heartbeat.lasts_ms:
            advice = "A sign of life of an instant that has ended; it is deleted."
            yield Finding("heartbeat", name, entry.path, entry.size, True, advice)


def _other_timeline(look: Look) -> Iterator[Finding]:
    """The timeline that the table had before its version was changed, if the change died before it was swept."""
    advice = "Of the timeline that the table had before its version changed; what it says was moved. It is deleted."
    for entry in leftovers(look.storage, look.config):
        yield Finding("other timeline", "", entry.path, entry.size, True, advice)
    if look.metadata is not None:
        for entry in leftovers(look.metadata.storage, look.metadata.config):
            yield Finding("other timeline", "", f"{_METADATA}{entry.path}", entry.size, True, advice)


def _locks(look: Look) -> Iterator[Finding]:
    """Locks of Apache Hudi's providers that a dead writer may have left; those of this library fall by themselves."""
    for entry in look.internal:
        if entry.path in _FILE_LOCKS and look.age_ms(entry) > _LEFT_BEHIND_MS:
            minutes = look.age_ms(entry) // 60_000
            advice = (
                f"Apache Hudi's file lock has been held for {minutes} minutes{_holder(look, entry)}. Unless "
                "hoodie.write.lock.filesystem.expire is set it never expires: if its writer is dead, delete it by hand."
            )
            yield Finding("lock", "", entry.path, entry.size, False, advice)
        elif entry.path == _LEASE and (until := _dangling_until(look, entry)) is not None:
            advice = (
                f"Apache Hudi's storage lock was not released, but ran out {(look.now_ms - until) // 1000} s ago. The "
                "next writer takes it over; nothing needs to be done."
            )
            yield Finding("lock", "", entry.path, entry.size, False, advice)


def _holder(look: Look, entry: FileStat) -> str:
    try:
        text = look.storage.read_bytes(entry.path).decode("utf-8", "replace")[:200]
    except FileNotFoundError:
        return ""
    return f" ({' '.join(text.split())})" if text.strip() else ""


def _dangling_until(look: Look, entry: FileStat) -> int | None:
    """When the lease ended that nobody gave back, in milliseconds; None when it was, or still runs."""
    try:
        lease = json.loads(look.storage.read_bytes(entry.path))
        until, expired = int(lease["validUntil"]), bool(lease["expired"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    return None if expired or until > look.now_ms - _LEFT_BEHIND_MS else until


def _metadata(look: Look) -> Iterator[Finding]:
    if look.metadata_problem is not None:
        advice = (
            f"The metadata table is not used: {look.metadata_problem.rstrip('.')}. The next write that keeps "
            "one builds it anew."
        )
        yield Finding("metadata table", "", _METADATA.rstrip("/"), 0, False, advice)
    elif look.metadata is not None:
        for partition in look.metadata.partitions:
            why = look.metadata.unusable(partition)
            if why is not None:
                advice = f"It cannot be read: {why.rstrip('.')}. Validate the metadata table, or drop the index."
                yield Finding("metadata table", "", f"{_METADATA}{partition}", 0, False, advice)
    for entry in look.internal:
        if entry.is_dir and _DROPPED.fullmatch(entry.path):
            size = sum(one.size for one in look.internal if one.path.startswith(f"{entry.path}/"))
            advice = "What was kept of a metadata table that was dropped; no query reads it. Delete it by hand."
            yield Finding("metadata table", "", entry.path, size, False, advice)
