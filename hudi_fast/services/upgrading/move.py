"""Move one table, with its timeline, from one version to another.

Moves one table from one version to another; a data table and its metadata table take the same steps.

::

    copy     active and archived timeline, into the folders of the other layout     not read yet
    switch   all of hoodie.properties, through its backup                           the table has the new version
    sweep    active and archived timeline of the old layout                         no longer read

A reader always finds one complete timeline: the one of the version in the properties. After a crash before the switch
the next move overwrites the copied files. After a later crash, :func:`leftovers` finds the old files and :func:`sweep`
deletes them. Versions of one layout need the switch alone.

Copies the active timeline to another layout: files of every state, with the names and formats of that layout.

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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hudi_fast.config.properties_file import UPDATED_PATH, load_properties, update_properties
from hudi_fast.config.service_options import ArchiveOptions
from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.errors import ConfigError, CorruptTableError
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import has_metadata_folder
from hudi_fast.services.upgrading.properties import PropertyHints, changed_properties
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.concurrency import in_threads
from hudi_fast.timeline.archive.timeline import ArchivedInstant, ArchivedTimeline, append_archive
from hudi_fast.timeline.commit_metadata import decode_commit_metadata, encode_commit_metadata
from hudi_fast.timeline.instants import (
    WRITE_ACTIONS,
    Instant,
    State,
    instant_file_name,
    instant_from_ms,
    listed_instant,
    ms_from_instant,
    parse_instant_file,
)
from hudi_fast.timeline.service_plans import decode_requested_replace
from hudi_fast.values import dataclass

__all__ = [
    "SCHEMA_FOLDER",
    "both_tables",
    "copy_timeline",
    "leftovers",
    "move_table",
    "remove_timeline",
    "sweep",
    "target_config",
]

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
    names = [one.path for one in storage.list_dir(folder) if _is_instant(one, layout)]
    storage.delete_files(names)
    return len(names)


# ---- files and times


def _rank(instant: Instant) -> int:
    """Pending files before completed ones, and completed writes last: after a crash the copy shows what is missing."""
    return instant.is_completed + (instant.is_completed and instant.action in WRITE_ACTIONS)


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


_LAYOUT_2 = 2


def target_config(props: Mapping[str, str], version: int, hints: PropertyHints, where: str) -> TableConfig:
    """The configuration of the table after the change.

    Args:
        props: its properties now.
        version: the new version.
        hints: from the options.
        where: the table, for messages.
    """
    return TableConfig.from_properties(changed_properties(props, version, hints), where)


def both_tables(storage: Storage, config: TableConfig) -> list[tuple[Storage, TableConfig]]:
    """The data table and, if there is one, its metadata table with its own properties.

    Args:
        storage: of the data table.
        config: of the data table.
    """
    found = [(storage, config)]
    if has_metadata_folder(storage):
        inner = metadata_storage(storage)
        found.append((inner, TableConfig.from_properties(load_properties(inner), inner.uri)))
    return found


def move_table(storage: Storage, version: int, hints: PropertyHints, archive: ArchiveOptions) -> TableConfig:
    """Change the version of a table; under its lock, with nothing pending and no log files in its newest slices.

    Args:
        storage: of the data table or of its metadata table.
        version: the new version.
        hints: from the options.
        archive: how archives are written.

    Returns:
        The configuration after the change.

    Raises:
        CorruptTableError: a file of a timeline is invalid; the table keeps its version.
    """
    props = load_properties(storage)
    source = TableConfig.from_properties(props, storage.uri)
    target = target_config(props, version, hints, storage.uri)
    moves = source.layout_version != target.layout_version
    if moves:
        _make_room(storage, target)
        copy_timeline(storage, source, target)
        _copy_archive(storage, source, target, archive)
    changes: dict[str, str | None] = {**dict.fromkeys(props), **target.raw}
    update_properties(storage, {key: value for key, value in changes.items() if value != props.get(key)})
    if moves:
        _remove_archive(storage, source)
    sweep(storage, target)
    return target


def leftovers(storage: Storage, config: TableConfig) -> list[FileStat]:
    """Files of a timeline in the other layout, from a failed move.

    They include the new properties of an upgrade to version 1 or 2 that failed (``hoodie.properties.updated``), which
    the table has not taken over, and an archive if the table's own archive holds all of its instants: Apache Hudi does
    not delete archives.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    other = other_layout(config, storage.uri)
    found = [one for one in storage.list_dir(other.timeline_folder) if _is_instant(one, other.layout_version)]
    if config.layout_version < 2:
        found += [one for one in storage.list_dir(SCHEMA_FOLDER) if not _is_instant(one, 1) and _is_instant(one, 2)]
    updated = storage.stat(UPDATED_PATH)
    if updated is not None:
        found.append(updated)
    archive = _archive_files(storage, other)
    return found + archive if archive and _holds_archive(storage, config, other) else found


