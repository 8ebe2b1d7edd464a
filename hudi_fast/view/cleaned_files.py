"""Files of a pinned view that cleans have removed since: folders that are listed now do not show them.

::

    timeline now ─► cleans requested since ─► files that their plans name ─┐
    folders now ───────────────────────────────────────────────────────────┴─► the view's newest slices ─► those with
                                                                               a file of the plans

A clean deletes slices that have newer ones. To a view that was pinned before those were complete, a folder that is
listed afterwards shows the group with an older slice, or with none at all, and its rows would silently not be there.
A view that finds its files through the metadata table is spared that: it goes on seeing them, and misses them when they
are opened. (Apache Hudi does not look.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hudi_fast.errors import CorruptTableError, FileGoneError
from hudi_fast.storage.base import FileStat
from hudi_fast.timeline.active import Timeline, read_requested_body
from hudi_fast.timeline.instant import Instant
from hudi_fast.timeline.plans import CleanPlan, decode_clean_plan
from hudi_fast.view.listing import StorageLister, WithFiles
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState

__all__ = ["CleanedFiles", "cleaned_since"]


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """A file of a slice that the view counts on.

    Attributes:
        clean: who removed it, or is about to.
        partition: partition path.
        file_id: its file group.
        path: relative to the table.
    """

    clean: Instant
    partition: str
    file_id: str
    path: str


def cleaned_since(state: TableState, now: Timeline) -> Iterator[CleanedFiles]:
    """The files of the view's newest slices that cleans took, which were requested since; one of each file group.

    Args:
        state: the table as it was pinned; yields nothing unless it lists folders.
        now: the timeline as it is.

    Raises:
        FileGoneError: a clean's plan is archived since ``now`` was listed.
        ConfigError: the view cannot be had: see :func:`hudi_fast.view.slices.latest_slices`.
    """
    if not state.view.lister.lists_folders:
        return
    deleted = _deleted_since(state, now)
    files = {partition: tuple(FileStat(path, 0, 0, False) for path in paths) for partition, paths in deleted.items()}
    before = replace(state.view, lister=WithFiles(StorageLister(state.storage), files))
    for partition, cleans in deleted.items():
        for slice_ in latest_slices(before, partition):
            found = next((one.path for one in slice_.files if one.path in cleans), None)
            if found is not None:
                yield CleanedFiles(cleans[found], partition, slice_.file_id, found)


def _deleted_since(state: TableState, now: Timeline) -> dict[str, dict[str, Instant]]:
    """By partition path the files of the plans of new cleans, each with the clean."""
    known = {one.requested for one in state.timeline.of_action("clean")}
    deleted: dict[str, dict[str, Instant]] = {}
    for clean in now.of_action("clean"):
        plan = None if clean.requested in known else _plan_of(state, clean)
        if plan is not None:
            for partition, paths in plan.files.items():
                names = (path.rpartition("/")[2] for path in paths)
                deleted.setdefault(partition, {}).update({f"{partition}/{one}".lstrip("/"): clean for one in names})
    return deleted


def _plan_of(state: TableState, clean: Instant) -> CleanPlan | None:
    """None when it was cut off while it was requested: nothing was deleted then."""
    path = f"{state.config.timeline_folder}/{clean.requested}.clean.requested"
    try:
        return decode_clean_plan(read_requested_body(state.storage, state.config, clean), path)
    except FileGoneError:
        raise
    except CorruptTableError:
        return None
