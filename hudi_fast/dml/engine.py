"""The engine of a write whose rows follow from what the table holds.

::

    pinned state ─► read what is to change ─► changed rows ─► an ordinary engine writes them

Reading and writing see one state of the table. What others commit in the meantime refuses the change when it is about
to become visible: any commit where one writer is all there may be, one that changed the same file groups where several
may be at work (:mod:`hudi_fast.writing.conflicts.checks`).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from hudi_fast.errors import CommitConflictError
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.dml_rows import ACTION
from hudi_fast.writing.plan import WriteOutcome, WritePlan

__all__ = ["DmlEngine", "dml_schema", "pinned_state"]


class DmlEngine:
    """Hands the rows that a change makes to the engine that writes them.

    Args:
        columns: data columns that these rows bring, in the types of the table.
        make_engine: the engine that has the rows, from the plan of the write.
    """

    def __init__(self, columns: pa.Schema, make_engine: Callable[[WritePlan], Engine]) -> None:
        self._columns = columns
        self._make_engine = make_engine
        self._inner: Engine | None = None

    def input_schema(self) -> pa.Schema:
        """The columns, and the one that says what becomes of each row."""
        return dml_schema(self._columns)

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
        self._inner = self._make_engine(plan)
        self._inner.prepare(plan)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows."""
        assert self._inner is not None, "prepare comes first"
        return self._inner.execute(plan)


def dml_schema(columns: pa.Schema) -> pa.Schema:
    """The columns of changed rows as a write takes them."""
    return columns.append(pa.field(ACTION, pa.int8()))


def pinned_state(plan: WritePlan) -> TableState:
    """The state of the table that a write is pinned to."""
    return TableState(plan.storage, plan.config, plan.view.timeline, plan.view)
