"""The state that earlier cleans leave to the next one: what they retained, and files that they could not delete.

::

    completed cleans, newest first ─► the last one ─► its earliest retained commit, the savepoints at that time
                                   └► files that could not be deleted, back to the first clean that took over
                                      those of earlier cleans

A clean of this library retries files that earlier cleans failed to delete. Its own metadata lists the files that fail
again. Its extra metadata has ``hudi_fast.clean``: ``all``, or ``some`` if it skipped partitions; then the next clean
must not begin where this one ended. Apache Hudi's cleans do not take over such files, so all of them are read.

Source: ``CleanPlanner#getPartitionPathsForCleanByCommits``, ``CleanActionExecutor`` (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_instant_body
from hudi_fast.timeline.plans import CleanMetadata, decode_clean_metadata

__all__ = ["SAVEPOINTS_KEY", "TAKEN_OVER_KEY", "LastClean", "last_clean", "savepoints_of"]

SAVEPOINTS_KEY = "savepointed_timestamps"
"""In a clean's extra metadata: the savepoints at that time, as a comma-separated list."""

TAKEN_OVER_KEY = "hudi_fast.clean"
"""In a clean's extra metadata: ``all`` if it examined all partitions that it had to, else ``some``."""


@dataclass(frozen=True, slots=True)
class LastClean:
    """The state that earlier cleans leave.

    Attributes:
        instant: requested time of the newest completed clean; empty without a clean on the timeline.
        earliest: its earliest retained commit; empty for a policy without one.
        last_completed: newest complete write when it was planned.
        savepoints: the savepoints at that time.
        is_partial: it skipped partitions.
        failed: partition path to names of files that no clean could delete.
    """

    instant: str = ""
    earliest: str = ""
    last_completed: str = ""
    savepoints: frozenset[str] = frozenset()
    is_partial: bool = False
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def last_clean(storage: Storage, config: TableConfig, timeline: Timeline) -> LastClean:
    """The state that the cleans on the active timeline leave; reads one body, more after cleans of Apache Hudi.

    Raises:
        CorruptTableError: a clean's metadata is damaged.
    """
    newest: CleanMetadata | None = None
    failed: dict[str, dict[str, None]] = {}
    gone: dict[str, set[str]] = {}
    for instant in reversed(timeline.of_action("clean")):
        if not instant.is_completed:
            continue
        body = read_instant_body(storage, config, instant)
        if not body:  # truncated; Apache Hudi removes such a clean from the timeline
            continue
        metadata = decode_clean_metadata(body, f"{config.timeline_folder}/{instant.file_name}")
        newest = newest or metadata
        for part in metadata.partitions:
            later = gone.setdefault(part.partition_path, set())
            known = failed.setdefault(part.partition_path, {})
            known.update((name, None) for name in part.failed if name not in later)
            later.update(part.deleted)
        if metadata.extra_metadata.get(TAKEN_OVER_KEY) == "all":
            break
    if newest is None:
        return LastClean()
    return LastClean(
        newest.start_time,
        newest.earliest_instant_to_retain,
        newest.last_completed,
        savepoints_of(newest.extra_metadata),
        newest.extra_metadata.get(TAKEN_OVER_KEY) == "some",
        {partition: tuple(names) for partition, names in failed.items() if names},
    )


def savepoints_of(extra_metadata: Mapping[str, str]) -> frozenset[str]:
    """The savepoints in a clean's plan or metadata."""
    return frozenset(one for one in extra_metadata.get(SAVEPOINTS_KEY, "").split(",") if one)
