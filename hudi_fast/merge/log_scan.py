"""Which log blocks of a file slice count, and in which order (``BaseHoodieLogRecordReader``, Hudi 1.2.0)."""

from __future__ import annotations

from hudi_fast.formats.log_blocks import LogBlock
from hudi_fast.merge.slice_merge import SliceMerge
from hudi_fast.view.slices import FileSlice

__all__ = ["visible_blocks"]


def visible_blocks(merge: SliceMerge, slice_: FileSlice) -> list[LogBlock]:
    """Data and delete blocks in the order in which they apply."""
    raise NotImplementedError
