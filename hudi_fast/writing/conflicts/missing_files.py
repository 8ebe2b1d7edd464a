"""Turns a missing file into a conflict: another process's service removed a file that a write had to read.

Apache Hudi raises the storage error instead. A rerun of the whole write reads the current files.
"""

from __future__ import annotations

from hudi_fast.errors import CommitConflictError, FileGoneError
from hudi_fast.storage.base import FileStat, Storage
from hudi_fast.view.file_names import parse_base_file, parse_log_file
from hudi_fast.view.table_state import load_state

__all__ = ["conflict_of_missing_file"]

_REMOVING = ("clean", "restore")


def conflict_of_missing_file(storage: Storage, error: FileGoneError) -> CommitConflictError:
    """The conflict error for a missing file; names the last instant that removed files.

    Args:
        storage: the table.
        error: raised by the write.
    """
    removing = load_state(storage).timeline.of_action(*_REMOVING)
    other = max((one.requested for one in removing if one.is_completed), default=None)
    gone = FileStat(error.path or "", 0, 0, False)
    file = parse_base_file(gone) or parse_log_file(gone)
    return CommitConflictError(
        f"Another process removed a file that this write had to read; the last instant that removed "
        f"files is {other or 'not on the timeline'}. The table is as before; run the operation again. {error}",
        other=other,
        file_groups=() if file is None else ((gone.path.rpartition("/")[0], file.file_id),),
    )
