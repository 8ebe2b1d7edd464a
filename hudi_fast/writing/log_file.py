"""Names, announces and writes the new log files of one file group (``HoodieAppendHandle``, Hudi 1.2.0).

Every write creates its own files and never appends to existing ones. A marker claims a version, so attempts of one task
never write to one file; the commit deletes the files of losing attempts. Markers belong to one write: where file names
are the same for several writes, the write that creates the file owns it, and the others delete their markers, because a
commit deletes all files that its markers name and its write stats do not.

====================  =========================================  ================================================
table version         file name                                  version, write token
====================  =========================================  ================================================
6                     the instant that the slice begins at       the next free one; the attempt's own
8 and later           the instant of the write                   1 and up; the writer's own
====================  =========================================  ================================================
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.formats.log.writer import LogFileWriter
from hudi_fast.formats.parquet.column_ranges import ColumnRanges, merge_ranges
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.file_names import LogFile, log_file_name
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.markers import create_marker, delete_marker

__all__ = ["BlockCounts", "LogOutput", "LogTarget"]

_MAX_VERSIONS_TRIED = 1000
_TOKEN_DIGITS = 9
"""Last digits of an instant that fit into an integer of Java."""


@dataclass(frozen=True, slots=True)
class LogTarget:
    """Target of log blocks.

    Attributes:
        storage: the table's storage.
        layout_version: of the timeline; decides file names.
        instant: the write.
        slice: the slice that gets the blocks.
        token: write token of the writer.
        max_file_size: bytes; a file that reaches this size gets no more blocks.
        measured: whether blocks have column ranges.
        captured: whether the table has change data capture: write stats then name all files below the log, from which
            CDC readers compute its changes. (Apache Hudi names only log files since a pending compaction, and CDC
            queries fail once the compaction is complete.)
    """

    storage: Storage
    layout_version: int
    instant: str
    slice: FileSlice
    token: str
    max_file_size: int
    measured: bool = False
    captured: bool = False


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """Counts of a block: rows with new keys, rows with known keys, deleted keys; and its column ranges."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    ranges: ColumnRanges = field(default_factory=dict)


class LogOutput:
    """Writes the log files that one write adds to one slice; a context manager. :attr:`stats` holds the write stats.

    Args:
        target: of the blocks.
    """

    def __init__(self, target: LogTarget) -> None:
        self.stats: list[WriteStat] = []
        self._target = target
        self._version, self._token = _first_version(target)
        self._writer: LogFileWriter | None = None
        self._counts = BlockCounts()

    def append(
        self, kind: BlockType, headers: Mapping[HeaderKey, str], content: Sequence[Any], counts: BlockCounts
    ) -> None:
        """Write a block, in a new file if the last one is full."""
        if self._writer is not None and self._writer.size > self._target.max_file_size:
            self.close()
        if self._writer is None:
            self._writer = self._open()
        self._writer.append(kind, headers, content)
        have = self._counts
        self._counts = BlockCounts(
            have.inserts + counts.inserts,
            have.updates + counts.updates,
            have.deletes + counts.deletes,
            merge_ranges([have.ranges, counts.ranges]),
        )

    def close(self) -> None:
        """Finish the open file, if any, and add its write stat."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        writer.close()
        self.stats.append(self._stat(writer))
        self._counts = BlockCounts()
        self._version += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            self.close()
        elif self._writer is not None:  # the write fails; a rollback deletes remaining files
            with contextlib.suppress(OSError):
                self._writer.abort()

    def _open(self) -> LogFileWriter:
        """The first free version."""
        target, one = self._target, self._target.slice
        old = target.layout_version < 2
        folder = f"{one.partition}/" if one.partition else ""
        for _ in range(_MAX_VERSIONS_TRIED):
            name = log_file_name(one.file_id, one.base_instant if old else target.instant, self._version, self._token)
            if not old or not target.storage.exists(folder + name):  # from version 8 on, names are of this write only
                with contextlib.suppress(FileExistsError):
                    return _new_file(target, folder + name)
            self._version += 1
        raise FileExistsError(f"{folder}{name} and {_MAX_VERSIONS_TRIED - 1} versions before it exist")

    def _stat(self, writer: LogFileWriter) -> WriteStat:
        target, one, counts = self._target, self._target.slice, self._counts
        old = target.layout_version < 2
        base = one.base_file if target.captured or (old and _begins_at_base(one)) else None
        before = [log.name for log in reversed(_logs_before(target))]
        written = [stat.path.rpartition("/")[2] for stat in self.stats]
        return WriteStat(
            file_id=one.file_id,
            path=writer.path,
            prev_commit=one.base_instant if old or target.captured else target.instant,
            partition_path=one.partition,
            num_writes=counts.inserts + counts.updates,
            num_inserts=counts.inserts,
            num_update_writes=counts.updates,
            num_deletes=counts.deletes,
            total_write_bytes=writer.size,
            file_size=writer.size,
            base_file=base.name if base is not None else "",
            log_files=(*before, *written, writer.path.rpartition("/")[2]),
            log_version=self._version,
            log_offset=0,
            column_ranges=counts.ranges if target.measured else None,
        )


def _new_file(target: LogTarget, path: str) -> LogFileWriter:
    """Raises FileExistsError when another attempt of this task, or another write, has claimed the name.

    From table version 8 on the name has the instant, so the marker claims it; before, other writes may use it.
    """
    storage, is_ours = target.storage, target.layout_version > 1
    kind = "CREATE" if is_ours else "APPEND"
    create_marker(storage, target.instant, path, kind)
    try:
        return LogFileWriter(storage, path, is_ours)
    except FileExistsError:
        if kind == "APPEND":
            delete_marker(storage, target.instant, path, kind)
        raise


def _first_version(target: LogTarget) -> tuple[int, str]:
    if target.layout_version > 1:
        return 1, target.token
    mine = _own_logs(target.slice)
    return (mine[-1].version + 1 if mine else 1), _token_of_attempt(target)


def _token_of_attempt(target: LogTarget) -> str:
    """A write token that no other attempt uses.

    Names of version 6 have no instant, and the name of a deleted file must not be used again for other content. Spark
    tasks use the number of their attempt; a process, which counts no attempts, uses the instant.
    """
    task, stage, attempt = target.token.split("-")
    own = attempt if int(attempt) else str(int(target.instant[-_TOKEN_DIGITS:]))
    return f"{task}-{stage}-{own}"


def _begins_at_base(one: FileSlice) -> bool:
    """Whether the slice begins at its base file and not at a pending compaction."""
    return one.base_file is not None and one.base_file.instant == one.base_instant


def _logs_before(target: LogTarget) -> list[LogFile]:
    """The other log files that a write stat names, in the order in which they apply."""
    if target.captured:
        return [*target.slice.change_logs, *target.slice.log_files]
    return _own_logs(target.slice) if target.layout_version < 2 else []


def _own_logs(one: FileSlice) -> list[LogFile]:
    """Log files named after the slice's own instant, without log files from before a pending compaction."""
    return [log for log in one.log_files if log.instant == one.base_instant]
