"""Procedures that show the timeline of a table: commits, services, rollbacks, savepoints.

Source: ``ShowCommitsProcedure`` ... ``StatsWriteAmplificationProcedure`` of Hudi 1.2.0.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hudi_fast.config.properties_file import load_properties
from hudi_fast.errors import ConfigError
from hudi_fast.procedures.values import Rows, Values, refuse_given
from hudi_fast.services.pending import pending_services
from hudi_fast.table import HudiTable
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.commit_metadata import CommitMetadata, WriteStat, decode_commit_metadata
from hudi_fast.timeline.instants import (
    Instant,
    State,
    Timeline,
    instant_file_name,
    instant_from_ms,
    load_timeline,
    parse_instant_file,
    read_instant_body,
    read_requested_body,
)
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    decode_clean_metadata,
    decode_clean_plan,
    decode_rollback_metadata,
)
from hudi_fast.view.table_state import load_state
from hudi_fast.writing.markers import delete_markers
from hudi_fast.writing.settings import Settings

__all__ = ["TIMELINE_COLUMNS", "TIMELINE_PROCEDURES", "timeline_rows"]

TIMELINE_COLUMNS = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, "
    "Total_Bytes_Written bigint, Total_Files_Updated bigint, Total_Partitions_Written bigint, "
    "Total_Records_Written bigint, Total_Updated_Records_Written bigint, Total_Write_Errors bigint"
)
"""Columns of :func:`timeline_rows`."""

_COMMITS = ("commit", "deltacommit", "replacecommit")
_NONE = "null"
_FIRST_DAY, _LAST_DAY = 10, 1
"""Default bounds of archived commits, in days before today, as in Apache Hudi."""


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
        yield (instant.requested, instant.completion, instant.action, *_totals(metadata))


def _totals(metadata: CommitMetadata) -> tuple[int, ...]:
    """Bytes, added files, updated files, partitions, rows, updated rows and errors of a commit."""
    stats = list(metadata.write_stats())
    return (
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
        yield from _stat_rows(instant, metadata)


def _stat_rows(instant: Instant, metadata: CommitMetadata) -> Rows:
    """One row for each file of a commit."""
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
            size, _, *rest = _totals(_metadata(table, instant))
            totals = (size, *rest)
        yield (instant.requested, instant.action, instant.state.name, instant.completion, instant.file_name, *totals)


def _show_timeline(table: HudiTable, values: Values) -> Rows:
    """Instants, newest first, with the times at which the files of their states were written."""
    refuse_given("show_timeline", values, "filter", advice="; filter the DataFrame")
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
    if not table.config.is_mor:
        raise ConfigError(f"CALL show_compaction: the table {table.path} is COPY_ON_WRITE and has no compactions.")
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


def _show_rollbacks(table: HudiTable, values: Values) -> Rows:
    for metadata in _rollbacks(table)[: values["limit"]]:
        deleted = sum(len(one.deleted) for one in metadata.partitions)
        yield metadata.start_time, metadata.instant, deleted, metadata.millis, len(metadata.partitions)


def _show_rollback_detail(table: HudiTable, values: Values) -> Rows:
    wanted = values["instant_time"]
    found = [one for one in _rollbacks(table) if one.start_time == wanted]
    if not found:
        raise ConfigError(f"The table {table.path} has no rollback {wanted}; CALL show_rollbacks lists them.")
    rows = [
        (wanted, f"[{found[0].instant}]", one.partition_path, file, succeeded)
        for one in found[0].partitions
        for files, succeeded in ((one.deleted, True), (one.failed, False))
        for file in files
    ]
    return rows[: values["limit"]]


def _rollbacks(table: HudiTable) -> list[RollbackMetadata]:
    """Metadata of completed rollbacks, newest first."""
    done = [one for one in _timeline(table).of_action("rollback") if one.is_completed]
    bodies = ((one, read_instant_body(table._storage, table.config, one)) for one in done[::-1])
    return [decode_rollback_metadata(body, one.file_name) for one, body in bodies]


def _show_archived_commits(table: HudiTable, values: Values) -> Rows:
    for instant, metadata in _archived(table, values)[: values["limit"]]:
        yield (instant.requested, instant.completion, *_totals(metadata))


def _show_archived_commits_metadata(table: HudiTable, values: Values) -> Rows:
    rows = [row for instant, metadata in _archived(table, values) for row in _stat_rows(instant, metadata)]
    return rows[: values["limit"]]


def _archived(table: HudiTable, values: Values) -> list[tuple[Instant, CommitMetadata]]:
    """Archived commits from ``start_ts`` to ``end_ts``, newest first; by default from 10 days to 1 day ago."""
    today, zone = datetime.datetime.now().astimezone(), table.config.timezone
    bounds = []
    for name, days in (("start_ts", _FIRST_DAY), ("end_ts", _LAST_DAY)):
        moment = today - datetime.timedelta(days=days)
        bounds.append(values[name] or instant_from_ms(int(moment.timestamp() * 1000), zone))
    found = []
    for one in ArchivedTimeline(table._storage, table.config).read(*bounds):
        if one.action in _COMMITS:
            instant = Instant(one.requested, one.action, State.COMPLETED, one.completion or None)
            found.append((instant, decode_commit_metadata(one.metadata or b"", None)))
    return found[::-1]


def _commits_compare(table: HudiTable, values: Values) -> Rows:
    """The commits that one of two tables has after the newest commit of the other."""
    name = str(values["table"])
    ours = [instant.requested for instant, _ in _commits(table, None)]
    theirs = [instant.requested for instant, _ in _commits(HudiTable.open(values["path"]), None)]
    ahead, which = _after(ours, theirs), f"Source {name}"
    if theirs and (not ours or theirs[0] > ours[0]):
        ahead, which = _after(theirs, ours), f"Target {values['path']}"
    return [(f"{which} is ahead by {len(ahead)} commits. Commits to catch up - [{', '.join(ahead)}]",)]


def _after(some: Sequence[str], others: Sequence[str]) -> list[str]:
    return sorted(one for one in some if not others or one > others[0])


def _export_instants(table: HudiTable, values: Values) -> Rows:
    """Copies of completed instants as files of a local folder; archived ones too."""
    folder, actions = Path(str(values["local_folder"])), str(values["actions"]).split(",")
    if not folder.is_dir():
        raise ConfigError(f"CALL export_instants: {folder} is not a folder of this machine.")
    config = table.config
    bodies: dict[str, tuple[Instant, bytes]] = {}
    for one in ArchivedTimeline(table._storage, config).read():
        instant = Instant(one.requested, one.action, State.COMPLETED, one.completion or None)
        bodies[instant_file_name(instant, config.layout_version)] = (instant, one.metadata or b"")
    for instant in _timeline(table).instants:
        if instant.is_completed:
            bodies[str(instant.file_name)] = (instant, read_instant_body(table._storage, config, instant))
    chosen = sorted(name for name, (instant, _) in bodies.items() if instant.action in actions)
    chosen = chosen[::-1] if values["desc"] else chosen
    chosen = chosen if values["limit"] < 0 else chosen[: values["limit"]]
    for name in chosen:
        (folder / name).write_bytes(bodies[name][1])
    return [(f"Exported {len(chosen)} Instants to {folder}",)]


def _delete_marker(table: HudiTable, values: Values) -> Rows:
    """Deletes the marker folder of an instant that is not pending."""
    wanted = str(values["instant_time"])
    if any(one.requested == wanted and not one.is_completed for one in _timeline(table).instants):
        raise ConfigError(f"CALL delete_marker: {wanted} is pending; roll it back, which deletes its markers.")
    delete_markers(table._storage, wanted)
    return [(True,)]


def _show_clean_plans(table: HudiTable, values: Values) -> Rows:
    refuse_given("show_clean_plans", values, "showArchived", "filter")
    storage, config = table._storage, table.config
    instants = sorted(_timeline(table).of_action("clean"), key=lambda one: one.requested, reverse=True)
    for instant in instants[: values["limit"]]:
        plan = decode_clean_plan(read_requested_body(storage, config, instant), instant.file_name)
        extra = ", ".join(f"{key}={value}" for key, value in plan.extra_metadata.items())
        yield (
            instant.requested,
            instant.state.name,
            "clean",
            plan.earliest_instant_to_retain,
            plan.last_completed,
            plan.policy,
            2,
            len(plan.files),
            len(plan.partitions_to_be_deleted),
            f"{{{extra}}}" if extra else None,
        )


def _show_cleans_metadata(table: HudiTable, values: Values) -> Rows:
    refuse_given("show_cleans_metadata", values, "showArchived", "filter")
    done = [one for one in _timeline(table).of_action("clean") if one.is_completed]
    rows = []
    for instant in done[::-1]:
        clean = decode_clean_metadata(read_instant_body(table._storage, table.config, instant), instant.file_name)
        total = sum(len(one.deleted) for one in clean.partitions)
        rows += [
            (
                instant.requested,
                instant.completion,
                "clean",
                clean.start_time,
                one.partition_path,
                one.policy,
                len(one.deleted) + len(one.failed),
                len(one.deleted),
                len(one.failed),
                one.partition_deleted,
                clean.millis,
                total,
            )
            for one in clean.partitions
        ]
    return rows[: values["limit"]]


def _stats_write_amplification(table: HudiTable, values: Values) -> Rows:
    """Rows written for each updated row, by commits and replacing commits; oldest first."""
    rows, upserted, written = [], 0, 0
    for instant in [one for one in _timeline(table).of_action("commit", "replacecommit") if one.is_completed]:
        stats = list(_metadata(table, instant).write_stats())
        changed, all_rows = sum(one.num_update_writes for one in stats), sum(one.num_writes for one in stats)
        upserted, written = upserted + changed, written + all_rows
        if changed:
            rows.append((instant.requested, changed, all_rows, f"{all_rows / changed:.2f}"))
    rows.append(("Total", upserted, written, f"{written / upserted:.2f}" if upserted else "0"))
    return rows[: values["limit"]]


TIMELINE_PROCEDURES: Mapping[str, Callable[[HudiTable, Values], Rows]] = {
    "commits_compare": _commits_compare,
    "delete_marker": _delete_marker,
    "export_instants": _export_instants,
    "show_archived_commits": _show_archived_commits,
    "show_archived_commits_metadata": _show_archived_commits_metadata,
    "show_clean_plans": _show_clean_plans,
    "show_cleans_metadata": _show_cleans_metadata,
    "show_clustering": _show_clustering,
    "show_cleans": _show_cleans,
    "show_commit_extra_metadata": _show_commit_extra_metadata,
    "show_commit_files": _show_commit_files,
    "show_commit_partitions": _show_commit_partitions,
    "show_commit_write_stats": _show_commit_write_stats,
    "show_commits": _show_commits,
    "show_commits_metadata": _show_commits_metadata,
    "show_compaction": _show_compaction,
    "show_rollback_detail": _show_rollback_detail,
    "show_rollbacks": _show_rollbacks,
    "show_savepoints": _show_savepoints,
    "show_table_properties": _show_table_properties,
    "show_timeline": _show_timeline,
    "stats_wa": _stats_write_amplification,
}
"""By name: (table, values of the parameters) -> rows of the procedure's columns."""
