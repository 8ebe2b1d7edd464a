"""Take commits of the metadata table back, after a rollback or a restore of the data table.

Roll back a commit of the metadata table, because its action failed or was rolled back.

::

    table version 6    delta commit of the rollback: lists remaining log files (of the failed write, of the rollback)
                       rollback + 006: a command block per file group with log blocks of the failed commit
    since version 8    rollback at the same instant: its log files are deleted
    both               its instants are deleted; the rollback is completed

The rollback runs before the failed instant leaves the data table's timeline: until then readers ignore the commit.
Every step is idempotent, so any later process can finish the data table's rollback.

Source: metadata reference 2.5 to 2.7; HoodieBackedTableMetadataWriter(TableVersionSix)#update, Hudi 1.2.0.

Remove completed actions from the metadata table when they are rolled back or restored.

::

    the action's delta commit is on top of a partition's base files ─► rolled back exactly
    a later base file exists (compaction, or build of the partition) ─► drop the partition, to be rebuilt

A base file stores no instants, so no action can be removed from it. The name of such a partition is removed from the
data table's properties before the action becomes invisible: readers list folders, or do without the index, until it is
rebuilt. If ``files`` has to be dropped, all partitions are dropped.

Source: metadata reference 2.5 to 2.8, 2.12; HoodieBackedTableMetadataWriter#validateRollback and
#update(HoodieRestoreMetadata, ..), which require deletion of the whole metadata table, Hudi 1.2.0.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError, TableNotFoundError
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, command_block, scan_log_blocks
from hudi_fast.metadata_table.layout import PartitionKind, group_file_id
from hudi_fast.metadata_table.records import FILES, RECORD_SCHEMA, encode_records
from hudi_fast.metadata_table.table import metadata_storage
from hudi_fast.metadata_table.updates.bookkeeping import drop_partitions, has_metadata_folder
from hudi_fast.metadata_table.updates.commit import finish_delta_commit, start_delta_commit
from hudi_fast.metadata_table.updates.groups import GroupTarget, GroupWriter, put_new
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.timeline.instants import Instant, State, Timeline, load_timeline
from hudi_fast.timeline.plans import (
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_fast.timeline.transition import complete, create_requested, delete_instant_files, to_inflight
from hudi_fast.values import dataclass
from hudi_fast.view.file_names import LogFile, log_file_name, parse_base_file, parse_log_file
from hudi_fast.view.pending import compacted_groups

__all__ = [
    "drop_lost_partitions",
    "list_log_files",
    "list_restored_logs",
    "lost_partitions",
    "open_for_recovery",
    "roll_back_delta_commit",
    "roll_back_metadata",
]

_SUFFIX = "006"
_TOKEN = "1-0-1"


def roll_back_metadata(
    storage: Storage,
    config: TableConfig,
    failed: str,
    rollback: str,
    clock: InstantClock,
    added: Mapping[str, Mapping[str, int]] | None = None,
    removed: Mapping[str, Iterable[str]] | None = None,
) -> None:
    """Roll back the metadata table's commit of a failed action, if there is one.

    Args:
        storage: storage of the data table.
        config: configuration of the data table.
        failed: requested time of the action.
        rollback: requested time of the data table's rollback, which is inflight.
        clock: gives completion times.
        added: table version 6: log files that are not deleted: by partition path, their names and sizes.
        removed: table version 6: deleted log files that actions other than the failed one had listed, by partition
            path.
    """
    opened = open_for_recovery(storage)
    if opened is None:
        return
    inner, inner_config, timeline = opened
    if config.layout_version < 2 and (added or removed):
        list_log_files(inner, inner_config, timeline, rollback, added or {}, removed or {}, clock)
    own = rollback + _SUFFIX if config.layout_version < 2 else rollback
    if _holds(timeline, failed) or _pending_rollback(timeline, own):
        roll_back_delta_commit(inner, inner_config, timeline, failed, own, clock)


def roll_back_delta_commit(
    storage: Storage, config: TableConfig, timeline: Timeline, failed: str, rollback: str, clock: InstantClock
) -> None:
    """Roll back a delta commit of the metadata table, or finish its rollback.

    ``failed`` is the delta commit, ``rollback`` the requested time of the metadata table's own rollback.
    """
    started = time.monotonic()
    instant = Instant(rollback, "rollback", State.REQUESTED)
    found = timeline.find(rollback, "rollback")
    if found is not None and found.state is State.COMPLETED:  # only the instant's files are left
        delete_instant_files(storage, config, Instant(failed, "deltacommit", State.INFLIGHT))
        return
    files = list(_files_of(storage, config, failed))
    if found is None:
        requests = tuple(_request(storage, config, one) for one in files)
        create_requested(storage, config, instant, encode_rollback_plan(RollbackPlan(failed, "deltacommit", requests)))
    if found is None or found.state is State.REQUESTED:
        to_inflight(storage, config, instant)
    done = _execute_rollback(storage, config, files, failed, rollback)
    delete_instant_files(storage, config, Instant(failed, "deltacommit", State.INFLIGHT))
    millis = int((time.monotonic() - started) * 1000)
    body = encode_rollback_metadata(RollbackMetadata(rollback, failed, "deltacommit", millis, done))
    complete(storage, config, Instant(rollback, "rollback", State.INFLIGHT), body, clock.next_time)


# ---- files of the failed commit


def open_for_recovery(storage: Storage) -> tuple[Storage, TableConfig, Timeline] | None:
    """Storage, configuration and timeline of the metadata table; None when it is missing or invalid."""
    if not has_metadata_folder(storage):
        return None
    inner = metadata_storage(storage)
    try:
        config = TableConfig.from_properties(load_properties(inner), inner.uri)
    except (CorruptTableError, TableNotFoundError):
        return None  # readers do not trust it; the next build replaces it
    return inner, config, load_timeline(inner, config)


def _holds(timeline: Timeline, failed: str) -> bool:
    return any(one.requested == failed and one.action == "deltacommit" for one in timeline.instants)


def _pending_rollback(timeline: Timeline, rollback: str) -> bool:
    found = timeline.find(rollback, "rollback")
    return found is not None and found.action == "rollback" and found.state is not State.COMPLETED


@dataclass(frozen=True, slots=True)
class _Logged:
    """A file of the failed commit.

    Attributes:
        log: parsed name of a log file; None for a base file.
        newest: largest log version of the slice; table version 6.
    """

    partition: str
    entry: FileStat
    log: LogFile | None
    newest: int = 0


def _files_of(storage: Storage, config: TableConfig, failed: str) -> Iterator[_Logged]:
    """Files of the delta commit, by their names; before version 8 by their block headers."""
    for folder in storage.list_dir(""):
        if not folder.is_dir or folder.name == ".hoodie":
            continue
        entries = [entry for entry in storage.list_dir(folder.path) if not entry.is_dir]
        logs = [(entry, parse_log_file(entry)) for entry in entries]
        if config.layout_version < 2:
            yield from _logged_before_8(storage, folder.path, [log for _, log in logs if log is not None], failed)
            continue
        for entry, log in logs:
            named = log or parse_base_file(entry)
            if named is not None and named.instant == failed:
                yield _Logged(folder.path, entry, log)


def _logged_before_8(storage: Storage, partition: str, logs: Sequence[LogFile], failed: str) -> Iterator[_Logged]:
    newest: dict[tuple[str, str], int] = {}
    for log in logs:
        slice_ = log.file_id, log.instant
        newest[slice_] = max(newest.get(slice_, 0), log.version)
    for log in logs:
        blocks = scan_log_blocks(storage, log.path)
        if any(
            block.kind is not BlockType.CORRUPT and block.headers.get(HeaderKey.INSTANT_TIME) == failed
            for block in blocks
        ):
            entry = FileStat(log.path, log.size, 0, False)
            yield _Logged(partition, entry, log, newest[log.file_id, log.instant])


# ---- rollback


def _request(storage: Storage, config: TableConfig, one: _Logged) -> RollbackRequest:
    path = storage.absolute(one.entry.path)
    if config.layout_version > 1 or one.log is None:
        return RollbackRequest(one.partition, files_to_be_deleted=(path,))
    return RollbackRequest(
        one.partition, one.log.file_id, one.log.instant, log_blocks_to_be_deleted={path: one.entry.size}
    )


def _execute_rollback(
    storage: Storage, config: TableConfig, files: Sequence[_Logged], failed: str, rollback: str
) -> tuple[RollbackPartition, ...]:
    """Delete the files, or append command blocks; returns the result by partition."""
    by_partition: dict[str, list[_Logged]] = {}
    for one in files:
        by_partition.setdefault(one.partition, []).append(one)
    done = []
    for partition, group in sorted(by_partition.items()):
        if config.layout_version > 1:
            storage.delete_files([one.entry.path for one in group])
            done.append(RollbackPartition(partition, tuple(storage.absolute(one.entry.path) for one in group)))
            continue
        failed_logs = {storage.absolute(one.entry.path): one.entry.size for one in group}
        block, command_files = command_block(rollback, failed), {}
        for file_id, base, version in sorted(
            {(one.log.file_id, one.log.instant, one.newest) for one in group if one.log}
        ):
            path = f"{partition}/{log_file_name(file_id, base, version + 1, _TOKEN)}"
            put_new(storage, path, [block])
            command_files[storage.absolute(path)] = len(block)
        done.append(RollbackPartition(partition, (), (), command_files, failed_logs))
    return tuple(done)


def list_log_files(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    requested: str,
    added: Mapping[str, Mapping[str, int]],
    removed: Mapping[str, Iterable[str]],
    clock: InstantClock,
) -> None:
    """List and unlist log files of a rollback by a delta commit. Does nothing if the delta commit is complete.

    An empty log file, left by a process that ended before it wrote a block, is not listed: release 0.15 cannot read a
    metadata table with a file of size 0 (HoodieMetadataPayload).

    Args:
        storage: storage of the metadata table.
        config: configuration of the metadata table, which has table version 6.
        timeline: timeline of the metadata table.
        requested: requested time of the delta commit.
        added: partition path of the data table to names and sizes of log files that the rollback kept or wrote.
        removed: partition path of the data table to names of log files that the rollback deletes.
        clock: gives the completion time.
    """
    group = _files_group(storage, config, timeline)
    if group is None:  # damaged: it will be rebuilt
        return
    found = timeline.find(requested, "deltacommit")
    if found is not None and found.action == "deltacommit":
        if found.state is State.COMPLETED:
            return
        delete_instant_files(storage, config, found)
    table = _files_table(added, removed)
    if not table.num_rows:
        return
    keys, values = encode_records(PartitionKind.FILES, table)
    start_delta_commit(storage, config, requested)
    writer = GroupWriter(storage, config, requested, RECORD_SCHEMA, {"files": (group,)})
    stat = writer.write("files", 0, [(keys, values)])
    finish_delta_commit(storage, config, requested, [stat], RECORD_SCHEMA, "UPSERT_PREPPED", clock)


def _files_table(added: Mapping[str, Mapping[str, int]], removed: Mapping[str, Iterable[str]]) -> pa.Table:
    """Records of ``files``, ascending by key."""
    existing = [
        (path or ".", name, size, False) for path, files in added.items() for name, size in files.items() if size > 0
    ]
    deleted = [(path or ".", name, 0, True) for path, names in removed.items() for name in names]
    rows = sorted([*existing, *deleted])
    count = len(rows)
    return pa.Table.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.string()),
            pa.array(np.full(count, 2, np.int32)),
            pa.array([row[1] for row in rows], pa.string()),
            pa.array([row[2] for row in rows], pa.int64()),
            pa.array([row[3] for row in rows], pa.bool_()),
        ],
        schema=FILES,
    )


def _files_group(storage: Storage, config: TableConfig, timeline: Timeline) -> GroupTarget | None:
    """The single group of ``files`` in table version 6: log files are appended to its latest slice.

    With a pending compaction, that is the slice that the compaction starts: it merges only the files of its plan.
    """
    entries = storage.list_dir("files")
    logs = [log for log in map(parse_log_file, entries) if log is not None]
    stored = [base for base in map(parse_base_file, entries) if base is not None]
    bases = {base.instant: base.name for base in stored}
    ids = [*(one.file_id for one in logs), *(one.file_id for one in stored)]
    file_id = ids[0] if ids else group_file_id("files", 0)
    begins = [*bases, *(log.instant for log in logs)]
    if not begins:
        return None
    planned = compacted_groups(storage, config, timeline.pending_compactions).get(("files", file_id), "")
    newest = max(*begins, planned)
    version = max((log.version for log in logs if log.instant == newest), default=0)
    return GroupTarget(file_id, newest, bases.get(newest, ""), version)


_RESTORE_SUFFIX = "003"


def lost_partitions(storage: Storage, config: TableConfig, instants: Iterable[str]) -> tuple[str, ...]:
    """Partitions of the metadata table from which completed actions cannot be removed.

    ``instants`` are requested times of completed writes of the data table that are to be rolled back.

    Returns:
        Sorted names; all partitions if ``files`` is lost. Empty without a metadata table.
    """
    named = config.all_metadata_partitions
    undone = set(instants)
    if not named or not undone:
        return ()
    opened = open_for_recovery(storage)
    if opened is None:
        return tuple(sorted(named))
    inner, inner_config, timeline = opened
    known = {one.requested for one in timeline.writes()}
    if not undone <= known:  # the base files of a later build hold an action without delta commit
        return tuple(sorted(named))
    if _compacts_logs(inner, inner_config, min(undone)) or timeline.pending_compactions:
        return tuple(sorted(named))
    lost = {name for name in named if _has_base_file_since(inner, inner_config, timeline, name, undone)}
    if PartitionKind.FILES.value in lost:
        return tuple(sorted(named))
    if PartitionKind.COLUMN_STATS.value in lost:  # the next write computes partition ranges from them
        lost |= named & {PartitionKind.PARTITION_STATS.value}
    if PartitionKind.RECORD_INDEX.value in lost:  # it locates the keys found in a secondary index
        lost |= {name for name in named if name.startswith(PartitionKind.SECONDARY_INDEX.value)}
    return tuple(sorted(lost))


def drop_lost_partitions(storage: Storage, config: TableConfig, instants: Iterable[str]) -> tuple[str, ...]:
    """Drop the :func:`lost_partitions` while the actions are still complete; the caller holds the data table's lock.

    Reloads the data table's properties.

    Returns:
        The dropped partitions.
    """
    present = TableConfig.from_properties(load_properties(storage), storage.uri)
    lost = lost_partitions(storage, present, instants)
    if lost:
        drop_partitions(storage, present, lost)
    return lost


def list_restored_logs(
    storage: Storage,
    config: TableConfig,
    requested: str,
    added: Mapping[str, Mapping[str, int]],
    removed: Mapping[str, Iterable[str]],
    clock: InstantClock,
) -> None:
    """Before table version 8: record log files that rollbacks of a restore kept or wrote, and remove deleted log files.

    The rollbacks do not stay on the timeline, so readers do not know their times; this delta commit has its own time.

    Args:
        storage: storage of the data table.
        config: configuration of the data table.
        requested: a time of the data table newer than all others; 17 digits.
        added: partition path to names and sizes of existing log files.
        removed: partition path to names of deleted log files.
        clock: gives the completion time.
    """
    opened = open_for_recovery(storage) if (added or removed) and config.metadata_partitions else None
    if opened is not None:
        list_log_files(*opened, requested + _RESTORE_SUFFIX, added, removed, clock)


def _has_base_file_since(
    storage: Storage, config: TableConfig, timeline: Timeline, partition: str, undone: set[str]
) -> bool:
    """Whether a base file may contain one of the actions.

    Before table version 8 the time of a base file starts with the time of the newest action in it.
    """
    since = min(timeline.completion_of(one) or "" for one in undone)
    for entry in storage.list_dir(partition):
        base = None if entry.is_dir else parse_base_file(entry)
        if base is None:
            continue
        made = timeline.find(base.instant)
        if config.layout_version < 2:
            holds = base.instant > min(undone)
        else:
            holds = made is not None and (made.completion is None or made.completion >= since)
        if holds:
            return True
    return False


def _compacts_logs(storage: Storage, config: TableConfig, since: str) -> bool:
    """Whether a log compaction was planned since then; once complete, only its plan file shows it."""
    names = (entry.name for entry in storage.list_dir(config.timeline_folder))
    return any(".logcompaction." in name and name.partition(".")[0] > since for name in names)
