"""Check that a pinned state is still complete, after the files of a query have been listed.

::

    timeline now ─► writes of the state that were rolled back meanwhile        ─► read again
                ─► newest slices of the state that cleans deleted meanwhile    ─► read again

A rollback makes a commit invisible before it deletes files. So if the commit is still visible, all its files existed
when they were listed. Otherwise some folders may have been listed before the deletion and others after it, and the
files that the commit replaced would be missing as well. Files that are deleted later cause an error when they are
opened.
"""

from __future__ import annotations

from collections.abc import Set

from hudi_fast.errors import FileGoneError
from hudi_fast.timeline.active import load_timeline
from hudi_fast.view.cleaned_files import cleaned_since
from hudi_fast.view.table_state import TableState

__all__ = ["require_files_present"]


def require_files_present(state: TableState, listed: Set[str]) -> None:
    """Check that the listed files are those of the state.

    ``listed`` are the partition paths whose files were listed.

    Raises:
        FileGoneError: a write of the state was rolled back, or a clean deleted a file of it, before all was listed.
    """
    now = load_timeline(state.storage, state.config)
    as_of = state.view.as_of
    for one in state.timeline.writes():
        if one.requested == state.uncommitted:
            continue
        if (as_of is None or one.requested <= as_of) and not now.is_completed_or_archived(one.requested):
            raise FileGoneError(
                f"The {one.action} {one.requested} of {state.storage.uri} was rolled back after the query was "
                "planned. Read again.",
                f"{state.config.timeline_folder}/{one.file_name}",
            )
    removed = tuple(cleaned_since(state, now))
    pruned = {*state.view.lister.partitions()} - listed if removed else set()
    for file in removed:
        if file.partition not in pruned:
            raise FileGoneError(
                f"The clean {file.clean.requested} deleted a file of {state.storage.uri} after the query was planned. "
                "Read again.",
                file.path,
            )
