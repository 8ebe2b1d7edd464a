"""The schema of a commit when other writers evolved the table since it began.

With S0 the table's columns when the write began, S1 its current columns and W those of the write:

=========================================  ================================================================
S1 = S0, or W = S1                         the commit records W
W = S0, S1 ≠ S0                            the commit records S1: the write changed no columns
W ≠ S1, and a write that began later       the write is refused: the newest commit by requested time defines
has completed                              the columns of the table, and this one is not the newest
otherwise                                  both changed the columns: the write is refused
=========================================  ================================================================

Source: ``SimpleSchemaConflictResolutionStrategy`` (Hudi 1.2.0).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.errors import CommitConflictError
from hudi_fast.timeline.active import Timeline
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["merged_schema"]


def merged_schema(then: pa.Schema | None, before: Timeline, now: TableState, own: pa.Schema, instant: str) -> pa.Schema:
    """The data columns of the table after a write completes; called under the table's lock.

    Args:
        then: data columns of the table that the write was pinned to; None for none yet.
        before: its timeline.
        now: the current table state.
        own: data columns after the write.
        instant: requested time of the write.

    Raises:
        CommitConflictError: the write and another one both changed the columns, or its changes would not be visible.
    """
    seen = {one.requested for one in before.writes()}
    others = [one for one in now.timeline.writes() if one.requested not in seen]
    current = table_schema(now) if others else None
    if current is None or current.equals(own):
        return own
    if then is not None and own.equals(then):
        return current
    later = [one.requested for one in others if one.requested > instant]
    if (then is None or current.equals(then)) and not later:
        return own
    added = ", ".join(sorted(set(current.names) ^ set(own.names))) or "types differ"
    raise CommitConflictError(
        f"Detected incompatible concurrent schema evolution of {now.storage.uri}: {instant} changed its columns, and "
        f"another writer has committed its own since it began ({added}). Nothing of it is visible; run it again.",
        instant,
        max(later, default=others[-1].requested),
    )
