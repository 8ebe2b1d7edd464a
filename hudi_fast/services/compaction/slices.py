"""Merges one file slice into a base file: the unit of work of a compaction.

::

    log files ─► valid blocks ─► merged with the base file     ─► its rows, changed   ─┐
                               └► rows whose keys it lacks ────────────────────────────┴─► new base file

Rows keep their commit time and sequence number; the file name column is new. Row groups without changes are copied as
bytes where they may be (:mod:`hudi_fast.writing.patched_file`). The new file keeps the bloom filter of the old one and
adds the keys of new rows. A slice without remaining rows becomes a base file without rows.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hudi_fast.formats.base_file import BaseFileReader
from hudi_fast.formats.log.blocks import BlockType, LogBlock
from hudi_fast.merging.base_merge import entry_replacement, merged_batches
from hudi_fast.merging.log_scan import filter_visible_blocks, slice_blocks
from hudi_fast.merging.resolve import ResolvedSlice, resolve_slice
from hudi_fast.merging.slice_merge import merge_schema
from hudi_fast.services.compaction.compact_work import CompactionWork, slice_of
from hudi_fast.timeline.commit_metadata import RuntimeStats, WriteStat
from hudi_fast.timeline.service_plans import CompactionOperation
from hudi_fast.view.base_files import open_base
from hudi_fast.view.slices import FileSlice
from hudi_fast.writing.change_log import ChangeLog, change_log_of
from hudi_fast.writing.file_columns import RECORD_KEY, CarriedColumns, carried_schema
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.output_file import OutputFile, chunks
from hudi_fast.writing.patched_file import NextVersion, next_version
from hudi_fast.writing.write_plan import FileGroupWork, FilePlan, TaskToken

__all__ = ["ScannedLog", "compact_slice", "log_counters", "scan_log"]

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
