"""Remove completed actions from the metadata table when they are rolled back or restored.

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

from collections.abc import Iterable, Mapping

from hudi_fast.config.properties_file import load_properties
from hudi_fast.config.table_config import TableConfig
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.metadata_table.updates.bookkeeping import drop_partitions
from hudi_fast.metadata_table.updates.rollback import list_log_files, open_for_recovery
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.clock import InstantClock
from hudi_fast.view.file_names import parse_base_file

__all__ = ["drop_lost_partitions", "list_restored_logs", "lost_partitions"]

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
