"""The broadcast plan: the driver decides where few rows are written, and sends them to the tasks that write them.

::

    rows ─► partition ─┬─ little to read ─► the whole partition ───────────────────────────┐
                       └─ more ─► tasks look the keys up in its slices ─► file groups ─────┴─► tasks read and write

The decisions are those of the local engine (:mod:`hudi_fast.writing.local`). Only the files are read and written
elsewhere, so a few rows may change file groups of any number and size. Rows are sent once, to all workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_fast.index.metadata_lookup import missing_index
from hudi_fast.metadata_table.state import metadata_of
from hudi_fast.spark.arrow import with_properties
from hudi_fast.spark.writing.tasks import bins_of, in_tasks, most_tasks, results_in_tasks
from hudi_fast.spark.writing.workload import stored_sizes
from hudi_fast.storage.forks import ThreadPool
from hudi_fast.timeline.commit_metadata import WriteStat
from hudi_fast.values import dataclass
from hudi_fast.view.slices import FileSlice, latest_slices
from hudi_fast.writing.assign import Runner, assign_partition, keys_of_partition
from hudi_fast.writing.file_group import write_file_group
from hudi_fast.writing.global_index import assign_table
from hudi_fast.writing.local import looks_in_table, rows_of_partitions
from hudi_fast.writing.lookup import look_up_each
from hudi_fast.writing.prepare import with_auto_keys
from hudi_fast.writing.whole_rows import refuse_unknown
from hudi_fast.writing.write_plan import FileGroupWork, Incoming, TaskToken, WritePlan

__all__ = ["bytes_to_read", "run_broadcast"]

PARTITION_BYTES = 256 << 20
"""A task takes all rows of a partition if at most this many bytes of its files are read for them: about as long as the
job takes that would look the keys up before."""

LOOKUP_BYTES = 64 << 20
"""The driver looks keys up in files of at most this many bytes."""

_THREADS = 8
"""Jobs at the same time, one for each partition whose rows belong to known file groups."""

_NEW_FILES_ONLY = frozenset({"bulk_insert", "insert_overwrite", "insert_overwrite_table"})

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Rows that one task writes.

    Attributes:
        weight: approximate number of bytes that it reads and writes.
        rows: the incoming rows, int64[n], ascending.
        partition: partition path.
        work: the file group; None for the file groups that the task chooses in the partition.
    """

    weight: float
    rows: Rows
    partition: str
    work: FileGroupWork | None = None


@dataclass(frozen=True, slots=True)
class _Share:
    """The units of one task, with row numbers of ``incoming``, which has their rows alone."""

    incoming: Incoming
    units: list[_Unit]


def run_broadcast(spark: Any, plan: WritePlan, incoming: Incoming) -> list[WriteStat]:
    """Write the rows in tasks.

    Args:
        spark: the session.
        plan: the write; its index can be used.
        incoming: all rows.

    Returns:
        One per written file.
    """
    incoming = with_auto_keys(plan, incoming, task=0)
    units = _units(spark, plan, incoming)
    bins = [numbers for numbers in bins_of([one.weight for one in units], most_tasks(spark)) if numbers]
    shares = [_share(incoming, [units[number] for number in numbers]) for numbers in bins]
    weights = [sum(one.weight for one in share.units) for share in shares]
    return in_tasks(spark, plan, shares, weights, partial(_write, plan))


def bytes_to_read(plan: WritePlan, incoming: Incoming) -> int:
    """Bytes of the stored files that may be read for the rows of a write.

    Args:
        plan: the write.
        incoming: all rows.
    """
    lacks_index = missing_index(plan.index, metadata_of(plan.view)) is not None
    if looks_in_table(plan, incoming) and (lacks_index or not plan.index.uses_records):
        return sum(stored_sizes(plan, None).values())
    return sum(_bytes_of(plan, incoming, name, rows) for name, rows in rows_of_partitions(plan, incoming))


