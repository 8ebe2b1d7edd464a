"""Records of the metadata table on Spark: tasks read the sources, one shuffle sends records to their file groups.

::

    numbers of sources ─► tasks: read, encode, route ─► (partition, file group, key, value) ─► one shuffle by file group
        ─► tasks: sorted, one record per key ─► GroupSink ─► write stats

The driver receives only write statistics of the metadata table, or the results of a visitor that compares groups and
writes nothing.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from hudi_fast.errors import HudiError
from hudi_fast.merging.row_buffer import spool_folder
from hudi_fast.metadata_table.updates.groups import GroupSink, GroupVisitor, Router, routed
from hudi_fast.metadata_table.updates.produce_base import RecordSource
from hudi_fast.metadata_table.updates.record_bins import RECORDS, Bin, Entries, GroupBins
from hudi_fast.spark.arrow import arrow_batches_of, parallelism
from hudi_fast.spark.writing.columns import addresses, pack_bins
from hudi_fast.spark.writing.tasks import Answer, is_tried_again, run_tasks, task_attempts
from hudi_fast.timeline.commit_metadata import WriteStat

__all__ = ["visit_groups", "write_records"]

_TASKS_PER_CORE = 2
_SOURCES_PER_TASK = 4
"""Approximate minimum number of sources per task, unless they are large."""

_ADDRESS = "address"
_ROUTED = pa.schema(
    [
        pa.field(_ADDRESS, pa.int32()),
        pa.field("partition", pa.string()),
        pa.field("file_group", pa.int32()),
        *RECORDS,
    ]
)
_ROUTED_SCHEMA = f"{_ADDRESS} int, partition string, file_group int, key string, value binary"

_EMPTY_RECORD = pa.table([[None], [None]], schema=RECORDS)

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Answer]


def write_records(spark: Any, sources: Sequence[RecordSource], writer: GroupSink) -> list[WriteStat]:
    """Read sources and write their records in tasks of a Spark session.

    Args:
        spark: the session.
        sources: of records.
        writer: of the file groups.
    """
    answers = _by_group(spark, sources, writer, (), partial(_write, writer=writer))
    return [stat for answer in answers for stat in answer.stats]


def visit_groups(spark: Any, sources: Sequence[RecordSource], visitor: GroupVisitor) -> Iterator[Any]:
    """Read sources and visit the file groups with their records in tasks of a Spark session.

    Args:
        spark: the session.
        sources: of records.
        visitor: of the file groups.
    """
    answers = _by_group(spark, sources, visitor, tuple(visitor.groups), partial(_visit, visitor=visitor))
    results = [each for answer in answers for each in answer.results]
    return (result for _, result in sorted(results, key=lambda one: one[0]))


def _by_group(
    spark: Any, sources: Sequence[RecordSource], router: Router, groups: tuple[Bin, ...], work: Work
) -> list[Answer]:
    """Read sources in tasks, send their records to their groups, and apply ``work`` to the records of some groups.

    ``groups`` get an empty record, which makes them known to the task that they belong to.
    """
    tasks = parallelism(spark) * _TASKS_PER_CORE
    bins = _bins(sources, tasks)
    # Sources share the context that they hold; it is sent to each worker once.
    context = getattr(spark, "_sc", None)
    packed = cloudpickle.dumps(tuple(sources))  # a merger of the user may be a function without a module
    shared: Any = packed if context is None else context.broadcast(packed)
    try:
        with arrow_batches_of(spark):
            numbers = spark.range(len(bins), numPartitions=len(bins))
            reading = _reading(shared, bins, router, groups, addresses(tasks), task_attempts(spark))
            found = numbers.mapInArrow(reading, _ROUTED_SCHEMA).repartition(tasks, _ADDRESS)
            return run_tasks(found, None, work)
    finally:
        if context is not None:
            shared.destroy()


def _bins(sources: Sequence[RecordSource], tasks: int) -> list[list[int]]:
    """The numbers of the sources that each task reads; tasks have similar total weights."""
    count = max(1, min(tasks, -(-len(sources) // _SOURCES_PER_TASK) if _is_light(sources) else len(sources)))
    weights: Mapping[str, int] = {f"{number:09}": one.weight for number, one in enumerate(sources)}
    bins: list[list[int]] = [[] for _ in range(count)]
    for name, number in pack_bins(weights, count).items():
        bins[number].append(int(name))
    return bins


def _is_light(sources: Sequence[RecordSource]) -> bool:
    return max((one.weight for one in sources), default=0) < 1 << 20


def _reading(
    shared: Any, bins: list[list[int]], writer: Router, groups: tuple[Bin, ...], slots: list[int], attempts: int
) -> Callable[[Batches], Batches]:
    """Maps numbers of tasks to addressed records. ``shared``: the pickled sources, or a broadcast variable of them."""

    def run(batches: Batches) -> Batches:
        sources = pickle.loads(getattr(shared, "value", shared))
        try:
            for task in [task for batch in batches for task in batch.column(0).to_pylist()]:
                for name in groups if task == 0 else ():
                    yield from _addressed(*name, _EMPTY_RECORD, slots)
                for number in bins[task]:
                    for records in sources[number].read(writer.schema):
                        partition = str(records.partition)
                        for group, table in routed(records, writer):
                            yield from _addressed(partition, group, table, slots)
        except HudiError as error:  # Spark would hide it inside its own
            if is_tried_again(error, attempts):
                raise
            yield from _failed(error, slots)

    return run


def _addressed(partition: str, group: int, table: pa.Table, slots: list[int]) -> Batches:
    count = table.num_rows
    slot = slots[(_number_of(partition) + group) % len(slots)]
    columns = [
        pa.array(np.full(count, slot, np.int32)),
        pa.repeat(pa.scalar(partition, pa.string()), count),
        pa.array(np.full(count, group, np.int32)),
        *table.columns,
    ]
    yield from pa.Table.from_arrays(columns, schema=_ROUTED).to_batches()


def _number_of(partition: str) -> int:
    """A number for the slot of a partition's first group, the same in every process; its other groups follow."""
    return sum(partition.encode())


