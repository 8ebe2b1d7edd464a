"""Decide from the two timelines whether a metadata table is up to date with its data table.

::

    completed writes of the data table ─┐
                                        ├─► each has its delta commit, from the start of the metadata table
    delta commits of the metadata table ┘   the newest is known to the data table, unless it is pending there

If the metadata table seems ahead, the data timeline is listed once more, since a write may have completed between the
two listings. A delta commit that names no file does not count: Apache Hudi adds one that belongs to no action of the
table when it downgrades to version 6 (``EightToSevenDowngradeHandler``, 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable

from hudi_fast.config.table_config import TableConfig
from hudi_fast.formats.hfile.reader import HFileReader
from hudi_fast.formats.log.blocks import BlockType, HeaderKey, LogBlock, read_content, scan_log_blocks
from hudi_fast.metadata_table.flat import ALL_PARTITIONS
from hudi_fast.metadata_table.layout import PartitionKind
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.commit_metadata import decode_commit_metadata
from hudi_fast.timeline.instant import SOLO_TIME, Instant, instant_file_name

__all__ = ["distrust_of", "missing_writes", "names_no_file", "unknown_commit"]

_INSTANT_DIGITS = 17


def distrust_of(
    storage: Storage, config: TableConfig, data: Timeline, own: Timeline, is_empty: Callable[[Instant], bool]
) -> str | None:
    """Why a metadata table cannot be trusted; None when it can.

    Args:
        storage: storage of the data table.
        config: configuration of the data table.
        data: timeline of the data table.
        own: timeline of the metadata table.
        is_empty: whether a delta commit names no file; called for delta commits that the data table does not know.
    """
    if not own.writes():
        return "it has no completed commit."
    missing = missing_writes(data, own, config.layout_version)
    if missing:
        return (
            f"the {missing[0].action} {missing[0].requested} of the table ({len(missing)} such) has no delta commit in "
            "it; a writer did not update it."
        )
    while (unknown := unknown_commit(data, own)) is not None and is_empty(unknown):
        own = Timeline(tuple(one for one in own.instants if one != unknown))
    if unknown is not None and unknown_commit(load_timeline(storage, config), own) is not None:
        return (
            f"its newest delta commit {unknown.requested} is not an action of the table, whose newest time is "
            f"{data.newest_time}; the table's timeline was set back."
        )
    return None


def missing_writes(data: Timeline, own: Timeline, layout: int) -> list[Instant]:
    """Completed writes of the data table that lack their delta commit, oldest first; ``own`` is not empty.

    Writes before the creation of the metadata table need no delta commit: they are in its initial contents. If its
    timeline has initial delta commits, these are the writes that completed before the first initial delta commit.
    Otherwise, or before table version 8 (where the first commit's time is derived from the newest write), these are the
    writes before its first commit.
    """
    known = {one.requested for one in own.writes() if one.action == "deltacommit"}
    built = [one.completion for one in own.writes() if _is_initial(one) and len(one.requested) == _INSTANT_DIGITS]
    made = min((time for time in built if time is not None), default=None)
    if layout > 1 and made is not None:
        return [one for one in data.writes() if one.requested not in known and (one.completion or one.requested) > made]
    first = min(one.requested for one in own.writes())
    return [one for one in data.writes() if one.requested not in known and one.requested > first]


def unknown_commit(data: Timeline, own: Timeline) -> Instant | None:
    """The newest delta commit of the metadata table, if it is newer than the whole data timeline."""
    commits = [one for one in own.writes() if one.action == "deltacommit" and not _is_initial(one)]
    if not commits or data.find(commits[-1].requested) is not None:
        return None
    return commits[-1] if commits[-1].requested[:_INSTANT_DIGITS] > _newest(data) else None


def names_no_file(storage: Storage, config: TableConfig, commit: Instant) -> bool:
    """Whether a delta commit of a metadata table added nothing but a list of partitions.

    Args:
        storage: storage of the metadata table.
        config: configuration of the metadata table.
        commit: the delta commit.

    Raises:
        CorruptTableError: its body or one of its log blocks is damaged.
        FileNotFoundError: one of its files is missing.
    """
    path = f"{config.timeline_folder}/{instant_file_name(commit, config.layout_version)}"
    stats = list(decode_commit_metadata(storage.read_bytes(path), path).write_stats())
    if any(one.partition_path != PartitionKind.FILES.value or one.num_writes > 1 for one in stats):
        return False
    blocks = [block for one in stats for block in scan_log_blocks(storage, one.path)]
    own = (block for block in blocks if block.headers.get(HeaderKey.INSTANT_TIME) == commit.requested)
    return all(_lists_partitions(storage, block) for block in own)


def _lists_partitions(storage: Storage, block: LogBlock) -> bool:
    """Whether the only record of a log block is the list of partitions."""
    if block.kind is not BlockType.HFILE_DATA:
        return False
    with HFileReader.open(read_content(storage, block), block.path) as reader:
        keys = [key for found, _ in reader.scan() for key in found.to_pylist()]
    return keys == [ALL_PARTITIONS.encode()]


def _newest(data: Timeline) -> str:
    """The newest time; if storage truncates times to whole seconds, the latest moment of that second."""
    ends = (one.completion for one in data.instants if one.completion is not None)
    whole = (end[:-3] + "999" for end in ends if len(end) == _INSTANT_DIGITS and end.endswith("000"))
    return max(data.newest_time or "", *whole, "")


def _is_initial(instant: Instant) -> bool:
    return instant.action == "deltacommit" and instant.requested.startswith(SOLO_TIME)
