"""The local engine: routes rows with a kernel and runs the core's per-partition functions in threads.

Threads suffice because the kernels, Parquet encoding and Arrow compute release the GIL.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_fast.events import phase
from hudi_fast.kernels.sorting import group_rows
from hudi_fast.storage.concurrency import heaviest_first, is_little, units_at_once
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.view.table_state import TableState
from hudi_fast.writing.assign import assign_partition
from hudi_fast.writing.backend import WritePreview, rows_by_partition
from hudi_fast.writing.dml_rows import ACTION, INSERT, one_change_per_row
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.global_index import assign_table
from hudi_fast.writing.located import with_usable_index
from hudi_fast.writing.prepare import prepare_rows, with_auto_keys
from hudi_fast.writing.profile import bulk_parts, needs_row_size, with_measured_row_size
from hudi_fast.writing.whole_rows import refuse_unknown
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WriteOutcome, WritePlan

__all__ = ["LocalEngine", "looks_in_table", "lookup_threads", "rows_of_partitions", "write_incoming"]

Rows = npt.NDArray[np.int64]

_MAX_LOOKUPS = 8
"""Threads that look keys up in files of an object store; each holds the keys of a row group."""


class LocalEngine:
    """Writes an Arrow table in this process.

    Args:
        source: the rows.
        plan_name: reported name of the physical plan.
        reason: reported reason for that plan.
    """

    def __init__(
        self, source: pa.Table, plan_name: str = "local", reason: str = "the rows are in this process"
    ) -> None:
        self.source = source
        self._plan_name = plan_name
        self._reason = reason
        self._incoming: Incoming | None = None
        self._prepared_for: object = None

    @property
    def incoming(self) -> Incoming:
        """The prepared rows."""
        assert self._incoming is not None, "rows require prepare"
        return self._incoming

    def input_schema(self, state: TableState) -> pa.Schema:
        """Columns of the source."""
        return self.source.schema

    def prepare(self, plan: WritePlan) -> None:
        """Check all rows before anything is written."""
        wanted = plan.operation, plan.schema, plan.key_config, plan.rules
        if self._incoming is None or wanted != self._prepared_for:
            self._incoming, self._prepared_for = prepare_rows(plan, self.source), wanted

    def preview(self, plan: WritePlan) -> WritePreview:
        """How the prepared rows would be written."""
        partitions = rows_by_partition(self.incoming)
        return WritePreview(plan.operation, self._plan_name, self._reason, partitions, self.source.nbytes)

    def execute(self, plan: WritePlan) -> WriteOutcome:
        """Write the prepared rows."""
        plan = self.sized(with_usable_index(plan))
        partitions = frozenset(rows_by_partition(self.incoming))
        return WriteOutcome(write_incoming(plan, self.incoming), self._plan_name, self._reason, partitions)

    def close(self) -> None:
        """Nothing is open."""

    def sized(self, plan: WritePlan) -> WritePlan:
        """The plan with the average size of stored rows, estimated from prepared rows when unknown."""
        largest = max(rows_by_partition(self.incoming).values(), default=0)
        if not needs_row_size(plan, largest):
            return plan
        rows = self.source
        if ACTION in rows.column_names:
            rows = rows.filter(pc.equal(rows.column(ACTION), INSERT))
        return with_measured_row_size(plan, largest, rows)


def write_incoming(plan: WritePlan, incoming: Incoming, first_task: int = 0) -> list[WriteStat]:
    """Write rows in memory: all rows of a write, or the rows of some partitions.

    Args:
        plan: the write; its index can be used.
        incoming: the rows.
        first_task: number of the task of the first partition; there are at most as many tasks as partitions, unless
            the index is global.
    """
    if plan.operation == "delete_partition":
        return []
    incoming = with_auto_keys(plan, incoming, task=first_task)
    groups = rows_of_partitions(plan, incoming)
    with (
        phase("assign", rows=incoming.count, partitions=len(groups)),
        ThreadPool(lookup_threads(plan), thread_name_prefix="hudi_fast") as pool,
    ):
        works = _assign(plan, incoming, groups, pool, first_task)
    refuse_unknown(plan, incoming, works)
    sizes = [_size(work, plan.config.is_mor) for work in works]
    threads = units_at_once(sizes, plan.files.threads, plan.files.max_threads)
    threads = 1 if is_little(plan.storage.is_local, sizes) else threads
    with phase("write_files", threads=threads) as step:
        one = step.counting(lambda number: write_file_group(plan, works[number], incoming), len(works), "file groups")
        stats = [stat for some in heaviest_first(sizes, one, threads) for stat in some]
        step.add(files=len(stats), bytes=sum(stat.file_size for stat in stats))
    return stats


def looks_in_table(plan: WritePlan, incoming: Incoming) -> bool:
    """Whether the stored rows of a partition's rows may be in other partitions."""
    return plan.index.is_global and plan.operation in ("upsert", "delete") and incoming.groups is None


