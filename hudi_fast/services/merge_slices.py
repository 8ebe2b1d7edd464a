"""Merge one file slice, and the values of a running compaction.

Merges one file slice: into a base file for a compaction, into log files for a log compaction.

::

    compact_slice   log files ─► valid blocks ─► merged with the base file     ─► its rows, changed   ─┐
                                               └► rows whose keys it lacks ────────────────────────────┴─► base file
    compact_log     log files ─► valid blocks ─► entries, one per key ─► data blocks, a delete block ────► log file

A compaction keeps the commit time and sequence number of rows; the file name column is new. Row groups without changes
are copied as bytes where they may be (:mod:`hudi_fast.writing.patched_file`). The new file keeps the bloom filter of
the old one and adds the keys of new rows. A slice without remaining rows becomes a base file without rows.

::

    CompactionWork      shared by all file slices; tasks receive it pickled
    slice_of            the file slice of an operation, from storage
    CompactionResult    the result for the caller
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_fast.errors import CorruptTableError, UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of
from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock
from hudi_fast.formats.log.delete_block import delete_block_of
from hudi_fast.formats.varlen import gather_array
from hudi_fast.merging.base_merge import entry_replacement, merged_batches
from hudi_fast.merging.fold import fold
from hudi_fast.merging.log_entries import LogEntries, read_entries
from hudi_fast.merging.log_scan import filter_visible_blocks, slice_blocks
from hudi_fast.merging.merged_slice import ResolvedSlice, resolve_slice
from hudi_fast.merging.rules import SliceMerge, merge_schema
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.schema.history import SchemaHistory
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.values import dataclass
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.schema_history import renamer
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.log_file import BlockCounts, LogOutput, LogTarget, data_blocks, delete_records
from hudi_fast.writing.output_file import (
    META_COLUMNS,
    RECORD_KEY,
    CarriedColumns,
    KeyFooter,
    OutputFile,
    Rows,
    carried_schema,
    chunks,
    new_meta_columns,
)
from hudi_fast.writing.patched_file import NextVersion, next_version
from hudi_fast.writing.rewrite import ChangeLog, change_log_of
from hudi_fast.writing.write_plan import FileGroupWork, FilePlan, TaskToken

__all__ = ["CompactionResult", "CompactionWork", "combined_result", "compact_log", "compact_slice", "slice_of"]


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


_NO_COLUMNS: frozenset[str] = frozenset()
_NO_ROWS = np.zeros(0, dtype=np.int64)
_DATA = frozenset({BlockType.AVRO_DATA, BlockType.HFILE_DATA, BlockType.PARQUET_DATA, BlockType.DELETE})


def compact_slice(work: CompactionWork, operation: CompactionOperation, token: TaskToken) -> WriteStat:
    """Merge one file slice into a base file at the compaction's instant.

    Args:
        work: the compaction.
        operation: an operation of its plan.
        token: the task that writes.

    Raises:
        CorruptTableError: a file of the slice is missing or damaged.
        UnsupportedFeatureError: the log uses an unsupported feature.
    """
    plan, merge = work.plan, work.merge
    started = time.monotonic()
    slice_ = slice_of(plan.storage, operation, plan.view.history)
    log = scan_log(work, slice_)
    with contextlib.ExitStack() as stack:
        base = slice_.base_file
        reader = None if base is None else stack.enter_context(open_base(plan.storage, base))
        schema = merge_schema(merge, carried_schema(plan), plan.file_schema)
        resolved = resolve_slice(merge, log.blocks, schema, reader, base.instant if base is not None else None)
        scanned = time.monotonic()
        changes = _change_log(plan, slice_, token, reader, resolved)
        if changes is not None:
            stack.enter_context(changes)
        unset = _NO_COLUMNS if changes is None and merge.rules.merger is None else None
        version = _next_version(plan, slice_, token, reader, resolved, unset)
        output = version.file
        stack.enter_context(output)
        _write(work, resolved, CarriedColumns.of(plan, slice_.partition, output.name), reader, version, changes)
        size = output.close()
        if changes is not None:
            changes.close()
    counts = log_counters(log, resolved.logged, resolved.entries.count, int((scanned - started) * 1000))
    return replace(
        counts,
        file_id=slice_.file_id,
        path=output.path,
        prev_commit=base.instant if base is not None else "null",
        prev_base_file=base.name if base is not None else None,
        partition_path=slice_.partition,
        num_writes=output.rows,
        num_inserts=len(resolved.appended),
        num_update_writes=len(resolved.changes.replaced),
        num_deletes=len(resolved.changes.dropped),
        total_write_bytes=size,
        file_size=size,
        cdc_stats=None if changes is None else changes.sizes,
        column_ranges=output.ranges,
        copied_row_groups=version.copied,
        runtime_stats=RuntimeStats(
            total_scan_time=counts.total_log_read_time_ms,
            total_upsert_time=int((time.monotonic() - scanned) * 1000),
        ),
    )


def compact_log(work: CompactionWork, operation: CompactionOperation, token: TaskToken) -> list[WriteStat]:
    """Merge the log of one file slice into new log files: one, unless it exceeds the maximum size of a log file.

    Args:
        work: the log compaction.
        operation: an operation of its plan.
        token: the task that writes.

    Returns:
        One stat for each file; none when no block of the log is valid.

    Raises:
        CorruptTableError: a file of the slice is missing or damaged.
        UnsupportedFeatureError: the log uses an unsupported feature.
    """
    plan, merge = work.plan, work.merge
    started = time.monotonic()
    slice_ = slice_of(plan.storage, operation, plan.view.history)
    log = scan_log(work, slice_)
    data = pa.schema([field for field in plan.file_schema if field.name not in META_COLUMNS])
    logged = read_entries(merge, log.blocks, merge_schema(merge, data, plan.file_schema))
    entries = fold(merge.rules, logged)
    _check_deletes(plan, entries, slice_)
    scanned = time.monotonic()
    layout, limit, measured = plan.config.layout_version, plan.files.log.max_file_size, bool(plan.files.stats_columns)
    with LogOutput(LogTarget(plan.storage, layout, plan.instant, slice_, str(token), limit, measured)) as output:
        _write_log(plan, entries, log, slice_, token, output)
    counters = log_counters(log, logged.count, entries.count, int((scanned - started) * 1000))
    milliseconds = int((time.monotonic() - scanned) * 1000)
    runtime = RuntimeStats(total_scan_time=counters.total_log_read_time_ms, total_upsert_time=milliseconds)
    stats = [replace(stat, prev_commit=slice_.base_instant) for stat in output.stats]
    return [_counted(stat, counters, runtime) for stat in stats[:1]] + stats[1:]


# ---- the log


@dataclass(frozen=True, slots=True)
class ScannedLog:
    """The log of a slice.

    Attributes:
        blocks: the valid blocks, in the order in which they apply.
        files: number of scanned log files.
        kinds: number of blocks of each kind, including invalid ones.
    """

    blocks: Sequence[LogBlock]
    files: int
    kinds: Counter[BlockType]


def scan_log(work: CompactionWork, slice_: FileSlice) -> ScannedLog:
    """Read the headers of the slice's log blocks."""
    kinds: Counter[BlockType] = Counter()

    def counted() -> Iterator[LogBlock]:
        for block in slice_blocks(work.merge, slice_):
            kinds[block.kind] += 1
            yield block

    return ScannedLog(filter_visible_blocks(work.merge, counted()), len(slice_.log_files), kinds)