def _failed(error: HudiError, slots: list[int]) -> Batches:
    values = [[slots[0]], [None], [-1], [None], [pickle.dumps(error)]]
    arrays = [pa.array(value, field.type) for value, field in zip(values, _ROUTED, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, schema=_ROUTED)


def _write(batches: Batches, writer: GroupSink) -> Answer:
    """Write addressed records."""
    with GroupBins(folder=spool_folder()) as bins:
        error = _collect(batches, bins)
        if error is not None:
            return Answer(error=error)
        stats = [writer.write(*name, bins.take(name)) for name in bins.names()]
    return Answer(stats)


def _visit(batches: Batches, visitor: GroupVisitor) -> Answer:
    """Visit the groups of addressed records."""
    with GroupBins(ordered=False, folder=spool_folder()) as bins:
        error = _collect(batches, bins)
        if error is not None:
            return Answer(error=error)
        return Answer(results=[(name, visitor.visit(*name, _without_empty(bins.take(name)))) for name in bins.names()])


def _without_empty(pieces: Iterator[Entries]) -> Iterator[Entries]:
    for keys, values in pieces:
        known = keys.is_valid()
        yield keys.filter(known), values.filter(known)


def _collect(batches: Batches, bins: GroupBins) -> HudiError | None:
    """Put addressed records into bins; returns the error of a task that read them."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        groups = np.asarray(table.column("file_group").combine_chunks())
        if (groups < 0).any():
            error: HudiError = pickle.loads(table.column("value")[int(np.argmin(groups))].as_py())
            return error
        for partition, group, start, end in _runs(table, groups):
            bins.put((partition, group), table.slice(start, end - start).select(RECORDS.names).cast(RECORDS))
    return None


def _runs(table: pa.Table, groups: np.ndarray) -> Iterator[tuple[str, int, int, int]]:
    """Runs of rows of one file group: partition, group, first row, row after the last."""
    names = table.column("partition").combine_chunks().dictionary_encode()
    codes = np.asarray(names.indices)
    cuts = np.flatnonzero((np.diff(groups) != 0) | (np.diff(codes) != 0)) + 1
    bounds = [0, *cuts.tolist(), len(groups)] if len(groups) else [0]
    for start, end in itertools.pairwise(bounds):
        yield names.dictionary[int(codes[start])].as_py(), int(groups[start]), start, end
