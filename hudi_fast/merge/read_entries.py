"""Log blocks become entries: records decoded into the columns asked for, deleted keys beside them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_fast.formats.log_blocks import LogBlock
from hudi_fast.merge.log_entries import LogEntries
from hudi_fast.merge.slice_merge import SliceMerge

__all__ = ["read_entries"]


def read_entries(
    merge: SliceMerge, blocks: Sequence[LogBlock], schema: pa.Schema, base_instant: str | None = None
) -> LogEntries:
    """One entry per log record and deleted key.

    Args:
        merge: how the slice merges.
        blocks: of :func:`hudi_fast.merge.log_scan.visible_blocks`.
        schema: columns of the entries' rows: of :func:`hudi_fast.merge.slice_merge.merge_schema`, or just
            ``_hoodie_record_key`` to know which keys the log has.
        base_instant: instant of the slice's base file; record positions count when they refer to it.
    """
    raise NotImplementedError
