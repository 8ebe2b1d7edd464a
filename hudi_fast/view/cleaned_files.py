"""Finds files of a pinned view that a later clean has deleted.

::

    timeline now ─► later cleans ─► files in their plans ─┐
    folders now ──────────────────────────────────────────┴─► the view's newest slices ─► those with a planned file

A clean deletes slices that have newer ones. If a view was pinned before the newer slice was complete, a later folder
listing shows the group with an older slice or with none, and its rows would be missing without an error. A view that
lists files by the metadata table is not affected: it still lists them, and opening them fails. (Apache Hudi does not
check this.)
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
from hudi_fast.view.named_files import checked_clean
from hudi_fast.view.slices import latest_slices
from hudi_fast.view.table_state import TableState

__all__ = ["CleanedFiles", "cleaned_since"]


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """A file of a slice in the view that a clean deletes.

    Attributes:
        clean: the clean that has deleted the file or is going to.
        path: relative to the table.
    """

    clean: Instant
    partition: str
    file_id: str
    path: str


def cleaned_since(state: TableState, now: Timeline) -> Iterator[CleanedFiles]:
    """Files of the view's newest slices that later cleans delete, one per file group.

    Yields nothing unless the pinned ``state`` lists folders. ``now`` is the current timeline.

    Raises:
        FileGoneError: a clean's plan was archived after ``now`` was listed.
        ConfigError: the view is unavailable: see :func:`hudi_fast.view.slices.latest_slices`.
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
    """Files in the plans of later cleans, by partition path, each with its clean."""
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
    """The clean's plan; None if its requested file is truncated, in which case nothing was deleted."""
    path = f"{state.config.timeline_folder}/{clean.requested}.clean.requested"
    try:
        plan = decode_clean_plan(read_requested_body(state.storage, state.config, clean), path)
    except FileGoneError:
        raise
    except CorruptTableError:
        return None
    return checked_clean(state.storage, plan, path)
