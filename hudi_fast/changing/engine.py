"""The engine of a write whose rows follow from what the table holds.

::

    under the table's lock:   pinned state ─► read what is to change ─► changed rows ─► an ordinary engine writes them

Reading and writing see one state of the table, so nothing is lost between them. The lock keeps other writers of this
machine away; a commit of any other that is completed when all is written refuses the change.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hudi_fast.errors import CommitConflictError
from hudi_fast.metadata_writer.runner import Runner
from hudi_fast.timeline.active import Timeline, load_timeline
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.changed import ACTION
from hudi_fast.writing.flow import Engine
from hudi_fast.writing.plan import WriteOutcome, WritePlan

__all__ = ["ChangeEngine", "change_schema", "pinned_state"]


class ChangeEngine:
    """Hands the rows that a change makes to the engine that writes them.

    Args:
        columns: data columns that these rows bring, in the types of the table.
        work_out: the engine that has the rows, from the plan of the write.
    """

    def __init__(self, columns: pa.Schema, work_out: Callable[[WritePlan], Engine]) -> None:
        self._columns = columns
        self._work_out = work_out
        self._inner: Engine | None = None
        self._seen: frozenset[str] = frozenset()

    def input_schema(self) -> pa.Schema:
        """The columns, and the one that says what becomes of each row."""
        return change_schema(self._columns)

    def prepare(self, plan: WritePlan) -> None:
        """Work out what changes.

        Raises:
            CommitConflictError: the table has other columns than when the change was put together.
        """
        known = {field.name: field.type for field in plan.schema}
        if any(known.get(field.name) != field.type for field in self._columns):
            raise CommitConflictError(
                f"The columns of {plan.storage.uri} changed while this write waited for its turn: they are "
                f"{plan.schema.names} now. The table is as before; run the operation again."
            )
        self._seen = _writes(plan.view.timeline, plan.config.is_mor)
        self._inner = self._work_out(plan)
        self._inner.prepare(plan)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows.

        Raises:
            CommitConflictError: another writer has committed since the rows were read.
        """
        assert self._inner is not None, "prepare comes first"
        outcome = self._inner.execute(plan)
        others = _writes(load_timeline(plan.storage, plan.config), plan.config.is_mor) - self._seen - {plan.instant}
        if others:
            raise CommitConflictError(
                f"{plan.storage.uri} was written to ({', '.join(sorted(others))}) while {plan.instant} worked out what "
                "it changes. Its changes are withdrawn; run the operation again."
            )
        return outcome

    def index_runner(self) -> Runner:
        """That of the engine that has the rows."""
        assert self._inner is not None, "prepare comes first"
        return self._inner.index_runner()


def change_schema(columns: pa.Schema) -> pa.Schema:
    """The columns of changed rows as a write takes them."""
    return columns.append(pa.field(ACTION, pa.int8()))


def pinned_state(plan: WritePlan) -> TableState:
    """The state of the table that a write is pinned to."""
    return TableState(plan.storage, plan.config, plan.view.timeline, plan.view)


def _writes(timeline: Timeline, is_mor: bool) -> frozenset[str]:
    """Completed writes that change rows; on merge-on-read tables ``commit`` is a compaction."""
    return frozenset(one.requested for one in timeline.writes() if not (is_mor and one.action == "commit"))