def log_counters(log: ScannedLog, records: int, keys: int, milliseconds: int) -> WriteStat:
    """A write stat with the figures of the merged log alone.

    Args:
        log: the scanned log.
        records: number of records and deleted keys in the log.
        keys: number of distinct keys in the log.
        milliseconds: time of reading and folding.
    """
    return WriteStat(
        total_log_records=records,
        total_log_files_compacted=log.files,
        total_log_size_compacted=sum(one.content_length for one in log.blocks if one.kind is not BlockType.DELETE),
        total_log_read_time_ms=milliseconds,
        total_updated_records_compacted=keys,
        total_log_blocks=sum(log.kinds[kind] for kind in _DATA),
        total_corrupt_log_blocks=log.kinds[BlockType.CORRUPT],
        total_rollback_blocks=log.kinds[BlockType.COMMAND],
    )


# ---- the base file


def _next_version(
    plan: FilePlan,
    slice_: FileSlice,
    token: TaskToken,
    reader: BaseFileReader | None,
    resolved: ResolvedSlice,
    unset: frozenset[str] | None,
) -> NextVersion:
    work = FileGroupWork(slice_.partition, slice_.file_id, slice_, _NO_ROWS, _NO_ROWS, None, _NO_ROWS, token)
    if reader is None or slice_.base_file is None:
        new = OutputFile(plan, work, slice_.file_id, "CREATE", KeyFooter.for_new_file(plan))
        return NextVersion(new, (), 0)
    return next_version(plan, work, slice_.base_file, reader, resolved.changes, len(resolved.appended), unset)


def _change_log(
    plan: FilePlan, slice_: FileSlice, token: TaskToken, reader: BaseFileReader | None, resolved: ResolvedSlice
) -> ChangeLog | None:
    stored = 0 if reader is None else reader.num_rows
    remaining = stored - len(resolved.changes.dropped) + len(resolved.appended)
    return change_log_of(plan, slice_.partition, slice_.file_id, token, stored, remaining)


def _write(
    work: CompactionWork,
    resolved: ResolvedSlice,
    carried: CarriedColumns,
    reader: BaseFileReader | None,
    version: NextVersion,
    log: ChangeLog | None,
) -> None:
    output, stored = version.file, work.plan.config.populate_meta_fields
    entries, changes = resolved.entries, resolved.changes
    if reader is not None:
        for run in version.encoded:
            wanted = run.left(carried.wanted)
            replacement = entry_replacement(work.merge.rules, entries, changes, wanted)
            for table in merged_batches(reader, wanted, changes, replacement, row_groups=run.groups, observer=log):
                output.write(table if run.copied else carried.complete(table))
                if stored and not run.copied:
                    output.footer.carry(table.column(RECORD_KEY))
    for part in chunks(entries.row[resolved.appended]):
        table = entries.take(part, carried.wanted.names)
        output.write(carried.complete(table))
        if stored:
            output.footer.add(table.column(RECORD_KEY).combine_chunks())
        if log is not None:
            log.inserted(table)


