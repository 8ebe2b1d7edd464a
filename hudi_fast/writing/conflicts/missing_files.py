"""A file that a write had to read is gone: somebody else's service removed it, so that write is in conflict with that.

Apache Hudi lets the error of the storage through; the whole write run again sees files that are there.
"""

from __future__ import annotations

from hudi_fast.errors import CommitConflictError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.table_state import load_state

__all__ = ["conflict_of_missing_file"]

_REMOVING = ("clean", "restore")


def conflict_of_missing_file(storage: Storage, error: FileGoneError) -> CommitConflictError:
    """The conflict that a missing file stands for, with the last instant that removed files.

    Args:
        storage: the table.
        error: of the write that missed it.
    """
    removing = load_state(storage).timeline.of_action(*_REMOVING)
    other = max((one.requested for one in removing if one.is_completed), default=None)
    gone = FileStat(error.path or "", 0, 0, False)
    file = parse_base_file(gone) or parse_log_file(gone)
    return CommitConflictError(
        f"Another process removed a file that this write had to read; the last one to remove files was "
        f"{other or 'none that the timeline knows'}. The table is as before; run the operation again. {error}",
        other=other,
        file_groups=() if file is None else ((gone.path.rpartition("/")[0], file.file_id),),
    )
