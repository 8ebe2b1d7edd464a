"""What merging the log of a file slice needs, and which columns it has to read.

::

    visible_blocks(merge, slice) ─► read_entries(merge, blocks, schema) ─► fold ─► match_base ─► settle ─► merged rows

A :class:`SliceMerge` is true for a whole table and is made once; the functions around it are pure in it and in the
slice, so a task that runs twice answers the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_fast.keys.key_generator import KeyConfig
from hudi_fast.merge.rules import MergeRules
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.active import Timeline

__all__ = ["SliceMerge", "merge_schema"]


@dataclass(frozen=True)
class SliceMerge:
    """What merging a slice needs. Picklable.

    Attributes:
        storage: the table's storage.
        timeline: the active timeline; before table version 8 it says which blocks count.
        table_version: of the table.
        rules: which of two rows with one key stays.
        as_of: newest requested time that counts; None for the end of the timeline.
        key_config: how keys follow from data columns; None for a table whose rows carry the meta columns.
        use_positions: whether entries may be matched to rows of the base file by position.
    """

    storage: Storage
    timeline: Timeline
    table_version: int
    rules: MergeRules
    as_of: str | None = None
    key_config: KeyConfig | None = None
    use_positions: bool = False


def merge_schema(merge: SliceMerge, wanted: pa.Schema, full: pa.Schema) -> pa.Schema:
    """The columns of ``wanted``, and after them those that merging needs: keys, ordering values, delete flags.

    Args:
        merge: how slices merge.
        wanted: columns that are asked for.
        full: all columns of the table, meta columns among them if rows carry them.
    """
    raise NotImplementedError