def _bytes_of(plan: WritePlan, incoming: Incoming, partition: str, rows: Rows) -> int:
    """Bytes of the stored files that may be read for rows of one partition."""
    if plan.operation in _NEW_FILES_ONLY:
        return 0
    slices = latest_slices(plan.view, partition)
    if incoming.groups is not None:
        numbers = np.unique(incoming.groups.numbers[rows])
        read = {incoming.groups.groups[number] for number in numbers[numbers >= 0].tolist()}
        return sum(one.weight for one in slices if (one.partition, one.file_id) in read)
    weights = sorted((one.weight for one in slices), reverse=True)
    is_known = plan.index.uses_records or plan.index.bucket is not None  # a row belongs to one file group
    return sum(weights[: len(rows)] if is_known else weights)


def _units(spark: Any, plan: WritePlan, incoming: Incoming) -> list[_Unit]:
    run = _looking_up(spark)
    row_bytes = incoming.row_bytes
    if looks_in_table(plan, incoming):
        return [_unit_of(work, row_bytes) for work in assign_table(plan, incoming, run)]
    units: list[_Unit] = []
    large: list[tuple[str, Rows]] = []
    for name, rows in rows_of_partitions(plan, incoming):
        size = _bytes_of(plan, incoming, name, rows)
        if size > PARTITION_BYTES:
            large.append((name, rows))
        else:
            units.append(_Unit(size + row_bytes * len(rows), rows, name))
    return units + [_unit_of(work, row_bytes) for work in _works(spark, plan, incoming, large, run)]


def _works(
    spark: Any, plan: WritePlan, incoming: Incoming, groups: list[tuple[str, Rows]], run: Runner
) -> list[FileGroupWork]:
    """The file groups of rows by partition: one job looks up the keys of all partitions where indexes leave it open."""
    parts = {
        number: (latest_slices(plan.view, name), keys)
        for number, (name, rows) in enumerate(groups)
        if (keys := keys_of_partition(plan, incoming, rows)) is not None
    }
    found = dict(zip(parts, look_up_each(plan, list(parts.values()), run), strict=True))

    def assign(number: int) -> list[FileGroupWork]:
        name, rows = groups[number]
        return assign_partition(plan, name, incoming, rows, TaskToken(number), run, matches=found.get(number))

    with ThreadPool(min(_THREADS, max(1, len(groups))), thread_name_prefix="hudi_fast") as pool:
        return [work for works in pool.map(with_properties(spark, assign), range(len(groups))) for work in works]


def _unit_of(work: FileGroupWork, row_bytes: float) -> _Unit:
    rows = work.rows()
    return _Unit((0 if work.slice is None else work.slice.weight) + row_bytes * len(rows), rows, work.partition, work)


def _looking_up(spark: Any) -> Runner:
    """``map`` for lookups in slices, as tasks unless there is little to read."""

    def run(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        every = list(items)
        weights = [_weight(one) for one in every]
        if sum(weights) <= LOOKUP_BYTES:
            return [function(one) for one in every]
        return results_in_tasks(spark, every, weights, function)

    return run


def _weight(item: Any) -> int:
    """Bytes of the slice of a lookup: an object with the attribute ``slice``, or a tuple that begins with either."""
    first = item[0] if isinstance(item, tuple) else item
    slice_: FileSlice | None = first if isinstance(first, FileSlice) else first.slice
    return 0 if slice_ is None else slice_.weight


def _share(incoming: Incoming, units: Sequence[_Unit]) -> _Share:
    rows = np.unique(np.concatenate([one.rows for one in units]))
    numbers = np.full(incoming.count, -1, dtype=np.int64)
    numbers[rows] = np.arange(len(rows))
    moved = [
        replace(one, rows=numbers[one.rows], work=None if one.work is None else one.work.renumbered(numbers))
        for one in units
    ]
    return _Share(incoming.subset(rows), moved)


def _write(plan: WritePlan, share: _Share, token: TaskToken) -> list[WriteStat]:
    stats: list[WriteStat] = []
    sequence = 0
    for unit in share.units:
        if unit.work is None:
            works = assign_partition(plan, unit.partition, share.incoming, unit.rows, token, first_sequence=sequence)
        else:
            works = [replace(unit.work, token=token, first_sequence=sequence)]
        refuse_unknown(plan, share.incoming, works)
        for work in works:
            stats += write_file_group(plan, work, share.incoming)
            sequence += len(work.base_rows) + len(work.inserts)
    return stats