def sweep(storage: Storage, config: TableConfig) -> int:
    """Delete the files that :func:`leftovers` finds; returns their number.

    Args:
        storage: of the data table or of its metadata table.
        config: its configuration.
    """
    found = leftovers(storage, config)
    storage.delete_files([entry.path for entry in found])
    return len(found)


def _make_room(storage: Storage, target: TableConfig) -> None:
    """Delete files of an earlier attempt from the target folders of the timeline, and create these folders."""
    remove_timeline(storage, target.timeline_folder, target.layout_version)
    if target.layout_version >= 2:
        storage.make_dir(target.history_folder)


def _is_instant(entry: FileStat, layout: int) -> bool:
    return not entry.is_dir and parse_instant_file(entry.name, layout) is not None


# ---- copies the archived timeline to another layout: reads all instants and appends them in the other format
#
# ::
#
#     layout 1: .hoodie/<archivelog.folder>, a log   ◄──────►   layout 2: .hoodie/timeline/history, an LSM tree
#
# The copy first deletes files of an earlier attempt at the target. It compares the new archive with the old one,
# instant by instant, before the switch, and deletes the old one after the switch. (Apache Hudi keeps the old one, and
# for version 6 it always writes to ``archived``, even if the table's properties name another folder.)
#
# Source: LegacyArchivedMetaEntryReader, SevenToEightUpgradeHandler, EightToSevenDowngradeHandler, release 1.2.0.


_BATCH = 200
_OLD_FILES = (".commits_.archive", "mergeArchivePlan")


def _copy_archive(storage: Storage, source: TableConfig, target: TableConfig, options: ArchiveOptions) -> int:
    """Write the archived timeline in the format of another layout.

    Args:
        storage: of the table.
        source: its configuration now.
        target: its configuration in the other layout.
        options: how archives are written.

    Returns:
        Number of instants in the archive.

    Raises:
        ConfigError: both archives would be in one folder.
        CorruptTableError: the archive cannot be read, or reads back differently; the old one is unchanged.
    """
    if source.history_folder == target.history_folder:
        raise ConfigError(
            f"The archived timeline of {storage.uri} is in {source.history_folder} in both layouts; set "
            "hoodie.archivelog.folder or hoodie.timeline.history.path to another folder first."
        )
    _remove_archive(storage, target)
    before = ArchivedTimeline(storage, source)
    for batch in _batches(before.read()):
        append_archive(storage, target, batch, options)
    wanted, found = _instants(storage, source), _instants(storage, target)
    if found != wanted:
        lost = ", ".join(f"{action} {requested}" for requested, action in sorted(wanted - found)[:3])
        raise CorruptTableError(
            f"The archived timeline of {storage.uri} has {len(wanted)} instants and {len(found)} after it was "
            f"rewritten{f'; the first missing: {lost}' if lost else ''}. The old one stays as it was.",
            target.history_folder,
        )
    return len(wanted)


def _archive_files(storage: Storage, config: TableConfig) -> list[FileStat]:
    """The files of an archived timeline, in the order in which they are deleted.

    In layout 2 the pointer and the manifests are deleted before the files that they name: a crash leaves an archive of
    fewer instants, which the next attempt recognises.

    Args:
        storage: of the table.
        config: with the layout and folder of the archive.
    """
    entries = [one for one in storage.list_dir(config.history_folder) if not one.is_dir]
    if config.layout_version < 2:
        return [one for one in entries if one.name.startswith(_OLD_FILES)]
    return sorted(entries, key=lambda one: (one.name != "_version_", not one.name.startswith("manifest_")))


def _holds_archive(storage: Storage, config: TableConfig, other: TableConfig) -> bool:
    """Whether the table's archived timeline has all instants of the other one, which can then be deleted.

    Args:
        storage: of the table.
        config: its configuration.
        other: with the layout and folder of the other archive.
    """
    try:
        return _instants(storage, other) <= _instants(storage, config)
    except CorruptTableError:
        return False


def _remove_archive(storage: Storage, config: TableConfig) -> None:
    """Delete an archived timeline.

    Args:
        storage: of the table.
        config: with the layout and folder of the archive.
    """
    storage.delete_files([entry.path for entry in _archive_files(storage, config)])
    if config.layout_version > 1:
        storage.delete_dir(config.history_folder)


def _instants(storage: Storage, config: TableConfig) -> set[tuple[str, str]]:
    return {(one.requested, one.action) for one in ArchivedTimeline(storage, config).instants()}


def _batches(rows: Iterable[ArchivedInstant]) -> Iterator[list[ArchivedInstant]]:
    batch: list[ArchivedInstant] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
