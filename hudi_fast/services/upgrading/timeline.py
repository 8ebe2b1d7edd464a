"""Copies the active timeline to another layout: files of every state, with the names and formats of that layout.

::

    layout 1: .hoodie/                         layout 2: .hoodie/timeline/
    T.commit            JSON     ──────────►   T_C.commit              Avro      C: when T.commit was last modified
                                 ◄──────────                                     restored as modification time
    T.deltacommit.inflight  JSON ◄─────────►   T.deltacommit.inflight  Avro
    T.replacecommit.requested    ◄─────────►   T.clustering.requested            if it holds a clustering plan
    everything else              ◄─────────►   unchanged

Files are copied. Readers of the old layout find a complete timeline until the table's properties name the new one; only
then :func:`remove_timeline` deletes it. Both functions can run again after a crash.

Apache Hudi moves the files one by one before it changes the properties, so a crash leaves it with half a timeline. Its
names and bodies are the same, with two exceptions: it writes an empty object where a requested file is empty, and it
also renames a pending replace commit without a clustering plan.

Completion times come from the clock of a file system, and copying a table loses them. From version 8 on they decide
which slice a log file belongs to, so impossible times are corrected: every write before a compaction was complete when
the compaction was planned (older releases refuse to plan one otherwise).

Source: SevenToEightUpgradeHandler, EightToSevenDowngradeHandler, release 1.2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.timeline.active import listed_instant
from hudi_fast.timeline.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudi_fast.timeline.instant import (
    WRITE_ACTIONS,
    Instant,
    State,
    instant_file_name,
    instant_from_ms,
    ms_from_instant,
    parse_instant_file,
)
from hudi_fast.timeline.service_plans import decode_requested_replace

__all__ = ["SCHEMA_FOLDER", "copy_timeline", "remove_timeline"]

SCHEMA_FOLDER = ".hoodie/.schema"
"""Folder of the schema history: instants of the action ``schemacommit``."""

_COMMITS = ("commit", "deltacommit")
_THREADS = 8
"""In object stores; on a local disk decoding takes longer than reading and writing."""
_SHORTEST_TIME = 14


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the timeline: its path and its instant (with completion time)."""

    entry: FileStat
    instant: Instant


def copy_timeline(
    storage: Storage, source: TableConfig, target: TableConfig, only: Collection[str] | None = None
) -> int:
    """Write the active timeline into the folder of another layout; overwrites existing files.

    Args:
        storage: of the table.
        source: its configuration now.
        target: its configuration in the other layout.
        only: requested times of the instants to write; None for all.

    Returns:
        Number of written files.

    Raises:
        CorruptTableError: a commit is invalid; the timeline in use is unchanged.
    """
    files = [
        one for one in _files(storage, source.timeline_folder, source) if only is None or one.instant.requested in only
    ]
    if target.layout_version > 1:
        files = _with_possible_times(_with_clusterings(storage, files), source.is_mor)
    # one storage for each folder, so that its path is checked once instead of for each file
    old, new = (storage.rooted_at(storage.fs_path(one.timeline_folder)) for one in (source, target))
    for rank in range(3):
        chosen = [one for one in files if _rank(one.instant) == rank]
        in_threads(lambda one: _copy(old, one, new, target), chosen, 1 if storage.is_local else _THREADS)
    if target.layout_version < 2:
        for one in _files(storage, SCHEMA_FOLDER, source):
            if one.entry.name != _name(one.instant, 1):
                storage.write_bytes(f"{SCHEMA_FOLDER}/{_name(one.instant, 1)}", storage.read_bytes(one.entry.path))
    return len(files)


def remove_timeline(storage: Storage, folder: str, layout: int) -> int:
    """Delete the files of a timeline that is no longer read.

    Args:
        storage: of the table, whose properties name another layout.
        folder: folder of the timeline, relative to the table.
        layout: the layout of that timeline.

    Returns:
        Number of deleted files.
    """
    names = [one.path for one in storage.list_dir(folder) if not one.is_dir and _is_instant(one, layout)]
    storage.delete_files(names)
    return len(names)


# ---- files and times


def _rank(instant: Instant) -> int:
    """Pending files before completed ones, and completed writes last: after a crash the copy shows what is missing."""
    return instant.is_completed + (instant.is_completed and instant.action in WRITE_ACTIONS)


def _is_instant(entry: FileStat, layout: int) -> bool:
    return parse_instant_file(entry.name, layout) is not None


def _files(storage: Storage, folder: str, config: TableConfig) -> Iterator[_File]:
    for entry in storage.list_dir(folder):
        instant = None if entry.is_dir else listed_instant(entry, config)
        if instant is not None:
            yield _File(entry, instant)


def _with_clusterings(storage: Storage, files: Sequence[_File]) -> list[_File]:
    """The files, with pending replace commits renamed as layout 2 requires."""
    planned = set()
    for one in files:
        if one.instant.action == "replacecommit" and one.instant.state is State.REQUESTED:
            body = storage.read_bytes(one.entry.path)
            if body and decode_requested_replace(body, one.entry.path).clustering is not None:
                planned.add(one.instant.requested)
    return [
        _File(one.entry, replace(one.instant, action="clustering"))
        if one.instant.action == "replacecommit" and not one.instant.is_completed and one.instant.requested in planned
        else one
        for one in files
    ]


def _with_possible_times(files: Sequence[_File], is_mor: bool) -> list[_File]:
    """The files, with completion times after the request and before the next compaction was planned."""
    compactions = sorted({one.instant.requested for one in files if one.instant.action == "compaction"})
    return [
        _File(one.entry, _with_possible_time(one.instant, compactions if is_mor else ()))
        if one.instant.is_completed
        else one
        for one in files
    ]


def _with_possible_time(instant: Instant, compactions: Sequence[str]) -> Instant:
    completion = instant.completion or instant.requested
    following = next((time for time in compactions if time > instant.requested), None)
    if following is not None and completion >= following and instant.action in (*_COMMITS, "replacecommit"):
        completion = _moved(following, -1)
    if completion <= instant.requested:
        completion = max(completion, _moved(instant.requested, 1))
    return instant if completion == instant.completion else replace(instant, completion=completion)


def _moved(time: str, milliseconds: int) -> str:
    """A time some milliseconds from another; computed in UTC, so the zone does not matter."""
    if time.startswith("0000") or len(time) < _SHORTEST_TIME:
        return time
    return instant_from_ms(ms_from_instant(time, "UTC") + milliseconds, "UTC")


def _copy(old: Storage, file: _File, new: Storage, target: TableConfig) -> None:
    """Copy one file of a timeline to the folder of another; each folder has its own storage."""
    instant, layout = file.instant, target.layout_version
    name = _name(instant, layout)
    if file.entry.size and _holds_commit_metadata(instant):
        commit = decode_commit_metadata(old.read_bytes(file.entry.name), file.entry.path)
        replaces = instant.action == "replacecommit" and instant.is_completed
        new.write_bytes(name, encode_commit_metadata(commit, layout, replaces))
    else:
        old.copy_file(file.entry.name, name, new)
    if layout < 2 and instant.completion is not None:
        new.set_modified(name, ms_from_instant(instant.completion, target.timezone))


def _holds_commit_metadata(instant: Instant) -> bool:
    if instant.action == "replacecommit":
        return instant.state is not State.REQUESTED
    return instant.action in ("commit", "deltacommit")


def _name(instant: Instant, layout: int) -> str:
    plain = Instant(instant.requested, instant.action, instant.state, instant.completion)
    return instant_file_name(plain, layout)
