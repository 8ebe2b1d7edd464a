"""What a completed action that is undone leaves in the metadata table, and what becomes of that.

::

    the action's delta commit is on top of a partition's base files ─► taken back with it, exactly
    a base file has come since: it was compacted, or the partition was built ─► that partition goes, and is built anew

A base file carries no instants, so nothing can be taken out of it. The name of such a partition goes out of the data
table's properties before the action becomes invisible: readers list folders, or do without the index, until it is
built anew. Without ``files`` all of them go.

Source: metadata reference 2.5 to 2.8, 2.12; HoodieBackedTableMetadataWriter#validateRollback and
#update(HoodieRestoreMetadata, ..), which ask for the whole metadata table to be deleted, Hudi 1.2.0.
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
    """Partitions of the metadata table that hold completed actions in a form that cannot be taken back.

    Args:
        storage: of the data table.
        config: of the data table.
        instants: requested times of completed writes of the data table that are to be undone.

    Returns:
        Names, sorted; with ``files`` all that there are. Empty without a metadata table.
    """
    named = {*config.metadata_partitions, *config.metadata_partitions_inflight}
    undone = set(instants)
    if not named or not undone:
        return ()
    opened = open_for_recovery(storage)
    if opened is None:
        return tuple(sorted(named))
    inner, inner_config, timeline = opened
    known = {one.requested for one in timeline.writes()}
    if not undone <= known:  # an action without delta commit is in the base files of what was made after it
        return tuple(sorted(named))
    if _compacts_logs(inner, inner_config, min(undone)) or timeline.pending_compactions:
        return tuple(sorted(named))
    lost = {name for name in named if _has_base_file_since(inner, inner_config, timeline, name, undone)}
    if PartitionKind.FILES.value in lost:
        return tuple(sorted(named))
    if PartitionKind.COLUMN_STATS.value in lost:  # the next write makes ranges of partitions of them
        lost |= named & {PartitionKind.PARTITION_STATS.value}
    if PartitionKind.RECORD_INDEX.value in lost:  # where the keys are that a secondary index gives
        lost |= {name for name in named if name.startswith(PartitionKind.SECONDARY_INDEX.value)}
    return tuple(sorted(lost))


def drop_lost_partitions(storage: Storage, config: TableConfig, instants: Iterable[str]) -> tuple[str, ...]:
    """Take the :func:`lost_partitions` away, while the actions are complete still; under the data table's lock.

    Args:
        storage: of the data table.
        config: of the data table; its properties are read anew.
        instants: see there.

    Returns:
        The partitions that are gone.
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
    """Before table version 8: list log files that the rollbacks of a restore left or made, not those that are gone.

    The rollbacks do not stay on the timeline, so their times are none that readers know; this delta commit has one of
    its own.

    Args:
        storage: of the data table.
        config: of the data table.
        requested: a time of the data table that is newer than all others; of 17 digits.
        added: partition path to names and sizes of log files that are there.
        removed: partition path to names of log files that are gone.
        clock: gives the completion time.
    """
    opened = open_for_recovery(storage) if (added or removed) and config.metadata_partitions else None
    if opened is not None:
        list_log_files(*opened, requested + _RESTORE_SUFFIX, added, removed, clock)


def _has_base_file_since(
    storage: Storage, config: TableConfig, timeline: Timeline, partition: str, undone: set[str]
) -> bool:
    """Whether a base file may hold one of the actions.

    Before table version 8 the time of a base file begins with that of the newest action that it holds.
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
    """Whether a log compaction was planned since, of which only the file of its plan tells once it is complete."""
    names = (entry.name for entry in storage.list_dir(config.timeline_folder))
    return any(".logcompaction." in name and name.partition(".")[0] > since for name in names)
