"""The values of a running compaction.

::

    CompactionWork      shared by all file slices; tasks receive it pickled
    slice_of            the file slice of an operation, from storage
    CompactionResult    the result for the caller
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_fast.errors import CorruptTableError
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.write_plan import FilePlan

__all__ = ["CompactionResult", "CompactionWork", "combined_result", "slice_of"]


@dataclass(frozen=True, kw_only=True)
class CompactionWork:
    """State that all file slices of a compaction or log compaction share.

    Attributes:
        plan: file settings; it has the instant of the service.
        merge: how file slices merge.
        action: ``compaction`` (new base files) or ``logcompaction`` (new log files).
    """

    plan: FilePlan
    merge: SliceMerge
    action: str = "compaction"


@dataclass(frozen=True, slots=True)
class CompactionResult(ShownResult):
    """The result of a compaction, a log compaction or a resizing of buckets.

    Attributes:
        instant: requested time of the newest completed instant; empty when there was nothing to do.
        operation: ``compact``, ``compact_logs`` or ``cluster``.
        file_groups: number of written slices.
        log_files: number of merged log files.
        rows: number of rows in the written files.
        inserts: number of these rows whose keys no base file had.
        updates: number of these rows that the log changed.
        deletes: number of rows that the log removed.
        files_written: number of written files.
        bytes_written: their size.
        seconds: time from the call until the result is visible.
        instants: requested times of all completed instants, oldest first.
    """

    instant: str
    operation: str
    file_groups: int = 0
    log_files: int = 0
    rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    files_written: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    instants: tuple[str, ...] = ()


def combined_result(operation: str, results: Iterable[tuple[str, list[WriteStat]]], seconds: float) -> CompactionResult:
    """The result of a call that completed several instants, or none.

    Args:
        operation: ``compact``, ``compact_logs`` or ``cluster``.
        results: (instant, stats of its files), oldest first.
        seconds: duration of the call.
    """
    done = list(results)
    stats = [stat for _, written in done for stat in written]
    instants = tuple(instant for instant, _ in done)
    return CompactionResult(
        instant=instants[-1] if instants else "",
        operation=operation,
        file_groups=len({(stat.partition_path, stat.file_id) for stat in stats}),
        log_files=sum(stat.total_log_files_compacted for stat in stats),
        rows=sum(stat.num_writes for stat in stats),
        inserts=sum(stat.num_inserts for stat in stats),
        updates=sum(stat.num_update_writes for stat in stats),
        deletes=sum(stat.num_deletes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.file_size for stat in stats),
        seconds=seconds,
        instants=instants,
    )


def slice_of(storage: Storage, operation: CompactionOperation, history: SchemaHistory | None = None) -> FileSlice:
    """The file slice of an operation; its base file has the current column names of ``history``.

    Raises:
        CorruptTableError: one of its files is missing.
    """
    base = None if operation.base_file is None else parse_base_file(_entry(storage, operation, operation.base_file))
    names = [name for name in operation.log_files if not name.endswith(".cdc")]  # change logs are not merged
    logs = [parse_log_file(_entry(storage, operation, name)) for name in names]
    if (operation.base_file is not None and base is None) or None in logs:
        raise CorruptTableError(f"A plan of {storage.uri} names files that are not Hudi data files: {operation}.")
    named = tuple(log for log in logs if log is not None)
    base = None if base is None else renamer(history)(base)
    return FileSlice(operation.partition_path, operation.file_id, base, named, operation.base_instant)


def _entry(storage: Storage, operation: CompactionOperation, name: str) -> FileStat:
    path = f"{operation.partition_path}/{name}" if operation.partition_path else name
    entry = storage.stat(path)
    if entry is None:
        raise CorruptTableError(
            f"A compaction of {storage.uri} is planned for the file group {operation.file_id}, but a file of it is "
            "missing. Restore the file, or the table to a savepoint.",
            path,
        )
    return entry
