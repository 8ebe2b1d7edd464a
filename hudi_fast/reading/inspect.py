"""Questions about a table rather than its rows; every answer is an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.errors import HudiError
from hudi_fast.formats.hfile_reader import HFileReader
from hudi_fast.formats.parquet_base import open_base_file
from hudi_fast.metadata.layout import kind_of
from hudi_fast.metadata.state import metadata_of
from hudi_fast.metadata.table import MetadataTable
from hudi_fast.reading.scan import ScanPlan
from hudi_fast.timeline.instant import State
from hudi_fast.view.file_names import BaseFile, LogFile
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["explain_table", "files_table", "history_table", "partitions_table", "stats_table"]

_LOGS_NAMED_BY_WRITE = 8
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
_METADATA = pa.struct(
    {
        "partition": pa.string(),
        "kind": pa.string(),
        "file_groups": pa.int64(),
        "log_files": pa.int64(),
        "base_records": pa.int64(),
        "bytes": pa.int64(),
        "last_instant": pa.string(),
        "usable": pa.bool_(),
        "reason": pa.string(),
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


def files_table(state: TableState, slices: Sequence[FileSlice] | None = None) -> pa.Table:
    """One row per file slice that a snapshot reads, or of the given slices.

    ``rows`` comes from the base file's footer: what log files change is not in it, and slices of log files alone have
    none. ``bytes`` are those of the base file and the log files.
    """
    slices = list(_slices(state)) if slices is None else slices
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


def explain_table(plan: ScanPlan) -> pa.Table:
    """One row per step by which a filter leaves files out: index, unit, before, after, note; the last is what is read.

    ``index`` is ``partition path``, a partition of the metadata table, or ``read``.
    """
    steps = plan.skipping.to_arrow()
    read = {"index": "read", "unit": "file slices", "before": len(plan.slices), "after": len(plan.slices), "note": ""}
    return pa.concat_tables([steps, pa.Table.from_pylist([read], steps.schema)])


def stats_table(state: TableState) -> pa.Table:
    """One row on the whole table; ``rows`` and ``bytes`` as :func:`files_table` has them.

    ``metadata_table`` is a list with a struct for each partition of the table's metadata table: ``base_records`` are
    those of its base files, without what its log files add; ``reason`` says why a partition is not ``usable``.
    """
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
            "metadata_table": pa.array([_metadata_rows(state)], pa.list_(_METADATA)),
        }
    )


def _metadata_rows(state: TableState) -> list[dict[str, object]]:
    table = metadata_of(state)
    if table is None:
        reason = "the metadata table is not used"
        names = state.config.metadata_partitions
        return [{"partition": name, "usable": False, "reason": reason} for name in names]
    return [_metadata_row(table, name) for name in (*table.partitions, *table.building)]


def _metadata_row(table: MetadataTable, partition: str) -> dict[str, object]:
    row: dict[str, object] = {"partition": partition, "usable": False, "reason": "it is being built"}
    try:
        row["kind"] = kind_of(partition).name.lower()
        if partition in table.building:
            return row
        groups = table.groups(partition)
        files = [file for one in groups for file in (one.base_file, *one.log_files) if file is not None]
        with ThreadPoolExecutor(8) as pool:
            records = sum(pool.map(lambda one: _base_records(table, one), groups))
        row |= {
            "file_groups": len(groups),
            "log_files": sum(len(one.log_files) for one in groups),
            "base_records": records,
            "bytes": sum(file.size for file in files),
            "last_instant": _last_instant(table, files),
            "reason": table.unusable(partition),
        }
    except (HudiError, OSError) as error:
        row["reason"] = str(error)
    return row | {"usable": row["reason"] is None}


def _last_instant(table: MetadataTable, files: Sequence[BaseFile | LogFile]) -> str | None:
    """When a partition was last written; below table version 8 log files do not say it, and it is when any was."""
    if table.data_version >= _LOGS_NAMED_BY_WRITE:
        return max((file.instant for file in files), default=None)
    last = table.timeline.last_completed_write
    return None if last is None else last.requested


def _base_records(table: MetadataTable, one: FileSlice) -> int:
    if one.base_file is None:
        return 0
    with table.storage.open_input(one.base_file.path) as source:
        reader = HFileReader.open(source, one.base_file.path)
        return reader.entry_count


def _slices(state: TableState) -> Iterator[FileSlice]:
    for partition in state.view.lister.partitions():
        yield from latest_slices(state.view, partition)


def _rows(state: TableState, one: FileSlice) -> int | None:
    if one.base_file is None:
        return None
    with open_base_file(state.storage, one.base_file.path) as reader:
        return reader.num_rows
