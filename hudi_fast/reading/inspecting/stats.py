"""A table in one row: contents, pending instants, last services, and its metadata table.

Sizes are listed like for a query; footers are opened for the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from hudi_fast.errors import HudiError
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.metadata_table.layout import kind_of
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.inspecting.table import current_slices, files_table, small_files
from hudi_fast.storage.base import FileStat
from hudi_fast.storage.thread_pool import ThreadPool
from hudi_fast.timeline.instant import Instant, instant_from_ms
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.slices import FileSlice
from hudi_fast.view.table_state import TableState, read_commit

__all__ = ["stats_table"]

_THREADS = 8

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
_STATS = pa.schema(
    {
        "partitions": pa.int64(),
        "files": pa.int64(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "base_bytes": pa.int64(),
        "log_bytes": pa.int64(),
        "log_files": pa.int64(),
        "small_files": pa.int64(),
        "unread_files": pa.int64(),
        "unread_bytes": pa.int64(),
        "instants": pa.int64(),
        "pending": pa.list_(pa.string()),
        "last_write": pa.string(),
        "last_clean": pa.string(),
        "last_compaction": pa.string(),
        "last_clustering": pa.string(),
        "last_archive": pa.string(),
        "metadata_table": pa.list_(_METADATA),
    }
)


def stats_table(state: TableState) -> pa.Table:
    """One row for the whole table; ``rows`` and ``bytes`` are sums of :func:`.table.files_table`.

    ``unread_files`` and ``unread_bytes`` count data files that no snapshot of the current state reads: older slices,
    and change logs. ``pending`` lists incomplete instants. ``last_write``, ``last_clean`` and so on are requested times
    of the newest completed instant on the active timeline; ``last_archive`` is the time of the last write to the
    archive. ``metadata_table`` is a list with a struct for each partition of the table's metadata table:
    ``base_records`` counts records of base files, without log files; ``reason`` explains why a partition is not
    ``usable``.
    """
    slices = current_slices(state)
    files = files_table(state, slices)
    read = {file.path for file in _files_of(slices)}
    unread = [entry for entry in _data_files(state) if entry.path not in read]
    sums = {name: sum(value or 0 for value in files.column(name).to_pylist()) for name in _SUMMED}
    row: dict[str, object] = {
        "partitions": len({one.partition for one in slices}),
        "files": len(slices),
        **sums,
        "small_files": small_files(slices),
        "unread_files": len(unread),
        "unread_bytes": sum(entry.size for entry in unread),
        "instants": len(state.timeline.instants),
        "pending": [f"{one.requested} {one.action} {one.state.name.lower()}" for one in state.timeline.pending()],
        **_last_of_each(state),
        "metadata_table": _metadata_rows(state),
    }
    return pa.Table.from_pylist([row], _STATS)


_SUMMED = ("rows", "bytes", "base_bytes", "log_bytes", "log_files")


def _data_files(state: TableState) -> list[FileStat]:
    """Base files, log files and change logs of every instant."""
    lister = state.view.lister
    with ThreadPool(_THREADS) as pool:
        listed = pool.map(lister.files, lister.partitions())
        return [one for found in listed for one in found if parse_base_file(one) or parse_log_file(one)]


def _last_of_each(state: TableState) -> dict[str, str | None]:
    """Requested times of the newest completed write, clean, compaction and clustering; time of the last archiving."""
    timeline = state.timeline
    last = timeline.last_completed_write
    cleans = [one for one in timeline.completed() if one.action == "clean"]
    commits = [one for one in timeline.writes() if one.action == "commit"] if state.config.is_mor else []
    replaces = [one for one in timeline.writes() if one.action == "replacecommit"]
    return {
        "last_write": None if last is None else last.requested,
        "last_clean": cleans[-1].requested if cleans else None,
        "last_compaction": _newest_of(state, commits, "COMPACT"),
        "last_clustering": _newest_of(state, replaces, "CLUSTER"),
        "last_archive": _last_archive(state),
    }


def _newest_of(state: TableState, writes: Sequence[Instant], operation: str) -> str | None:
    for instant in reversed(writes):
        if read_commit(state.storage, state.config, instant).operation_type == operation:
            return instant.requested
    return None


def _last_archive(state: TableState) -> str | None:
    """The time of the last write to the archive, in the format of instants."""
    times = [entry.modified_ms for entry in state.storage.list_dir(state.config.history_folder) if not entry.is_dir]
    return instant_from_ms(max(times), state.config.timezone) if any(times) else None


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
        files = list(_files_of(groups))
        with ThreadPool(_THREADS) as pool:
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


def _files_of(slices: Iterable[FileSlice]) -> Iterable[BaseFile | LogFile]:
    return (file for one in slices for file in one.files)


def _last_instant(table: MetadataTable, files: Sequence[BaseFile | LogFile]) -> str | None:
    """The last write to a partition; below table version 8 to any partition, since log file names lack the instant."""
    if table.data_version >= LOGS_NAMED_BY_WRITE:
        return max((file.instant for file in files), default=None)
    last = table.timeline.last_completed_write
    return None if last is None else last.requested


def _base_records(table: MetadataTable, one: FileSlice) -> int:
    if one.base_file is None:
        return 0
    with table.storage.open_input(one.base_file.path) as source:
        reader = HFileReader.open(source, one.base_file.path)
        return reader.entry_count
