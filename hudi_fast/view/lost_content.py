"""Finds content of completed writes that a machine or a store has lost: empty bodies, empty or cut files.

::

    a completed write without a body ──────────────► its files are unknown: no state is opened that needs it
    a data file without content, a log that is cut ─► does a completed write record more content? then rows are lost

A file system keeps the name of a file before its content, so a loss of power leaves files that are empty or end early.
Apache Hudi reads an empty body as a write without files, and skips a log block that is cut (a writer may have died
before its write completed): rows of completed writes then disappear without an error. Sources:
CommitMetadataSerDeV1/V2, HoodieLogFileReader#createCorruptBlock, releases 0.15.0 and 1.2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata
from hudi_fast.timeline.instant import Instant

__all__ = ["require_bodies", "require_content", "writes_of", "written_sizes"]


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
