"""Complete the file slice of an incremental query that has partial rows.

A partial update logs some columns; earlier commits, which may be outside the query's range, wrote the others. The rows
at the end of the range are computed from all files of the slice, and the query keeps the rows that the range wrote.
This lists the files of the partition; no other incremental query does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hudi_fast.errors import ConfigError
from hudi_fast.formats.log.blocks import HeaderKey, LogBlock
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.metadata_table.state import open_state
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = ["has_partial_rows", "whole_slice"]


def has_partial_rows(blocks: Sequence[LogBlock]) -> bool:
    """Whether rows of these blocks lack columns."""
    return any(block.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true" for block in blocks)


def whole_slice(merge: SliceMerge, part: FileSlice) -> tuple[SliceMerge, FileSlice]:
    """The merge settings and the complete slice, with files from before the range.

    ``part`` has the files of the slice that are in the query's range.

    Raises:
        ConfigError: earlier files are missing.
    """
    view = open_state(merge.storage, merge.as_of).view
    found = next((one for one in latest_slices(view, part.partition) if one.file_id == part.file_id), None)
    if found is None or not {log.path for log in part.log_files} <= {log.path for log in found.log_files}:
        raise ConfigError(
            f"Commits in the range updated only some columns of rows of {merge.storage.uri}, and a clean has deleted "
            f"the files of file group {part.file_id} with the other columns. Begin later, use a change query, or "
            "write whole rows in updates (hoodie.spark.sql.merge.into.partial.updates=false)."
        )
    return replace(merge, commit_times=None), found
