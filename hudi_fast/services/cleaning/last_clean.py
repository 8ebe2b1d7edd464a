"""What earlier cleans leave for the next one to know: where they ended, and what they could not delete.

::

    completed cleans, newest first ─► the last one ─► what it retained, the savepoints that it saw
                                   └► files that could not be deleted, up to the first clean that had taken over
                                      those before it

A clean of this library takes over what cleans before it failed to delete: it tries again, and what fails once more is
in its own metadata. ``hudi_fast.clean`` in its extra metadata says that it did (``all``), and whether it passed
partitions over (``some``), so that the next one must not begin where it ends. Apache Hudi's cleans take nothing over,
so they are read through.

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
"""In a clean's extra metadata: the savepoints that there were, as a comma list."""

TAKEN_OVER_KEY = "hudi_fast.clean"
"""In a clean's extra metadata: which partitions it looked at: ``all`` that it had to, or ``some``."""


@dataclass(frozen=True, slots=True)
class LastClean:
    """What earlier cleans leave.

    Attributes:
        instant: requested time of the newest completed clean; empty when there is none on the timeline.
        earliest: what it retained; empty where its policy has none.
        last_completed: newest complete write when it was planned.
        savepoints: those that there were.
        is_partial: it passed partitions over.
        failed: partition path to names of files that could not be deleted, by whichever clean.
    """

    instant: str = ""
    earliest: str = ""
    last_completed: str = ""
    savepoints: frozenset[str] = frozenset()
    is_partial: bool = False
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def last_clean(storage: Storage, config: TableConfig, timeline: Timeline) -> LastClean:
    """What the cleans on the active timeline leave; one body is read, more after cleans of Apache Hudi.

    Raises:
        CorruptTableError: a clean's metadata cannot be understood.
    """
    newest: CleanMetadata | None = None
    failed: dict[str, dict[str, None]] = {}
    gone: dict[str, set[str]] = {}
    for instant in reversed(timeline.of_action("clean")):
        if not instant.is_completed:
            continue
        body = read_instant_body(storage, config, instant)
        if not body:  # cut off; Apache Hudi takes such a clean off the timeline
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
    """The savepoints that a clean's plan or metadata names."""
    return frozenset(one for one in extra_metadata.get(SAVEPOINTS_KEY, "").split(",") if one)
