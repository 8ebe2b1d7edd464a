"""Is what a pinned state shows still there? Asked once the files of a query have been listed.

::

    timeline now ─► writes of the state that were taken back since     ─► read again
                ─► newest slices of the state that cleans took since  ─► read again

A commit becomes invisible before its files go: if it is there now, so were all its files when they were listed.
Otherwise some folders may have been listed before they went and others after, and what it replaced would be missing
with them. Files that go later are missed when they are opened.
"""

from __future__ import annotations

from collections.abc import Set

from hudi_fast.errors import FileGoneError
from hudi_fast.timeline.active import load_timeline
from hudi_fast.view.cleaned_files import cleaned_since
from hudi_fast.view.table_state import TableState

__all__ = ["require_still_there"]


def require_still_there(state: TableState, listed: Set[str]) -> None:
    """Make sure that what was listed is what the state shows.

    Args:
        state: the table as it was pinned.
        listed: partition paths whose files were listed.

    Raises:
        FileGoneError: a write of the state was rolled back, or a clean removed a file of it, before all was listed.
    """
    now = load_timeline(state.storage, state.config)
    as_of = state.view.as_of
    for one in state.timeline.writes():
        if (as_of is None or one.requested <= as_of) and not now.is_completed_or_archived(one.requested):
            raise FileGoneError(
                f"The {one.action} {one.requested} of {state.storage.uri} was rolled back since the table was looked "
                "at. Read again.",
                f"{state.config.timeline_folder}/{one.file_name}",
            )
    removed = tuple(cleaned_since(state, now))
    pruned = {*state.view.lister.partitions()} - listed if removed else set()
    for file in removed:
        if file.partition not in pruned:
            raise FileGoneError(
                f"A file of {state.storage.uri} is gone since the table was looked at: the clean "
                f"{file.clean.requested} removed it. Read again.",
                file.path,
            )
