"""The engine of DML: its rows are computed from stored rows.

::

    pinned state ─► read matching rows ─► changed rows ─► an ordinary engine writes them

Reading and writing use one pinned table state. Conflicts with later commits are checked before the commit: in
single-writer mode any commit of another writer conflicts; with concurrency control only commits to the same file groups
do (:mod:`hudi_fast.writing.conflicts.checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from hudi_fast.errors import CommitConflictError
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.backend import Engine
from hudi_fast.writing.dml_rows import ACTION
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

__all__ = ["DmlEngine", "dml_schema", "pinned_state"]


class DmlEngine:
    """Passes the changed rows of a DML statement to the engine that writes them.

    Args:
        columns: data columns of these rows, in the types of the table.
        make_engine: creates the engine with the rows, from the plan of the write.
        unset: columns that no update of the statement sets.
    """

    def __init__(
        self,
        columns: pa.Schema,
        make_engine: Callable[[WritePlan], Engine],
        unset: frozenset[str],
    ) -> None:
        self._columns = columns
        self._make_engine = make_engine
        self._unset = unset
        self._inner: Engine | None = None

    def input_schema(self, state: TableState) -> pa.Schema:
        """The data columns and the action column."""
        return dml_schema(self._columns)

    def prepare(self, plan: WritePlan) -> None:
        """Compute the changed rows.

        Raises:
            CommitConflictError: the columns of the table have changed since the statement was resolved.
        """
        known = {field.name: field.type for field in plan.schema}
        if any(known.get(field.name) != field.type for field in self._columns):
            raise CommitConflictError(
                f"The columns of {plan.storage.uri} changed while this write waited for the lock: they are now "
                f"{plan.schema.names}. The table is as before; run the operation again."
            )
        self._inner = self._make_engine(plan)
        self._inner.prepare(plan)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the rows."""
        assert self._inner is not None, "write requires prepare"
        return self._inner.execute(replace(plan, unset=self._unset))


def dml_schema(columns: pa.Schema) -> pa.Schema:
    """The schema of changed rows for a write."""
    return columns.append(pa.field(ACTION, pa.int8()))


def pinned_state(plan: WritePlan) -> TableState:
    """The table state that a write pins."""
    return TableState(plan.storage, plan.config, plan.view.timeline, plan.view)
