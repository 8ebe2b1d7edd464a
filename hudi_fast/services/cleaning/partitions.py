"""Selects the partitions that a clean examines.

::

    commits in [earliest retained by the last clean, earliest retained now)   ─► their partitions     (incremental)
    ... and older ones that were completed after the last clean
    no clean yet and nothing archived: all commits before the earliest retained ─► their partitions
    else                                                                      ─► all partitions

A slice becomes outdated when a commit adds a later slice or replaces its file group. Commits record both; a commit that
only adds file groups makes no slice outdated.

Source: ``CleanPlanner#getPartitionPathsToClean`` (Hudi 1.2.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hudi_fast.config.clean_options import CleanOptions
from hudi_fast.config.table_config import TableConfig
from hudi_fast.services.cleaning.last_clean import LastClean
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline
from hudi_fast.timeline.commit_metadata import CommitMetadata
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import read_commit

__all__ = ["chosen_partitions", "touched_partitions"]

_NEW_GROUPS = frozenset({"INSERT", "UPSERT"})
_NO_COMMIT = ("", "null")


def touched_partitions(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    options: CleanOptions,
    last: LastClean,
    earliest: Instant | None,
) -> set[str] | None:
    """The partitions that may have slices outdated since the last clean; None for all partitions.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        options: of the clean.
        last: state that earlier cleans left.
        earliest: earliest commit to retain; None for a policy without one.

    Raises:
        CorruptTableError: a commit is damaged.
    """
    if earliest is None or not options.incremental or not _follows(storage, config, timeline, last):
        return None
    since = [
        one
        for one in timeline.writes()
        if one.requested < earliest.requested
        and (one.requested >= last.earliest or (one.completion or "") > last.instant)
    ]
    return {name for one in since for name in _of_commit(config, one, read_commit(storage, config, one))}


def chosen_partitions(partitions: Iterable[str], options: CleanOptions) -> list[str]:
    """The given partitions that the options select for a clean, sorted."""
    found = sorted(partitions)
    if options.partitions_selected:
        found = [name for name in found if name in options.partitions_selected]
    if options.partition_regex:
        found = [name for name in found if re.fullmatch(options.partition_regex, name)]
    return found


def _follows(storage: Storage, config: TableConfig, timeline: Timeline, last: LastClean) -> bool:
    """Whether the active timeline has every commit since the last clean."""
    saved = {one.requested for one in timeline.of_action("savepoint") if one.is_completed}
    if not last.instant:
        return not storage.list_dir(config.history_folder)
    if not last.earliest or last.is_partial or not last.savepoints <= saved:
        return False
    return timeline.first_write_requested is not None and last.earliest >= timeline.first_write_requested


def _of_commit(config: TableConfig, instant: Instant, commit: CommitMetadata) -> Iterable[str]:
    yield from commit.partition_to_replace_file_ids or ()
    only_updates = not config.is_mor and instant.action == "commit" and commit.operation_type in _NEW_GROUPS
    for partition, stats in commit.partition_to_write_stats.items():
        if not only_updates or any((one.prev_commit or "") not in _NO_COMMIT for one in stats):
            yield partition