def rows_of_partitions(plan: WritePlan, incoming: Incoming) -> list[tuple[str, Rows]]:
    """The rows of each partition, int64[n], ascending; changed rows without those that a global index drops."""
    names = incoming.partitions.dictionary.to_pylist()
    codes = np.asarray(incoming.partitions.indices, dtype=np.int32)
    order, bounds = group_rows(codes, len(names))
    groups = [(name, order[bounds[i] : bounds[i + 1]]) for i, name in enumerate(names) if bounds[i + 1] > bounds[i]]
    return _one_place_per_key(incoming, groups) if plan.index.is_global and incoming.groups is not None else groups


def lookup_threads(plan: WritePlan) -> int:
    """The number of threads that look up keys."""
    return max(plan.files.threads, min(plan.files.max_threads, _MAX_LOOKUPS))


def _assign(
    plan: WritePlan,
    incoming: Incoming,
    groups: list[tuple[str, Rows]],
    pool: ThreadPool,
    first_task: int,
) -> list[FileGroupWork]:
    """Assign rows in parallel: over partitions where there are enough, otherwise over the slices of each."""
    if looks_in_table(plan, incoming):
        return assign_table(plan, incoming, pool.map)
    if len(groups) >= plan.files.threads:
        assigned: Iterable[list[FileGroupWork]] = pool.map(
            lambda one: assign_partition(plan, one[1][0], incoming, one[1][1], TaskToken(one[0])),
            enumerate(groups, first_task),
        )
    else:
        assigned = (
            assign_partition(plan, name, incoming, rows, TaskToken(number), pool.map)
            for number, (name, rows) in enumerate(groups, first_task)
        )
    works = [work for one in assigned for work in one]
    if plan.operation == "bulk_insert" and len(works) < plan.files.threads and plan.index.bucket is None:
        wanted = -(-plan.files.threads // max(1, len(works)))
        works = [part for work in works for part in _parts(plan, work, wanted)]
    return works


def _one_place_per_key(incoming: Incoming, groups: list[tuple[str, Rows]]) -> list[tuple[str, Rows]]:
    """The rows by partition, without new rows that lose to a new row with the same key in another partition."""
    assert incoming.groups is not None
    new = np.flatnonzero(incoming.groups.numbers < 0)
    kept = incoming.groups.numbers >= 0
    kept[one_change_per_row(incoming, new)] = True
    return [(name, rows[kept[rows]]) for name, rows in groups]


def _parts(plan: WritePlan, work: FileGroupWork, wanted: int) -> list[FileGroupWork]:
    """Split the rows of one new file group into files; ``wanted`` of them keep all threads busy."""
    sizes = bulk_parts(plan, len(work.inserts), wanted)
    if len(sizes) < 2:
        return [work]
    bounds = [0, *itertools.accumulate(sizes)]
    return [
        replace(
            work,
            file_id=f"{uuid.uuid5(uuid.UUID(work.file_id[:36]), str(number))}-0",
            inserts=work.inserts[start:end],
            first_sequence=work.first_sequence + start,
        )
        for number, (start, end) in enumerate(itertools.pairwise(bounds))
    ]


def _size(work: FileGroupWork, is_mor: bool) -> int:
    """Approximate number of bytes that the work reads and writes."""
    rewritten = work.slice is not None and (len(work.inserts) > 0 or not is_mor)
    size = work.slice.base_file.size if rewritten and work.slice is not None and work.slice.base_file is not None else 0
    return size + 100 * (len(work.inserts) + len(work.base_rows))
