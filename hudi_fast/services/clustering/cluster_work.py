"""The values of a running clustering.

::

    ClusteringWork      state shared by all groups; tasks receive it pickled
    slices_of           the file slices of a group, from storage
    ClusteringResult    the result of a call
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hudi_fast.errors import CorruptTableError
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import ClusteringGroup, ClusteringSlice
from hudi_fast.view.file_names import BaseFile, LogFile, log_order, parse_base_file, parse_log_file
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.write_plan import FilePlan

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
    """Order of rows in the files that a clustering writes.

    Attributes:
        columns: to sort by, dotted for nested ones; empty: rows keep their order.
        curve: ``LINEAR`` (by the first column, then the second ...), ``ZORDER`` or ``HILBERT``.
        build: input of a curve: ``DIRECT`` values, or ``SAMPLE``: their ranks in a sample.
        sample_rows: size of that sample.
    """

    columns: tuple[str, ...] = ()
    curve: str = "LINEAR"
    build: str = "DIRECT"
    sample_rows: int = 200_000


@dataclass(frozen=True, kw_only=True)
class ClusteringWork:
    """The state that all groups of a clustering share.

    Attributes:
        plan: how files are written, and the instant of the clustering.
        merge: how file slices merge.
        group_count: groups of the clustering plan; they share memory and threads.
        ordering: of the rows.
        target_bytes: file size after which the next file begins.
        copies: whether row groups are copied as bytes if the files allow it.
        keeps_buckets: whether the file groups are buckets of a simple bucket index, each of which stays one file group.
    """

    plan: FilePlan
    merge: SliceMerge
    group_count: int
    ordering: Ordering
    target_bytes: int
    copies: bool = False
    keeps_buckets: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A completed clustering.

    Attributes:
        instant: its requested time.
        file_groups: number of replaced file groups.
        stats: of the files that it wrote.
    """

    instant: str
    file_groups: int
    stats: tuple[WriteStat, ...]


@dataclass(frozen=True, slots=True)
class ClusteringResult(ShownResult):
    """The result of a call that clustered.

    Attributes:
        instant: requested time of the newest completed clustering; empty when there was nothing to do.
        operation: ``cluster``.
        file_groups: number of replaced file groups.
        rows: rows of the written files.
        files_written: number of written files.
        bytes_written: their size.
        copied_row_groups: row groups that were copied without decoding.
        instants: requested times of all completed clusterings, oldest first.
        seconds: from the call until the rows are visible.
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
        seconds: duration of the call.
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
    """A file of a plan, relative to the table; plans contain the base path in the planner's spelling."""
    name = file.rpartition("/")[2]
    return f"{slice_.partition_path}/{name}" if slice_.partition_path else name


def slices_of(storage: Storage, group: ClusteringGroup, history: SchemaHistory | None = None) -> list[FileSlice]:
    """The file slices of a group, in the order of the plan; base files have the current column names of ``history``.

    Raises:
        CorruptTableError: a file of the plan is missing, or is not a Hudi data file.
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
            f"A clustering of {storage.uri} is planned for the file group {planned.file_id}, but a file of it is "
            "missing. Restore the file, or the table to a savepoint; or roll the clustering back.",
            path,
        )
    return entry
