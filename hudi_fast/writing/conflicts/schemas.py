"""The schema of a commit when others evolved the table since it began.

With S0 the table's columns when the write began, S1 those it has now and W those of the write:

=========================================  ======================================
S1 is S0, or W is S1                       the commit says W
W is S0, and S1 is not                     the commit says S1: it changed nothing
otherwise                                  both changed them: the write is refused
=========================================  ======================================

Source: ``SimpleSchemaConflictResolutionStrategy`` (Hudi 1.2.0).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_fast.errors import CommitConflictError
from hudi_fast.view.table_state import TableState, table_schema

__all__ = ["settled_schema"]


def settled_schema(before: TableState, now: TableState, own: pa.Schema, instant: str) -> pa.Schema:
    """The data columns of the table once a write has landed; under the table's lock.

    Args:
        before: the table that the write was pinned to.
        now: the table as it is.
        own: data columns as the write left them.
        instant: requested time of the write.

    Raises:
        CommitConflictError: the write and another one both changed the columns.
    """
    seen = {one.requested for one in before.timeline.writes()}
    if all(one.requested in seen for one in now.timeline.writes()):
        return own
    then, current = table_schema(before), table_schema(now)
    if current is None or current.equals(own) or (then is not None and current.equals(then)):
        return own
    if then is not None and own.equals(then):
        return current
    added = ", ".join(sorted(set(current.names) ^ set(own.names))) or "types differ"
    raise CommitConflictError(
        f"Detected incompatible concurrent schema evolution of {now.storage.uri}: {instant} changed its columns, and "
        f"so did another writer since it began ({added}). Nothing of it is visible; run it again.",
        instant,
    )
