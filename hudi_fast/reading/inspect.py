"""Questions about a table rather than its rows; every answer is an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.formats.parquet_base import open_base_file
from hudi_fast.timeline.instant import State
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["files_table", "history_table", "partitions_table", "stats_table"]

_WRITES = ("commit", "deltacommit", "replacecommit")

_HISTORY = pa.schema(
    {
        "instant": pa.string(),
        "completion": pa.string(),
        "action": pa.string(),
        "state": pa.string(),
        "operation": pa.string(),
        "inserts": pa.int64(),
        "updates": pa.int64(),
        "deletes": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
    }
)
_FILES = pa.schema(
    {
        "partition": pa.string(),
        "file_id": pa.string(),
        "instant": pa.string(),
        "base_file": pa.string(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "log_files": pa.int64(),
    }
)


def history_table(state: TableState) -> pa.Table:
    """One row per instant of the active timeline, oldest first."""
    rows = []
    for instant in state.timeline.instants:
        row: dict[str, object] = {
            "instant": instant.requested,
            "completion": instant.completion,
            "action": instant.action,
            "state": instant.state.name,
        }
        if instant.state is State.COMPLETED and instant.action in _WRITES:
            commit = read_commit(state.storage, state.config, instant)
            stats = list(commit.write_stats())
            row |= {
                "operation": commit.operation_type,
                "inserts": sum(stat.num_inserts for stat in stats),
                "updates": sum(stat.num_update_writes for stat in stats),
                "deletes": sum(stat.num_deletes for stat in stats),
                "files": len(stats),
                "bytes": sum(stat.total_write_bytes for stat in stats),
            }
        rows.append(row)
    return pa.Table.from_pylist(rows, _HISTORY)


def files_table(state: TableState) -> pa.Table:
    """One row per file slice that a snapshot reads.

    ``rows`` comes from the base file's footer: what log files change is not in it, and slices of log files alone have
    none. ``bytes`` are those of the base file and the log files.
    """
    slices = list(_slices(state))
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda one: _rows(state, one), slices))
    rows = [
        {
            "partition": one.partition,
            "file_id": one.file_id,
            "instant": one.base_instant,
            "base_file": None if one.base_file is None else one.base_file.name,
            "rows": count,
            "bytes": sum(file.size for file in (one.base_file, *one.log_files) if file is not None),
            "log_files": len(one.log_files),
        }
        for one, count in zip(slices, counts, strict=True)
    ]
    return pa.Table.from_pylist(rows, _FILES)


def partitions_table(state: TableState) -> pa.Table:
    """One row per partition that holds files; ``rows`` and ``bytes`` as :func:`files_table` has them."""
    grouped = (
        files_table(state).group_by("partition").aggregate([("file_id", "count"), ("rows", "sum"), ("bytes", "sum")])
    )
    return grouped.rename_columns(["partition", "files", "rows", "bytes"]).sort_by("partition")


def stats_table(state: TableState) -> pa.Table:
    """One row on the whole table; ``rows`` and ``bytes`` as :func:`files_table` has them."""
    files = files_table(state)
    last = state.timeline.last_completed_write
    return pa.table(
        {
            "partitions": [len(pc.unique(files.column("partition")))],
            "files": [files.num_rows],
            "rows": [pc.sum(files.column("rows")).as_py() or 0],
            "bytes": [pc.sum(files.column("bytes")).as_py() or 0],
            "instants": [len(state.timeline.instants)],
            "last_write": pa.array([None if last is None else last.requested], pa.string()),
        }
    )


def _slices(state: TableState) -> Iterator[FileSlice]:
    for partition in state.view.lister.partitions():
        yield from latest_slices(state.view, partition)


def _rows(state: TableState, one: FileSlice) -> int | None:
    if one.base_file is None:
        return None
    with open_base_file(state.storage, one.base_file.path) as reader:
        return reader.num_rows
