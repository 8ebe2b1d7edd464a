"""The contents of a table: one row, its files and partitions, and their HTML.

A table in one row: contents, pending instants, last services, and its metadata table.

Sizes are listed like for a query; footers are opened for the number of rows.

The files, partitions and skipping steps of a table, as Arrow tables.

For the history see :mod:`hudi_fast.reading.inspecting.history`, for a summary in one row
:mod:`hudi_fast.reading.inspecting.contents`.

The HTML display of a table in notebooks: properties, newest instants, files by partition; plain HTML, all escaped.

Cheap enough for accidental display at the end of a cell: one listing of files, bodies of a few instants, no footers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_fast.config.file_options import SMALL_FILE_LIMIT
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import HudiError
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.metadata_table.layout import kind_of
from hudi_fast.metadata_table.state import metadata_of, open_state
from hudi_fast.metadata_table.table import MetadataTable
from hudi_fast.reading.inspecting.history import history_table
from hudi_fast.reading.inspecting.results import html_table
from hudi_fast.reading.inspecting.words import duration_text, size_text
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.instants import Instant, Timeline, instant_from_ms
from hudi_fast.view.base_files import open_base
from hudi_fast.view.file_names import LOGS_NAMED_BY_WRITE, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_fast.view.pending import pending_clusterings
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import TableState, read_commit

if TYPE_CHECKING:
    from hudi_fast.reading.scan import ScanPlan

__all__ = [
    "current_slices",
    "explain_table",
    "files_table",
    "partitions_table",
    "small_files",
    "stats_table",
    "table_html",
]

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


_INSTANTS = 10
_SHOWN_PARTITIONS = 10
_LEFT = ("", "instant", "partition")


def table_html(storage: Storage) -> str:
    """The table as HTML; for a table that cannot be opened, the error."""
    try:
        state = open_state(storage)
        slices = current_slices(state)
        parts = [_summary(state, slices), _history(state), _partitions(slices)]
    except (HudiError, OSError) as error:
        parts = [f"<p>{escape(str(error) or type(error).__name__)}</p>"]
    return f"<div><b>HudiTable</b> <code>{escape(storage.uri)}</code>{''.join(parts)}</div>"


def _summary(state: TableState, slices: Sequence[FileSlice]) -> str:
    config, timeline = state.config, state.timeline
    last = timeline.last_completed_write
    rows = [
        ("name", config.name),
        ("type", f"{config.table_type}, version {config.version}"),
        ("record key", ", ".join(config.record_key_fields) or "generated"),
        ("partitioned by", ", ".join(config.partition_fields) or "nothing"),
        ("files", f"{len(slices):,} file groups, {size_text(sum(map(_bytes, slices)))}"),
        ("instants", _instants(timeline)),
        ("last write", "none" if last is None else last.requested),
        ("indexes", _indexes(config)),
    ]
    return html_table(("", ""), rows, "")


def _instants(timeline: Timeline) -> str:
    pending = len(timeline.pending())
    return f"{len(timeline.instants):,} on the active timeline" + (f", {pending:,} pending" if pending else "")


def _indexes(config: TableConfig) -> str:
    return ", ".join(config.metadata_partitions) or "none"


def _history(state: TableState) -> str:
    newest = state.timeline.instants[-_INSTANTS:]
    if not newest:
        return ""
    history = history_table(state.storage, state.config, state.timeline, newest[0].requested)
    rows = [_history_row(row) for row in reversed(history.slice(max(0, history.num_rows - _INSTANTS)).to_pylist())]
    heads = ("instant", "action", "state", "operation", "took", "inserts", "updates", "deletes", "files", "bytes")
    return html_table(heads, rows, "Newest instants", _LEFT)


def _history_row(row: Mapping[str, object]) -> tuple[str, ...]:
    took, size = row["duration_ms"], row["bytes"]
    counts = [row[name] for name in ("inserts", "updates", "deletes", "files")]
    return (
        str(row["instant"]),
        str(row["action"]),
        str(row["state"]),
        str(row["operation"] or ""),
        duration_text(took / 1000) if isinstance(took, int) else "",
        *(f"{count:,}" if isinstance(count, int) else "" for count in counts),
        size_text(size) if isinstance(size, int) else "",
    )


def _partitions(slices: Sequence[FileSlice]) -> str:
    grouped: dict[str, list[FileSlice]] = {}
    for one in slices:
        grouped.setdefault(one.partition, []).append(one)
    if not grouped:
        return ""
    ranked = sorted(grouped.items(), key=lambda one: (-sum(map(_bytes, one[1])), one[0]))
    rows = [_partition_row(name or "(none)", found) for name, found in ranked[:_SHOWN_PARTITIONS]]
    rest = [one for _, found in ranked[_SHOWN_PARTITIONS:] for one in found]
    if rest:
        rows.append(_partition_row(f"{len(ranked) - _SHOWN_PARTITIONS:,} others", rest))
    heads = ("partition", "file groups", "bytes", "log files", "bytes of logs")
    return html_table(heads, rows, f"Files by partition ({len(ranked):,})", _LEFT)


def _partition_row(name: str, slices: Sequence[FileSlice]) -> tuple[str, ...]:
    logs = [log for one in slices for log in one.log_files]
    log_bytes = size_text(sum(log.size for log in logs))
    return name, f"{len(slices):,}", size_text(sum(map(_bytes, slices))), f"{len(logs):,}", log_bytes


def _bytes(one: FileSlice) -> int:
    return sum(file.size for file in one.files)
