"""The newest commit of a table that stores something, in the active timeline or else in the archived one.

::

    timeline, newest commit first ─► archived timeline ─► a function of each commit's body ─► the first thing found
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hudi_fast.config.table_config import TableConfig
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline, read_instant_body
from hudi_fast.timeline.archive.timeline import ArchivedTimeline

__all__ = ["newest_stored"]

Stored = TypeVar("Stored")


def _all(instant: Any) -> bool:
    return True


def newest_stored(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    find: Callable[[bytes, str], Stored | None],
    takes: Callable[[Any], bool] = _all,
    archive: bool = True,
) -> Stored | None:
    """What the newest commit stores that stores something; None if no commit does.

    Args:
        storage: the table's storage.
        config: its configuration.
        timeline: its active timeline.
        find: takes the body of a commit and its path; None if the commit stores nothing.
        takes: chooses completed writes, by ``action`` and, in the active timeline, ``completion``.
        archive: whether to search the archived timeline, too.

    Raises:
        CorruptTableError: a commit cannot be read.
    """
    for instant in reversed(timeline.writes()):
        if takes(instant):
            path = f"{config.timeline_folder}/{instant.file_name}"
            found = find(read_instant_body(storage, config, instant), path)
            if found is not None:
                return found
    newest = None
    if archive:
        for one in ArchivedTimeline(storage, config).read():  # oldest first
            if takes(one):
                newest = find(one.metadata or b"", config.history_folder) or newest
    return newest
