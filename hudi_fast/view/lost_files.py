"""Find what other processes removed, moved, lost, or never committed.

Finds files of a pinned view that a later clean has deleted.

::

    timeline now ─► later cleans ─► files in their plans ─┐
    folders now ──────────────────────────────────────────┴─► the view's newest slices ─► those with a planned file

A clean deletes slices that have newer ones. If a view was pinned before the newer slice was complete, a later folder
listing shows the group with an older slice or with none, and its rows would be missing without an error. A view that
lists files by the metadata table is not affected: it still lists them, and opening them fails. (Apache Hudi does not
check this.)

Lists folders without the base files that no commit names.

A task attempt may write its file after its write has completed without it: on an executor that was suspended, or as a
speculative attempt. It deletes the file again, unless it is killed before. The metadata table never lists such a file;
a folder listing attributes it to the commit whose instant is in its name.

Finds instants that Apache Hudi moved to the timeline of another layout before its change of the version failed.

::

    completed writes in the folder of the other layout ─► also on the table's active or archived timeline? fine: copies
        ─► all of their files deleted? fine: rolled back, restored or cleaned since
        ─► otherwise the table lacks a completed commit

Apache Hudi moves the files of the timeline one by one before it changes the properties. Reading or changing such a
table would lose rows, and the files that look like leftovers would be their only record. An instant whose completed
file was moved before its other files looks like a failed write: if Apache Hudi 1.2.0 tries the change again, it first
rolls this instant back, and its rows are lost. Source: SevenToEightUpgradeHandler, UpgradeDowngrade#run.

Finds content of completed writes that a machine or a store has lost: empty bodies, empty or cut files.

::

    a completed write without a body ──────────────► its files are unknown: no state is opened that needs it
    a data file without content, a log that is cut ─► does a completed write record more content? then rows are lost

A file system keeps the name of a file before its content, so a loss of power leaves files that are empty or end early.
Apache Hudi reads an empty body as a write without files, and skips a log block that is cut (a writer may have died
before its write completed): rows of completed writes then disappear without an error. Sources:
CommitMetadataSerDeV1/V2, HoodieLogFileReader#createCorruptBlock, releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata
from hudi_fast.timeline.instants import Instant, Timeline, comparable_action, load_timeline, read_requested_body
from hudi_fast.timeline.plans import CleanPlan, decode_clean_plan
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import parse_base_file
from hudi_fast.view.listing import StorageLister, WithFiles
from hudi_fast.view.planned_files import checked_clean
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState, read_commit

__all__ = [
    "CleanedFiles",
    "CommittedFiles",
    "cleaned_since",
    "committed_files",
    "moved_away",
    "require_bodies",
    "require_content",
    "require_whole",
    "writes_of",
    "written_sizes",
]


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """A file of a slice in the view that a clean deletes.

    Attributes:
        clean: the clean that has deleted the file or is going to.
        path: relative to the table.
    """

    clean: Instant
    partition: str
    file_id: str
    path: str


def cleaned_since(state: TableState, now: Timeline) -> Iterator[CleanedFiles]:
    """Files of the view's newest slices that later cleans delete, one per file group.

    Yields nothing unless the pinned ``state`` lists folders. ``now`` is the current timeline.

    Raises:
        FileGoneError: a clean's plan was archived after ``now`` was listed.
        ConfigError: the view is unavailable: see :func:`hudi_fast.view.slices.latest_slices`.
    """
    if not state.view.lister.lists_folders:
        return
    deleted = _deleted_since(state, now)
    files = {partition: tuple(FileStat(path, 0, 0, False) for path in paths) for partition, paths in deleted.items()}
    before = replace(state.view, lister=WithFiles(StorageLister(state.storage), files))
    for partition, cleans in deleted.items():
        for slice_ in latest_slices(before, partition):
            found = next((one.path for one in slice_.files if one.path in cleans), None)
            if found is not None:
                yield CleanedFiles(cleans[found], partition, slice_.file_id, found)


def _deleted_since(state: TableState, now: Timeline) -> dict[str, dict[str, Instant]]:
    """Files in the plans of later cleans, by partition path, each with its clean."""
    known = {one.requested for one in state.timeline.of_action("clean")}
    deleted: dict[str, dict[str, Instant]] = {}
    for clean in now.of_action("clean"):
        plan = None if clean.requested in known else _plan_of(state, clean)
        if plan is not None:
            for partition, paths in plan.files.items():
                names = (path.rpartition("/")[2] for path in paths)
                deleted.setdefault(partition, {}).update({f"{partition}/{one}".lstrip("/"): clean for one in names})
    return deleted


def _plan_of(state: TableState, clean: Instant) -> CleanPlan | None:
    """The clean's plan; None if its requested file is truncated, in which case nothing was deleted."""
    path = f"{state.config.timeline_folder}/{clean.requested}.clean.requested"
    try:
        plan = decode_clean_plan(read_requested_body(state.storage, state.config, clean), path)
    except FileGoneError:
        raise
    except CorruptTableError:
        return None
    return checked_clean(state.storage, plan, path)


