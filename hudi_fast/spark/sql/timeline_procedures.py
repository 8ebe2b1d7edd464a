"""Procedures that show the timeline, the commits and the files of a table.

Source: ``ShowCommitsProcedure`` ... ``ShowFileSystemViewProcedure`` of Hudi 1.2.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import ConfigError, UnsupportedFeatureError
from hudi_fast.metadata_table.state import open_state
from hudi_fast.services.scheduling.pending import pending_services
from hudi_fast.table import HudiTable
from hudi_fast.timeline.active import Timeline, load_timeline, read_instant_body
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata
from hudi_fast.timeline.instant import Instant, State, parse_instant_file
from hudi_fast.timeline.plans import decode_clean_metadata
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.settings import Settings

__all__ = ["TIMELINE_COLUMNS", "TIMELINE_PROCEDURES", "timeline_rows"]

Values = Mapping[str, Any]
Rows = Iterable[Sequence[Any]]

TIMELINE_COLUMNS = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, "
    "Total_Bytes_Written bigint, Total_Files_Updated bigint, Total_Partitions_Written bigint, "
    "Total_Records_Written bigint, Total_Updated_Records_Written bigint, Total_Write_Errors bigint"
)
"""Columns of :func:`timeline_rows`."""

_COMMITS = ("commit", "deltacommit", "replacecommit")
_NONE = "null"


def _timeline(table: HudiTable) -> Timeline:
    return load_timeline(table._storage, table.config)


def _commits(table: HudiTable, limit: int | None) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Completed commits with their metadata, newest first."""
    done = [one for one in _timeline(table).of_action(*_COMMITS) if one.is_completed]
    for instant in done[::-1][: limit if limit is not None and limit >= 0 else None]:
        yield instant, _metadata(table, instant)


def _metadata(table: HudiTable, instant: Instant) -> CommitMetadata:
    return decode_commit_metadata(read_instant_body(table._storage, table.config, instant), instant.file_name)


def _commit(table: HudiTable, values: Values) -> tuple[Instant, CommitMetadata]:
    """The commit of the parameter ``instant_time``."""
    wanted = values["instant_time"]
    found = [one for one in _timeline(table).of_action(*_COMMITS) if one.is_completed and one.requested == wanted]
    if not found:
        raise ConfigError(f"The table {table.path} has no completed commit {wanted}; CALL show_commits lists them.")
    return found[0], _metadata(table, found[0])


def _show_commits(table: HudiTable, values: Values) -> Rows:
    for instant, metadata in _commits(table, values["limit"]):
        stats = list(metadata.write_stats())
        yield (
            instant.requested,
            instant.completion,
            instant.action,
            sum(one.total_write_bytes for one in stats),
            sum(one.prev_commit == _NONE for one in stats),
            sum(one.prev_commit != _NONE for one in stats),
            len(metadata.partition_to_write_stats),
            sum(one.num_writes for one in stats),
            sum(one.num_update_writes for one in stats),
            sum(one.total_write_errors for one in stats),
        )


def _show_commits_metadata(table: HudiTable, values: Values) -> Rows:
    for instant, metadata in _commits(table, values["limit"]):
        for partition, one in _by_partition(metadata):
            yield (
                instant.requested,
                instant.completion,
                instant.action,
                partition,
                one.file_id,
                one.prev_commit,
                one.num_writes,
                one.num_inserts,
                one.num_deletes,
                one.num_update_writes,
                one.total_write_errors,
                one.total_log_blocks,
                one.total_corrupt_log_blocks,
                one.total_rollback_blocks,
                one.total_log_records,
                one.total_updated_records_compacted,
                one.total_write_bytes,
            )


def _by_partition(metadata: CommitMetadata) -> Iterator[tuple[str, WriteStat]]:
    for partition, stats in metadata.partition_to_write_stats.items():
        for one in stats:
            yield partition, one


def _show_commit_files(table: HudiTable, values: Values) -> Rows:
    instant, metadata = _commit(table, values)
    for partition, one in list(_by_partition(metadata))[: values["limit"]]:
        yield (
            instant.action,
            partition,
            one.file_id,
            one.prev_commit,
            one.num_update_writes,
            one.num_writes,
            one.total_write_bytes,
            one.total_write_errors,
            one.file_size,
        )


def _show_commit_partitions(table: HudiTable, values: Values) -> Rows:
    instant, metadata = _commit(table, values)
    for partition, stats in list(metadata.partition_to_write_stats.items())[: values["limit"]]:
        yield (
            instant.action,
            partition,
            sum(one.prev_commit == _NONE for one in stats),
            sum(one.prev_commit != _NONE for one in stats),
            sum(one.num_inserts for one in stats),
            sum(one.num_update_writes for one in stats),
            sum(one.total_write_bytes for one in stats),
            sum(one.total_write_errors for one in stats),
        )


