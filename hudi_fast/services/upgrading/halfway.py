"""Undoes a change of the table version that Apache Hudi began, and that failed while it moved the timeline.

:mod:`hudi_fast.view.moved_instants` finds such tables. hudi_fast copies the timeline when it upgrades, so its own
failed upgrades never leave a table in this state.
"""

from __future__ import annotations

from hudi_fast.config.table_config import TableConfig, other_layout
from hudi_fast.services.upgrading.timeline import copy_timeline
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import load_timeline
from hudi_fast.view.moved_instants import moved_away

__all__ = ["put_back"]


def put_back(storage: Storage, config: TableConfig) -> int:
    """Put the instants that :func:`moved_away` finds back into the table's timeline; returns their number.

    Under the table's lock. The files in the other folder stay: they are copies from then on. After a crash the next
    call goes on: completed files are written last, and :func:`moved_away` finds the instants without them.

    Args:
        storage: of the table.
        config: its configuration.
    """
    lost = moved_away(storage, config)
    if lost:
        other = other_layout(config, storage.uri)
        own = {one.requested for one in load_timeline(storage, config).instants}
        here = {one.requested for one in load_timeline(storage, other).instants if one.requested in own}
        copy_timeline(storage, other, config, here | {one.requested for one in lost})
    return len(lost)
