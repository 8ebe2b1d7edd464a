"""Execution backends, and what they will do for a write.

Execution backends: run work that grows with rows or files in threads of this process, or as Spark tasks.

Plans, conflict checks and the timeline stay in the calling process. A :class:`Backend` executes everything else through
six methods, so each write or table service has one implementation for both.

The plan of a write before it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from hudi_fast.config.write_options import WriteOptions
from hudi_fast.events import Listener
from hudi_fast.metadata_table.updates.groups import GroupSink, GroupVisitor
from hudi_fast.metadata_table.updates.produce_base import RecordSource
from hudi_fast.reading.inspecting.results import ShownResult
from hudi_fast.storage.base import Storage
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.write_plan import FilePlan, Incoming, TaskToken, WriteOutcome, WritePlan

__all__ = ["Backend", "BatchSource", "Engine", "PlannedEngine", "WritePreview", "rows_by_partition"]


@dataclass(frozen=True, slots=True)
class WritePreview(ShownResult):
    """How a write would be executed.

    Attributes:
        operation: the operation that would run.
        plan: physical plan, as in :class:`WriteResult`; ``none`` if the save mode leaves the table unchanged.
        reason: why that plan would be chosen.
        partitions: number of incoming rows by partition path; None if the plan does not depend on it.
        input_bytes: approximate size of all rows in memory, in Arrow's format; None if unknown.
        tasks: tasks of the shuffle; None for a plan without one.
    """

    operation: str
    plan: str
    reason: str
    partitions: Mapping[str, int] | None = None
    input_bytes: int | None = None
    tasks: int | None = None


def rows_by_partition(incoming: Incoming) -> dict[str, int]:
    """Number of rows of each partition path, in the order of the paths."""
    names = incoming.partitions.dictionary.to_pylist()
    counts = np.bincount(np.asarray(incoming.partitions.indices), minlength=len(names)).tolist()
    return {name: count for name, count in sorted(zip(names, counts, strict=True)) if count}


Unit = TypeVar("Unit")


class Engine(Protocol):
    """Moves the rows of one write, and of its retries after conflicts, to the functions that write them."""

    def input_schema(self, state: TableState) -> pa.Schema:
        """Columns of the incoming rows.

        Args:
            state: the table. An engine with a time zone converts timestamps to the table's kind, with or without zone.
        """
        ...

    def prepare(self, plan: WritePlan) -> None:
        """Check the rows before the write begins, where possible."""
        ...

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write all rows into file groups. The plan has its instant."""
        ...


class PlannedEngine(Engine, Protocol):
    """An engine that can preview a write."""

    def preview(self, plan: WritePlan) -> WritePreview:
        """How the rows would be written; after :meth:`prepare` with the same plan."""
        ...

    def close(self) -> None:
        """Delete temporary files."""
        ...


@dataclass(frozen=True, slots=True)
class BatchSource:
    """Rows that are read where they are written.

    Attributes:
        units: units to read, such as files; picklable.
        read: the batches of one unit, in ``schema``; picklable.
        schema: of the rows.
    """

    units: Sequence[Any]
    read: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema


class Backend(Protocol):
    """Executes the work of a call."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``, for results."""
        ...

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Listeners of the phases of a call."""
        ...

    def engine(self, rows: Any, options: WriteOptions) -> PlannedEngine:
        """The engine that writes ``rows``: a :class:`BatchSource`, or a table of a type that this backend accepts.

        Raises:
            InvalidDataError: ``rows`` is something else.
        """
        ...

    def map_units(
        self,
        plan: FilePlan,
        units: Sequence[Unit],
        weights: Sequence[float],
        function: Callable[[Unit, TaskToken], list[WriteStat]],
    ) -> list[WriteStat]:
        """Apply a function to each unit of a table service.

        Args:
            plan: of the service; it has its instant.
            units: slices to merge, groups to rewrite ...; picklable.
            weights: of each unit, in bytes that it reads.
            function: executes one unit; picklable. The token's ``task`` is the number of the unit.

        Returns:
            The statistics of all files written.
        """
        ...

    def write_records(self, sources: Sequence[RecordSource], writer: GroupSink) -> list[WriteStat]:
        """Read all sources and write their records into the file groups of the metadata table.

        Returns:
            One statistic for each file group that received records.
        """
        ...

    def visit_groups(self, sources: Sequence[RecordSource], visitor: GroupVisitor) -> Iterator[Any]:
        """Read all sources and visit the file groups of the metadata table with their records.

        Returns:
            The results, in the order of partitions and group numbers.
        """
        ...

    def map_groups(
        self, groups: Sequence[Unit], weights: Sequence[int], function: Callable[[Unit], WriteStat]
    ) -> list[WriteStat]:
        """Apply a function to file groups of the metadata table.

        Args:
            groups: picklable.
            weights: of each group, in bytes to read.
            function: writes the file of one group, and the same file when it is called again; picklable.

        Returns:
            The statistics, in any order.
        """
        ...

    def answering(self, states: Mapping[str, TableState]) -> AbstractContextManager[Callable[[str], pa.Table]]:
        """Answer SQL queries during the block.

        Args:
            states: states of one table, by their names in queries. A state without a commit has no rows, and the
                columns of the last state.

        Returns:
            A function that answers a query in Spark's grammar.
        """
        ...

    def delete(self, storage: Storage, paths: Sequence[str]) -> list[bool]:
        """Delete files, given by paths relative to the table.

        Returns:
            For each path whether the file existed and is deleted. A storage error counts as False. An object store
            does not report whether a file existed, so a missing one counts as True.
        """
        ...
