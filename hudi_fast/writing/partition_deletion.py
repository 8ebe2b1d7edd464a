"""An engine without rows: its write, a ``delete_partition``, deletes partitions that are named by their exact paths.

The option ``hoodie.datasource.write.partitions.to.delete`` takes patterns, in which ``*`` and ``%2A`` match any text,
separated by commas. A path with one of these would name other partitions, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.view.table_state import TableState, table_schema
from hudi_fast.writing.write_plan import WriteOutcome, WritePlan

__all__ = ["PartitionDeletion", "deletion_options"]


class PartitionDeletion:
    """Names the partitions of a ``delete_partition`` once it has begun.

    Args:
        state: the table.
        choose: paths of the partitions to delete, from the plan of the write that has begun.
    """

    def __init__(self, state: TableState, choose: Callable[[WritePlan], Iterable[str]]) -> None:
        self.deleted: tuple[str, ...] = ()
        self._choose = choose
        self._schema = table_schema(state) or pa.schema([])

    def input_schema(self, state: TableState) -> pa.Schema:
        """The table's columns."""
        return self._schema

    def prepare(self, plan: WritePlan) -> None:
        """There are no rows to check."""

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """The partitions to delete."""
        self.deleted = tuple(self._choose(plan))
        return WriteOutcome([], "local", "no rows are written", frozenset(self.deleted))


def deletion_options(options: WriteOptions) -> WriteOptions:
    """The options of a write with this engine; nothing is committed if there is nothing to delete."""
    return replace(
        options,
        operation="delete_partition",
        partitions_to_delete=(),
        partial_update=False,
        allow_empty_commit=False,
    )
