"""The files, partitions and skipping steps of a table, as Arrow tables.

For the history see :mod:`hudi_fast.reading.inspecting.history`, for a summary in one row
:mod:`hudi_fast.reading.inspecting.stats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_fast.config.file_options import SMALL_FILE_LIMIT
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.view.base_files import open_base
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState

if TYPE_CHECKING:  # the other functions need no scan
    from hudi_fast.reading.scan import ScanPlan

__all__ = ["current_slices", "explain_table", "files_table", "partitions_table", "small_files"]

_THREADS = 8

_FILES = pa.schema(
    {
        "partition": pa.string(),
        "file_id": pa.string(),
        "instant": pa.string(),
        "base_file": pa.string(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "base_bytes": pa.int64(),
        "log_files": pa.int64(),
        "log_bytes": pa.int64(),
        "log_ratio": pa.float64(),
        "pending": pa.string(),
    }
)
_PARTITIONS = pa.schema(
    {
        "partition": pa.string(),
        "files": pa.int64(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "base_bytes": pa.int64(),
        "log_files": pa.int64(),
        "log_bytes": pa.int64(),
        "small_files": pa.int64(),
    }
)


def current_slices(state: TableState) -> list[FileSlice]:
    """The file slices that a snapshot reads, partition by partition."""
    partitions = state.view.lister.partitions()
    with ThreadPool(_THREADS) as pool:
        found = pool.map(lambda partition: latest_slices(state.view, partition), partitions)
        return [one for slices in found for one in slices]


def files_table(state: TableState, slices: Sequence[FileSlice] | None = None) -> pa.Table:
    """One row per file slice that a snapshot reads, or per given slice.

    ``rows`` is read from the base file's footer: it ignores changes in log files, and is null for slices with log files
    only. ``bytes`` is the sum of base file (``base_bytes``) and log files (``log_bytes``); ``log_ratio`` is log bytes
    per base byte. ``pending`` names the file group's pending service and its instant.
    """
    slices = current_slices(state) if slices is None else slices
    pending = _pending_groups(state)
    with ThreadPool(_THREADS) as pool:
        counts = list(pool.map(lambda one: _rows(state, one), slices))
    rows = [_file_row(one, count, pending) for one, count in zip(slices, counts, strict=True)]
    return pa.Table.from_pylist(rows, _FILES)


def _file_row(one: FileSlice, rows: int | None, pending: Mapping[tuple[str, str], str]) -> dict[str, object]:
    base, logs = one.base_file, sum(log.size for log in one.log_files)
    return {
        "partition": one.partition,
        "file_id": one.file_id,
        "instant": one.base_instant,
        "base_file": None if base is None else base.name,
        "rows": rows,
        "bytes": (0 if base is None else base.size) + logs,
        "base_bytes": None if base is None else base.size,
        "log_files": len(one.log_files),
        "log_bytes": logs,
        "log_ratio": None if base is None or not base.size else logs / base.size,
        "pending": pending.get((one.partition, one.file_id)),
    }


def partitions_table(state: TableState) -> pa.Table:
    """One row per partition with files; ``rows`` and ``bytes`` are sums of :func:`files_table`.

    ``small_files`` counts file groups whose base file is smaller than the default of
    ``hoodie.parquet.small.file.limit``.
    """
    slices = current_slices(state)
    by_partition: dict[str, list[FileSlice]] = {}
    for one in slices:
        by_partition.setdefault(one.partition, []).append(one)
    sums: dict[str, dict[str, int]] = {}
    for file in files_table(state, slices).to_pylist():
        row = sums.setdefault(file["partition"], {"files": 0})
        row["files"] += 1
        for name in ("rows", "bytes", "base_bytes", "log_files", "log_bytes"):
            row[name] = row.get(name, 0) + (file[name] or 0)
    rows = [
        {"partition": partition, **row, "small_files": small_files(by_partition[partition])}
        for partition, row in sorted(sums.items())
    ]
    return pa.Table.from_pylist(rows, _PARTITIONS)


def small_files(slices: Sequence[FileSlice]) -> int:
    """Number of slices with a base file below the default of ``hoodie.parquet.small.file.limit``."""
    return sum(1 for one in slices if one.base_file is not None and one.base_file.size < SMALL_FILE_LIMIT)


def explain_table(plan: ScanPlan) -> pa.Table:
    """One row per skipping step: index, unit, before, after, note; the last row counts the slices to read.

    ``index`` is ``partition path``, a partition of the metadata table, or ``read``.
    """
    steps = plan.skipping.to_arrow()
    read = {"index": "read", "unit": "file slices", "before": len(plan.slices), "after": len(plan.slices), "note": ""}
    return pa.concat_tables([steps, pa.Table.from_pylist([read], steps.schema)])


def _pending_groups(state: TableState) -> dict[tuple[str, str], str]:
    """(partition path, file id) to the pending service of the file group."""
    view = state.view
    pending = {group: f"log compaction {instant}" for group, instant in view.pending_log_compactions.items()}
    pending |= {group: f"compaction {instant}" for group, instant in view.pending_compactions.items()}
    if view.pending_groups:
        for instant, plan in pending_clusterings(state.storage, state.config, state.timeline):
            groups = [(one.partition_path, one.file_id) for group in plan.groups for one in group.slices]
            pending |= dict.fromkeys(groups, f"clustering {instant.requested}")
    return pending


def _rows(state: TableState, one: FileSlice) -> int | None:
    if one.base_file is None:
        return None
    with open_base(state.storage, one.base_file) as reader:
        return reader.num_rows