@dataclass(frozen=True, slots=True)
class CommittedFiles:
    """Lists folders without base files that their commit does not name.

    Attributes:
        names: file names of each write whose commit metadata is known, by requested time.
    """

    lister: StorageLister
    names: Mapping[str, frozenset[str]]
    lists_folders = True

    def partitions(self) -> list[str]:
        """All partition paths."""
        return self.lister.partitions()

    def files(self, partition: str) -> list[FileStat]:
        """The files of one folder."""
        return [entry for entry in self.lister.files(partition) if self._is_kept(entry)]

    def expect(self, partitions: Sequence[str]) -> None:
        """Does nothing: each folder is listed on its own."""

    def _is_kept(self, entry: FileStat) -> bool:
        file = parse_base_file(entry)
        return file is None or file.name in self.names.get(file.instant, (file.name,))


def committed_files(storage: Storage, config: TableConfig, timeline: Timeline) -> CommittedFiles:
    """List folders; reads the commit metadata of all writes on the active timeline.

    Files of archived writes, and of writes whose metadata cannot be read, are all listed.
    """
    found = {}
    for instant in timeline.writes():
        with contextlib.suppress(CorruptTableError, FileGoneError):
            stats = [*read_commit(storage, config, instant).write_stats()]
            found[instant.requested] = frozenset(stat.path.rpartition("/")[2] for stat in stats if stat.path)
    return CommittedFiles(StorageLister(storage), {time: names for time, names in found.items() if names})


