"""The whole file slice that some of whose log files an incremental query looks at.

A partial update logs some columns; the others of its rows were written by commits that need not be in the query's
range. The rows as they were at its end follow from all files of the slice, and of these rows the query keeps those that
the range wrote. Their partition's files are listed for that, which no other incremental query does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hudi_fast.errors import ConfigError
from hudi_fast.formats.log.blocks import HeaderKey, LogBlock
from hudi_fast.merging.slice_merge import SliceMerge
from hudi_fast.metadata_table.state import open_state
from hudi_fast.view.slices import FileSlice, latest_slices

__all__ = ["brings_parts", "whole_slice"]


def brings_parts(blocks: Sequence[LogBlock]) -> bool:
    """Whether rows of these blocks lack columns."""
    return any(block.headers.get(HeaderKey.IS_PARTIAL, "").lower() == "true" for block in blocks)


def whole_slice(merge: SliceMerge, part: FileSlice) -> tuple[SliceMerge, FileSlice]:
    """How a slice merges, and the slice, if what was written before a range counts as well.

    Args:
        merge: of an incremental query.
        part: the files of the slice that are in its range.

    Raises:
        ConfigError: the files of before are gone.
    """
    view = open_state(merge.storage, merge.as_of).view
    found = next((one for one in latest_slices(view, part.partition) if one.file_id == part.file_id), None)
    if found is None or not {log.path for log in part.log_files} <= {log.path for log in found.log_files}:
        raise ConfigError(
            f"Rows of {merge.storage.uri} were updated in some columns alone by commits in the range, and the files of "
            f"file group {part.file_id} that hold their other columns are gone, cleaned since. Begin later, ask for "
            "the change feed, or have updates write whole rows (hoodie.spark.sql.merge.into.partial.updates=false)."
        )
    return replace(merge, commit_times=None), found