def _show_commit_write_stats(table: HudiTable, values: Values) -> Rows:
    instant, metadata = _commit(table, values)
    size = sum(one.total_write_bytes for one in metadata.write_stats())
    rows = sum(one.num_writes for one in metadata.write_stats())
    yield instant.action, size, rows, -(-size // rows) if rows else 0


def _show_commit_extra_metadata(table: HudiTable, values: Values) -> Rows:
    if values["instant_time"] is None:
        instant, metadata = next(_commits(table, 1), (None, None))
        if instant is None or metadata is None:
            return
    else:
        instant, metadata = _commit(table, values)
    wanted = values["metadata_key"]
    for key, value in list(metadata.extra_metadata.items())[: values["limit"]]:
        if wanted is None or key == wanted:
            yield instant.requested, instant.action, key, value


def timeline_rows(table: HudiTable) -> Rows:
    """The rows of ``hudi_query_timeline``: instants of the active timeline, oldest first."""
    for instant in _timeline(table).instants:
        totals: tuple[int | None, ...] = (None,) * 6
        if instant.is_completed and instant.action in _COMMITS:
            metadata = _metadata(table, instant)
            stats = list(metadata.write_stats())
            totals = (
                sum(one.total_write_bytes for one in stats),
                sum(one.prev_commit != _NONE for one in stats),
                len(metadata.partition_to_write_stats),
                sum(one.num_writes for one in stats),
                sum(one.num_update_writes for one in stats),
                sum(one.total_write_errors for one in stats),
            )
        yield (instant.requested, instant.action, instant.state.name, instant.completion, instant.file_name, *totals)


def _show_timeline(table: HudiTable, values: Values) -> Rows:
    """Instants, newest first, with the times at which the files of their states were written."""
    if values["filter"]:
        raise UnsupportedFeatureError("CALL show_timeline: filter is not supported; filter the DataFrame.")
    storage, config = table._storage, table.config
    written: dict[tuple[str, State], str] = {}
    for entry in storage.list_dir(config.timeline_folder):
        found = parse_instant_file(entry.name, config.layout_version)
        if found is not None and entry.modified_ms:
            at = datetime.datetime.fromtimestamp(entry.modified_ms / 1000)  # local time, as Hudi shows it
            written[found.requested, found.state] = at.strftime("%m-%d %H:%M:%S")
    first, last = values["startTime"] or "", values["endTime"] or "9"
    kept = [one for one in _timeline(table).instants if first <= one.requested <= last]
    for one in sorted(kept, key=lambda one: (one.requested, one.action), reverse=True)[: values["limit"]]:
        times = [written.get((one.requested, state)) for state in State]
        yield (one.requested, one.action, one.state.name, *times, "ACTIVE", None)


def _show_savepoints(table: HudiTable, values: Values) -> Rows:
    return [(one,) for one in sorted(table.services.savepoints().column("instant").to_pylist(), reverse=True)]


def _show_table_properties(table: HudiTable, values: Values) -> Rows:
    return list(load_properties(table._storage).items())[: values["limit"]]


def _show_compaction(table: HudiTable, values: Values) -> Rows:
    return _shown_services(table, values["limit"], "compact", "commit", lambda one: one.compacted)


def _show_clustering(table: HudiTable, values: Values) -> Rows:
    rows = _shown_services(
        table, values["limit"], "cluster", "replacecommit", lambda one: one.operation_type == "CLUSTER"
    )
    return [(*row, "*") for row in rows]


def _shown_services(
    table: HudiTable, limit: int, service: str, action: str, is_one: Callable[[CommitMetadata], bool]
) -> list[tuple[Any, ...]]:
    """(instant, size, state) of pending and completed services, newest first."""
    pending = pending_services(load_state(table._storage), Settings.from_options({}))
    rows: list[tuple[Any, ...]] = [
        (one.instant.requested, one.file_groups or 0, one.instant.state.name)
        for one in pending
        if one.service == service
    ]
    for instant in [one for one in _timeline(table).of_action(action) if one.is_completed]:
        metadata = _metadata(table, instant)
        if is_one(metadata):
            rows.append((instant.requested, sum(1 for _ in metadata.write_stats()), "COMPLETED"))
    return sorted(rows, reverse=True)[:limit]


def _show_cleans(table: HudiTable, values: Values) -> Rows:
    done = [one for one in _timeline(table).of_action("clean") if one.is_completed]
    for instant in done[::-1][: values["limit"]]:
        body = read_instant_body(table._storage, table.config, instant)
        clean = decode_clean_metadata(body, instant.file_name)
        yield (
            instant.requested,
            instant.completion,
            "clean",
            clean.start_time,
            clean.millis,
            sum(len(one.deleted) for one in clean.partitions),
            clean.earliest_instant_to_retain,
            clean.last_completed,
            2,
        )


def _show_fsview_latest(table: HudiTable, values: Values) -> Rows:
    state = open_state(table._storage)
    partition = values["partition_path"]
    paths = state.view.lister.partitions() if partition == "ALL_PARTITIONS" else [partition]
    slices = [one for path in sorted(paths) for one in latest_slices(state.view, path)]
    for one in slices[: values["limit"]]:
        yield _slice_row(table, one)


def _slice_row(table: HudiTable, one: FileSlice) -> tuple[Any, ...]:
    base = one.base_file
    names = [f"{table.path.rstrip('/')}/{log.path}" for log in one.log_files]
    logs = sum(log.size for log in one.log_files)
    ratio = logs / base.size if base is not None and base.size else 0.0
    return (
        one.partition,
        one.file_id,
        one.base_instant,
        "" if base is None else f"{table.path.rstrip('/')}/{base.path}",
        -1 if base is None else base.size,
        len(names),
        logs,
        0,
        logs,
        0.0,
        ratio,
        "[]",
        f"[{', '.join(names)}]",
    )


TIMELINE_PROCEDURES: Mapping[str, Callable[[HudiTable, Values], Rows]] = {
    "show_clustering": _show_clustering,
    "show_cleans": _show_cleans,
    "show_commit_extra_metadata": _show_commit_extra_metadata,
    "show_commit_files": _show_commit_files,
    "show_commit_partitions": _show_commit_partitions,
    "show_commit_write_stats": _show_commit_write_stats,
    "show_commits": _show_commits,
    "show_commits_metadata": _show_commits_metadata,
    "show_compaction": _show_compaction,
    "show_fsview_latest": _show_fsview_latest,
    "show_savepoints": _show_savepoints,
    "show_table_properties": _show_table_properties,
    "show_timeline": _show_timeline,
}
"""By name: (table, values of the parameters) -> rows of the procedure's columns."""