def require_whole(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Check that a table before version 8 has its whole timeline; costs nothing unless the folder of version 8 exists.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.

    Raises:
        CorruptTableError: a failed change of the version moved commits away.
    """
    if not timeline.has_other_folder:
        return
    lost = moved_away(storage, config)
    if lost:
        folder = other_layout(config, storage.uri).timeline_folder
        raise CorruptTableError(
            f"The table {storage.uri} of version {config.version} lacks {len(lost)} instants, the first of "
            f"{lost[0].requested}: a change of the version by another program failed after it had moved them to "
            f"{folder}. Put them back with services.upgrade({config.version}) or `hudi-fast upgrade`, or with the"
            " version that was wanted; do not let Apache Hudi try again.",
            folder,
        )


def moved_away(storage: Storage, config: TableConfig) -> tuple[Instant, ...]:
    """Instants that a failed change of the version moved away from the table's timeline, oldest first.

    Args:
        storage: of the table.
        config: its configuration.

    Returns:
        Instants that the table's timelines lack, or have in an earlier state; empty if they have all completed writes.
    """
    other = other_layout(config, storage.uri)
    there = load_timeline(storage, other)
    if not there.instants:
        return ()
    states = {_identity(one): one.state for one in load_timeline(storage, config).instants}
    unknown = [one for one in there.instants if states.get(_identity(one), -1) < one.state]
    if unknown:
        first, last = unknown[0].requested, unknown[-1].requested
        archived = {(one.requested, one.action) for one in ArchivedTimeline(storage, config).instants(first, last)}
        unknown = [one for one in unknown if _identity(one) not in archived]
    writes = {one.requested for one in there.writes()}
    is_lost = any(one.requested in writes and _has_files(storage, other, one) for one in unknown if one.is_completed)
    return tuple(unknown) if is_lost else ()


def _identity(instant: Instant) -> tuple[str, str]:
    return instant.requested, comparable_action(instant.action)


def _has_files(storage: Storage, config: TableConfig, instant: Instant) -> bool:
    commit = read_commit(storage, config, instant)
    return any(storage.exists(stat.path) for stat in commit.write_stats() if stat.path)


def require_bodies(storage: Storage, timeline: Timeline, as_of: str | None = None) -> None:
    """Check that no visible write has lost its body; reads nothing.

    Args:
        storage: of the table.
        timeline: its active timeline.
        as_of: newest requested time that is visible; None for the end of the timeline.

    Raises:
        CorruptTableError: the file of a completed write is empty.
    """
    for lost in timeline.without_body:
        if as_of is not None and lost.requested > as_of:
            continue
        raise CorruptTableError(
            f"Table {storage.uri}: the completed {lost.action} {lost.requested} has no content, so the files that it "
            "wrote are unknown. The machine or the store has lost it, as in a loss of power. Restore the file from a "
            f"copy, or roll the write back with services.rollback({lost.requested!r}) or `hudi-fast rollback` and "
            "write its rows again. Reads as of an earlier instant work.",
            f"{timeline.folder}/{lost.file_name}",
        )


def require_content(
    storage: Storage, timeline: Timeline, path: str, first: str, blocks: Collection[str] | None = None
) -> None:
    """Check that no completed write of the active timeline records more content of a data file that is empty or cut.

    Args:
        storage: of the table.
        timeline: its active timeline.
        path: of the file.
        first: the instant in its name: no earlier write has written to it.
        blocks: of a log file, instants of the blocks that it has; None for other files.

    Raises:
        CorruptTableError: content of a completed write is missing.
    """
    found = storage.stat(path)
    size = 0 if found is None else found.size
    for instant, stat in writes_of(storage, timeline, path, first):
        if stat.file_size <= size and (blocks is None or instant.requested in blocks or not stat.file_size):
            continue
        raise CorruptTableError(
            f"Table {storage.uri}: expected {stat.file_size} bytes of the completed {instant.action} "
            f"{instant.requested}, found a file of {size} bytes{'' if blocks is None else ' that ends too early'}. The "
            "machine or the store has lost rows, as in a loss of power. Restore the file from a copy, or roll the "
            "write back if it is the newest, or restore the table to a savepoint, and write the rows again.",
            path,
        )


def written_sizes(commits: Iterable[tuple[Instant, CommitMetadata]]) -> dict[str, tuple[Instant, int]]:
    """The minimum size of each data file that completed writes name, with the write that recorded it."""
    sizes: dict[str, tuple[Instant, int]] = {}
    for instant, commit in commits:
        for stat in commit.write_stats():
            if stat.path and stat.file_size > sizes.get(stat.path, (instant, 0))[1]:
                sizes[stat.path] = instant, stat.file_size
    return sizes


def writes_of(
    storage: Storage, timeline: Timeline, path: str, first: str, besides: Collection[str] = ()
) -> Iterator[tuple[Instant, WriteStat]]:
    """Completed writes of the active timeline that name a file, with its write statistics; reads their bodies.

    Args:
        storage: of the table.
        timeline: its active timeline.
        path: of the file.
        first: the instant in its name: no earlier write has written to it; empty to look at all writes.
        besides: requested times of writes to skip.
    """
    for instant in timeline.writes():
        if instant.requested < first or instant.requested in besides or instant.file_name is None:
            continue
        body = f"{timeline.folder}/{instant.file_name}"
        for stat in decode_commit_metadata(storage.read_bytes(body), body).write_stats():
            if stat.path == path:
                yield instant, stat
