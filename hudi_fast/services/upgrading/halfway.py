"""Detects tables whose upgrade by Apache Hudi failed while it moved the timeline, file by file.

::

    completed writes in the folder of the other layout ─► also on the table's active or archived timeline? fine: copies
        ─► all of their files deleted? fine: rolled back, restored or cleaned since
        ─► otherwise the table lacks a completed commit

Reading or changing such a table would lose rows, and the files that look like leftovers would be their only record.
hudi_fast copies the timeline when it upgrades, so its own failed upgrades never leave a table in this state.
"""

from __future__ import annotations

from hudi_fast.config.table_config import TableConfig
from hudi_fast.errors import CorruptTableError
from hudi_fast.services.upgrading.move import other_layout
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.timeline.archive.timeline import ArchivedTimeline
from hudi_fast.timeline.instant import Instant
from hudi_fast.view.table_state import read_commit

__all__ = ["refuse_halfway"]


def refuse_halfway(storage: Storage, config: TableConfig) -> None:
    """Raise if the timeline of the other layout has commits that the table's timeline lacks.

    Args:
        storage: of the table.
        config: its configuration.

    Raises:
        CorruptTableError: another program began to change the table's version and failed.
    """
    other = other_layout(config, storage.uri)
    own = {one.requested for one in load_timeline(storage, config).writes()}
    unknown = [one for one in load_timeline(storage, other).writes() if one.requested not in own]
    if not unknown:
        return
    first, last = unknown[0].requested, unknown[-1].requested
    archived = {one.requested for one in ArchivedTimeline(storage, config).instants(first, last)}
    for instant in unknown:
        if instant.requested not in archived and _has_files(storage, other, instant):
            raise CorruptTableError(
                f"The table {storage.uri} of version {config.version} is half way to another: its commit "
                f"{instant.requested}, whose files are there, is in {other.timeline_folder} and not in "
                f"{config.timeline_folder}. Another program was changing the version and failed; let it finish that.",
                f"{other.timeline_folder}/{instant.file_name}",
            )


def _has_files(storage: Storage, config: TableConfig, instant: Instant) -> bool:
    commit = read_commit(storage, config, instant)
    return any(storage.exists(stat.path) for stat in commit.write_stats() if stat.path)
