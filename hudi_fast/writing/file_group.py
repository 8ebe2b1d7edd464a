"""Step 4 of a write: one file group's rows become files.

Pure in the plan, the work and the files of the pinned slice; returns plain write stats.

===================================  ===============================================================================
file group                           written files
===================================  ===============================================================================
new                                  base files, here (``HoodieCreateHandle``, Hudi 1.2.0)
existing                             a new base file version: :mod:`hudi_fast.writing.rewrite`
existing, MERGE_ON_READ, no inserts  log files: :mod:`hudi_fast.writing.append`
===================================  ===============================================================================

Rows that need values of stored rows get them first (:mod:`hudi_fast.writing.whole_rows`).
"""

from __future__ import annotations

import math

from hudi_fast.merging.gather import gather_array
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.writing.append import append_log
from hudi_fast.writing.conflicts.early import require_no_earlier_writer
from hudi_fast.writing.key_footer import KeyFooter
from hudi_fast.writing.located import with_row_numbers
from hudi_fast.writing.output_file import OutputFile, Rows, new_rows
from hudi_fast.writing.partition_marker import ensure_partition_marker
from hudi_fast.writing.rewrite import rewrite_file_group
from hudi_fast.writing.whole_rows import whole_rows
from hudi_fast.writing.write_plan import PART_ROWS, FileGroupWork, Incoming, WritePlan

__all__ = ["write_file_group"]

_FEWEST_ROWS = 100


def write_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write one file group and return its write stats.

    Raises:
        CommitConflictError: early conflict detection found another writer of the file group.
        InvalidDataError: a log has deleted the row that a partial row changes.
    """
    if plan.early is not None and (work.slice is not None or plan.index.bucket is not None):  # may have other writers
        require_no_earlier_writer(plan.early, plan.storage, plan.config, plan.instant, (work.partition, work.file_id))
    plan, work, incoming = whole_rows(plan, work, incoming)
    ensure_partition_marker(plan.storage, work.partition, plan.instant, plan.config.partition_metafile_in_base_format)
    if work.slice is None:
        return _create_file_group(plan, work, incoming)
    if plan.config.is_mor and not len(work.inserts):
        return append_log(plan, work, incoming)
    if work.slice.base_file is None:
        raise ValueError(f"rows are inserted into {work.file_id}, which has no base file")
    return [rewrite_file_group(plan, with_row_numbers(plan, work, incoming), work.slice.base_file, incoming)]


def _create_file_group(plan: WritePlan, work: FileGroupWork, incoming: Incoming) -> list[WriteStat]:
    """Write ``work.inserts``; a full file is followed by another with the next suffix."""
    stats: list[WriteStat] = []
    prefix, _, suffix = work.file_id.rpartition("-")
    rows, start = work.inserts, 0
    while start < len(rows) or not stats:
        file_id = f"{prefix}-{int(suffix) + len(stats)}"
        stat = _create_file(plan, work, file_id, incoming, rows[start:], work.first_sequence + start)
        start += stat.num_writes
        stats.append(stat)
    return stats


def _create_file(
    plan: WritePlan, work: FileGroupWork, file_id: str, incoming: Incoming, rows: Rows, first_sequence: int
) -> WriteStat:
    sizing = plan.files.sizing
    ceiling = sizing.max_file_size * (1 + sizing.compression_ratio) - 2 * plan.files.average_record_size
    if plan.index.bucket is not None:  # a bucket is one file group, however large
        ceiling = math.inf
    else:
        rows = rows[: math.ceil(sizing.max_file_rows * (1 + sizing.compression_ratio))]
    with OutputFile(plan, work, file_id, "CREATE", KeyFooter.for_new_file(plan)) as output:
        for part in incoming.parts(rows, _rows_at_once(incoming, ceiling)):
            output.write(new_rows(plan, work, incoming, part, output.name, first_sequence + output.rows))
            output.footer.add(gather_array(incoming.key_array(), part))
            if output.rows < len(rows) and output.is_full(ceiling):
                break
        size = output.close()
    return WriteStat(
        file_id=file_id,
        path=output.path,
        prev_commit="null",
        partition_path=work.partition,
        num_writes=output.rows,
        num_inserts=output.rows,
        total_write_bytes=size,
        file_size=size,
        column_ranges=output.ranges,
    )


def _rows_at_once(incoming: Incoming, ceiling: float) -> int:
    """Rows between two checks of the file's size: a small part of the file's capacity."""
    return int(min(max(ceiling / 16 / incoming.row_bytes, _FEWEST_ROWS), PART_ROWS))