# ---- new log files
#
# The new blocks list the instants that they replace, so readers skip those; the old files stay until they are cleaned.
# Rows get the commit time of the log compaction, as in Apache Hudi. Rows with some columns only (partial updates) keep
# these columns: there is a data block for each set of columns.

_SEVERAL_DELETE_VALUES = 9
"""From this table version on the entries of a delete block may have several ordering values."""


def _write_log(
    plan: FilePlan, entries: LogEntries, log: ScannedLog, slice_: FileSlice, token: TaskToken, output: LogOutput
) -> None:
    replaced = ",".join(sorted({block.instant for block in log.blocks}))
    headers = {HeaderKey.INSTANT_TIME: plan.instant, HeaderKey.COMPACTED_BLOCK_TIMES: replaced}
    first = 0
    for columns, chosen in _by_columns(entries):
        schema, avro_schema = plan.file_schema, plan.avro_schema
        partial = {}
        if columns is not None:
            schema = pa.schema([one for one in schema if one.name in META_COLUMNS or one.name in columns])
            avro_schema = arrow_to_avro(schema, *record_name_of(plan.config.name), meta_fields=True)
            partial = {HeaderKey.IS_PARTIAL: "true"}
        rows = _log_rows(plan, entries, chosen, schema, slice_, token, first)
        for block in data_blocks(
            rows, schema, avro_schema, plan.files.log, plan.files.parquet, plan.files.stats_columns
        ):
            names = headers | partial | {HeaderKey.SCHEMA: avro_schema}
            output.append(block.kind, names, block.content, BlockCounts(updates=block.rows, ranges=block.ranges))
        first += len(chosen)
    gone = np.flatnonzero(entries.deletes)
    if len(gone):
        records = delete_records(
            gather_array(entries.keys, gone),
            pa.repeat(pa.scalar(slice_.partition, pa.string()), len(gone)),
            [gather_array(column, gone) for column in entries.ordering],
            entries.default_ordering[gone],
        )
        names = headers | {HeaderKey.SCHEMA: plan.avro_schema}
        output.append(
            BlockType.DELETE, names, [delete_block_of(plan.config.version, records)], BlockCounts(deletes=len(gone))
        )


def _by_columns(entries: LogEntries) -> Iterator[tuple[frozenset[str] | None, Rows]]:
    """Entries that are rows, by the set of their columns; None for all columns."""
    kept = np.flatnonzero(~entries.deletes)
    if entries.column_set is None:
        yield None, kept
        return
    for number in range(-1, len(entries.column_sets)):
        chosen = kept[entries.column_set[kept] == number]
        if len(chosen):
            yield None if number < 0 else entries.column_sets[number], chosen


def _log_rows(
    plan: FilePlan,
    entries: LogEntries,
    chosen: Rows,
    schema: pa.Schema,
    slice_: FileSlice,
    token: TaskToken,
    first: int,
) -> Iterator[pa.Table]:
    """The rows of these entries with new meta columns; the file name column has the file group's name in a log."""
    names = [name for name in schema.names if name not in META_COLUMNS]
    for part in chunks(chosen):
        keys = gather_array(entries.keys, part)
        meta = new_meta_columns(plan, keys, slice_.partition, slice_.file_id, token.task, first)
        plain = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in meta]
        yield pa.Table.from_arrays([*plain, *entries.take(entries.row[part], names).columns], schema=schema)
        first += len(part)


def _check_deletes(plan: FilePlan, entries: LogEntries, slice_: FileSlice) -> None:
    """Refuse deletes that a delete block of this table cannot store."""
    compares = entries.deletes & ~entries.default_ordering
    problem = None
    if entries.mismatched is not None and (compares & entries.mismatched).any():
        problem = "ordering values of another type than the column"
    elif len(entries.ordering) > 1 and plan.config.version < _SEVERAL_DELETE_VALUES and compares.any():
        problem = "several ordering values"
    if problem is not None:
        raise UnsupportedFeatureError(
            f"The log of {slice_.file_id} in {plan.storage.uri} has deletes with {problem}; log compaction of those is "
            "not supported. Compact the table instead."
        )


def _counted(stat: WriteStat, counters: WriteStat, runtime: RuntimeStats) -> WriteStat:
    return replace(
        stat,
        runtime_stats=runtime,
        total_log_records=counters.total_log_records,
        total_log_files_compacted=counters.total_log_files_compacted,
        total_log_size_compacted=counters.total_log_size_compacted,
        total_log_read_time_ms=counters.total_log_read_time_ms,
        total_updated_records_compacted=counters.total_updated_records_compacted,
        total_log_blocks=counters.total_log_blocks,
        total_corrupt_log_blocks=counters.total_corrupt_log_blocks,
        total_rollback_blocks=counters.total_rollback_blocks,
    )
