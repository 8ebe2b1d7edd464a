"""Finds instants that Apache Hudi moved to the timeline of another layout before its change of the version failed.

::

    completed writes in the folder of the other layout ─► also on the table's active or archived timeline? fine: copies
        ─► all of their files deleted? fine: rolled back, restored or cleaned since
        ─► otherwise the table lacks a completed commit

Apache Hudi moves the files of the timeline one by one before it changes the properties. Reading or changing such a
table would lose rows, and the files that look like leftovers would be their only record. An instant whose completed
file was moved before its other files looks like a failed write: if Apache Hudi 1.2.0 tries the change again, it first
rolls this instant back, and its rows are lost. Source: SevenToEightUpgradeHandler, UpgradeDowngrade#run.
"""

from __future__ import annotations

from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.errors import CorruptTableError
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instant import Instant, comparable_action
from hudi_fast.view.table_state import read_commit

__all__ = ["moved_away", "require_whole"]


def require_whole(storage: Storage, config: TableConfig, timeline: Timeline) -> None:
    """Check that a table before version 8 has its whole timeline; costs nothing unless the folder of version 8 exists.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.

    Raises:
        CorruptTableError: a failed change of the version moved commits away.
    """
    if not timeline.has_other_folder:
        return
    lost = moved_away(storage, config)
    if lost:
        folder = other_layout(config, storage.uri).timeline_folder
        raise CorruptTableError(
            f"The table {storage.uri} of version {config.version} lacks {len(lost)} instants, the first of "
            f"{lost[0].requested}: a change of the version by another program failed after it had moved them to "
            f"{folder}. Put them back with services.upgrade({config.version}) or `hudi-fast upgrade`, or with the"
            " version that was wanted; do not let Apache Hudi try again.",
            folder,
        )


def moved_away(storage: Storage, config: TableConfig) -> tuple[Instant, ...]:
    """Instants that a failed change of the version moved away from the table's timeline, oldest first.

    Args:
        storage: of the table.
        config: its configuration.

    Returns:
        Instants that the table's timelines lack, or have in an earlier state; empty if they have all completed writes.
    """
    other = other_layout(config, storage.uri)
    there = load_timeline(storage, other)
    if not there.instants:
        return ()
    states = {_identity(one): one.state for one in load_timeline(storage, config).instants}
    unknown = [one for one in there.instants if states.get(_identity(one), -1) < one.state]
    if unknown:
        first, last = unknown[0].requested, unknown[-1].requested
        archived = {(one.requested, one.action) for one in ArchivedTimeline(storage, config).instants(first, last)}
        unknown = [one for one in unknown if _identity(one) not in archived]
    writes = {one.requested for one in there.writes()}
    is_lost = any(one.requested in writes and _has_files(storage, other, one) for one in unknown if one.is_completed)
    return tuple(unknown) if is_lost else ()


def _identity(instant: Instant) -> tuple[str, str]:
    return instant.requested, comparable_action(instant.action)


def _has_files(storage: Storage, config: TableConfig, instant: Instant) -> bool:
    commit = read_commit(storage, config, instant)
    return any(storage.exists(stat.path) for stat in commit.write_stats() if stat.path)
