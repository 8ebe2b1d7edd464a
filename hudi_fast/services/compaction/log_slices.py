"""Merges the log files of one slice into one: the unit of work of a log compaction.

::

    log files ─► valid blocks ─► entries, folded: one per key ─► data blocks, a delete block ─► new log file

The new blocks list the instants that they replace, so readers skip those; the old files stay until they are cleaned.
Rows get the commit time of the log compaction, as in Apache Hudi. Rows with some columns only (partial updates) keep
these columns: there is a data block for each set of columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hudi_fast.errors import UnsupportedFeatureError
from hudi_fast.formats.avro.schema import arrow_to_avro, record_name_of
from hudi_fast.formats.log.blocks import BlockType, HeaderKey
from hudi_fast.formats.log.kryo_delete_writing import delete_block_of
from hudi_fast.merging.fold import fold
from hudi_fast.merging.gather import gather_array
from hudi_fast.merging.log_entries import LogEntries
from hudi_fast.merging.read_entries import read_entries
from hudi_fast.merging.slice_merge import merge_schema
from hudi_fast.services.compaction.compact_work import CompactionWork, slice_of
from hudi_fast.services.compaction.slices import ScannedLog, log_counters, scan_log
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.file_columns import META_COLUMNS, new_meta_columns
from hudi_fast.writing.log_data import data_blocks, delete_records
from hudi_fast.writing.log_file import BlockCounts, LogOutput, LogTarget
from hudi_fast.writing.output_file import Rows, chunks
from hudi_fast.writing.write_plan import FilePlan, TaskToken

__all__ = ["compact_log"]

_SEVERAL_DELETE_VALUES = 9
"""From this table version on the entries of a delete block may have several ordering values."""


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
        _write(plan, entries, log, slice_, token, output)
    counters = log_counters(log, logged.count, entries.count, int((scanned - started) * 1000))
    milliseconds = int((time.monotonic() - scanned) * 1000)
    runtime = RuntimeStats(total_scan_time=counters.total_log_read_time_ms, total_upsert_time=milliseconds)
    stats = [replace(stat, prev_commit=slice_.base_instant) for stat in output.stats]
    return [_counted(stat, counters, runtime) for stat in stats[:1]] + stats[1:]


def _write(
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
        rows = _rows(plan, entries, chosen, schema, slice_, token, first)
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


def _rows(
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
