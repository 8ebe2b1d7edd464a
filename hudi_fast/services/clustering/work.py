"""The values of a running clustering.

::

    ClusteringWork      what is true for all groups; tasks receive it pickled
    slices_of           the file slices of a group, as they are in storage
    ClusteringResult    what the caller gets
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hudi_fast.errors import CorruptTableError
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat, Storage, check_relative
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.plan import FilePlan

__all__ = [
    "ClusteringResult",
    "ClusteringWork",
    "Finished",
    "Ordering",
    "combined_result",
    "path_of",
    "slices_of",
]


@dataclass(frozen=True, slots=True)
class Ordering:
    """How rows are ordered in the files that a clustering writes.

    Attributes:
        columns: to sort by, dotted for nested ones; empty: rows keep the order that they have.
        curve: ``LINEAR`` (by the first column, then the second ...), ``ZORDER`` or ``HILBERT``.
        build: what a curve is made of: ``DIRECT`` values, or ``SAMPLE``: their ranks in a sample.
        sample_rows: size of that sample.
    """

    columns: tuple[str, ...] = ()
    curve: str = "LINEAR"
    build: str = "DIRECT"
    sample_rows: int = 200_000


@dataclass(frozen=True, kw_only=True)
class ClusteringWork:
    """What is true for all groups of a clustering.

    Attributes:
        plan: how files are made; it has the instant of the clustering.
        merge: how file slices merge.
        group_count: groups of the clustering plan; they share memory and threads.
        ordering: of the rows.
        target_bytes: size of a file after which the next one begins.
        copies: whether row groups are copied as bytes where the files allow it.
    """

    plan: FilePlan
    merge: SliceMerge
    group_count: int
    ordering: Ordering
    target_bytes: int
    copies: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A clustering that was completed.

    Attributes:
        instant: its requested time.
        file_groups: that it ended.
        stats: of the files that it wrote.
    """

    instant: str
    file_groups: int
    stats: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class ClusteringResult:
    """What a clustering did.

    Attributes:
        instant: requested time of the newest one that was completed; empty when there was nothing to do.
        operation: ``cluster``.
        file_groups: that were rewritten, and are gone.
        rows: of the files written.
        files_written: how many.
        bytes_written: their size.
        copied_row_groups: row groups that came into them as they were stored.
        instants: requested times of all that were completed, oldest first.
        seconds: from call to visible.
    """

    instant: str
    operation: str = "cluster"
    file_groups: int = 0
    rows: int = 0
    files_written: int = 0
    bytes_written: int = 0
    copied_row_groups: int = 0
    instants: tuple[str, ...] = ()
    seconds: float = 0.0


def combined_result(done: Iterable[Finished], seconds: float) -> ClusteringResult:
    """The result of a call that completed several clusterings, or none.

    Args:
        done: oldest first.
        seconds: what the call took.
    """
    finished = list(done)
    stats = [stat for one in finished for stat in one.stats]
    instants = tuple(one.instant for one in finished)
    return ClusteringResult(
        instant=instants[-1] if instants else "",
        file_groups=sum(one.file_groups for one in finished),
        rows=sum(stat.num_writes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.file_size for stat in stats),
        copied_row_groups=sum(stat.copied_row_groups for stat in stats),
        instants=instants,
        seconds=seconds,
    )


def path_of(slice_: ClusteringSlice, file: str) -> str:
    """A file of a plan, relative to the table; plans name the base path as whoever planned was given it."""
    name = file.rpartition("/")[2]
    return check_relative(f"{slice_.partition_path}/{name}" if slice_.partition_path else name)


def slices_of(storage: Storage, group: ClusteringGroup, history: SchemaHistory | None = None) -> list[FileSlice]:
    """The file slices of a group, in the order of the plan; base files have today's names in ``history``.

    Raises:
        CorruptTableError: a file of the plan is gone, or is none of Hudi's.
    """
    named = renamer(history)
    found = (_slice_of(storage, one) for one in group.slices)
    return [one if one.base_file is None else replace(one, base_file=named(one.base_file)) for one in found]


def _slice_of(storage: Storage, planned: ClusteringSlice) -> FileSlice:
    base: BaseFile | None = None
    if planned.base_path:
        base = parse_base_file(_entry(storage, planned, planned.base_path))
    found = [parse_log_file(_entry(storage, planned, path)) for path in planned.log_paths]
    logs: list[LogFile] = sorted((one for one in found if one is not None), key=log_order)
    if len(logs) < len(found) or (base is None and (planned.base_path or not logs)):
        raise CorruptTableError(
            f"A clustering plan of {storage.uri} names files that are not Hudi data files: {planned}."
        )
    begins = base.instant if base is not None else min(log.instant for log in logs)
    rows = tuple(log for log in logs if not log.is_cdc)
    return FileSlice(planned.partition_path, planned.file_id, base, rows, begins)


def _entry(storage: Storage, planned: ClusteringSlice, file: str) -> FileStat:
    path = path_of(planned, file)
    entry = storage.stat(path)
    if entry is None:
        raise CorruptTableError(
            f"A clustering of {storage.uri} is planned for the file group {planned.file_id}, but a file of it is gone. "
            "Restore the file, or the table to a savepoint; or roll the clustering back.",
            path,
        )
    return entry
